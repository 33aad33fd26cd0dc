"""Forgets one-shot producers in the model: in a swap of its own, at once."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.rules import Rules
from tests.model.state import State
from tests.model.table import Versions


def one_shot_chores(
    state: State, place: int, rules: Rules, versions: Versions
) -> Iterator[tuple[str, State]]:
    """Drop entries and tombstones on the base that is current."""
    yield from _forget(state, place, rules, versions)
    yield from _bury(state, place, rules, versions)


def _forget(
    state: State, place: int, rules: Rules, versions: Versions
) -> Iterator[tuple[str, State]]:
    """Drop the entries whose requests have left the inbox; each leaves a tombstone."""
    base = state.pointer
    gone = frozenset(one for one in base.ledger if one.request not in state.inbox)
    if not rules.entries_go_after_their_object:
        gone = base.ledger
    if not gone:
        return
    tombstones = base.tombstones
    if rules.forgotten_producers_leave_tombstones:
        tombstones |= {one.request.epoch for one in gone}
    after = versions.following(base, ("forget", gone), without=gone, tombstones=tombstones)
    names = " ".join(sorted(str(one.request) for one in gone))
    yield f"{place} forgets {names}", state.moved(after)


def _bury(
    state: State, place: int, rules: Rules, versions: Versions
) -> Iterator[tuple[str, State]]:
    """Drop a tombstone, in any order: requests that are no younger may have landed."""
    base = state.pointer
    for epoch in base.tombstones:
        horizon = max(base.horizon, epoch) if rules.horizon_never_falls else epoch
        if not rules.tombstones_go_behind_a_horizon:
            horizon = base.horizon
        left, name = base.tombstones - {epoch}, ("bury", epoch)
        after = versions.following(base, name, tombstones=left, horizon=horizon)
        yield f"{place} drops the tombstone of {epoch}", state.moved(after)
