"""Tables as the driver last saw them: the pointer is read each time, metadata only when it moved.

One cache lives as long as its process's connections. What is done with a table is not known here.
"""

from __future__ import annotations

from committer.iceberg.table_metadata import parse_table_metadata
from committer.ports import Catalog, LoadedTable, Storage
from committer.request import TableIdentifier


class TableCache:
    """The newest metadata seen of each table."""

    def __init__(self, *, catalog: Catalog, storage: Storage) -> None:
        self._catalog = catalog
        self._storage = storage
        self._tables: dict[TableIdentifier, LoadedTable] = {}

    async def current(self, identifier: TableIdentifier) -> LoadedTable:
        """The table as its pointer names it now. Absent: `NoSuchTableError`."""
        location = await self._catalog.current_location(identifier)
        known = self._tables.get(identifier)
        if known is None or known.metadata_location != location:
            metadata = parse_table_metadata(await self._storage.get(location))
            known = LoadedTable(identifier, metadata, location)
            self._tables[identifier] = known
        return known

    def last_seen(self, identifier: TableIdentifier) -> LoadedTable | None:
        """The table as `current` last found it; costs nothing."""
        return self._tables.get(identifier)
