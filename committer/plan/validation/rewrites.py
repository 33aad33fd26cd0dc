"""Files that came after a base and hold no other rows than the base had: those of rewrites.

That a snapshot is labeled `replace` proves nothing: what it removed has to be older than the base,
and must not have fewer rows than what it added.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from committer.iceberg.entry.data_file import ManifestContent, ManifestEntry
from committer.plan.operations.head import Head
from committer.plan.validation.history import removed_since
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
    labeled = {one for one in _snapshots(others) if _is_replace(head, one)}
    if not labeled:
        return others
    removed = removed_since(head, since)
    if removed is None:
        return others
    rewrites = _true_rewrites(labeled, removed, others, since)
    return [one for one in others if (one.snapshot_id, _kind(one)) not in rewrites]


def _is_numbered_back(entry: ManifestEntry, since: Since) -> bool:
    number = entry.sequence_number
    return not since.is_all and number is not None and 0 < number <= since.sequence_number


def _snapshots(entries: Iterable[ManifestEntry]) -> set[int]:
    return {one.snapshot_id for one in entries if one.snapshot_id is not None}


def _is_replace(head: Head, snapshot_id: int) -> bool:
    snapshot = head.metadata.snapshot_by_id(snapshot_id)
    return snapshot is not None and snapshot.operation == _REPLACE


_Kind = tuple[int | None, ManifestContent]


def _true_rewrites(
    labeled: set[int],
    removed: Iterable[ManifestEntry],
    added: Iterable[ManifestEntry],
    since: Since,
) -> set[_Kind]:
    """Return the snapshots, with the kind of their files, that have only replaced what is older."""
    replaced = _replaced(removed, since)
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


def _replaced(removed: Iterable[ManifestEntry], since: Since) -> Mapping[_Kind, _Replaced]:
    found: dict[_Kind, _Replaced] = {}
    for one in removed:
        before = found.get((one.snapshot_id, _kind(one)), _Replaced(True, 0))
        is_old = before.is_old and not _was_new(one, since)
        rows = before.rows + one.data_file.record_count
        found[one.snapshot_id, _kind(one)] = _Replaced(is_old, rows)
    return found


def _was_new(entry: ManifestEntry, since: Since) -> bool:
    """Return whether a file was added after the base. Its entry names the snapshot that has removed
    it, so its number alone tells, and in version 1 nothing."""
    number = entry.file_sequence_number or entry.sequence_number or 0
    return number == 0 or number > since.sequence_number


def _kind(entry: ManifestEntry) -> ManifestContent:
    return entry.data_file.manifest_content
