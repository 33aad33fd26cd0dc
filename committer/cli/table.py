"""`frazil table`: look at tables. Making one is `table_create.py`, its name `table_names.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.options import AsJson, TableArgument
from committer.cli.table_create import create
from committer.cli.table_names import drop, register, rename

if TYPE_CHECKING:
    from committer.ports import LoadedTable
    from committer.service.parts import Parts

app = typer.Typer(help="Make tables, name them and look at them.", no_args_is_help=True)
app.command()(create)
app.command()(register)
app.command()(rename)
app.command()(drop)

SnapshotOption = Annotated[
    int | None, typer.Option("--snapshot", metavar="ID", help="Of this snapshot, not the current.")
]
RefOption = Annotated[
    str | None, typer.Option("--ref", metavar="NAME", help="Of this branch or tag.")
]


@app.command("list")
def list_(
    namespace: Annotated[str | None, typer.Argument(help="A namespace: db.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the tables of a namespace, or of all."""
    from committer.cli.printing import print_json_lines, print_table
    from committer.cli.session import run_with_parts
    from committer.request import TableIdentifier

    async def tables(parts: Parts) -> list[TableIdentifier]:
        catalog = parts.catalog
        wanted = [tuple(namespace.split("."))] if namespace else await catalog.list_namespaces()
        return [table for name in wanted for table in await catalog.list_tables(name)]

    found = run_with_parts(tables)
    if as_json:
        print_json_lines(
            {"table": str(one), "namespace": one.namespace, "name": one.name} for one in found
        )
    else:
        print_table(("table",), [(one,) for one in found])


@app.command()
def show(name: TableArgument, as_json: AsJson = False) -> None:
    """Show where a table is, how it is partitioned and sorted, and its properties."""
    from committer.cli.metadata_view import describe_table, metadata_facts
    from committer.cli.printing import print_json
    from committer.cli.printing import show as show_views
    from committer.cli.view import Facts

    table = _load(name)
    if as_json:
        print_json(describe_table(table))
        return
    facts = {**metadata_facts(table.metadata), "metadata location": table.metadata_location}
    properties = dict(table.metadata.properties)
    show_views([Facts(str(table.identifier), facts), Facts("properties", properties)])


@app.command()
def schema(name: TableArgument, as_json: AsJson = False) -> None:
    """Show the current schema; --json prints the specification's JSON form."""
    from committer.cli.metadata_view import schema_rows
    from committer.cli.printing import print_json
    from committer.cli.printing import show as show_views
    from committer.iceberg.schema import print_schema

    current = _load(name).metadata.current_schema
    if as_json:
        print_json(print_schema(current))
    else:
        show_views([schema_rows(current)])


@app.command()
def snapshots(name: TableArgument, as_json: AsJson = False) -> None:
    """List the snapshots that the table still has, oldest first."""
    from committer.cli.describe import describe_snapshot
    from committer.cli.metadata_view import snapshot_rows
    from committer.cli.printing import print_json_lines
    from committer.cli.printing import show as show_views

    metadata = _load(name).metadata
    if as_json:
        print_json_lines(describe_snapshot(one, metadata) for one in metadata.snapshots)
    else:
        show_views([snapshot_rows(metadata)])


@app.command()
def history(name: TableArgument, as_json: AsJson = False) -> None:
    """List which snapshot became current when."""
    from committer.cli.metadata_view import describe_history
    from committer.cli.printing import print_json_lines, print_table, time_text

    changes = describe_history(_load(name).metadata)
    if as_json:
        print_json_lines(changes)
        return
    print_table(
        ("made current", "snapshot id", "parent", "is ancestor of current"),
        [
            (time_text(timestamp_ms), *rest)
            for timestamp_ms, *rest in (tuple(change.values()) for change in changes)
            if isinstance(timestamp_ms, int)
        ],
    )


@app.command()
def files(
    name: TableArgument,
    snapshot: SnapshotOption = None,
    ref: RefOption = None,
    as_json: AsJson = False,
) -> None:
    """List the data and delete files of a snapshot; --json adds the metrics of each."""
    from committer.cli.describe import describe_live_file
    from committer.cli.live_files import file_row, live_files
    from committer.cli.printing import print_json_lines, print_table
    from committer.cli.session import parse_identifier, run_with_parts

    identifier = parse_identifier(name)
    found = run_with_parts(lambda parts: live_files(parts, identifier, snapshot, ref))
    if as_json:
        print_json_lines(describe_live_file(*one) for one in found)
    else:
        headers = ("content", "records", "bytes", "seq", "partition", "path")
        print_table(headers, [file_row(*one) for one in found])


def _load(name: str) -> LoadedTable:
    from committer.cli.session import parse_identifier, run_with_parts

    identifier = parse_identifier(name)
    return run_with_parts(lambda parts: parts.catalog.load(identifier))
