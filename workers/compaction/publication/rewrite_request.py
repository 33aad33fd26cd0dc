"""The request of a rewrite of files: who sends it, and what its answer means.

Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from committer.errors import AccessError, PublishError, TransientError
from committer.iceberg.entry.data_file import DataFile
from committer.reason import Reason
from committer.request.needs import Needs
from committer.request.receipt_model import Receipt, ReceiptState
from workers.branches.attempt_identity import AttemptIdentity
from workers.branches.branch_state import BranchState
from workers.requests.blocking_publisher import borrow_publisher
from workers.requests.publisher import PublishPolicy


@dataclass(frozen=True, slots=True)
class NotLanded:
    """The reason for which a request did not land. `in_doubt`: it may have, or may yet; else it was
    in conflict, and no request names its files.
    """

    why: str
    in_doubt: bool


def send_rewrite(
    state: BranchState,
    identity: AttemptIdentity,
    needs: Needs,
    files: Sequence[DataFile],
    wait_timeout_s: float,
) -> Receipt | NotLanded:
    """Publish a rewrite and wait for its answer: the receipt of a commit."""
    epoch = identity.written_epoch(state, "rewrite-files", needs, files)
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
