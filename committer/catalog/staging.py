"""Writes and reads the metadata file that a pointer names, for all catalogs.

The first metadata of a new table, and reading the metadata that a pointer names. No pointer is read
or moved here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from committer.errors import CatalogUnavailableError, InvalidMetadataError, NotFoundError
from committer.iceberg.metadata.metadata_check import check_new_table
from committer.iceberg.metadata.table_metadata import (
    TableMetadata,
    parse_table_metadata,
    print_metadata_file,
)
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject, Storage, create_or_equal
from committer.request.table_identifier import TableIdentifier

# A thousand snapshots take some ten milliseconds, which would block the event loop.
_READ_AT_ONCE_BYTES = 256 * 1024
# Snapshots and properties, some microseconds each where they were not printed before.
_PRINTED_AT_ONCE = 4_096
# Each round needs a foreign commit that also deleted the file in the moment between two reads.
_ROUNDS_MAX = 10


def metadata_object(metadata: TableMetadata, location: str) -> NewObject:
    """Return a table's metadata file. Equal input gives equal bytes, so a repeat is recognized."""
    return NewObject(location, print_metadata_file(metadata, location))


async def printed_metadata(metadata: TableMetadata, location: str) -> NewObject:
    """Return a metadata file as `metadata_object`; one of a long history from a thread."""
    if len(metadata.snapshots) + len(metadata.properties) < _PRINTED_AT_ONCE:
        return metadata_object(metadata, location)
    return await asyncio.to_thread(metadata_object, metadata, location)


async def write_first_metadata(storage: Storage, table: LoadedTable) -> bool:
    """Make a new table's metadata durable; False if an earlier call with this table had done so.

    Errors: `AlreadyExistsError` where another content has the location.
    """
    return await create_or_equal(
        storage, await printed_metadata(table.metadata, table.metadata_location)
    )


async def read_table(
    storage: Storage,
    identifier: TableIdentifier,
    metadata_location: str,
    *,
    size_bytes_max: int | None = None,
) -> LoadedTable:
    """Read the metadata file at a location. Absent: `NotFoundError`; larger than `size_bytes_max`:
    `ObjectTooLargeError`."""
    content = await storage.get(metadata_location, size_bytes_max=size_bytes_max)
    try:
        if len(content) < _READ_AT_ONCE_BYTES:
            metadata = parse_table_metadata(content)
        else:
            metadata = await asyncio.to_thread(parse_table_metadata, content)
    except InvalidMetadataError as error:
        raise InvalidMetadataError(f"table {identifier}: {metadata_location}: {error}") from error
    return LoadedTable(identifier, metadata, metadata_location)


async def read_registered(
    storage: Storage, identifier: TableIdentifier, metadata_location: str
) -> LoadedTable:
    """Read the metadata file that a table is to begin with. Absent: `NotFoundError`. Errors also
    for a table whose files no reader could read (`check_new_table`)."""
    try:
        table = await read_table(storage, identifier, metadata_location)
    except NotFoundError as error:
        raise NotFoundError(
            f"table {identifier}: there is no metadata file {metadata_location}"
        ) from error
    try:
        check_new_table(table.metadata)
    except InvalidMetadataError as error:
        raise InvalidMetadataError(f"table {identifier}: {error}") from None
    return table


async def load_table(
    storage: Storage,
    identifier: TableIdentifier,
    current_location: Callable[[TableIdentifier], Awaitable[str]],
) -> LoadedTable:
    """Read the pointer, then the metadata that it names.

    A writer may replace the pointer and delete the old metadata file between the two reads; then
    the pointer has moved, and its new value is followed.
    """
    location = await current_location(identifier)
    for _ in range(_ROUNDS_MAX):
        try:
            return await read_table(storage, identifier, location)
        except NotFoundError as error:
            current = await current_location(identifier)
            if current == location:
                raise InvalidMetadataError(
                    f"table {identifier}: its metadata file {location} does not exist: restore it,"
                    " or point the table to an earlier one"
                ) from error
            location = current
    raise CatalogUnavailableError(f"table {identifier}: the pointer moves faster than we can read")
