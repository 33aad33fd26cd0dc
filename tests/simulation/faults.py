"""The fault grammar: what may befall a call of a port, and the process that makes it.

Which fault meets which call is a function of the seed and the call's name (process, method, which
of its calls), or a script: the crash matrix names one, and shrinking leaves some out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import NamedTuple

from tests.simulation.chance import draws


class Fault(Enum):
    """A fault of one call."""

    ERROR_BEFORE = "error before effect"  # surely nothing applied, and the caller knows
    ERROR_AFTER = "effect then error"
    REQUEST_LOST = "request lost"  # no effect; the caller hears nothing until its time is up
    SILENCE_AFTER = "effect then silence"
    LATE = "late effect"  # takes effect when the caller has given up; perhaps after its end
    TWICE = "effect twice"  # sent again below the port; the answer is that to the second
    PARTIAL = "partial effect"  # some of several items, then an error
    STALE_LIST = "stale list"  # a listing as it was when the call began, told much later
    SLOW = "slow"  # longer than a lease
    DENIED = "denied"  # permission is missing
    REJECTED = "rejected"  # the back end refuses the change itself
    CANCEL = "cancel"  # the process is told to end at once, with the call under way
    CRASH_BEFORE = "crash before effect"
    CRASH_AFTER = "crash after effect"
    PAUSE = "pause"  # SIGSTOP for longer than a lease, with the call under way
    CLOCK_JUMP = "clock jump"
    DRAIN = "drain"  # SIGTERM
    RESTART = "restart otherwise"  # ends, and comes back with other settings
    HELD = "held"  # SIGSTOP for longer than a lease, and the call goes out after that


CALL_FAULTS = (
    Fault.ERROR_BEFORE,
    Fault.ERROR_AFTER,
    Fault.REQUEST_LOST,
    Fault.SILENCE_AFTER,
    Fault.LATE,
    Fault.SLOW,
)
PROCESS_FAULTS = (
    Fault.CANCEL,
    Fault.CRASH_BEFORE,
    Fault.CRASH_AFTER,
    Fault.PAUSE,
    Fault.CLOCK_JUMP,
    Fault.DRAIN,
    Fault.RESTART,
)
# Few calls decide what becomes of a request, and most by far only look.
FOCUS = 10.0
# Of several items in one call some may be applied alone.
_PARTIAL = frozenset(
    {"storage.create", "storage.delete", "storage.list", "queue.acknowledge", "queue.announce"}
    | {"queue.reply"}
)
_TWICE = frozenset(
    {"storage.create", "storage.replace", "storage.delete", "catalog.swap", "queue.announce"}
    | {"catalog.swap_together"}
)
_NEVER_DENIED = frozenset({"queue.wait_for_receipts"})


@cache
def applicable(method: str) -> tuple[Fault, ...]:
    """Return the faults that a method, `port.name`, can suffer."""
    faults = list(CALL_FAULTS)
    if method in _PARTIAL:
        faults.append(Fault.PARTIAL)
    if method in _TWICE:
        faults.append(Fault.TWICE)
    if method == "storage.list":
        faults.append(Fault.STALE_LIST)
    if method in ("catalog.swap", "catalog.swap_together"):
        faults.append(Fault.REJECTED)
    if method not in _NEVER_DENIED:
        faults.append(Fault.DENIED)
    held = (Fault.HELD,) if method == "storage.delete" else ()
    return (*faults, *PROCESS_FAULTS, *held)


class Call(NamedTuple):
    """The n-th call of a method by a process, counted over all its lives from 0."""

    process: str
    method: str
    number: int

    def __str__(self) -> str:
        return f"{self.process} {self.method} #{self.number}"


@dataclass(slots=True)
class Faults:
    """Decides what befalls each call, and counts what did.

    `rate`: of so many calls one meets a fault; of those of the method `focus`, `FOCUS` times as
    many. `weights` make faults rarer or more frequent than the others (1). `script`: these and no
    others, to the end. `spared`: calls that nothing befalls.
    """

    seed: int
    rate: float = 0.0
    focus: str | None = None
    weights: Mapping[Fault, float] = field(default_factory=dict)
    script: Mapping[Call, Fault] | None = None
    spared: Collection[Call] = frozenset()
    is_on: bool = True
    fired: list[tuple[Call, Fault]] = field(default_factory=list)
    coverage: Counter[tuple[str, Fault]] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    # With a script: every call.
    met: list[Call] = field(default_factory=list)
    # Calls that arrived when the life that made them had ended: nothing can befall it any more.
    orphaned: set[Call] = field(default_factory=set)

    def befalls(
        self, process: str, method: str, number: int, chance: float, which: float
    ) -> Fault | None:
        """Return the fault of a call (see `Call`), by two numbers drawn for it."""
        self.calls[method] += 1
        if self.script is not None:
            call = Call(process, method, number)
            self.met.append(call)
            return self.script.get(call)
        rate = self.rate * (FOCUS if method == self.focus else 1.0)
        if not self.is_on or chance >= rate or Call(process, method, number) in self.spared:
            return None
        return self._chosen(method, which)

    def count(self, call: Call, fault: Fault) -> None:
        """Count a fault that has fired."""
        self.fired.append((call, fault))
        self.coverage[call.method, fault] += 1

    def _chosen(self, method: str, which: float) -> Fault | None:
        faults = applicable(method)
        weights = [self.weights.get(fault, 1.0) for fault in faults]
        left = which * sum(weights)
        for fault, weight in zip(faults, weights, strict=True):
            left -= weight
            if left < 0:
                return fault
        return None


def delays_s(
    seed: int, process: str, method: str, number: int
) -> tuple[float, float, float, float]:
    """Draw four numbers in [0, 1) that belong to this call alone."""
    return draws(seed, f"{process}/{method}/{number}")
