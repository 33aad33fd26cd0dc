"""Properties of every state of the protocol, and of every state at rest."""

from __future__ import annotations

from tests.model.state import State
from tests.model.table import Request


def is_wrong(state: State) -> str | None:
    """Return the first promise that this state breaks."""
    return (
        state.wrong
        or _doubled(state)
        or _lost(state)
        or _untrue(state)
        or _dangling(state)
        or _vanished(state)
    )


def is_stuck(state: State) -> str | None:
    """Return the request that is not where it belongs once nothing happens by itself."""
    if _asks_an_operator(state):
        return None
    for request in sorted(state.published - state.quarantine):
        if not _has_landed(state, request):
            return f"{request} waits for ever"
        if request not in state.receipts and request in state.inbox:
            return f"{request} has landed, and gets no receipt"
    left = (state.inbox | state.bells) - state.quarantine
    return f"{min(left)} is never cleaned up" if left else None


def _doubled(state: State) -> str | None:
    rows = state.pointer.head.rows
    for request in rows:
        if sum(one.epoch == request.epoch for one in rows) > 1:
            return f"epoch {request.epoch} is in the table twice"
    return None


def _lost(state: State) -> str | None:
    for request in state.published - state.inbox - state.quarantine:
        if not _has_landed(state, request):
            return f"{request} is neither in the inbox, nor landed, nor in quarantine"
    return None


def _untrue(state: State) -> str | None:
    for request in state.receipts:
        if not any(one.is_replay_of(request) for one in state.landed | state.let_again):
            return f"{request} has a receipt, and has not landed"
    for request in state.landed:
        if request in state.quarantine - state.sent_again and not state.decided:
            return f"{request} landed, and is in quarantine"
    return None


def _dangling(state: State) -> str | None:
    missing = state.pointer.files & state.deleted_files
    if missing:
        return f"the table needs file {min(missing)}, which was deleted"
    absent = state.deleted_data.intersection(state.pointer.head.rows)
    return (
        f"the table needs the data files of {min(absent)}, which were deleted" if absent else None
    )


def _vanished(state: State) -> str | None:
    """Return a landed request that is missing: only a rollback may remove one, and then an operator
    is asked about it, or it lands again.
    """
    rows = state.pointer.head.rows
    missing = state.landed - set(rows)
    if not missing or _asks_an_operator(state):
        return None
    silent = {one for one in missing if not any(one.is_replay_of(row) for row in rows)}
    if silent and not state.was_put_back:
        return f"{min(silent)} had landed, and is not in the table any more"
    lost = silent - state.inbox
    return f"{min(lost)} was rolled back, and no operator is asked" if lost else None


def _asks_an_operator(state: State) -> bool:
    """Return whether the table itself shows that it was put back."""
    table = state.pointer
    return (
        table.is_rolled_back
        or not table.has_reached(state.high_water_mark)
        or table.has_lost_entries(state.high_water_mark)
    )


def _has_landed(state: State, request: Request) -> bool:
    return any(one.is_replay_of(request) for one in state.landed)
