"""Caches tables on the driver: the pointer is read each time, metadata only after it moved.

One cache lives as long as its process's connections. The use of a table is not known here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import orjson

from committer.iceberg.metadata.table_metadata import (
    TableMetadata,
    parse_table_metadata,
    parse_table_metadata_json,
)
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import Storage
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier

OpenCatalog = Callable[[], Awaitable[Catalog]]
"""Returns the catalog, which the first call may open."""

_HISTORY = frozenset(
    {"metadata-log", "partition-statistics", "refs", "snapshot-log", "snapshots", "statistics"}
)


class TableCache:
    """The newest metadata seen of each table, with no snapshots but the heads of its branches."""

    def __init__(self, *, open_catalog: OpenCatalog, storage: Storage, world: World) -> None:
        self._open_catalog = open_catalog
        self._storage = storage
        self._world = world
        self._tables: dict[TableIdentifier, LoadedTable] = {}
        self._seen_s: dict[TableIdentifier, float] = {}

    def known_since(self, identifier: TableIdentifier, *, age_s_max: float) -> LoadedTable | None:
        """Return the table as it was seen in this last time; None if it was not."""
        seen_s = self._seen_s.get(identifier)
        is_recent = seen_s is not None and self._world.monotonic_s() - seen_s < age_s_max
        return self._tables[identifier] if is_recent else None

    async def current(self, identifier: TableIdentifier) -> LoadedTable:
        """Load the table as its pointer names it now, unless it is known.
        Absent: `NoSuchTableError`."""
        catalog = await self._open_catalog()
        location = await catalog.current_location(identifier)
        known = self._tables.get(identifier)
        if known is None or known.metadata_location != location:
            known = await self._read(catalog, identifier, location)
            self._tables[identifier] = known
        self._seen_s[identifier] = self._world.monotonic_s()
        return known

    async def _read(
        self, catalog: Catalog, identifier: TableIdentifier, location: str
    ) -> LoadedTable:
        if catalog.capabilities.metadata_writer == "catalog":
            # Its metadata may be in no file that can be read from here.
            return await catalog.load(identifier)
        metadata = parse_without_history(await self._storage.get(location))
        return LoadedTable(identifier, metadata, location)


def opened(catalog: Catalog) -> OpenCatalog:
    """Return a catalog that is open as one that could be opened late."""

    async def open_catalog() -> Catalog:
        return catalog

    return open_catalog


def parse_without_history(content: bytes) -> TableMetadata:
    """Parse a table as if it had the heads of its branches alone: a writer needs no other snapshot,
    and thousands of them, read again in each micro-batch of a busy table, would cost it more than
    its rows do.
    """
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        return parse_table_metadata(content)  # gzipped, or broken: it knows
    if isinstance(document, dict):
        kept = {key: value for key, value in document.items() if key not in _HISTORY}
        document = kept | _heads(document)
    return parse_table_metadata_json(document)


def _heads(document: Mapping[str, object]) -> dict[str, object]:
    """Return the branches, and the snapshots that they or `current-snapshot-id` name."""
    refs, snapshots = document.get("refs"), document.get("snapshots")
    branches = {
        name: ref
        for name, ref in (refs.items() if isinstance(refs, dict) else ())
        if isinstance(ref, dict) and ref.get("type") == "branch"
    }
    ids = {
        document.get("current-snapshot-id"),
        *(one.get("snapshot-id") for one in branches.values()),
    }
    heads = [
        one
        for one in (snapshots if isinstance(snapshots, list) else ())
        if isinstance(one, dict) and one.get("snapshot-id") in ids
    ]
    return {"refs": branches, "snapshots": heads}
