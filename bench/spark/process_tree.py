"""CPU time and memory of this process and of all that it has started: JVM and Python workers."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")
# Spark's daemon, of which each Python worker is a fork.
_WORKERS = b"pyspark.daemon"
# `clear_refs`: from now on the peak of the resident memory is counted anew. Source: proc(5).
_FORGET_PEAK = "5"


def tree_cpu_s() -> float:
    """Return user and system time so far, of ended children too that their parent waited for."""
    return sum(cpu_s for _, cpu_s in _tree())


def forget_worker_peaks() -> None:
    """Begin to count the peak memory of Python workers anew."""
    for pid, _ in _tree():
        with suppress(OSError):
            (_PROC / str(pid) / "clear_refs").write_text(_FORGET_PEAK)


def worker_peak_bytes() -> int:
    """Return the resident memory that the largest Python worker of Spark has had since
    `forget_worker_peaks`; 0 without one."""
    peaks = [0]
    for pid, _ in _tree():
        with suppress(OSError):
            if _WORKERS in (_PROC / str(pid) / "cmdline").read_bytes():
                peaks.append(_peak_bytes((_PROC / str(pid) / "status").read_text()))
    return max(peaks)


def _peak_bytes(status: str) -> int:
    found = (line.split() for line in status.splitlines() if line.startswith("VmHWM:"))
    return next((int(fields[1]) << 10 for fields in found), 0)


def _tree() -> Iterator[tuple[int, float]]:
    """Yield this process and all below it, each with its CPU seconds."""
    children, times = defaultdict[int, list[int]](list), dict[int, float]()
    for folder in _PROC.iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                # pid (name) state parent … utime stime cutime cstime; the name may hold anything.
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                children[int(fields[1])].append(int(folder.name))
                times[int(folder.name)] = sum(map(int, fields[11:15])) / _TICKS_A_SECOND
    waiting = [os.getpid()]
    while waiting:
        pid = waiting.pop()
        yield pid, times.get(pid, 0.0)
        waiting += children[pid]
