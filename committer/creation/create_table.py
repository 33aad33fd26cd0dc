"""Creates a table: its place, its first metadata, its pointer in the catalog.

If an answer is lost, the same creation is sent again: a catalog knows its own table by that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from committer.creation.new_namespace import with_namespace
from committer.errors import CatalogUnavailableError, InvalidMetadataError, UnsupportedError
from committer.iceberg.metadata.location_properties import LOCATION_PROPERTIES, AllowedLocations
from committer.iceberg.metadata.metadata_gzip import writes_gzip
from committer.iceberg.metadata.table_metadata import new_table_metadata
from committer.iceberg.schema.partition_spec import UNPARTITIONED, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED, SortOrder
from committer.iceberg.values.locations import (
    comparable_location,
    metadata_file_location,
    metadata_folder,
)
from committer.ports.capability_checks import check_location, check_namespace
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import LoadedTable
from committer.ports.world import World, spread_s
from committer.request.table_identifier import TableIdentifier
from committer.table_defaults import NEW_TABLE_PROPERTIES

_RETRY_DELAYS_S = (0.2, 0.4, 0.8, 1.6)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """A table that is wanted. `location`: empty where namespace or catalog decide."""

    identifier: TableIdentifier
    schema: Schema
    partition_spec: PartitionSpec = UNPARTITIONED
    sort_order: SortOrder = UNSORTED
    properties: Mapping[str, str]
    format_version: int = 2
    location: str = ""


async def create_table(
    catalog: Catalog,
    world: World,
    new: NewTable,
    *,
    place: str,
    inbox: str,
    locations: str = "",
) -> LoadedTable:
    """Create the table, and its namespace if there is none; return it as the catalog has it then.

    `place`: the folder of new tables; empty where the catalog knows. `inbox`: its location.
    `locations`: the setting of that name; empty: tables may be below `place` alone. A folder that
    the catalog itself names, for a namespace, is always allowed.
    Errors: `ValueError` for a location or shape that cannot be, `UnsupportedError` for what the
    catalog cannot do; `TableAlreadyExistsError`, also where another was faster.
    """
    can = catalog.capabilities
    chosen = (new.location, *places_of(new.properties))
    refuse_around_inbox(inbox, list(filter(None, chosen)))
    check_namespace(can, new.identifier.namespace)
    check_location(can, new.location)
    allowed = AllowedLocations.of(locations, place=place, inbox=inbox)
    if new.location:
        _refuse(allowed.table_refusal(new.location))
    async with with_namespace(catalog, new.identifier.namespace):
        where = new.location or await _default_location(catalog, new.identifier, place)
        table = _first_table(world, new, where)
        refuse_around_inbox(inbox, [table.metadata.location])
        metadata = table.metadata
        _refuse(allowed.property_refusal(metadata.properties, metadata.location))
        await _create(catalog, world, table)
    # The catalog may have put it elsewhere.
    return await catalog.load(new.identifier)


def places_of(properties: Mapping[str, str]) -> list[str]:
    """Return the locations that properties name."""
    return [properties[key] for key in LOCATION_PROPERTIES if properties.get(key)]


def refuse_around_inbox(inbox: str, places: list[str]) -> None:
    """Refuse folders of a table around the inbox. Errors: `ValueError`."""
    for place in places:
        if comparable_location(inbox).is_within(comparable_location(place)):
            raise ValueError(
                f"inbox `{inbox}` lies inside `{place}`: an engine's orphan clean-up could remove"
                " requests"
            )


def _refuse(refusal: str | None) -> None:
    if refusal is not None:
        raise ValueError(refusal)


async def _default_location(catalog: Catalog, identifier: TableIdentifier, place: str) -> str:
    """Return the location where namespace or warehouse want it."""
    default = "/".join((place, *identifier.namespace, identifier.name))
    if catalog.capabilities.chooses_locations:
        return default
    folder = await catalog.default_location(identifier.namespace)
    if folder is None and not place:
        raise ValueError("the catalog names no folder for the namespace's tables: pass a location")
    return f"{folder.rstrip('/')}/{identifier.name}" if folder else default


def _first_table(world: World, new: NewTable, location: str) -> LoadedTable:
    try:
        metadata = new_table_metadata(
            table_uuid=world.uuid(),
            location=location,
            schema=new.schema,
            partition_spec=new.partition_spec,
            sort_order=new.sort_order,
            properties={**NEW_TABLE_PROPERTIES, **new.properties},
            format_version=new.format_version,
            now_ms=world.now_ms(),
        )
    except (InvalidMetadataError, UnsupportedError) as error:
        raise ValueError(str(error)) from None
    folder = metadata_folder(metadata.location, metadata.properties)
    gzip = writes_gzip(metadata.properties)
    first = metadata_file_location(folder, 0, world.uuid(), gzip=gzip)
    return LoadedTable(new.identifier, metadata, first)


async def _create(catalog: Catalog, world: World, table: LoadedTable) -> None:
    """Create it; send the same creation again if an answer got lost."""
    for delay_s in _RETRY_DELAYS_S:
        try:
            return await catalog.create_table(table)
        except CatalogUnavailableError:
            await world.sleep(spread_s(delay_s, world))
    return await catalog.create_table(table)
