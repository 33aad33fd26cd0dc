"""A committer's state of a table that another engine has changed."""

from __future__ import annotations

from dataclasses import replace

from committer.plan.ledger.state import TableState
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_request
from tests.support.plan.committing import Table


def test_behind_a_foreign_commit_only_what_it_added_is_decoded() -> None:
    table = Table.of(build_flights())
    for epoch in range(5):
        table.commit(build_request(table.table, epoch=epoch, partition=("AA",)))
    (before,) = table.state.heads.values()
    other = replace(table, objects=table.objects)
    other.commit(build_request(table.table, producer="other", partition=("AA",)))
    # It is loaded more than once before anybody asks for the list.
    table.state = TableState.of(other.table, TableState.of(other.table, table.state))
    head = other.table.metadata.current_snapshot
    assert head is not None
    state = table.state.with_head(head.snapshot_id, table.objects[head.manifest_list or ""])
    (after,) = state.heads.values()
    fresh = TableState.of(other.table).with_head(
        head.snapshot_id, table.objects[head.manifest_list or ""]
    )
    assert fresh.heads == state.heads
    assert len(after) == 6
    assert all(one.row is known.row for one, known in zip(after[1:], before, strict=True))
    assert state.gone == ()
