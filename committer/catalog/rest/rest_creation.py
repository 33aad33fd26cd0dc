"""Creates a table in a REST catalog: registers a metadata file, or asks the server to make one.

To register keeps the table's uuid and location. Where the server does not offer it, or the first
metadata file cannot be written, the table is staged, as Iceberg Java does it: the server says which
uuid and location it will have, and a commit that requires its absence makes it. Some servers refuse
such a commit for any other uuid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from committer.catalog.namespaces import found_or_none, name_taken
from committer.catalog.rest.client.rest_client import RestClient
from committer.catalog.rest.client.rest_paths import REGISTER, identifier_json
from committer.catalog.rest.rest_reader import RestReader
from committer.catalog.rest.rest_table import read_table_answer
from committer.catalog.staging import write_first_metadata
from committer.errors import (
    AccessError,
    NoSuchNamespaceError,
    NotFoundError,
    TableAlreadyExistsError,
)
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.partition_spec import print_partition_spec
from committer.iceberg.schema.schema import print_schema
from committer.iceberg.schema.sort_order import print_sort_order
from committer.iceberg.updates.creation import updates_that_create
from committer.iceberg.updates.metadata_update_json import print_requirement, print_update
from committer.iceberg.updates.requirement import AssertCreate
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import Storage
from committer.request.table_identifier import TableIdentifier

# A server that does not stage tables.
_NOT_STAGED = frozenset((404, 405, 406, 501))


@dataclass(frozen=True, slots=True)
class RestCreation:
    """Makes tables."""

    client: RestClient
    storage: Storage
    reader: RestReader

    async def create(self, table: LoadedTable) -> None:
        """Make a table in a namespace that is there. Errors: as `Catalog.create_table`."""
        if self.client.paths.offers(REGISTER) and await self._create_by_file(table):
            return
        await self._create_by_commit(table)

    async def _create_by_file(self, table: LoadedTable) -> bool:
        """Write the first metadata file and register it. False where this process may not write
        there.
        """
        try:
            created = await write_first_metadata(self.storage, table)
        except AccessError:
            return False
        try:
            await self.register(table.identifier, table.metadata_location)
        except (NoSuchNamespaceError, TableAlreadyExistsError):
            # Surely not applied, and no other process knows a file that this call wrote.
            if created:
                await self.storage.delete((table.metadata_location,))
            raise
        return True

    async def _create_by_commit(self, table: LoadedTable) -> None:
        identifier = table.identifier
        made = await self._staged(table)
        body = {
            "identifier": identifier_json(identifier),
            "requirements": [print_requirement(AssertCreate())],
            "updates": [print_update(one) for one in updates_that_create(made)],
        }
        answer = await self.client.change("POST", self.client.paths.table(identifier), body)
        if answer.status == 409:
            found = await found_or_none(self.reader.load(identifier))
            if found is not None and found.metadata.table_uuid == made.table_uuid:
                return  # an earlier call's answer was lost
            raise await self.taken(identifier)
        answer.require_success()

    async def _staged(self, table: LoadedTable) -> TableMetadata:
        """Return the table with the uuid and the location that the server wants it to have."""
        metadata = table.metadata
        body = {
            "name": table.identifier.name,
            "location": metadata.location,
            "schema": print_schema(metadata.current_schema),
            "partition-spec": print_partition_spec(metadata.default_spec),
            "write-order": print_sort_order(metadata.default_sort_order),
            "stage-create": True,
            "properties": {**metadata.properties, "format-version": str(metadata.format_version)},
        }
        path = self.client.paths.tables(table.identifier.namespace)
        answer = await self.client.change("POST", path, body)
        if answer.status in _NOT_STAGED:
            return metadata
        if answer.status == 409:
            found = await found_or_none(self.reader.load(table.identifier))
            if found is None or found.metadata.table_uuid != metadata.table_uuid:
                raise await self.taken(table.identifier)
            return metadata
        answer.require_success()
        staged = (await read_table_answer(answer, table.identifier)).table.metadata
        return replace(metadata, table_uuid=staged.table_uuid, location=staged.location)

    async def register(self, identifier: TableIdentifier, location: str) -> LoadedTable:
        """Register a table. Errors: `TableAlreadyExistsError`, unless by this very pointer."""
        body = {"name": identifier.name, "metadata-location": location}
        path = self.client.paths.register(identifier.namespace)
        answer = await self.client.change("POST", path, body)
        if answer.is_success:
            return self.reader.keep(await read_table_answer(answer, identifier))
        if answer.status == 409:
            found = await found_or_none(self.reader.load(identifier))
            if found is not None and found.metadata_location == location:
                return found
            raise await self.taken(identifier)
        if answer.is_error(404, "NotFoundException"):
            raise NotFoundError(f"table {identifier}: there is no metadata file {location}")
        raise answer.as_error()

    async def taken(self, identifier: TableIdentifier) -> TableAlreadyExistsError:
        """Return the error for a name that the server says is taken."""
        if await found_or_none(self.reader.load(identifier)) is not None:
            return name_taken(identifier)
        return TableAlreadyExistsError(
            f"the name {identifier} is taken, though the catalog shows no table there: a view, or a"
            " dropped table that it keeps for a while (soft delete); restore or purge it there, or"
            " take another name"
        )
