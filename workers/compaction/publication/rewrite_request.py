"""The request of a rewrite of files: who sends it, and what its answer means.

Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from committer.errors import AccessError, PublishError, TransientError
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.real_world import RealWorld
from committer.reason import Reason
from committer.request.attempt import attempt_of, timed_nonce
from committer.request.commit_request import Fingerprint, Producer
from committer.request.needs import Needs
from committer.request.receipt_model import Receipt, ReceiptState
from workers.branches.branch_state import BranchState
from workers.requests.blocking_publisher import borrow_publisher
from workers.requests.publisher import PublishPolicy
from workers.requests.written_epoch import WrittenEpoch


def _fresh_nonce() -> UUID:
    world = RealWorld()
    return timed_nonce(world.now_ms(), world.uuid())


@dataclass(frozen=True, slots=True)
class PartIdentity:
    """The sender of one request: a one-shot producer of its own, so that requests land in any
    order and the ledger keeps none of them for long."""

    application: str | None
    nonce: UUID = field(default_factory=_fresh_nonce)

    @property
    def producer(self) -> Producer:
        return Producer(id=str(self.nonce), name=self.application, one_shot=True)

    def attempt(self, metadata: TableMetadata, branch: str) -> str:
        """Return the attempt, which the names of its files carry."""
        return str(attempt_of(metadata.require_uuid(), branch, self.producer.id, 0, self.nonce))


def application_name(spark: Any) -> str | None:
    """Return what the user calls the application, as far as it can be shown."""
    name = spark.conf.get("spark.app.name", None)
    return "".join(filter(str.isprintable, name or ""))[:100] or None


@dataclass(frozen=True, slots=True)
class NotLanded:
    """Why a request did not land. `in_doubt`: it may have, or may yet; else it was in conflict, and
    no request names its files."""

    why: str
    in_doubt: bool


def send_rewrite(
    state: BranchState,
    identity: PartIdentity,
    needs: Needs,
    files: Sequence[DataFile],
    wait_timeout_s: float,
) -> Receipt | NotLanded:
    """Publish a rewrite and wait for its answer: the receipt of a commit."""
    epoch = WrittenEpoch(
        identifier=state.table,
        table_uuid=state.metadata.require_uuid(),
        schema_id=state.metadata.current_schema.schema_id,
        producer=identity.producer,
        epoch=0,
        nonce=identity.nonce,
        fingerprint=Fingerprint(kind="epoch", value="0"),
        files=files,
        operation="rewrite-files",
        needs=needs,
        branch=state.branch,
    )
    policy = PublishPolicy("continue", "committed", wait_timeout_s)
    try:
        with borrow_publisher(state.settings) as publisher:
            return read_answer(publisher.publish(epoch, policy))
    except (PublishError, TransientError, AccessError) as error:
        return NotLanded(str(error), in_doubt=True)


def read_answer(receipt: Receipt) -> Receipt | NotLanded:
    """Tell a commit from a refusal. A conflict is only told: the request is never kept, nor lands
    later. Any other request that was refused may be replayed."""
    if receipt.state != ReceiptState.QUARANTINED:
        return receipt
    why = f"{receipt.reason}: {receipt.message}"
    return NotLanded(why, in_doubt=receipt.reason != Reason.CONFLICT)
