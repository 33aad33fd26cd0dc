"""A state of the model: all that a step may change."""

from __future__ import annotations

from typing import NamedTuple

from tests.model.table import NONE, Mark, Metadata, Requests


class Committer(NamedTuple):
    """The memory of one process; a crash loses it.

    `seen`: in hand and found in the inbox since `base` was read. `is_fresh`: nothing was done since
    then. `flight`: what a swap without an answer would make current. `doubted`: bases of swaps
    whose answer was lost. `done`: proven to have landed, still in the inbox; `proven`: what the
    high-water mark has to know before they leave it; `decided`: the operator's decisions that it
    knew then. `shared`: in hand when it heard of one. `refused`: in quarantine, and about to be
    deleted from the inbox.
    """

    base: Metadata | None = None
    is_fresh: bool = False
    hand: Requests = NONE
    seen: Requests = NONE
    flight: Metadata | None = None
    doubted: frozenset[Metadata] = frozenset()
    done: Requests = NONE
    proven: Mark = Mark()
    decided: int = 0
    shared: Requests = NONE
    refused: Requests = NONE


class Budget(NamedTuple):
    """How often each fault or foreign act may still happen."""

    unknown: int = 0
    crash: int = 0
    rewind: int = 0
    lost_bells: int = 0
    late_copy: int = 0
    append: int = 0
    expiry: int = 0
    rollback: int = 0
    restore: int = 0
    unset: int = 0
    thaw: int = 0
    purge: int = 0
    replay: int = 0

    def less(self, name: str) -> Budget:
        return self._replace(**{name: getattr(self, name) - 1})


class State(NamedTuple):
    """Everything. `flights`: swaps that may arrive at any time, or never. `landed`: what swaps have
    really added, and no operator has `let_again` after a rollback, `decided` how often.
    `was_put_back`: by an operator. `rolled_back`: whose data files no snapshot needs;
    `deleted_data`: whose an expiry has deleted then. `sent_again`: one-shot requests that came once
    more when they had left the inbox. `wrong`: a step that must not be.
    """

    pointer: Metadata
    earlier: tuple[Metadata, ...]
    published: Requests
    inbox: Requests
    bells: Requests
    quarantine: Requests
    receipts: Requests
    landed: Requests
    high_water_mark: Mark
    flights: frozenset[Metadata]
    deleted_files: frozenset[int]
    committers: tuple[Committer, ...]
    budget: Budget
    was_put_back: bool = False
    decided: int = 0
    let_again: Requests = NONE
    rolled_back: Requests = NONE
    deleted_data: Requests = NONE
    sent_again: Requests = NONE
    wrong: str | None = None

    def moved(self, metadata: Metadata) -> State:
        """Return the state in which this version is current."""
        earlier = (*self.earlier, self.pointer) if self.budget.restore else ()
        return self._replace(pointer=metadata, earlier=earlier)

    def spent(self, name: str) -> State:
        """Return the state after another fault or foreign act of this name."""
        return self._replace(budget=self.budget.less(name))

    def with_committer(self, place: int, committer: Committer) -> State:
        committers = list(self.committers)
        committers[place] = committer
        return self._replace(committers=tuple(committers))
