"""Files that came after a base and hold no other rows than the base had: those of rewrites.

That a snapshot is labeled `replace` proves nothing: what it removed has to be older than the base,
and must not have fewer rows than what it added.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from committer.iceberg.entry.data_file import ManifestContent, ManifestEntry
from committer.iceberg.metadata.snapshot import Snapshot
from committer.plan.operations.head import Head
from committer.plan.validation.history import added_by, removed_by
from committer.plan.validation.since import Since

_REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class _Replaced:
    """What a snapshot took out of a table, by the kind of files."""

    is_old: bool
    rows: int


def without_rewritten(
    found: Sequence[ManifestEntry], head: Head, since: Since
) -> list[ManifestEntry]:
    """Leave out, of files that are newer than the base, those whose rows are not.

    Either a rewrite has given them a sequence number that the base had reached, or a snapshot that
    is labeled as one has put them in the place of older files.
    """
    others = [one for one in found if not _is_numbered_back(one, since)]
    labeled = [one for one in _snapshots(others, head) if one.operation == _REPLACE]
    if not labeled:
        return others
    ids = {one.snapshot_id for one in labeled}
    removed = removed_by(head, labeled)
    replaced = _replaced(removed, _NewFiles.of(head, since, removed))
    rewrites = _true_rewrites(ids, replaced, others)
    return [one for one in others if (one.snapshot_id, _kind(one)) not in rewrites]


def _is_numbered_back(entry: ManifestEntry, since: Since) -> bool:
    number = entry.sequence_number
    return not since.is_all and number is not None and 0 < number <= since.sequence_number


def _snapshots(entries: Iterable[ManifestEntry], head: Head) -> list[Snapshot]:
    """Return the snapshots that have added these files, as far as they are retained."""
    ids = sorted({one.snapshot_id for one in entries if one.snapshot_id is not None})
    found = map(head.metadata.snapshot_by_id, ids)
    return [one for one in found if one is not None]


_Kind = tuple[int | None, ManifestContent]


def _true_rewrites(
    labeled: set[int], replaced: Mapping[_Kind, _Replaced], added: Iterable[ManifestEntry]
) -> set[_Kind]:
    """Return the snapshots, with the kind of their files, that have only replaced what is older."""
    rows: defaultdict[_Kind, int] = defaultdict(int)
    for one in added:
        rows[one.snapshot_id, _kind(one)] += one.data_file.record_count
    return {
        key
        for key, count in rows.items()
        if key[0] in labeled
        and (old := replaced.get(key)) is not None
        and old.is_old
        and (count <= old.rows or key[1] is ManifestContent.DELETES)
    }


def _replaced(removed: Iterable[ManifestEntry], new: _NewFiles) -> Mapping[_Kind, _Replaced]:
    found: dict[_Kind, _Replaced] = {}
    for one in removed:
        before = found.get((one.snapshot_id, _kind(one)), _Replaced(True, 0))
        is_old = before.is_old and not new.holds(one)
        rows = before.rows + one.data_file.record_count
        found[one.snapshot_id, _kind(one)] = _Replaced(is_old, rows)
    return found


@dataclass(frozen=True, slots=True)
class _NewFiles:
    """The removed files that had been added after the base. Their entries name the snapshot that
    has removed them, so only their numbers tell.

    `unnumbered`: the paths of those without a number, of format version 1; None: all may be new.
    """

    sequence_number: int
    unnumbered: frozenset[str] | None

    @classmethod
    def of(cls, head: Head, since: Since, removed: Iterable[ManifestEntry]) -> _NewFiles:
        if all(map(_number, removed)):
            return cls(since.sequence_number, frozenset())
        if not since.is_whole:
            return cls(since.sequence_number, None)
        added = added_by(head, since.later)
        return cls(since.sequence_number, frozenset(one.data_file.file_path for one in added))

    def holds(self, entry: ManifestEntry) -> bool:
        number = _number(entry)
        if number:
            return number > self.sequence_number
        return self.unnumbered is None or entry.data_file.file_path in self.unnumbered


def _number(entry: ManifestEntry) -> int:
    return entry.file_sequence_number or entry.sequence_number or 0


def _kind(entry: ManifestEntry) -> ManifestContent:
    return entry.data_file.manifest_content
