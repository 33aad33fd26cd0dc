"""CPU time of this process and of all that it has started, JVM and Python workers among them."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def tree_cpu_s() -> float:
    """Return user and system time so far, of ended children too that their parent waited for."""
    children, times = defaultdict[int, list[int]](list), dict[int, float]()
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                # pid (name) state parent … utime stime cutime cstime; the name may hold anything.
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                children[int(fields[1])].append(int(folder.name))
                times[int(folder.name)] = sum(map(int, fields[11:15])) / _TICKS_A_SECOND
    total, waiting = 0.0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        total += times.get(pid, 0.0)
        waiting += children[pid]
    return total
