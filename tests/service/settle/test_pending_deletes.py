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
    assert [(one.seen, one.keys) for one in leaving.take(0.0)] == [
        (seen, ["key-0", "key-2"]),
        (later, ["key-1"]),
    ]


def test_what_is_not_due_yet_holds_up_no_other_and_takes_what_joins_it_along() -> None:
    seen, other = HighWaterMark(UUID(int=1)), HighWaterMark(UUID(int=2))
    leaving = PendingDeletes()
    leaving.requeue(Proof(seen, [InboxKey("key-0")], due_s=5.0))
    leaving.requeue(Proof(other, [InboxKey("key-1")]))
    leaving.requeue(Proof(seen, [InboxKey("key-2")]))
    assert [one.keys for one in leaving.take(4.9)] == [["key-1"]]
    assert leaving
    assert [one.keys for one in leaving.take(5.0)] == [["key-0", "key-2"]]
    assert not leaving
