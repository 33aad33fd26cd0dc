"""Removes half-written files of killed processes. Blocking; `local` calls it from threads.

Every object is written to a file `.frazil-….tmp` first, in the folder of its name. Only its writer
uses such a file, for moments. One that has not been written to for a day is abandoned: it is
removed when its folder is listed (below an inbox root), or when a process first writes into the
folder (a table's metadata, say).
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress

TEMPORARY_PREFIX = ".frazil-"
TEMPORARY_SUFFIX = ".tmp"
# By the times of the file system, which may be hours from this machine's.
KEPT_S = 24 * 3600.0
_SWEPT_MAX = 10_000


def is_temporary(name: str) -> bool:
    """Return whether a file of this name is, or was, a write in progress."""
    return name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX)


def remove_stale(names: Iterable[str], folder: int) -> int:
    """Remove a folder's abandoned temporary files; return how many."""
    removed = 0
    for name in names:
        with suppress(OSError):  # already removed, or not removable: it does no harm
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            # World has no time for threads, and a file's times are of this machine.
            age_s = time.time() - status.st_mtime  # noqa: TID251
            if stat.S_ISREG(status.st_mode) and age_s > KEPT_S:
                os.unlink(name, dir_fd=folder)
                removed += 1
    return removed


class FirstWrites:
    """Sweeps a folder once in the life of a process, when it is first written to."""

    def __init__(self) -> None:
        self._swept: set[str] = set()

    def note(self, folder: str) -> None:
        if folder in self._swept or len(self._swept) >= _SWEPT_MAX:
            return
        self._swept.add(folder)
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                with os.scandir(descriptor) as entries:
                    stale = [entry.name for entry in entries if is_temporary(entry.name)]
                remove_stale(stale, descriptor)
            finally:
                os.close(descriptor)
