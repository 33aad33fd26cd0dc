"""Selects the manifests of a branch head to merge; `iceberg/splice/manifest_merge.py` merges them.

Iceberg Java merges all small manifests again with every hundredth commit, so that a file's entry is
rewritten hundreds of times. Here a manifest is taken only if those that are smaller have as many
entries together as it has: an entry is rewritten once for each doubling of its manifest, and a
large manifest is not rewritten. Source: docs/reference/iceberg-notes.md 7.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.manifest.manifest import ManifestContext
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.plan.batch.batch import schema_of_spec
from committer.plan.batch.manifest_size import positive, target_bytes

ENABLED_PROPERTY = "commit.manifest-merge.enabled"
MIN_COUNT_PROPERTY = "commit.manifest.min-count-to-merge"
# Where an old list does not count files: what an entry takes, compressed.
_ENTRY_BYTES = 250


@dataclass(frozen=True, slots=True)
class MergePolicy:
    """Merge when `count_min` small manifests have gathered, to at most `target_bytes` each."""

    is_enabled: bool = True
    target_bytes: int = 8 * 1024 * 1024
    count_min: int = 100


def merge_policy(properties: Mapping[str, str]) -> MergePolicy:
    """Return the table's merge policy; Iceberg Java's defaults where no property is readable."""
    default = MergePolicy()
    return MergePolicy(
        is_enabled=properties.get(ENABLED_PROPERTY, "true").strip().lower() == "true",
        target_bytes=target_bytes(properties),
        count_min=max(2, positive(properties, MIN_COUNT_PROPERTY, default.count_min)),
    )


def plan_merges(
    rows: Sequence[ManifestFile], metadata: TableMetadata, without: Iterable[str] = ()
) -> tuple[tuple[ManifestFile, ...], ...]:
    """Group rows to merge, each to one manifest; each group in the order of the list.

    `rows` are those of a branch head, newest first. `without`: paths that are left alone.
    """
    policy = merge_policy(metadata.properties)
    if not policy.is_enabled or len(rows) < policy.count_min:
        return ()
    left_out = frozenset(without)
    groups: dict[tuple[ManifestContent, int], list[ManifestFile]] = defaultdict(list)
    for row in rows:
        if row.manifest_length < policy.target_bytes and row.manifest_path not in left_out:
            groups[row.content, row.partition_spec_id].append(row)
    return tuple(
        merge
        for group in groups.values()
        if len(group) >= policy.count_min
        for merge in _merges(_mergeable(group, metadata.format_version), policy)
    )


def _mergeable(group: list[ManifestFile], format_version: int) -> list[ManifestFile]:
    """Select what may be merged: not what is encrypted,
    and no data whose row ids no commit of version 3 has fixed yet."""
    return [
        row
        for row in group
        if row.key_metadata is None
        and not (
            format_version > 2 and row.content is ManifestContent.DATA and row.first_row_id is None
        )
    ]


def _merges(
    group: Sequence[ManifestFile], policy: MergePolicy
) -> Iterator[tuple[ManifestFile, ...]]:
    chosen = _small_ones(group, policy.count_min)
    bins = [one for one in _packed(chosen, policy.target_bytes) if len(one) > 1]
    # The bin in front is the one that is not full: it waits until it is worth it.
    if len(bins) > 1 and len(bins[0]) < policy.count_min and bins[0][0] is chosen[0]:
        del bins[0]
    yield from bins


def _small_ones(group: Sequence[ManifestFile], count_min: int) -> list[ManifestFile]:
    """Select as many as possible, the smallest first, so that the largest is no larger than the
    rest together; none if that are too few. In the order of `group`.
    """
    by_size = sorted(range(len(group)), key=lambda place: _entries(group[place]))
    taken, total = 0, 0
    for count, place in enumerate(by_size, start=1):
        entries = _entries(group[place])
        if entries <= total:
            taken = count
        total += entries
    if taken < count_min:
        return []
    return [group[place] for place in sorted(by_size[:taken])]


def _entries(row: ManifestFile) -> int:
    counts = row.added_files_count, row.existing_files_count, row.deleted_files_count
    if None in counts:
        return row.manifest_length // _ENTRY_BYTES + 1
    return sum(count or 0 for count in counts)


def _packed(chosen: Sequence[ManifestFile], target_bytes: int) -> list[tuple[ManifestFile, ...]]:
    """Pack neighbors up to the target size, full ones at the old end; in the order of the list."""
    bins: list[list[ManifestFile]] = []
    size = target_bytes
    for row in reversed(chosen):
        if size + row.manifest_length > target_bytes:
            bins.append([])
            size = 0
        bins[-1].append(row)
        size += row.manifest_length
    return [tuple(reversed(one)) for one in reversed(bins)]


def merge_context(metadata: TableMetadata, group: Sequence[ManifestFile]) -> ManifestContext:
    """Return the context of the manifest that a group is merged to."""
    spec = metadata.spec_by_id(group[0].partition_spec_id)
    return ManifestContext(
        metadata.format_version, schema_of_spec(spec, metadata), spec, group[0].content
    )
