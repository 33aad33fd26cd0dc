"""Makes the demo's table by the project's own parts, before any writer starts."""

from __future__ import annotations

from committer.demo.demo_catalog import place_of_tables
from committer.demo.writers.flights import iceberg_schema, partition_spec
from committer.errors import TableAlreadyExistsError
from committer.iceberg.metadata.table_metadata import new_table_metadata
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.values.locations import metadata_file_location, metadata_folder
from committer.ports.pointer_swap import LoadedTable
from committer.request.table_identifier import TableIdentifier
from committer.service.process.composition import Parts, open_parts
from committer.settings.service_settings import Settings
from committer.table_defaults import NEW_TABLE_PROPERTIES

TABLE = TableIdentifier.parse("demo.flights")


async def create_table(settings: Settings) -> None:
    """Create a partitioned table of format version 2 in a catalog that is made if need be.

    Errors: `QueueUnavailableError`, `SettingsError` if the queue server is not fit for use: without
    it everything would work too, but at another pace than what the demo is to show.
    `TableAlreadyExistsError` in a catalog that the user chose.
    """
    parts = await open_parts(settings)
    try:
        if parts.queue is not None:
            await parts.queue.probe()
        await parts.catalog.create_namespace(TABLE.namespace)
        try:
            await parts.catalog.create_table(_first_table(parts))
        except TableAlreadyExistsError as error:
            raise TableAlreadyExistsError(_taken(settings)) from error
    finally:
        await parts.close()


def _taken(settings: Settings) -> str:
    name = settings.catalog.name
    return (
        f"the demo makes the table {TABLE}, and catalog `{name}` has one: drop it"
        f" (`frazil --catalog {name} table drop {TABLE}`), or choose another catalog"
    )


def _first_table(parts: Parts) -> LoadedTable:
    schema = iceberg_schema()
    settings = parts.settings
    place = place_of_tables(settings.catalog.all_properties, settings.home)
    metadata = new_table_metadata(
        table_uuid=parts.world.uuid(),
        location="/".join((place, *TABLE.namespace, TABLE.name)),
        schema=schema,
        partition_spec=partition_spec(schema),
        sort_order=UNSORTED,
        properties=NEW_TABLE_PROPERTIES,
        format_version=2,
        now_ms=parts.world.now_ms(),
    )
    folder = metadata_folder(metadata.location, metadata.properties)
    first = metadata_file_location(folder, 0, parts.world.uuid())
    return LoadedTable(TABLE, metadata, first)
