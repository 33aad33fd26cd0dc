"""The table properties that say where the files of a table go, and the folders to which they are
confined. No I/O.

A location property moves writes: of metadata by the committer, with its rights, and of data files
by every writer. So it may name a folder only that the operator allows (`security.locations`), or
one in the table's own location, for every client and operator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from committer.iceberg.values.locations import comparable_location, is_plainly_within

LOCATION_PROPERTIES = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/+[^/]|/[^/]")
_SHOWN_CHARS_MAX = 512


def parse_folders(text: str) -> tuple[str, ...]:
    """Return the folders that a text names with commas between them.

    Errors: `ValueError` for one that is neither a URI nor an absolute path.
    """
    folders = tuple(filter(None, (part.strip() for part in text.split(","))))
    for folder in folders:
        if not _ABSOLUTE.match(folder):
            raise ValueError(
                f"expected folders with commas between them, each a URI or an absolute path; found"
                f" `{folder}`"
            )
    return folders


@dataclass(frozen=True, slots=True)
class AllowedLocations:
    """The folders in which tables may be, never at, in or around the inbox.

    Without `folders` the catalog alone decides where a table is, and location properties stay in
    the table's own location. `inbox`: empty if the caller knows none.
    """

    folders: tuple[str, ...] = ()
    inbox: str = ""

    @classmethod
    def of(cls, text: str, *, place: str, inbox: str) -> AllowedLocations:
        """Return the folders that the setting names; without any, `place`, the folder of new
        tables, which is empty where the catalog alone knows. Errors: as `parse_folders`.
        """
        return cls(parse_folders(text) or ((place,) if place else ()), inbox)

    def table_refusal(self, location: str) -> str | None:
        """Return why no table may be at this location; None if one may."""
        folders = self.folders or (location,)
        return self._refusal(f"location `{_shown(location)}`", location, folders)

    def property_refusal(self, properties: Mapping[str, str], table_location: str) -> str | None:
        """Return why a table at `table_location` may not have the location properties among these;
        None if it may. An empty value counts as none, as for Iceberg."""
        folders = (*self.folders, table_location)
        for key in LOCATION_PROPERTIES:
            location = properties.get(key)
            if not location:
                continue
            refusal = self._refusal(f"property `{key}={_shown(location)}`", location, folders)
            if refusal is not None:
                return refusal
        return None

    def _refusal(self, what: str, location: str, folders: tuple[str, ...]) -> str | None:
        if not any(is_plainly_within(location, folder) for folder in folders):
            return (
                f"{what}: expected a folder in {' or '.join(dict.fromkeys(folders))}, in the same"
                " spelling; an operator allows more folders by the setting `security.locations`"
            )
        if self.inbox and _overlap(location, self.inbox):
            return (
                f"{what}: it meets the inbox `{self.inbox}`, where an engine's orphan clean-up"
                " could remove requests; choose a folder apart from the inbox"
            )
        return None


NO_FOLDERS = AllowedLocations()


def _overlap(location: str, other: str) -> bool:
    first, second = comparable_location(location), comparable_location(other)
    return first.is_within(second) or second.is_within(first)


def _shown(location: str) -> str:
    return location[:_SHOWN_CHARS_MAX]
