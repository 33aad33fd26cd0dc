"""The faults of a soak's processes, and their times. The seed alone determines the schedule."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tests.support.faults.fault_proxy import Fault


class FaultKind(StrEnum):
    KILL = "kill -9 of a committer"
    END = "SIGTERM of a committer"
    STOP = "SIGSTOP of a committer, longer than its lease"
    FLUSH = "FLUSHALL"
    KILL_QUEUE = "kill -9 of the queue's server"
    SPOIL = "spoiled answers of the queue's server"
    KILL_WRITERS = "kill -9 of writers"


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault: how long to wait before it, how long it lasts, and whom it hits, as a share of
    those that may be hit. The last two are of `SPOIL`.
    """

    pause_s: float
    kind: FaultKind
    lasts_s: float
    whom: float
    command: bytes = b""
    answer_fault: Fault = Fault.CUT_ANSWER

    def pick(self, count: int) -> int:
        """Pick an index below `count`."""
        return int(self.whom * count)


COMMANDS = (b"XREADGROUP", b"XADD", b"EVAL", b"XAUTOCLAIM", b"XLEN")
FAULTS = (
    Fault.CUT_REQUEST,
    Fault.CUT_ANSWER,
    Fault.TRUNCATE_ANSWER,
    Fault.DELAY_ANSWER,
    Fault.SENT_TWICE,
)
SPOILED = 5


def strikes(seed: int, *, pause_s: float, lease_s: float) -> Iterator[Strike]:
    """Yield faults without end, each kind once before any repeats; `pause_s` apart on average."""
    chance = random.Random(seed)
    while True:
        for kind in chance.sample(list(FaultKind), len(FaultKind)):
            yield Strike(
                pause_s=pause_s * (0.5 + chance.random()),
                kind=kind,
                lasts_s=lease_s * 1.5 if kind is FaultKind.STOP else 0.5 + 1.5 * chance.random(),
                whom=chance.random(),
                command=chance.choice(COMMANDS),
                answer_fault=chance.choice(FAULTS),
            )
