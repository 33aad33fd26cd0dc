"""Looks in manifest lists for the proof that an epoch landed, where the ledger has forgotten it."""

from __future__ import annotations

from committer.errors import NotFoundError
from committer.iceberg.snapshot import Snapshot
from committer.ledger_entry import Landed
from committer.plan.evidence import EpochEvidence, read_evidence, snapshots_with_evidence
from committer.plan.state import TableState
from committer.ports import Storage
from committer.request import CommitRequest

# A crash leaves many requests of few snapshots behind: each list is read once.
REMEMBERED_MAX = 200


class EvidenceReader:
    """Reads the evidence of one table's snapshots, which never changes."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._read: dict[int, EpochEvidence] = {}

    async def find(self, state: TableState, request: CommitRequest) -> Landed | None:
        """Where an epoch landed, as far as retained history shows. Errors: those of the storage."""
        for snapshot in snapshots_with_evidence(state.metadata, request.branch):
            evidence = await self._evidence_of(snapshot)
            landed = evidence.get((request.producer.id, request.epoch))
            if landed is not None:
                return landed
        return None

    async def _evidence_of(self, snapshot: Snapshot) -> EpochEvidence:
        known = self._read.get(snapshot.snapshot_id)
        if known is not None:
            return known
        try:
            content = await self._storage.get(snapshot.manifest_list or "")
        except NotFoundError:
            return {}
        if len(self._read) >= REMEMBERED_MAX:
            self._read.clear()
        found = self._read[snapshot.snapshot_id] = read_evidence(content, snapshot)
        return found
