"""Entries that a listing cannot show as objects, because others can write to the folder.

A listing never fails as a whole because of one of them. Values only; `committer.storage.disk.walk`
finds them. Bounded: the first ones are kept, all are counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

KEPT_MAX = 1_000


class SkipKind(StrEnum):
    """The kinds of entries of a listing that are no object, or none that is read. Public: a label
    of a metric.
    """

    LINK = "symbolic_link"
    FIFO = "fifo"
    SOCKET = "socket"
    DEVICE = "device"
    NAME = "name"
    DEEP_FOLDER = "deep_folder"
    NO_ACCESS = "no_access"
    OVERSIZED = "oversized"
    UNREADABLE = "unreadable"

    @property
    def text(self) -> str:
        """The kind in a sentence that begins with the entry's name and `is`."""
        return _TEXTS[self]

    @property
    def hides_objects(self) -> bool:
        """Whether objects may exist in it that the listing does not show."""
        return self is SkipKind.NO_ACCESS


_TEXTS = {
    SkipKind.LINK: "a symbolic link, which is not followed",
    SkipKind.FIFO: "a FIFO, not a file",
    SkipKind.SOCKET: "a socket, not a file",
    SkipKind.DEVICE: "a device, not a file",
    SkipKind.NAME: "an entry whose name is not UTF-8",
    SkipKind.DEEP_FOLDER: "a folder where a file belongs",
    SkipKind.OVERSIZED: "larger than any request may be",
    SkipKind.UNREADABLE: "an object in the place of a request that cannot be read",
    SkipKind.NO_ACCESS: "an entry that the committer is not allowed to look at, or cannot read",
}


@dataclass(frozen=True, slots=True)
class Skipped:
    """One entry. `location` as in a listing; bytes of its name that are not UTF-8 are escaped.
    `cause`: of an unreadable one.
    """

    location: str
    kind: SkipKind
    cause: str = ""

    @property
    def text(self) -> str:
        """The kind and the cause, as `SkipKind.text`."""
        return f"{self.kind.text}: {self.cause}" if self.cause else self.kind.text


class Skips:
    """Collects the entries that one listing skips.

    `levels_max`: where the storage has folders, one that lies so many levels below the listed
    prefix is skipped and not entered; 1 is an entry of the prefix itself.
    """

    def __init__(self, *, levels_max: int) -> None:
        self.levels_max = levels_max
        self.first: list[Skipped] = []
        self.counts: Counter[SkipKind] = Counter()
        self._hiding: list[str] = []

    def add(self, location: str, kind: SkipKind, cause: str = "") -> None:
        self.counts[kind] += 1
        if len(self.first) < KEPT_MAX:
            self.first.append(Skipped(location, kind, cause))
        if kind.hides_objects and len(self._hiding) <= KEPT_MAX:
            self._hiding.append(location)

    def may_hide(self, location: str) -> bool:
        """Return whether an object of this location may exist that the listing did not show."""
        return len(self._hiding) > KEPT_MAX or any(
            location == each or location.startswith(f"{each}/") for each in self._hiding
        )

    def may_hide_below(self, folder: str) -> bool:
        """Return whether any object below this folder may exist that the listing did not show."""
        below = folder.rstrip("/") + "/"
        return self.may_hide(folder.rstrip("/")) or any(
            each.startswith(below) for each in self._hiding
        )
