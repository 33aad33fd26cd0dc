"""CPU time of processes that run, from `/proc`: of all their threads, those that ended too."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Return user and system time so far, in steps of a hundredth of a second."""
    # pid (name) state … utime stime; the name may hold anything.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


class Watch:
    """CPU time that named processes have used since the last look."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = dict(pids)
        self._before = {name: cpu_s(pid) for name, pid in self._pids.items()}

    def used_s(self) -> dict[str, float]:
        return {name: cpu_s(pid) - self._before[name] for name, pid in self._pids.items()}
