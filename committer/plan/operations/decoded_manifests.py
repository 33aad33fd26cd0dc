"""Entries of manifests that were decoded before: the checks of each request ask for the same ones,
and a commit after it for most of them again."""

from __future__ import annotations

from committer.iceberg.entry.data_file import ManifestEntry
from committer.iceberg.manifest.manifest import iter_entries
from committer.iceberg.manifest.manifest_list import ManifestFile

# Of all tables of a process. An entry with metrics of 20 columns takes two kilobytes.
ENTRIES_MAX = 20_000

Entries = tuple[ManifestEntry, ...]


class DecodedManifests:
    """Remembers by the bytes of a manifest and its row; forgets all when it is full."""

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._entries_max = entries_max
        self._known: dict[tuple[bytes, ManifestFile], Entries] = {}
        self._count = 0

    def entries(self, content: bytes, row: ManifestFile) -> Entries:
        """Return the entries with what they inherit. Errors: as `iter_entries`."""
        key = (content, row)
        found = self._known.get(key)
        if found is None:
            found = tuple(iter_entries(content, manifest_file=row))
            if self._count + len(found) > self._entries_max:
                self._known.clear()
                self._count = 0
            if len(found) <= self._entries_max:
                self._known[key] = found
                self._count += len(found)
        return found


DECODED = DecodedManifests()
