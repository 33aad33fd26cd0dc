"""Selects the data files that a compaction rewrites, their groups, and the number of files that
each group becomes.

All is decided by what the manifests say; no file is opened, and no engine is known here.
Source: Iceberg Java 1.10, `SizeBasedFileRewritePlanner` and `BinPackRewriteFilePlanner`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from committer.iceberg.deletes.delete_index import PartitionKey, partition_of
from committer.iceberg.deletes.position_deletes import referenced_data_file
from committer.iceberg.reading.pack_splits import Split, SplitSizes, pack_splits
from committer.iceberg.scan.scan_task import FileScanTask
from workers.requests.rewrite_parts import dealt

# A part of a file is counted with what reading it costs beside its bytes.
_SPLIT_OVERHEAD_BYTES = 5 << 10
# The rows of a small last file are dealt to the others while those grow by no more than this.
_GROWTH_MAX = 1.1


@dataclass(frozen=True, slots=True)
class RewriteSizes:
    """The thresholds of a compaction, in bytes; the defaults are Iceberg's.

    A file below `min_bytes` or above `max_bytes` is rewritten, and one with `delete_files` delete
    files or more, or with at least this `delete_ratio` of its rows deleted. A group is rewritten
    for `input_files` files, for more than `target_bytes` to be joined, for more than `max_bytes`,
    and for deletes. `rewrites_all`: every file, every group.
    """

    target_bytes: int
    min_bytes: int
    max_bytes: int
    group_bytes: int = 100 << 30
    input_files: int = 5
    delete_files: int = 2**31 - 1
    delete_ratio: float = 0.3
    rewrites_all: bool = False

    @property
    def written_bytes(self) -> int:
        """The size at which a file is ended: above the target, so that estimates that are a bit
        too low leave no tiny last file."""
        return self.target_bytes + (self.max_bytes - self.target_bytes) // 2


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files of one partition that are rewritten together. `partition` None: of other specs than the
    output's."""

    tasks: tuple[FileScanTask, ...]
    partition: PartitionKey | None

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(task.file.file_path for task in self.tasks)

    @property
    def file_count(self) -> int:
        return len(self.tasks)

    @property
    def size_bytes(self) -> int:
        return sum(map(_bytes, self.tasks))


def plan_groups(
    tasks: Iterable[FileScanTask], sizes: RewriteSizes, output_spec_id: int
) -> list[FileGroup]:
    """Group the files that are worth rewriting, by partition, in the order in which partitions and
    files come. Files of other specs than the output's are grouped together: their rows may belong
    to any partition. A file that the table holds twice stays: its path removes both entries.
    """
    entries: Counter[str] = Counter()
    by_partition: dict[PartitionKey | None, list[FileScanTask]] = {}
    for task in tasks:
        entries[task.file.file_path] += 1
        if sizes.rewrites_all or _is_wanted(task, sizes):
            is_own = task.spec_id == output_spec_id
            key = partition_of(task.file) if is_own else None
            by_partition.setdefault(key, []).append(task)
    return [
        FileGroup(tuple(packed), key)
        for key, found in by_partition.items()
        for packed in dealt(
            [task for task in found if entries[task.file.file_path] == 1],
            _bytes,
            sizes.group_bytes,
        )
        if sizes.rewrites_all or _is_worthwhile(packed, sizes)
    ]


# --- Which are rewritten -------------------------------------------------------------------------


def _is_wanted(task: FileScanTask, sizes: RewriteSizes) -> bool:
    is_right = sizes.min_bytes <= _bytes(task) <= sizes.max_bytes
    return not is_right or _has_many_deletes(task, sizes)


def _is_worthwhile(group: Sequence[FileScanTask], sizes: RewriteSizes) -> bool:
    size_bytes = sum(map(_bytes, group))
    joins_some = len(group) > 1 and (
        len(group) >= sizes.input_files or size_bytes > sizes.target_bytes
    )
    is_too_large = size_bytes > sizes.max_bytes
    return joins_some or is_too_large or any(_has_many_deletes(task, sizes) for task in group)


def _has_many_deletes(task: FileScanTask, sizes: RewriteSizes) -> bool:
    deletes = task.delete_files
    if not deletes:
        return False
    return len(deletes) >= sizes.delete_files or _deleted_ratio(task) >= sizes.delete_ratio


def _deleted_ratio(task: FileScanTask) -> float:
    """Return which part of the rows is deleted for sure: by deletes of this file alone."""
    own = (one for one in task.delete_files if referenced_data_file(one) is not None)
    deleted = min(sum(one.record_count for one in own), task.file.record_count)
    return deleted / task.file.record_count if deleted else 0.0


def _bytes(task: FileScanTask) -> int:
    return task.file.file_size_in_bytes


# --- What they become ----------------------------------------------------------------------------


def output_files(size_bytes: int, sizes: RewriteSizes) -> int:
    """Return how many files a group of that many bytes becomes, as far as bytes tell."""
    target = sizes.target_bytes
    full, rest_bytes = divmod(size_bytes, target)
    if not full:
        return 1
    if not rest_bytes:
        return full
    if rest_bytes > sizes.min_bytes:
        return full + 1
    is_room = size_bytes // full < min(_GROWTH_MAX * target, sizes.written_bytes)
    return full if is_room else full + 1


def group_splits(group: FileGroup, sizes: RewriteSizes) -> list[Split]:
    """Deal the files of a group, or their parts, to tasks, of which each writes about one file."""
    size_bytes = group.size_bytes
    split_bytes = size_bytes // output_files(size_bytes, sizes) + _SPLIT_OVERHEAD_BYTES
    within = min(max(split_bytes, sizes.target_bytes), sizes.written_bytes)
    # A file counts by its bytes alone: of many small ones, one is to be made.
    return list(pack_splits(group.tasks, SplitSizes(within, open_file_cost_bytes=0)))
