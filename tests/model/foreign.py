"""Acts of other engines on the table of the model, beside the committers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.model.state import State
from tests.model.table import NONE, Versions


def foreign_acts(state: State, versions: Versions) -> Iterator[tuple[str, State]]:
    """Yield the acts of other engines and tools on the table, within the budget."""
    budget, table = state.budget, state.pointer
    if budget.append:
        after = versions.following(table, ("append", budget))
        yield "a foreign engine appends", state.spent("append").moved(after)
    if budget.expiry:
        # A gap anywhere cuts the chain of parents there.
        for edge in range(1, len(table.snapshots)):
            left = replace(table, snapshots=table.snapshots[edge:])
            after = versions.like(table, ("expiry", edge, budget), left)
            yield f"{edge} snapshots expire", state.spent("expiry").moved(after)
    if budget.rollback:
        for kept in range(1, len(table.snapshots)):
            left = replace(table, snapshots=table.snapshots[:kept])
            after = versions.like(table, ("rollback", kept, budget), left)
            gone = frozenset(table.head.rows) - set(left.head.rows) if budget.purge else NONE
            back = state.spent("rollback").moved(after)
            back = back._replace(was_put_back=True, rolled_back=state.rolled_back | gone)
            yield f"main is rolled back to {left.head.snapshot_id}", back
    if budget.restore:
        for before in state.earlier:
            after = versions.like(table, ("restore", before, budget), before)
            back = state.spent("restore").moved(after)._replace(was_put_back=True)
            yield f"version {before.number} is restored", back
    if budget.unset and table.ledger:
        left = replace(table, ledger=frozenset())
        after = versions.like(table, ("unset", budget), left)
        yield "a foreign engine unsets the ledger", state.spent("unset").moved(after)
