"""Groups the delete files that are written anew together, with the data files to look at for that.

All is decided by what the manifests say; no file is opened, and no engine is known here.
Source: Iceberg Java 1.10, `BinPackRewritePositionDeletePlanner`; the specification, "Scan Planning"
(the scope rules of deletes).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from committer.iceberg.deletes.delete_index import PartitionKey, partition_of
from committer.iceberg.entry.data_file import (
    DataFile,
    ManifestEntry,
    is_equality_delete_file,
    is_position_delete_file,
)
from committer.iceberg.scan.scan_task import FileScanTask
from workers.compaction.deletes.live_deletes import (
    LiveDeletes,
    delete_key,
    stored_bytes,
)
from workers.compaction.rewrite_groups import RewriteSizes
from workers.files.deletes.position_delete_writer import DeleteForm
from workers.requests.rewrite_parts import dealt

Chooses = Callable[[DataFile], bool]
# Of one group, so that a request names them beside the files that its new deletes replace.
CONVERTED_MAX = 10_000


@dataclass(frozen=True, slots=True)
class DeletesGroup:
    """Delete files that go, and what takes their place.

    `removed`: live ones. `tasks`: each data file that some of them apply to, with these and with
    the position deletes that the new delete file has to hold, or need not repeat.
    """

    removed: tuple[ManifestEntry, ...]
    tasks: tuple[FileScanTask, ...]

    @property
    def file_count(self) -> int:
        return len(self.removed)

    @property
    def size_bytes(self) -> int:
        return sum(stored_bytes(entry.data_file) for entry in self.removed)


# --- Position deletes ----------------------------------------------------------------------------


def group_positions(
    live: LiveDeletes, sizes: RewriteSizes, chooses: Chooses, form: DeleteForm
) -> list[DeletesGroup]:
    """Group position delete files by their partition. `form`: of what they become.

    Of vectors all of a partition are taken, as a vector hides whatever is left of them. Else those
    of the wrong size, packed: few small ones stay, and those that would become no fewer.
    """
    by_partition: defaultdict[PartitionKey, list[ManifestEntry]] = defaultdict(list)
    for entry in live.entries:
        if is_position_delete_file(entry.data_file) and chooses(entry.data_file):
            by_partition[partition_of(entry.data_file)].append(entry)
    tasks = _by_partition(live.tasks)
    groups: list[DeletesGroup] = []
    for key, entries in by_partition.items():
        packed = [entries] if form == "vectors" else _worthwhile(entries, sizes)
        groups += (_group(found, tasks.get(key, ())) for found in packed)
    if form != "files" or sizes.rewrites_all:
        return groups
    return [group for group in groups if len(group.tasks) < len(group.removed)]


def _by_partition(tasks: Iterable[FileScanTask]) -> dict[PartitionKey, list[FileScanTask]]:
    found: defaultdict[PartitionKey, list[FileScanTask]] = defaultdict(list)
    for task in tasks:
        found[partition_of(task.file)].append(task)
    return found


def _group(removed: Sequence[ManifestEntry], tasks: Iterable[FileScanTask]) -> DeletesGroup:
    """Return the group of these files, with the data files that they apply to."""
    keys = {delete_key(entry.data_file) for entry in removed}
    narrowed = (
        replace(task, delete_files=tuple(d for d in task.delete_files if delete_key(d) in keys))
        for task in tasks
    )
    return DeletesGroup(tuple(removed), tuple(task for task in narrowed if task.delete_files))


def _worthwhile(
    entries: Iterable[ManifestEntry], sizes: RewriteSizes
) -> Iterator[list[ManifestEntry]]:
    wanted = [
        entry
        for entry in entries
        if sizes.rewrites_all or not sizes.min_bytes <= _bytes(entry) <= sizes.max_bytes
    ]
    for group in dealt(wanted, _bytes, sizes.group_bytes):
        size_bytes = sum(map(_bytes, group))
        joins_some = len(group) > 1 and (
            len(group) >= sizes.input_files or size_bytes > sizes.target_bytes
        )
        if sizes.rewrites_all or joins_some or size_bytes > sizes.max_bytes:
            yield group


def _bytes(entry: ManifestEntry) -> int:
    return stored_bytes(entry.data_file)


# --- Equality deletes ----------------------------------------------------------------------------


def group_equalities(
    live: LiveDeletes, chooses: Chooses, files_min: int = 1, files_max: int = CONVERTED_MAX
) -> list[DeletesGroup]:
    """Group equality delete files by their partition; partitions that share a data file are one
    group, so that no data file gets two delete files. Those of an unpartitioned spec apply to the
    data of all specs.

    A group has all data files that one of its delete files applies to: only so that file may go.
    `files_min`: a group of fewer is left alone. `files_max`: of more, the oldest are taken.
    """
    by_partition: defaultdict[PartitionKey, list[ManifestEntry]] = defaultdict(list)
    for entry in live.entries:
        if is_equality_delete_file(entry.data_file) and chooses(entry.data_file):
            by_partition[partition_of(entry.data_file)].append(entry)
    joined = _Joined(by_partition)
    concerned: list[tuple[PartitionKey, FileScanTask]] = []
    for task in live.tasks:
        keys = (partition_of(file) for file in task.delete_files if is_equality_delete_file(file))
        chosen = [key for key in keys if key in by_partition]
        if chosen:
            joined.join(chosen)
            concerned.append((chosen[0], task))
    tasks: defaultdict[PartitionKey, list[FileScanTask]] = defaultdict(list)
    for key, task in concerned:
        tasks[joined.first(key)].append(task)
    groups: defaultdict[PartitionKey, list[ManifestEntry]] = defaultdict(list)
    for key, entries in by_partition.items():
        groups[joined.first(key)] += entries
    return [
        _conversion(sorted(entries, key=_number)[:files_max], tasks[first])
        for first, entries in groups.items()
        if len(entries) >= files_min
    ]


def _number(entry: ManifestEntry) -> int:
    return entry.sequence_number or 0


def _conversion(removed: Sequence[ManifestEntry], tasks: Iterable[FileScanTask]) -> DeletesGroup:
    keys = {delete_key(entry.data_file) for entry in removed}
    found = []
    for task in tasks:
        if any(delete_key(file) in keys for file in task.delete_files):
            read = (
                file
                for file in task.delete_files
                if delete_key(file) in keys or not is_equality_delete_file(file)
            )
            found.append(replace(task, delete_files=tuple(read)))
    return DeletesGroup(tuple(removed), tuple(found))


class _Joined:
    """Partitions that are joined to sets, each named by one of them."""

    def __init__(self, keys: Iterable[PartitionKey]) -> None:
        self._parent = {key: key for key in keys}

    def first(self, key: PartitionKey) -> PartitionKey:
        while self._parent[key] != key:
            self._parent[key] = key = self._parent[self._parent[key]]
        return key

    def join(self, keys: Sequence[PartitionKey]) -> None:
        for key in keys[1:]:
            self._parent[self.first(key)] = self.first(keys[0])
