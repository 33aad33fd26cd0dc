"""`frazil table create`: from what was typed to the first metadata of a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.command_session import parse_identifier, run_with_parts, usage_error
from committer.cli.context.common_options import TableArgument
from committer.cli.context.operator_audit import ReasonOption, recorded_on_table
from committer.cli.output.printing import say
from committer.errors import AccessError, InvalidMetadataError, StorageUnavailableError

if TYPE_CHECKING:
    from committer.creation.create_table import NewTable
    from committer.iceberg.schema.schema import Schema
    from committer.ports.pointer_swap import LoadedTable
    from committer.request.table_identifier import TableIdentifier
    from committer.service.process.composition import Parts


def create(
    name: TableArgument,
    schema: Annotated[
        str,
        typer.Option(
            help='Columns such as "id long not null, name string", or a JSON file in the'
            " specification's form."
        ),
    ],
    partition: Annotated[str, typer.Option(help='Such as "month(at), bucket(8, name)".')] = "",
    sort_order: Annotated[str, typer.Option(help='Such as "at desc nulls last, id".')] = "",
    properties: Annotated[
        list[str] | None, typer.Option("--property", metavar="KEY=VALUE", help="May be repeated.")
    ] = None,
    format_version: Annotated[int, typer.Option(min=1, max=3)] = 2,
    location: Annotated[
        str,
        typer.Option(
            help="In a folder of the setting security.locations. Default: the namespace's own, else"
            " <warehouse>/<namespace>/<name>."
        ),
    ] = "",
    reason: ReasonOption = None,
) -> None:
    """Make a table, and its namespace if there is none."""
    from committer.cli.tables.table_properties import parse_properties, refuse_long_keys
    from committer.creation.create_table import create_table
    from committer.creation.retention_notice import retention_notice

    identifier = parse_identifier(name)
    if "/" in name or not name.isprintable():
        raise typer.BadParameter(f"`{name}`: expected a name without `/` and control characters")
    own = parse_properties(properties or (), hint="--property")
    shape = _parse_shape(identifier, schema, partition, sort_order)
    new = replace(shape, properties=own, format_version=format_version, location=location)

    async def work(parts: Parts) -> tuple[LoadedTable, str]:
        refuse_long_keys(own, parts.catalog.capabilities)
        place = parts.settings.catalog.all_properties.place
        with _named_warehouse(place), usage_error():
            async with recorded_on_table(parts, "table create", identifier, reason, is_new=True):
                created = await create_table(
                    parts.catalog,
                    parts.world,
                    new,
                    place=place,
                    inbox=parts.settings.inbox,
                    locations=parts.settings.security.locations,
                )
        return created, retention_notice(new, parts.catalog.capabilities)

    created, notice = run_with_parts(work, create=True)
    say(f"created {identifier} at {created.metadata.location}")
    if notice:
        say(notice)


def _parse_shape(
    identifier: TableIdentifier, schema: str, partition: str, sort_order: str
) -> NewTable:
    """Parse the wanted schema, partitions and order. Errors: `typer.BadParameter`."""
    from committer.creation.create_table import NewTable
    from committer.iceberg.schema.partition_spec import UNPARTITIONED
    from committer.iceberg.schema.sort_order import UNSORTED
    from committer.iceberg.schema.table_text import parse_partition, parse_sort_order

    with usage_error():
        columns = _parse_schema(schema)
        return NewTable(
            identifier=identifier,
            schema=columns,
            partition_spec=parse_partition(partition, columns) if partition else UNPARTITIONED,
            sort_order=parse_sort_order(sort_order, columns) if sort_order else UNSORTED,
            properties={},
        )


def _parse_schema(text: str) -> Schema:
    """Parse columns as typed, the specification's JSON, or the name of a file with that."""
    import orjson

    from committer.iceberg.schema.schema import parse_schema
    from committer.iceberg.schema.table_text import parse_columns

    if not text.lstrip().startswith("{"):
        path = Path(text)
        if not text.endswith(".json") and (" " in text.strip() or not path.is_file()):
            return parse_columns(text)
        try:
            text = path.read_text()
        except OSError as error:
            raise ValueError(f"schema file `{path}`: {error.strerror}") from None
    try:
        return parse_schema(orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise ValueError(f"the schema is not JSON: {error}") from None
    except InvalidMetadataError as error:
        raise ValueError(str(error)) from None


@contextmanager
def _named_warehouse(place: str) -> Iterator[None]:
    """Say which setting names the warehouse, if a place below it cannot be used."""
    from committer.settings.setting_names import naming_setting

    try:
        yield
    except (AccessError, StorageUnavailableError) as error:
        if not place or place not in str(error):
            raise
        raise type(error)(naming_setting("catalog.warehouse", error)) from error
