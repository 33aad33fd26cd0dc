"""Makes the demo's tables by the project's own parts, before any writer starts."""

from __future__ import annotations

from dataclasses import dataclass

from committer.demo.demo_catalog import place_of_tables
from committer.demo.writers.flight_changes import TABLE_COLUMNS
from committer.demo.writers.flights import PARTITIONED_BY, iceberg_schema
from committer.errors import TableAlreadyExistsError
from committer.iceberg.metadata.table_metadata import new_table_metadata
from committer.iceberg.schema.partition_spec import UNPARTITIONED, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.schema.table_text import parse_partition
from committer.iceberg.values.locations import metadata_file_location, metadata_folder
from committer.ports.pointer_swap import LoadedTable
from committer.request.table_identifier import TableIdentifier
from committer.service.process.composition import Parts, open_parts
from committer.settings.service_settings import Settings
from committer.table_defaults import NEW_TABLE_PROPERTIES


@dataclass(frozen=True, slots=True)
class TableShape:
    """A table of the demo before it has rows; of format version 2."""

    identifier: TableIdentifier
    schema: Schema
    partition_spec: PartitionSpec


TABLE = TableIdentifier.parse("demo.flights")
LATEST = TableIdentifier.parse("demo.latest")
"""Of the second act: the latest state of each flight."""


def flights_table() -> TableShape:
    schema = iceberg_schema()
    return TableShape(TABLE, schema, parse_partition(PARTITIONED_BY, schema))


def latest_table() -> TableShape:
    return TableShape(LATEST, iceberg_schema(TABLE_COLUMNS), UNPARTITIONED)


async def create_table(settings: Settings, shape: TableShape) -> None:
    """Create a table in a catalog that is made if need be.

    Errors: `QueueUnavailableError`, `SettingsError` if the queue server is not fit for use: without
    it everything would work too, but at another pace than what the demo is to show.
    `TableAlreadyExistsError` in a catalog that the user chose.
    """
    parts = await open_parts(settings)
    try:
        if parts.queue is not None:
            await parts.queue.probe()
        await parts.catalog.create_namespace(shape.identifier.namespace)
        try:
            await parts.catalog.create_table(_first_table(parts, shape))
        except TableAlreadyExistsError as error:
            raise TableAlreadyExistsError(_taken(settings, shape.identifier)) from error
    finally:
        await parts.close()


def _taken(settings: Settings, table: TableIdentifier) -> str:
    name = settings.catalog.name
    return (
        f"the demo makes the table {table}, and catalog `{name}` has one: drop it"
        f" (`frazil --catalog {name} table drop {table}`), or choose another catalog"
    )


def _first_table(parts: Parts, shape: TableShape) -> LoadedTable:
    table = shape.identifier
    settings = parts.settings
    place = place_of_tables(settings.catalog.all_properties, settings.home)
    metadata = new_table_metadata(
        table_uuid=parts.world.uuid(),
        location="/".join((place, *table.namespace, table.name)),
        schema=shape.schema,
        partition_spec=shape.partition_spec,
        sort_order=UNSORTED,
        properties=NEW_TABLE_PROPERTIES,
        format_version=2,
        now_ms=parts.world.now_ms(),
    )
    folder = metadata_folder(metadata.location, metadata.properties)
    first = metadata_file_location(folder, 0, parts.world.uuid())
    return LoadedTable(table, metadata, first)
