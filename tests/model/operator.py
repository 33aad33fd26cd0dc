"""Decisions of an operator after a rollback, in the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.model.state import State
from tests.model.table import NONE, Versions


def operator_acts(state: State, versions: Versions) -> Iterator[tuple[str, State]]:
    """Yield the thaw of an operator: it redoes what the rollback took, and replays what was
    quarantined for it. These epochs count as not landed; a request that has left the inbox must be
    published again by its producer.
    """
    table = state.pointer
    if not state.budget.thaw or not table.is_rolled_back:
        return
    retained = {one.snapshot_id for one in table.snapshots}
    left = frozenset(one for one in table.ledger if one.snapshot_id in retained)
    again = frozenset(one.request for one in table.ledger - left)
    after = versions.like(table, ("thaw", state.budget), replace(table, ledger=left))
    thawed = state.spent("thaw").moved(after)
    ended = state.published - state.inbox - state.quarantine
    taken = frozenset(one for one in ended if any(one.is_replay_of(other) for other in again))
    yield (
        "an operator lets what was rolled back land once more",
        thawed._replace(
            published=state.published - taken,
            landed=state.landed - again,
            let_again=state.let_again | again,
            receipts=state.receipts - again,
            inbox=state.inbox | state.quarantine,
            bells=state.bells | state.quarantine,
            quarantine=NONE,
            high_water_mark=state.high_water_mark._replace(epoch=after.mark.epoch),
            decided=state.decided + 1,
        ),
    )
