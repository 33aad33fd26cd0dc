"""Finds the objects below a table's folders that nothing names, and removes those that it is told
to.

Waiting requests are read before the table: a request that leaves the inbox in the meantime is in
the table by then. Before each removal everything new is read again: an object that has been named
since stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

from committer.errors import (
    InvalidMetadataError,
    InvalidRequestError,
    NoSuchTableError,
    NotFoundError,
    UnsupportedError,
)
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.values.locations import comparable_location
from committer.plan.cleanup.expiry import may_delete_files
from committer.plan.cleanup.orphan_search import (
    Kind,
    Names,
    SearchScope,
    claimed_places,
    kind_of,
    manifests_named_by,
    name_metadata,
    name_request,
    name_snapshots,
    spans_version,
    without_checksum,
)
from committer.plan.ledger.high_water_mark import missing_from
from committer.plan.ledger.ledger import read_ledger
from committer.plan.ledger.state import TableState
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject, ObjectInfo, Storage
from committer.ports.world import World
from committer.request.request_format import EncodedRequest, read_request
from committer.request.table_identifier import TableIdentifier
from committer.service.requests.inbox_keys import parsed
from committer.service.requests.reading import answer
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from committer.storage.inbox.inbox import Inbox, Quarantine
from committer.storage.inbox.journal import ExpiryEntry, GarbageEntry, Journal
from committer.storage.inbox.replays import Replays

LOADS_AT_ONCE = 16
REMOVED_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Orphan:
    """An object that nothing names. `why_it_stays`: why it is never removed, if it is not.

    `is_outside` the table's own location: a table of another catalog may write there too.
    """

    location: str
    kind: Kind
    size_bytes: int
    modified_ms: int
    is_outside: bool
    why_it_stays: str | None


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything that can name files, and the places where files are."""

    catalog: Catalog
    storage: Storage
    replays: Replays
    journal: Journal
    high_water_marks: HighWaterMarkStore
    world: World
    inbox_root: str


class OrphanFinder:
    """One look at one table: `look_around`, `refresh`, then `find`."""

    def __init__(self, sources: Sources, table: LoadedTable) -> None:
        self._sources = sources
        self._names = Names()
        self._read: set[str] = set()
        self._known: set[str] = set()
        self._ground = SearchScope((), (), ())
        self._missing: tuple[str, ...] = ()
        self.table = table
        self.unreadable: list[str] = []

    @classmethod
    async def of(cls, sources: Sources, identifier: TableIdentifier) -> OrphanFinder:
        """Open the finder of a table. Errors: those of `Catalog.load`."""
        return cls(sources, await sources.catalog.load(identifier))

    @property
    def uuid(self) -> UUID:
        return self.table.metadata.require_uuid()

    async def look_around(self) -> SearchScope:
        """Find where the orphans of this table are to be looked for.

        Errors: `UnsupportedError` where another table cannot be read.
        """
        others = [self._sources.inbox_root]
        async for other in other_tables(self._sources.catalog, self.table.identifier):
            others += claimed_places(other.metadata)
        self._ground = SearchScope.of(self.table.metadata, others)
        return self._ground

    async def refresh(self) -> None:
        """Read what names files, so far as it has not been read.

        Errors: `InvalidMetadataError` where the table or the journal cannot be read, or is another
        table now.
        """
        sources, self.unreadable = self._sources, []
        # Of all tables: one that is dropped may have had the same folder.
        async for place, key in sources.replays.all_durable():
            if (parts := parsed(key)) is not None:
                self._names.add_attempt(parts.attempt)
            if key not in self._known and key.startswith(f"{self.uuid}/"):
                await self._name_waiting(place, key)
        await self._name_journal()
        await self._name_table()

    async def _name_waiting(self, waiting: Inbox | Quarantine, key: str) -> None:
        """Note each waiting request; one that cannot be read is reported,
        because its files are unknown.
        """
        try:
            sealed = await _request(waiting, key)
            if sealed is not None:
                named = manifests_named_by(sealed.request)
                contents = [await self._sources.storage.get(location) for location in named]
                await asyncio.to_thread(name_request, sealed, contents, self._names)
        except (InvalidRequestError, InvalidMetadataError, UnsupportedError, NotFoundError):
            self.unreadable.append(key)
        else:
            self._known.add(key)

    async def _name_journal(self) -> None:
        """Leave out files that an expiry or the garbage collector is about to delete."""
        async for entry in self._sources.journal.list(self.uuid):
            match entry:
                case ExpiryEntry():
                    await self._name_snapshots(entry.snapshots, missing_is_error=False)
                    for file in entry.statistics:
                        self._names.add(file.statistics_path)
                case GarbageEntry():
                    for location in (*entry.own_files, *entry.manifests):
                        self._names.add(location)

    async def _name_table(self) -> None:
        # The table, read afterwards, has everything that the high-water mark has, unless it went
        # backwards.
        high_water_mark = await self._sources.high_water_marks.read(self.uuid)
        table = await self._sources.catalog.load(self.table.identifier)
        if table.metadata.table_uuid != self.uuid:
            raise InvalidMetadataError(f"{table.identifier} is another table now")
        self.table = table
        self._missing = tuple(islice(missing_from(TableState.of(table), high_water_mark), 1))
        name_metadata(table, self._names)
        await self._name_snapshots(table.metadata.snapshots, missing_is_error=True)

    async def _name_snapshots(
        self, snapshots: Sequence[Snapshot], *, missing_is_error: bool
    ) -> None:
        reading = name_snapshots(
            snapshots, self._names, self._read, missing_is_error=missing_is_error
        )
        await answer(reading, self._sources.storage)

    async def find(self, *, before_ms: int) -> AsyncIterator[Orphan]:
        """Yield objects that nothing names, older than `before_ms` by the storage's clock."""
        for folder in self._ground.folders:
            async for found in self._sources.storage.list(folder):
                if found.modified_ms >= before_ms or self._ground.is_foreign(found.location):
                    continue
                if without_checksum(found.location) not in self._names:
                    yield self._orphan(found)

    def _orphan(self, found: ObjectInfo) -> Orphan:
        kind = kind_of(found.location, self.table.metadata)
        own = comparable_location(self.table.metadata.location)
        return Orphan(
            found.location,
            kind,
            found.size_bytes,
            found.modified_ms,
            not comparable_location(found.location).is_within(own),
            self._why_it_stays(found.location, kind),
        )

    def _why_it_stays(self, location: str, kind: Kind) -> str | None:
        if self._names.holds_alike(without_checksum(location)):
            return "a file of this name is in use, or waits to be"
        is_spanned = spans_version(self.table, without_checksum(location))
        if is_spanned:
            return "a writer may look for this version, or create it again"
        writer = self._sources.catalog.capabilities.metadata_writer
        if is_spanned is None and kind is Kind.METADATA_FILE and writer == "catalog":
            return "the catalog writes and deletes metadata files"
        return "its kind is unknown" if kind is Kind.OTHER else None

    # --- Removing ---

    def why_not_remove(self) -> str | None:
        """Return why nothing may be removed now; None if it may."""
        if self.unreadable:
            return (
                "these requests cannot be read, so their files are unknown:"
                f" {', '.join(self.unreadable[:3])}"
                f" ({len(self.unreadable)} in all); discard or mend them first"
            )
        if self._missing:
            return f"the table went backwards, its files may be wanted back: {self._missing[0]}"
        metadata = self.table.metadata
        frozen = read_ledger(metadata).frozen
        if frozen:
            return "producers are frozen, and an operator may want their files back: decide first"
        if not may_delete_files(metadata.properties):
            return "the table forbids it (`gc.enabled=false`)"
        return None

    async def storage_now_ms(self) -> int:
        """Read the clock that dates objects: a wrong local clock would age all of them."""
        name = f"{self._sources.inbox_root.rstrip('/')}/upkeep/clock/{self._sources.world.uuid()}"
        await self._sources.storage.create((NewObject(name, b""),))
        try:
            return (await self._sources.storage.head(name)).modified_ms
        finally:
            await self._sources.storage.delete((name,))

    async def remove(self, orphans: Sequence[Orphan]) -> list[Orphan]:
        """Remove those that still nothing names, and return them.

        Errors: `UnsupportedError` where nothing may be removed any more; those of `refresh`.
        """
        removed = []
        for start in range(0, len(orphans), REMOVED_AT_ONCE):
            await self.refresh()
            reason = self.why_not_remove()
            if reason is not None:
                raise UnsupportedError(f"nothing more is removed: {reason}")
            batch = [one for one in orphans[start : start + REMOVED_AT_ONCE] if self._is_sure(one)]
            await self._sources.storage.delete([one.location for one in batch])
            removed += batch
        return removed

    def _is_sure(self, orphan: Orphan) -> bool:
        stays = self._why_it_stays(orphan.location, orphan.kind) is not None
        return not stays and without_checksum(orphan.location) not in self._names


async def _request(waiting: Inbox | Quarantine, key: str) -> EncodedRequest | None:
    """Read a request; None for an answer of which no request is kept, and if it has left this place
    meanwhile: it is read from its next place.
    """
    try:
        found = await waiting.get(key)
    except NotFoundError:
        return None
    if isinstance(found, bytes):
        return read_request(found, key=key)
    record, content = found
    return None if record.is_told_only else read_request(content, key=key)


async def other_tables(catalog: Catalog, but: TableIdentifier) -> AsyncIterator[LoadedTable]:
    """Yield all other tables of a catalog.
    Errors: `UnsupportedError` for one that cannot be read."""
    for namespace in await catalog.list_namespaces():
        others = [one for one in await catalog.list_tables(namespace) if one != but]
        for start in range(0, len(others), LOADS_AT_ONCE):
            loads = (_load(catalog, one) for one in others[start : start + LOADS_AT_ONCE])
            for table in await asyncio.gather(*loads):
                if table is not None:
                    yield table


async def _load(catalog: Catalog, identifier: TableIdentifier) -> LoadedTable | None:
    try:
        return await catalog.load(identifier)
    except NoSuchTableError:
        return None  # dropped meanwhile
    except (InvalidMetadataError, UnsupportedError, NotFoundError) as error:
        raise UnsupportedError(f"the files of {identifier} cannot be located: {error}") from error
