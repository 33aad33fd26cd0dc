"""Selects the manifests of a branch head to merge; `iceberg/splice/manifest_merge.py` merges them.

Iceberg Java merges all small manifests again with every hundredth commit, so that a file's entry is
rewritten hundreds of times. Here a manifest is taken only if those that are smaller have as many
entries together as it has: an entry is rewritten once for each doubling of its manifest, and a
large manifest is not rewritten. Source: docs/reference/iceberg-notes.md 7.

Of a partitioned table more is merged at once than fits into one manifest, and the entries are laid
out by partition over several. Such a run of manifests counts like one: an entry is rewritten once
for each doubling of its run, until that is full.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.property_values import is_true, positive
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.plan.batch.manifest_size import target_bytes

ENABLED_PROPERTY = "commit.manifest-merge.enabled"
MIN_COUNT_PROPERTY = "commit.manifest.min-count-to-merge"
CLUSTER_PROPERTY = "frazil.manifests.cluster"
# A run of clustered manifests is held in memory with its entries inflated, some eight times this.
RUN_BYTES_MAX = 32 * 1024 * 1024
# Where an old list does not count files: what an entry takes, compressed.
_ENTRY_BYTES = 250


@dataclass(frozen=True, slots=True)
class MergePolicy:
    """Merge when `count_min` small manifests have gathered, to at most `target_bytes` each.
    `clusters`: lay out by partition what takes more than one manifest.
    """

    is_enabled: bool = True
    target_bytes: int = 8 * 1024 * 1024
    count_min: int = 100
    clusters: bool = True


def merge_policy(properties: Mapping[str, str]) -> MergePolicy:
    """Return the table's merge policy; Iceberg Java's defaults where no property is readable."""
    default = MergePolicy()
    return MergePolicy(
        is_enabled=is_true(properties, ENABLED_PROPERTY, default=True),
        target_bytes=target_bytes(properties),
        count_min=max(2, positive(properties, MIN_COUNT_PROPERTY, default.count_min)),
        clusters=is_true(properties, CLUSTER_PROPERTY, default=True),
    )


def is_clustered(metadata: TableMetadata, group: Sequence[ManifestFile]) -> bool:
    """Return whether a merge of this group lays out its entries by partition: one manifest alone
    is read by every scan, in whatever order its entries are."""
    policy = merge_policy(metadata.properties)
    size_bytes = sum(row.manifest_length for row in group)
    is_wanted = policy.clusters and _is_partitioned(metadata, group[0].partition_spec_id)
    return is_wanted and size_bytes > policy.target_bytes


def _is_partitioned(metadata: TableMetadata, spec_id: int) -> bool:
    specs = (spec for spec in metadata.partition_specs if spec.spec_id == spec_id)
    return any(not spec.is_unpartitioned for spec in specs)


def plan_merges(
    rows: Sequence[ManifestFile], metadata: TableMetadata, without: Iterable[str] = ()
) -> tuple[tuple[ManifestFile, ...], ...]:
    """Group rows to merge, each to one manifest or to one run of clustered ones; each group in the
    order of the list.

    `rows` are those of a branch head, newest first. `without`: paths that are left alone.
    """
    policy = merge_policy(metadata.properties)
    if not policy.is_enabled or len(rows) < policy.count_min:
        return ()
    left_out = frozenset(without)
    groups: dict[tuple[ManifestContent, int], list[ManifestFile]] = defaultdict(list)
    for row in rows:
        if row.manifest_path not in left_out and _is_mergeable(row, metadata.format_version):
            groups[row.content, row.partition_spec_id].append(row)
    return tuple(
        merge
        for (_, spec_id), group in groups.items()
        if len(group) >= policy.count_min
        for merge in _merges(group, policy, _run_bytes(metadata, spec_id, policy))
    )


def _is_mergeable(row: ManifestFile, format_version: int) -> bool:
    """Return whether a manifest may be merged: it is not encrypted,
    and a commit of version 3 has fixed the row ids of its data."""
    has_ids = row.content is not ManifestContent.DATA or row.first_row_id is not None
    return row.key_metadata is None and (format_version < 3 or has_ids)


def _run_bytes(metadata: TableMetadata, spec_id: int, policy: MergePolicy) -> int:
    """Return how many bytes of manifests are merged at once."""
    if policy.clusters and _is_partitioned(metadata, spec_id):
        return max(policy.target_bytes, RUN_BYTES_MAX)
    return policy.target_bytes


def _merges(
    group: Sequence[ManifestFile], policy: MergePolicy, run_bytes: int
) -> Iterator[tuple[ManifestFile, ...]]:
    runs = _runs(group, policy.target_bytes, run_bytes)
    chosen = _small_ones(group, runs, policy.count_min)
    bins = [one for one in _packed(chosen, run_bytes) if len(one) > 1]
    # The bin in front is the one that is not full: it waits until it is worth it.
    if len(bins) > 1 and len(bins[0]) < policy.count_min and bins[0][0] is chosen[0]:
        del bins[0]
    yield from bins


# Places in a group.
_Run = Sequence[int]


def _runs(group: Sequence[ManifestFile], target_bytes: int, run_bytes: int) -> list[_Run]:
    """Cut what may be merged into runs: the manifests of live entries alone that one snapshot
    lists first are what a merge has written. One that is full falls apart, and of it, as of all
    others, manifests below the target size are left."""
    by_snapshot: defaultdict[int, list[int]] = defaultdict(list)
    runs: list[_Run] = []
    for place, row in enumerate(group):
        if run_bytes > target_bytes and row.added_files_count == row.deleted_files_count == 0:
            by_snapshot[row.added_snapshot_id].append(place)
        elif row.manifest_length < target_bytes:
            runs.append((place,))
    for run in by_snapshot.values():
        if sum(group[place].manifest_length for place in run) < run_bytes:
            runs.append(run)
        else:
            runs += [(place,) for place in run if group[place].manifest_length < target_bytes]
    return runs


def _small_ones(
    group: Sequence[ManifestFile], runs: Sequence[_Run], count_min: int
) -> list[ManifestFile]:
    """Select as many as possible, the smallest run first, so that the largest is no larger than the
    rest together; none if that are too few manifests. In the order of `group`.
    """
    sized = sorted(
        ((sum(_entries(group[place]) for place in run), run) for run in runs),
        key=lambda one: (one[0], one[1][0]),
    )
    taken, total = 0, 0
    for count, (entries, _) in enumerate(sized, start=1):
        if entries <= total:
            taken = count
        total += entries
    places = sorted(place for _, run in sized[:taken] for place in run)
    return [group[place] for place in places] if len(places) >= count_min else []


def _entries(row: ManifestFile) -> int:
    counts = row.added_files_count, row.existing_files_count, row.deleted_files_count
    if None in counts:
        return row.manifest_length // _ENTRY_BYTES + 1
    return sum(count or 0 for count in counts)


def _packed(chosen: Sequence[ManifestFile], run_bytes: int) -> list[tuple[ManifestFile, ...]]:
    """Pack neighbors up to a run's size, full ones at the old end; in the order of the list."""
    bins: list[list[ManifestFile]] = []
    size = run_bytes
    for row in reversed(chosen):
        if size + row.manifest_length > run_bytes:
            bins.append([])
            size = 0
        bins[-1].append(row)
        size += row.manifest_length
    return [tuple(reversed(one)) for one in reversed(bins)]
