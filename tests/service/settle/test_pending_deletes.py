"""Inbox keys to delete, and the proof of each."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from committer.plan.ledger.high_water_mark import HighWaterMark
from committer.service.requests.inbox_keys import InboxKey
from committer.service.settle.pending_deletes import PendingDeletes, Proof


def test_what_was_seen_before_a_decision_is_not_proven_by_what_was_seen_after_it() -> None:
    seen = HighWaterMark(UUID(int=1), sequence_number=3)
    later = replace(seen, forgotten_ms=5)
    leaving = PendingDeletes()
    for number, one in enumerate((seen, later, seen)):
        leaving.requeue(Proof(one, [InboxKey(f"key-{number}")]))
    assert [(one.seen, one.keys) for one in leaving.take()] == [
        (seen, ["key-0", "key-2"]),
        (later, ["key-1"]),
    ]
