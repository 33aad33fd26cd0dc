"""Looks in manifest lists, and for changes without a snapshot in earlier metadata files, for the
proof that an epoch landed, where the ledger has forgotten it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import chain, islice

from committer.catalog.staging import read_table
from committer.errors import (
    AccessError,
    InvalidMetadataError,
    NotFoundError,
    ObjectTooLargeError,
    UnsupportedError,
)
from committer.iceberg.metadata.snapshot import Snapshot
from committer.ledger_entry import Landed, property_key
from committer.plan.ledger.evidence import (
    EpochEvidence,
    holds_without_snapshot,
    may_lack_snapshot,
    read_evidence,
    snapshots_with_evidence,
    staged_with_evidence,
)
from committer.plan.ledger.ledger import Duplicate, Ledger, NotLanded, compare, read_ledger
from committer.plan.ledger.state import TableState
from committer.ports.storage import Storage
from committer.request.commit_request import CommitRequest

# A crash leaves many requests of few snapshots behind: each list is read once.
REMEMBERED_MAX = 200
READS_AT_ONCE = 32
# Of a metadata file that is read for a proof.
METADATA_BYTES_MAX = 64 * 1024 * 1024
_UNREADABLE = (
    *(NotFoundError, AccessError, InvalidMetadataError),
    *(ObjectTooLargeError, UnsupportedError),
)


class EvidenceReader:
    """Reads the evidence of one table's snapshots, which never changes."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._read: dict[int, EpochEvidence] = {}

    async def find(self, state: TableState, request: CommitRequest) -> Landed | None:
        """Find where an epoch landed, as far as retained history shows.
        Errors: those of the storage.

        Snapshots prove it first. If the request may have none of its own there, the metadata file
        in which its epoch was new has its entry of the ledger in full.

        An epoch that landed with several contents, since an operator accepted it: with this one.
        """
        newest: Landed | None = None
        async for evidence in self._newest_first(state, request):
            landed = evidence.get((request.producer.id, request.epoch))
            if landed is None:
                continue
            if isinstance(compare(landed, request), Duplicate):
                return landed
            newest = newest or landed
        if newest is None and may_lack_snapshot(request):
            return await self._in_metadata_log(state, request)
        return newest

    async def landed_in(self, state: TableState, request: CommitRequest) -> int | None:
        """Return the snapshot in which this very attempt has landed, if it is not behind a
        rollback, and as far as the search goes. Errors: as `find`.
        """
        key = property_key(request.producer.id, request.branch)
        entry = state.ledger.entries.get(key)
        known = entry.latest if entry is not None and key not in state.ledger.broken else ()
        for one in known:
            if one.attempt == request.attempt:
                return one.snapshot_id
        async for evidence in self._newest_first(state, request):
            landed = evidence.get((request.producer.id, request.epoch))
            if landed is not None and landed.attempt == request.attempt:
                return landed.snapshot_id
        if may_lack_snapshot(request):
            landed = await self._in_metadata_log(state, request)
            if landed is not None and landed.attempt == request.attempt:
                return landed.snapshot_id
        return None

    async def _newest_first(
        self, state: TableState, request: CommitRequest
    ) -> AsyncIterator[EpochEvidence]:
        """Yield the evidence of each snapshot that may be the request's, the staged ones of a
        request that stages first. Read ever more at once: commits wait for it.
        """
        metadata, branch = state.metadata, request.branch
        staged = staged_with_evidence(metadata, branch) if request.stage_only else iter(())
        left, at_once = chain(staged, snapshots_with_evidence(metadata, branch)), 1
        while some := list(islice(left, at_once)):
            for evidence in await asyncio.gather(*map(self.evidence_of, some)):
                yield evidence
            at_once = min(2 * at_once, READS_AT_ONCE)

    async def evidence_of(self, snapshot: Snapshot) -> EpochEvidence:
        """Return the epochs that landed in one snapshot. Errors: those of the storage."""
        known = self._read.get(snapshot.snapshot_id)
        if known is not None:
            return known
        try:
            content = await self._storage.get(snapshot.manifest_list or "")
        except NotFoundError:
            return {}
        found = self._read[snapshot.snapshot_id] = read_evidence(content, snapshot)
        while len(self._read) > REMEMBERED_MAX:
            del self._read[next(iter(self._read))]
        return found

    async def _in_metadata_log(self, state: TableState, request: CommitRequest) -> Landed | None:
        """Return what the ledger said of an epoch when it was new. Errors: those of the storage.

        A ledger that has heard of an epoch does not unlearn it, so that few files are read.
        """
        if isinstance(state.ledger.ask(request), NotLanded):
            return None
        log = state.metadata.metadata_log
        first, stop, newest = 0, len(log), None
        while first < stop:
            middle = (first + stop) // 2
            ledger = await self._earlier_ledger(log[middle].metadata_file, state)
            if ledger is None or isinstance(ledger.ask(request), NotLanded):
                first = middle + 1
            else:
                stop, newest = middle, ledger
        key = property_key(request.producer.id, request.branch)
        entry = newest.entries.get(key) if newest is not None else None
        landed = None if entry is None else entry.landed(request.epoch)
        if landed is None or not holds_without_snapshot(request, landed, state.metadata):
            return None
        return landed

    async def _earlier_ledger(self, location: str, state: TableState) -> Ledger | None:
        """Return the ledger of a metadata file; None without one that can be read: those that are
        gone are the oldest of the log, and a catalog server may keep its own out of reach.
        """
        try:
            table = await read_table(
                self._storage, state.table.identifier, location, size_bytes_max=METADATA_BYTES_MAX
            )
        except _UNREADABLE:
            return None
        return read_ledger(table.metadata)
