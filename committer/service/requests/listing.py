"""The result of a pass over inbox and quarantine: keys seen, and places that it could not see. No
I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from dataclasses import dataclass, field

from committer.ports.skips import Skips
from committer.request.request_key import published_key
from committer.service.requests.inbox_keys import folder_of
from committer.storage.inbox.inbox import Inbox, Quarantine


class Folders(Container[str]):
    """The folders of producers that have something in some places; and all that may, because a
    listing could not see. Of the published keys that are `sought` it is known whether an object of
    theirs is there.
    """

    def __init__(self, sought: Collection[str] = ()) -> None:
        self._found: set[str] = set()
        self._unseen: list[tuple[Skips, str]] = []
        self._sought = sought
        self._keys: set[str] = set()

    def add(self, key: str) -> None:
        self._found.add(folder_of(key))
        if (published := published_key(key)) in self._sought:
            self._keys.add(published)

    def cannot_see(self, skips: Skips, place: Inbox | Quarantine) -> None:
        """Note the entries that a listing of this place skipped."""
        self._unseen.append((skips, place.folder))

    def __contains__(self, folder: object) -> bool:
        return folder in self._found or self._may_hide(folder)

    def may_hold(self, key: str) -> bool:
        """Return whether a key that was sought may be there."""
        return key in self._keys or self._may_hide(folder_of(key))

    def _may_hide(self, folder: object) -> bool:
        return any(skips.may_hide_below(f"{place}{folder}") for skips, place in self._unseen)


@dataclass(frozen=True, slots=True)
class Listed(Container[str]):
    """The folders of producers that have something in the inbox (`waiting`), or in quarantine and
    on its way back (`quarantined`).
    """

    waiting: Folders = field(default_factory=Folders)
    quarantined: Folders = field(default_factory=Folders)

    def __contains__(self, folder: object) -> bool:
        return folder in self.waiting or folder in self.quarantined

    def has_left(self, key: str) -> bool:
        """Return whether a key that was sought is in none of these places."""
        return not self.waiting.may_hold(key) and folder_of(key) not in self.quarantined
