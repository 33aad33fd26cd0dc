"""The bytes of files that operations are planned with: manifest lists, manifests, deletion vectors.

Such files never change. Those that a table's own commits write are kept too: what the next
operation asks is what the last ones wrote, so that a commit reads nothing while no other engine
commits. All tables of a process share the room.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock

from committer.plan.commit.landed_commit import LandedCommit
from committer.plan.operations.change_index import ChangeIndex
from committer.plan.operations.head import ObjectRange
from committer.ports.storage import NewObject

BYTES_MAX = 64 * 1024 * 1024
# A larger object would drive out all others.
_SHARE_MAX = 8


class RecentObjects:
    """The objects used last. Plans ask from threads, too."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._kept: OrderedDict[ObjectRange, bytes] = OrderedDict()
        self._size_bytes = 0
        self._lock = Lock()

    def find(self, wanted: ObjectRange) -> bytes | None:
        """Return the bytes, also of a part of an object that is kept whole."""
        with self._lock:
            for known in (wanted, ObjectRange(wanted.location)):
                content = self._kept.get(known)
                if content is not None:
                    self._kept.move_to_end(known)
                    return content if known == wanted else wanted.of(content)
        return None

    def written(self, objects: Iterable[NewObject]) -> None:
        """Keep objects that were written whole."""
        for one in objects:
            self.keep(ObjectRange(one.location), one.content)

    def keep(self, known: ObjectRange, content: bytes) -> None:
        """Keep these bytes, in the place of those that were not used for longest."""
        if len(content) > self._bytes_max // _SHARE_MAX:
            return
        with self._lock:
            before = self._kept.pop(known, b"")
            self._kept[known] = content
            self._size_bytes += len(content) - len(before)
            while self._size_bytes > self._bytes_max:
                self._size_bytes -= len(self._kept.popitem(last=False)[1])


class TableObjects:
    """The objects that one table keeps there, and of its own commits: nothing, until it has an
    operation to plan."""

    def __init__(self, recent: RecentObjects) -> None:
        self._recent = recent
        self._keeps = False
        self.changes = ChangeIndex()

    def use(self) -> RecentObjects:
        """Return what is kept, for the plan of an operation; from now on, keep what is written."""
        self._keeps = True
        return self._recent

    def written(self, objects: Iterable[NewObject]) -> None:
        """Note what was written for a commit."""
        if self._keeps:
            self._recent.written(objects)

    def landed(self, commit: LandedCommit) -> None:
        """Note what the snapshots of a commit have changed."""
        if self._keeps:
            self.changes.note(commit.plan.changes)
