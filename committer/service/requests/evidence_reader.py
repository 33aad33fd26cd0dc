"""Looks in manifest lists for the proof that an epoch landed, where the ledger has forgotten it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import islice

from committer.errors import NotFoundError
from committer.iceberg.metadata.snapshot import Snapshot
from committer.ledger_entry import Landed, property_key
from committer.plan.ledger.evidence import EpochEvidence, read_evidence, snapshots_with_evidence
from committer.plan.ledger.ledger import Duplicate, compare
from committer.plan.ledger.state import TableState
from committer.ports.storage import Storage
from committer.request.commit_request import CommitRequest

# A crash leaves many requests of few snapshots behind: each list is read once.
REMEMBERED_MAX = 200
READS_AT_ONCE = 32


class EvidenceReader:
    """Reads the evidence of one table's snapshots, which never changes."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._read: dict[int, EpochEvidence] = {}

    async def find(self, state: TableState, request: CommitRequest) -> Landed | None:
        """Find where an epoch landed, as far as retained history shows.
        Errors: those of the storage.

        An epoch that landed with several contents, since an operator accepted it: with this one.
        """
        newest: Landed | None = None
        async for evidence in self._newest_first(state, request.branch):
            landed = evidence.get((request.producer.id, request.epoch))
            if landed is None:
                continue
            if isinstance(compare(landed, request), Duplicate):
                return landed
            newest = newest or landed
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
        async for evidence in self._newest_first(state, request.branch):
            landed = evidence.get((request.producer.id, request.epoch))
            if landed is not None and landed.attempt == request.attempt:
                return landed.snapshot_id
        return None

    async def _newest_first(self, state: TableState, branch: str) -> AsyncIterator[EpochEvidence]:
        """Yield the evidence of each snapshot. Read ever more at once: commits wait for it."""
        left, at_once = snapshots_with_evidence(state.metadata, branch), 1
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
