"""The part of the port `Catalog` that is the same wherever the back end keeps pointers only.

Frazil then writes the metadata files, and reads the one that a pointer names. No pointer is moved
here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from committer.catalog.staging import load_table, metadata_object, write_first_metadata
from committer.catalog.swap_groups import no_groups
from committer.errors import NoSuchNamespaceError, TableAlreadyExistsError
from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.ports.pointer_swap import GroupAnswer, LoadedTable, Swap
from committer.ports.storage import NewObject, Storage
from committer.request.table_identifier import TableIdentifier


class PointerCatalog(ABC):
    """A catalog of pointers to metadata files on `storage`."""

    capabilities: CatalogCapabilities

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @abstractmethod
    async def current_location(self, identifier: TableIdentifier) -> str:
        """Read the pointer, as `Catalog.current_location`."""

    async def load(self, identifier: TableIdentifier) -> LoadedTable:
        return await load_table(self._storage, identifier, self.current_location)

    def objects_before(self, swap: Swap) -> tuple[NewObject, ...]:
        return (metadata_object(swap.metadata, swap.metadata_location),)

    async def swap_together(self, swaps: Sequence[Swap]) -> GroupAnswer:
        """Refuse: most back ends have no transaction over several tables."""
        raise no_groups(self.capabilities, swaps)

    @asynccontextmanager
    async def _first_metadata(self, table: LoadedTable) -> AsyncIterator[None]:
        """Write a new table's metadata file for a call that makes its pointer. It is deleted if
        that is refused: the call was surely not applied then, and no other process knows a file
        that was written now.
        """
        created = await write_first_metadata(self._storage, table)
        try:
            yield
        except (NoSuchNamespaceError, TableAlreadyExistsError):
            if created:
                await self._storage.delete((table.metadata_location,))
            raise
