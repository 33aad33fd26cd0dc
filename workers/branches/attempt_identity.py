"""One attempt at changing a branch: who makes it, and its request.

Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from committer.iceberg.entry.data_file import DataFile
from committer.request.attempt import attempt_of
from committer.request.commit_request import Fingerprint, Producer
from committer.request.needs import Needs, Operation
from workers.branches.branch_state import BranchState
from workers.branches.fresh_nonce import fresh_nonce
from workers.requests.written_epoch import WrittenEpoch

_ONLY_EPOCH = Fingerprint(kind="epoch", value="0")


@dataclass(frozen=True, slots=True)
class AttemptIdentity:
    """The producer and the epoch of one attempt."""

    nonce: UUID
    producer: Producer
    epoch: int = 0
    fingerprint: Fingerprint = _ONLY_EPOCH

    @classmethod
    def one_shot(cls, application: str | None) -> Self:
        """Make a producer of its own for one request, so that requests land in any order and the
        ledger keeps none of them for long."""
        nonce = fresh_nonce()
        return cls(nonce, Producer(id=str(nonce), name=application, one_shot=True))

    def attempt(self, state: BranchState) -> str:
        """Return the attempt, which the names of its files carry."""
        uuid = state.metadata.require_uuid()
        return str(attempt_of(uuid, state.branch, self.producer.id, self.epoch, self.nonce))

    def written_epoch(
        self, state: BranchState, operation: Operation, needs: Needs, files: Sequence[DataFile]
    ) -> WrittenEpoch:
        """Return the request for a publisher."""
        return WrittenEpoch(
            identifier=state.table,
            table_uuid=state.metadata.require_uuid(),
            schema_id=state.metadata.current_schema.schema_id,
            producer=self.producer,
            epoch=self.epoch,
            nonce=self.nonce,
            fingerprint=self.fingerprint,
            files=files,
            operation=operation,
            needs=needs,
            branch=state.branch,
            create_branch=state.destination.create_branch,
            stage_only=state.destination.stage_only,
            summary=state.destination.summary,
        )
