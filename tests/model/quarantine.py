"""Refused requests in the model: deletes that come late, and replays between."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.rules import Rules
from tests.model.state import State
from tests.model.table import NONE, Requests


def refused_deletes(state: State, place: int) -> Iterator[tuple[str, State]]:
    """Delete the inbox objects of what is in quarantine, those included that a crash has left."""
    committer = state.committers[place]
    left = (state.inbox & state.quarantine) - committer.refused
    if left:
        after = committer._replace(refused=committer.refused | left)
        yield f"{place} finds {_names(left)} in quarantine", state.with_committer(place, after)
    if committer.refused:
        gone = state._replace(inbox=state.inbox - committer.refused)
        after = committer._replace(refused=NONE)
        yield (
            f"{place} deletes the refused {_names(committer.refused)}",
            gone.with_committer(place, after),
        )


def replays(state: State, rules: Rules) -> Iterator[tuple[str, State]]:
    """Yield replays from quarantine by an operator. A replay has another object than the one that a
    committer may be about to delete.
    """
    for request in state.quarantine if state.budget.replay else NONE:
        back = state.spent("replay")._replace(
            quarantine=state.quarantine - {request},
            inbox=state.inbox | {request},
            bells=state.bells | {request},
        )
        if rules.replays_have_fresh_keys:
            for place, committer in enumerate(back.committers):
                after = committer._replace(refused=committer.refused - {request})
                back = back.with_committer(place, after)
        yield f"an operator replays {request}", back


def _names(requests: Requests) -> str:
    return " ".join(sorted(map(str, requests)))
