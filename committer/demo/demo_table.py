"""Makes the demo's tables by the project's own parts, before any writer starts."""

from __future__ import annotations

from dataclasses import replace

from committer.creation import create_table as creation
from committer.creation.create_table import NewTable
from committer.demo.demo_catalog import place_of_tables
from committer.demo.writers.flight_changes import TABLE_COLUMNS
from committer.demo.writers.flights import PARTITIONED_BY, iceberg_schema
from committer.errors import TableAlreadyExistsError
from committer.iceberg.schema.table_text import parse_partition
from committer.request.table_identifier import TableIdentifier
from committer.service.process.composition import open_parts
from committer.settings.service_settings import Settings

TABLE = TableIdentifier.parse("demo.flights")
LATEST = TableIdentifier.parse("demo.latest")
"""Of the second act: the latest state of each flight."""


def flights_table() -> NewTable:
    schema = iceberg_schema()
    spec = parse_partition(PARTITIONED_BY, schema)
    return NewTable(identifier=TABLE, schema=schema, partition_spec=spec, properties={})


def latest_table() -> NewTable:
    return NewTable(identifier=LATEST, schema=iceberg_schema(TABLE_COLUMNS), properties={})


async def create_table(settings: Settings, new: NewTable) -> None:
    """Create a table in a catalog that is made if need be, in the folder that the demo chooses.

    Errors: `QueueUnavailableError`, `SettingsError` if the queue server is not fit for use: without
    it everything would work too, but at another pace than what the demo is to show.
    `TableAlreadyExistsError` in a catalog that the user chose.
    """
    place, table = place_of_tables(settings.catalog.all_properties, settings.home), new.identifier
    placed = replace(new, location="/".join((place, *table.namespace, table.name)))
    parts = await open_parts(settings)
    try:
        if parts.queue is not None:
            await parts.queue.probe()
        await creation.create_table(
            parts.catalog, parts.world, placed, place=place, inbox=settings.inbox
        )
    except TableAlreadyExistsError as error:
        raise TableAlreadyExistsError(_taken(settings, table)) from error
    finally:
        await parts.close()


def _taken(settings: Settings, table: TableIdentifier) -> str:
    name = settings.catalog.name
    return (
        f"the demo makes the table {table}, and catalog `{name}` has one: drop it"
        f" (`frazil --catalog {name} table drop {table}`), or choose another catalog"
    )
