"""Removes the folders that deletions leave empty, as if there were only objects. Blocking.

The innermost goes at once. Those above it are where a producer puts its next request in a moment:
they go once nobody has used them for a while.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from threading import Lock


class EmptyFolders:
    """Removes empty folders strictly below `roots`, and no others. May be shared by threads.

    `quiet_s`: how long a folder has to be unused before it is removed because those inside it are.
    """

    def __init__(self, roots: Sequence[str], *, quiet_s: float) -> None:
        self._below = tuple(root.rstrip("/") + "/" for root in roots)
        self._quiet_ns = int(quiet_s * 1e9)
        # Folders out of which others were removed, and when, by the file system's clock. In order.
        self._used_ns: dict[str, int] = {}
        self._lock = Lock()

    def prune(self, folder: str) -> None:
        """Remove the folder if it is empty. It may be made again at any time."""
        if not folder.startswith(self._below) or f"{folder}/" in self._below:
            return
        try:
            os.rmdir(folder)
            parent = os.path.dirname(folder)
            used_ns = os.stat(parent).st_mtime_ns
        except OSError:
            return  # not empty, or not ours to remove: an empty folder does no harm
        with self._lock:
            self._used_ns.pop(parent, None)
            self._used_ns[parent] = used_ns

    def prune_quiet(self) -> None:
        """Remove those that have been quiet since something was last removed from them."""
        while folder := self._next_quiet():
            self.prune(folder)

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
