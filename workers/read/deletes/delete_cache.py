"""Contents of delete files that the tasks of one process share.

A delete file often applies to many data files. What is read of one is kept until others need the
room; what is larger than a share of it is never kept. The sizes are those of Iceberg's executor
cache.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock

BYTES_MAX = 128 * 1024 * 1024
ENTRY_BYTES_MAX = 64 * 1024 * 1024


class DeleteCache:
    """Values by key, the least recently used one goes first. Threads may share it."""

    def __init__(self, bytes_max: int = BYTES_MAX, entry_bytes_max: int = ENTRY_BYTES_MAX) -> None:
        self.entry_bytes_max = entry_bytes_max
        self._bytes_max = bytes_max
        self._entries: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    @property
    def size_bytes(self) -> int:
        return self._bytes

    def find(self, key: Hashable) -> object | None:
        """Return the value of a key, None if it is not kept."""
        with self._lock:
            kept = self._entries.get(key)
            if kept is None:
                return None
            self._entries.move_to_end(key)
            return kept[0]

    def keep(self, key: Hashable, value: object, size_bytes: int) -> None:
        """Keep a value if its size allows."""
        if size_bytes <= self.entry_bytes_max:
            with self._lock:
                self._keep(key, value, size_bytes)

    def _keep(self, key: Hashable, value: object, size_bytes: int) -> None:
        _, before = self._entries.pop(key, (None, 0))
        self._entries[key] = value, size_bytes
        self._bytes += size_bytes - before
        while self._bytes > self._bytes_max:
            _, (_, freed) = self._entries.popitem(last=False)
            self._bytes -= freed


# Of this process.
SHARED_DELETES = DeleteCache()
