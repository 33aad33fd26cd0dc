"""Removes the folders that deletions leave empty, as if there were only objects. Blocking.

The innermost is removed at once. A producer is likely to create its next request in those above it
soon: they are removed once they have been unused for a while.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from threading import Lock


class EmptyFolders:
    """Removes empty folders strictly below `roots`, and no others. May be shared by threads.

    Objects below the roots are created and deleted, never replaced.

    `quiet_s`: how long a folder has to be unused before it is removed because those inside it are.
    """

    def __init__(self, roots: Sequence[str], *, quiet_s: float) -> None:
        self.roots = tuple(root.rstrip("/") for root in roots)
        self._below = tuple(f"{root}/" for root in self.roots)
        self._quiet_ns = int(quiet_s * 1e9)
        # Folders out of which others were removed, and when, by the file system's clock. In order.
        self._used_ns: dict[str, int] = {}
        self._lock = Lock()

    def owns(self, folder: str) -> bool:
        """Return whether the folder lies strictly below one of the roots."""
        return folder.startswith(self._below) and f"{folder}/" not in self._below

    def prune(self, folders: Iterable[str]) -> None:
        """Remove those that are empty, and then those that have been quiet since they were made
        empty so. Any may be made again at any time.
        """
        self._remove(folders)
        while quiet := self._next_quiet():
            self._remove((quiet,))

    def _remove(self, folders: Iterable[str]) -> None:
        parents: dict[str, None] = {}
        for folder in filter(self.owns, folders):
            with suppress(OSError):  # not empty, or not owned: an empty folder does no harm
                os.rmdir(folder)
                parents[os.path.dirname(folder)] = None
        for parent in parents:
            with suppress(OSError):
                used_ns = os.stat(parent).st_mtime_ns
                with self._lock:
                    self._used_ns.pop(parent, None)
                    self._used_ns[parent] = used_ns

    def _next_quiet(self) -> str | None:
        with self._lock:
            if not self._used_ns:
                return None
            newest_ns = next(reversed(self._used_ns.values()))
            folder, used_ns = next(iter(self._used_ns.items()))
            if newest_ns - used_ns < self._quiet_ns:
                return None
            del self._used_ns[folder]
            return folder
