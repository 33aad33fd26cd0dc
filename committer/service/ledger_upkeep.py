"""Upkeep of a table's ledger that waits for a commit to take it along."""

from __future__ import annotations

from collections.abc import Iterable

from committer.ledger_entry import property_key
from committer.plan.commit import LedgerChores
from committer.request import CommitRequest


class LedgerUpkeep:
    """The chores of one table's ledger, as the reconciler has found them."""

    def __init__(self) -> None:
        self._close_gaps: dict[str, int] = {}
        self._drop: set[str] = set()

    def add(self, chores: LedgerChores) -> None:
        self._close_gaps.update(chores.close_gaps)
        self._drop.update(chores.drop)

    @property
    def chores(self) -> LedgerChores:
        """All that wait now."""
        return LedgerChores(dict(self._close_gaps), frozenset(self._drop))

    def landed(self, done: LedgerChores, requests: Iterable[CommitRequest]) -> None:
        """Forget those that are done, and those that were found before a producer went on."""
        self._drop -= done.drop
        self._drop -= {property_key(one.producer.id, one.branch) for one in requests}
        for key, below in done.close_gaps.items():
            if self._close_gaps.get(key) == below:
                del self._close_gaps[key]
