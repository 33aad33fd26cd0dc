"""Builds the receipts of requests for their producers."""

from __future__ import annotations

from committer.ledger_entry import Landed
from committer.request.commit_request import CommitRequest
from committer.request.receipt_model import Receipt, ReceiptState
from committer.request.request_key import RequestKey


def committed_receipt(request: CommitRequest, landed: Landed) -> Receipt:
    """Build the answer to a request whose epoch has landed, by this attempt or another."""
    return Receipt(
        request.producer.id,
        request.epoch,
        str(request.attempt),
        ReceiptState.COMMITTED,
        snapshot_id=landed.snapshot_id,
        sequence_number=landed.sequence_number,
        duplicate=landed.attempt != request.attempt,
    )


def quarantined_receipt(request: RequestKey, reason: str, message: str) -> Receipt:
    """Build the answer to a request in quarantine, of which only the key may be readable."""
    return Receipt(
        request.producer,
        request.epoch,
        str(request.attempt),
        ReceiptState.QUARANTINED,
        reason=reason,
        message=message,
    )
