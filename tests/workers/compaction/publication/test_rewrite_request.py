"""The answers to the request of a rewrite."""

from __future__ import annotations

import pytest

from committer.reason import Reason
from committer.request.receipt_model import Receipt, ReceiptState
from workers.compaction.publication.rewrite_request import NotLanded, read_answer


def test_a_commit_is_its_receipt() -> None:
    landed = Receipt("p", 0, "a", ReceiptState.COMMITTED, snapshot_id=7)
    assert read_answer(landed) is landed


@pytest.mark.parametrize(
    ("reason", "in_doubt"),
    [(Reason.CONFLICT, False), (Reason.PLAN_FAILED, True), (Reason.SIGNATURE_MISSING, True)],
)
def test_only_a_conflict_is_sure_never_to_land(reason: Reason, in_doubt: bool) -> None:
    receipt = Receipt("p", 0, "a", ReceiptState.QUARANTINED, reason=reason, message="no")
    assert read_answer(receipt) == NotLanded(f"{reason}: no", in_doubt)
