"""Files that came after a base and hold no other rows than the base had: those of rewrites.

That a snapshot is labeled `replace` proves nothing: what it removed has to be older than the base,
or of a rewrite again, and must not have fewer rows than what it added.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from committer.iceberg.entry.data_file import ManifestContent, ManifestEntry
from committer.iceberg.metadata.snapshot import Snapshot
from committer.plan.operations.head import Head
from committer.plan.validation.history import added_by, removed_by
from committer.plan.validation.since import Since

_REPLACE = "replace"
# A snapshot, and the kind of its files: it may rewrite data and add deletes.
_Kind = tuple[int | None, ManifestContent]
# Whether a removed file was added after the base, and by which snapshot where that is known.
_Origin = Callable[[ManifestEntry], tuple[bool, int | None]]


def without_rewritten(
    found: Sequence[ManifestEntry], head: Head, since: Since
) -> list[ManifestEntry]:
    """Leave out, of files that are newer than the base, those whose rows are not.

    Either a rewrite has given them a sequence number that the base had reached, or a snapshot that
    is labeled as one has put them in the place of older files.
    """
    others = [one for one in found if not _is_numbered_back(one, since)]
    labeled = [one for one in reversed(since.later) if one.operation == _REPLACE]
    ids = {one.snapshot_id for one in labeled}
    if not any(one.snapshot_id in ids for one in others):
        return others
    removed = removed_by(head, labeled)
    rewrites = _Rewrites(removed, others, _origins(head, since, removed)).true_ones(labeled)
    return [one for one in others if (one.snapshot_id, _kind(one)) not in rewrites]


def _is_numbered_back(entry: ManifestEntry, since: Since) -> bool:
    number = entry.sequence_number
    return not since.is_all and number is not None and 0 < number <= since.sequence_number


@dataclass(frozen=True, slots=True)
class _Rewrites:
    """The files that snapshots labeled as rewrites have removed, and their own that are live."""

    removed: Sequence[ManifestEntry]
    live: Sequence[ManifestEntry]
    origin: _Origin

    def true_ones(self, labeled: Iterable[Snapshot]) -> set[_Kind]:
        """Return those of these snapshots, oldest first, that have only replaced what is older."""
        removed = _by_kind(self.removed)
        added = self._rows_added()
        found: set[_Kind] = set()
        for snapshot in labeled:
            for content in ManifestContent:
                key = snapshot.snapshot_id, content
                if self._is_true(removed.get(key, ()), added[key], content, found):
                    found.add(key)
        return found

    def _is_true(
        self,
        removed: Sequence[ManifestEntry],
        added_rows: int,
        content: ManifestContent,
        known: set[_Kind],
    ) -> bool:
        for one in removed:
            is_new, adder = self.origin(one)
            if is_new and (adder, content) not in known:
                return False
        rows = sum(one.data_file.record_count for one in removed)
        return bool(removed) and (content is ManifestContent.DELETES or added_rows <= rows)

    def _rows_added(self) -> defaultdict[_Kind, int]:
        """Count the rows that each snapshot has added, of files that are live or were rewritten."""
        rows: defaultdict[_Kind, int] = defaultdict(int)
        for one in self.live:
            rows[one.snapshot_id, _kind(one)] += one.data_file.record_count
        for one in self.removed:
            rows[self.origin(one)[1], _kind(one)] += one.data_file.record_count
        return rows


def _by_kind(entries: Iterable[ManifestEntry]) -> Mapping[_Kind, list[ManifestEntry]]:
    found: defaultdict[_Kind, list[ManifestEntry]] = defaultdict(list)
    for one in entries:
        found[one.snapshot_id, _kind(one)].append(one)
    return found


def _origins(head: Head, since: Since, removed: Sequence[ManifestEntry]) -> _Origin:
    """Return the function from a removed file to its origin. Its entry names the snapshot that has
    removed it: its number tells which one has added it, and in format version 1 the history.
    """
    by_number = {one.sequence_number: one.snapshot_id for one in since.later}
    by_path: dict[str, int | None] = {}
    if not all(map(_number, removed)) and since.is_whole:
        added = added_by(head, since.later)
        by_path = {one.data_file.file_path: one.snapshot_id for one in added}

    def origin(entry: ManifestEntry) -> tuple[bool, int | None]:
        number, path = _number(entry), entry.data_file.file_path
        if number:
            return number > since.sequence_number, by_number.get(number)
        return not since.is_whole or path in by_path, by_path.get(path)

    return origin


def _number(entry: ManifestEntry) -> int:
    return entry.file_sequence_number or entry.sequence_number or 0


def _kind(entry: ManifestEntry) -> ManifestContent:
    return entry.data_file.manifest_content
