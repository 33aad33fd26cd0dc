"""One transaction that has not landed yet: its phase, and the events that change it. Pure.

A transaction never holds state of its tables: which requests have come and joined is asked of the
tables themselves, so that a request that ends, moves or is returned needs no second entry here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from committer.errors import InvariantError
from committer.request.transaction import Transaction


class Phase(Enum):
    """The phases of a transaction. Only in `COMMITTING` it has all turns of its tables; only in
    `QUEUED` it may have some of them, for a bounded time.
    """

    GATHERING = "gathering"  # a table has no request that may land now
    QUEUED = "queued"  # complete: it takes the turns of its tables
    COMMITTING = "committing"
    BACKING_OFF = "backing off"  # an attempt has not landed
    ENDED = "ended"


class Event(Enum):
    """The events in the life of a transaction, each with what the committer does about it."""

    COMPLETED = "a request of each table is durable and checked: take the turns"
    JOINED = "a request has joined; another attempt of its epoch is a duplicate once it has landed"
    SECOND_JOINED = "a table has requests of several epochs: refuse all but the first"
    MEMBER_LEFT = "a request has ended, is deferred or returned, or its table stops: wait for it"
    MEMBER_REFUSED = "a table's only request is in quarantine: refuse the others"
    TIME_UP = "no request of a table has come in time: refuse the others"
    TURNS_TAKEN = "all turns are in hand: plan, write, swap together"
    TURN_LATE = "a table has not given its turn in time: wait for it with no turn in hand"
    LANDED = "all tables have their part: the requests end"
    NOT_LANDED = "conflict, lost answer or fault: give the turns back, and back off"
    PAUSE_OVER = "the back-off is over: look at the tables again"
    MOVED = "another committer has the shard of the first table: pass the requests on"
    EMPTIED = "no request is left here, or the process stops: forget the transaction"


_ALWAYS = {Event.EMPTIED: Phase.ENDED}
TRANSITIONS: Mapping[Phase, Mapping[Event, Phase]] = {
    Phase.GATHERING: {
        **_ALWAYS,
        Event.JOINED: Phase.GATHERING,
        Event.SECOND_JOINED: Phase.GATHERING,
        Event.MEMBER_REFUSED: Phase.GATHERING,
        Event.TIME_UP: Phase.GATHERING,
        Event.MOVED: Phase.ENDED,
        Event.COMPLETED: Phase.QUEUED,
    },
    Phase.QUEUED: {
        **_ALWAYS,
        Event.JOINED: Phase.QUEUED,
        # Seen once the turns are in hand.
        Event.MEMBER_LEFT: Phase.GATHERING,
        Event.TURN_LATE: Phase.GATHERING,
        Event.TURNS_TAKEN: Phase.COMMITTING,
    },
    Phase.COMMITTING: {
        Event.JOINED: Phase.COMMITTING,
        Event.LANDED: Phase.ENDED,
        Event.NOT_LANDED: Phase.BACKING_OFF,
    },
    Phase.BACKING_OFF: {
        **_ALWAYS,
        Event.JOINED: Phase.BACKING_OFF,
        Event.PAUSE_OVER: Phase.GATHERING,
    },
    Phase.ENDED: {},
}


@dataclass(eq=False, slots=True)
class PendingTransaction:
    """A transaction with its phase. `attempts`: how many have not landed; `cause`: why the last one
    has not.
    """

    transaction: Transaction
    phase: Phase = Phase.GATHERING
    attempts: int = 0
    cause: str | None = None

    def on(self, event: Event) -> None:
        """Change the phase. Errors: `InvariantError` for an event that the phase cannot have."""
        phase = TRANSITIONS[self.phase].get(event)
        if phase is None:
            raise InvariantError(
                f"transaction {self.transaction.id} is {self.phase.value}: no {event.name} now"
            )
        self.phase = phase

    def not_landed(self, cause: str) -> None:
        """Note an attempt that has not landed."""
        self.on(Event.NOT_LANDED)
        self.attempts += 1
        self.cause = cause
