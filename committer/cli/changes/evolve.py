"""`frazil table evolve`: change schema, partitions, sort order and properties beside running
streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from committer.cli.changes.send import Order, WaitOptions, send
from committer.cli.context.command_session import read_settings, usage_error
from committer.cli.context.common_options import TableArgument
from committer.cli.context.option_groups import grouped
from committer.cli.output.printing import counted

_Texts = list[str] | None
_Document = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ColumnOptions:
    """Changes of columns."""

    add_column: Annotated[
        _Texts,
        typer.Option(
            "--add-column",
            metavar="'NAME TYPE'",
            help="Add one, also to a struct: 'place.zip string'. Behind the type there may be"
            " `not null`, `default VALUE` and `comment 'TEXT'`. May be repeated, as all of these.",
        ),
    ] = None
    union: Annotated[
        str | None,
        typer.Option(
            "--union-by-name",
            metavar="COLUMNS",
            help="Add the columns, and take the wider types, that these have: 'id long, at date'.",
        ),
    ] = None
    widen: Annotated[
        _Texts,
        typer.Option("--widen", metavar="'NAME TYPE'", help="Give one a wider type: 'id long'."),
    ] = None
    optional: Annotated[
        _Texts, typer.Option("--optional", metavar="NAME", help="Let one be null.")
    ] = None
    default: Annotated[
        _Texts,
        typer.Option(
            "--default",
            metavar="NAME=VALUE",
            help="Its value in rows written without it from now on: version 3.",
        ),
    ] = None
    doc: Annotated[
        _Texts, typer.Option("--doc", metavar="NAME=TEXT", help="Write something about one.")
    ] = None
    move: Annotated[
        _Texts,
        typer.Option("--move", metavar="'A after B'", help="Or 'A before B', or 'A first'."),
    ] = None
    identifier: Annotated[
        str | None,
        typer.Option("--identifier-fields", metavar="A,B", help="What identifies a row; '': none."),
    ] = None
    drop: Annotated[_Texts, typer.Option("--drop", metavar="NAME", help="Drop a column.")] = None
    rename: Annotated[
        _Texts,
        typer.Option("--rename", metavar="OLD=NEW", help="Rename one, after all other changes."),
    ] = None


@dataclass(frozen=True, slots=True)
class LayoutOptions:
    """Changes of the layout, and of the table as a whole."""

    format_version: Annotated[
        int | None,
        typer.Option("--format-version", min=1, max=3, help="Upgrade the table. No way back."),
    ] = None
    add_partition: Annotated[
        _Texts,
        typer.Option(
            "--add-partition-field",
            metavar="TERM",
            help="Partition new files: 'bucket(16, id)', 'day(at) as day'.",
        ),
    ] = None
    drop_partition: Annotated[
        _Texts,
        typer.Option("--drop-partition-field", metavar="NAME", help="Partition by it no more."),
    ] = None
    rename_partition: Annotated[
        _Texts, typer.Option("--rename-partition-field", metavar="OLD=NEW", help="Rename one.")
    ] = None
    sort_order: Annotated[
        str | None,
        typer.Option("--sort-order", metavar="TERMS", help="'at desc, bucket(8, id)'; '': none."),
    ] = None
    set_: Annotated[_Texts, typer.Option("--set", metavar="KEY=VALUE", help="Set a property.")] = (
        None
    )
    unset: Annotated[_Texts, typer.Option("--unset", metavar="KEY", help="Remove a property.")] = (
        None
    )


@grouped
def evolve(
    table: TableArgument,
    columns: ColumnOptions,
    layout: LayoutOptions,
    waiting: WaitOptions,
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", help="Find columns in any case.")
    ] = False,
) -> None:
    """Change a table's schema, partitions, sort order and properties, all or nothing.

    The change takes its turn between the requests of producers, and none has to stop: what was
    published before is checked against the table before it, the rest against the table after it.
    No change rewrites data. Frazil's own properties are for `frazil table set`.
    """
    with usage_error():
        documents = list(_documents(columns, layout))
    if not documents:
        raise typer.BadParameter("expected a change, such as --add-column 'tail string'")
    if ignore_case:
        documents = [_in_any_case(one) for one in documents]
    done = f"{counted(len(documents), 'change')} done"
    send(Order("table evolve", table, done, documents), waiting)


def _documents(columns: ColumnOptions, layout: LayoutOptions) -> Iterator[_Document]:
    """Order them so that each finds what it rests on, under the names from before."""
    from committer.cli.changes import evolve_text as text
    from committer.cli.tables.table_properties import check_keys

    if layout.format_version is not None:
        yield {"action": "upgrade-format-version", "format-version": layout.format_version}
    yield from _named("remove-partition-field", layout.drop_partition)
    yield from _each(text.rename_partition_field, layout.rename_partition)
    if columns.union is not None:
        yield text.union_by_name(columns.union)
    yield from _each(text.add_column, columns.add_column)
    yield from _each(text.widen, columns.widen)
    yield from _each(text.default, columns.default)
    yield from _each(text.doc, columns.doc)
    yield from _each(text.move, columns.move)
    if columns.identifier is not None:
        yield text.identifier_fields(columns.identifier)
    yield from _named("make-column-optional", columns.optional)
    if layout.sort_order is not None:
        yield text.sort_order(layout.sort_order)
    yield from _each(text.add_partition_field, layout.add_partition)
    yield from _named("drop-column", columns.drop)
    yield from _each(text.rename, columns.rename)
    if layout.set_:
        yield {"action": "set-properties", "updates": _properties(layout.set_)}
    if layout.unset:
        check_keys(layout.unset, hint="--unset")
        yield {"action": "remove-properties", "removals": layout.unset}


def _properties(pairs: Sequence[str]) -> Mapping[str, str]:
    """Parse properties, and check them as `frazil table set` does."""
    from committer.cli.tables.table_properties import parse_properties
    from committer.cli.tables.table_set import refuse_inbox_inside

    properties = parse_properties(pairs, hint="--set")
    refuse_inbox_inside(read_settings().inbox, properties)
    return properties


def _each(parse: Callable[[str], _Document], texts: Sequence[str] | None) -> Iterator[_Document]:
    return map(parse, texts or ())


def _named(action: str, names: Sequence[str] | None) -> Iterator[_Document]:
    return ({"action": action, "name": name} for name in names or ())


def _in_any_case(document: _Document) -> _Document:
    columns = {"name", "names", "source", "fields", "schema"}
    of_partition = {"remove-partition-field", "rename-partition-field"}
    takes_columns = columns & document.keys() and document["action"] not in of_partition
    return {**document, "case-sensitive": False} if takes_columns else document
