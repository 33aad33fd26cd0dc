"""A stream of row deltas, and a compaction beside it, as `peers/Bench.java` does the same.

Region 0 has the files that only the stream deletes rows of; each other region is one group of the
compaction, whose files become one. Each `hit_every`th delta is on a file of such a group: the one
of both that lands first makes the other conflict. Before such a delta the stream looks at the
table, and deletes no rows of files that it finds rewritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from bench.operating import OWN_FILES, epoch_of, named, own_file, vector_of
from bench.runs import Compacting
from bench.workload import data_file, nonce_of
from committer.iceberg.entry.data_file import DataFile
from committer.ports.pointer_swap import LoadedTable
from committer.request.needs import Needs, RewriteGroup
from committer.request.receipt_model import Receipt
from workers.requests.rewrite_parts import rewrite_parts
from workers.requests.written_epoch import WrittenEpoch

# In the summary of a rewrite: the regions of its groups.
_REGIONS = "bench.regions"
# Deltas hit groups here and there, not one after another as the compaction takes them.
_STRIDE = 37


def _first(table: LoadedTable) -> WrittenEpoch:
    return epoch_of(table, "base", 0, nonce_of(2**31))


def first_files(table: LoadedTable, load: Compacting) -> WrittenEpoch:
    """Return the append of the files that both begin with."""
    epoch = _first(table)
    location, regions = table.metadata.location, load.groups + 1
    files = [
        data_file(own_file(location, region, regions, count), epoch.attempt)
        for region in range(regions)
        for count in range(load.files if region else OWN_FILES)
    ]
    return replace(epoch, files=files)


@dataclass(slots=True)
class DeltaStream:
    """`table`: as it is once the first files are in it. `hits`: the rows deleted in each group."""

    load: Compacting
    table: LoadedTable
    own: int = 0
    hits: dict[int, int] = field(default_factory=dict)
    _count: int = 0
    _gone: set[int] = field(default_factory=set)
    _vectors: dict[tuple[int, int], DataFile] = field(default_factory=dict)
    _base: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        self._base = _head(self.table)

    @property
    def is_hit(self) -> bool:
        """Whether the next delta is on a file that is to be compacted."""
        return self._target[0] > 0

    def saw(self, table: LoadedTable) -> None:
        """Note the table as it is: the next delta rests on it."""
        self._base = _head(table)
        for snapshot in table.metadata.snapshots:
            text = (snapshot.summary or {}).get(_REGIONS, "")
            self._gone.update(int(region) for region in text.split(",") if region)

    def next(self) -> WrittenEpoch:
        """Return the next delta; one that has failed is not made again."""
        epoch = epoch_of(self.table, "stream", self._count, nonce_of(2**32 + self._count))
        first = _first(self.table).attempt
        region, count = self._target
        before = self._vectors.get(self._target)
        deleted = own_file(self.table.metadata.location, region, self.load.groups + 1, count)
        snapshot_id, sequence_number = self._base
        needs = Needs(
            base_snapshot_id=snapshot_id,
            base_sequence_number=sequence_number,
            isolation_level="snapshot",
            conflict_filter={"type": "eq", "term": "region", "value": f"r{region}"},
            removed_delete_files=(named(before),) if before else (),
            on_conflict="fail",
        )
        files = [vector_of(deleted, first, epoch.attempt, before)]
        return replace(epoch, operation="row-delta", files=files, needs=needs)

    def ended(self, written: WrittenEpoch, receipt: Receipt | None) -> None:
        """Note what became of the delta; None: it has not landed."""
        region, _ = self._target
        if receipt is None:
            self._gone.add(region)
        else:
            assert receipt.snapshot_id is not None, receipt
            assert receipt.sequence_number is not None, receipt
            self._base = receipt.snapshot_id, receipt.sequence_number
            self._vectors[self._target] = written.files[0]
            self.own += not region
            if region:
                self.hits[region - 1] = self.hits.get(region - 1, 0) + 1
        self._count += 1

    @property
    def _target(self) -> tuple[int, int]:
        """The region, and which of its files."""
        hit, is_other = divmod(self._count + 1, self.load.hit_every)
        region = 1 + hit * _STRIDE % self.load.groups
        if is_other or region in self._gone:
            return 0, self._count % OWN_FILES
        return region, 0


@dataclass(slots=True)
class Compaction:
    """One pass over some groups, on the table as it is loaded. `first`: as it was at the start."""

    load: Compacting
    first: LoadedTable
    table: LoadedTable
    passes: int

    def parts(self, groups: Iterable[int]) -> list[list[int]]:
        """Deal the groups to requests."""
        by_path = {self._paths(group)[0]: group for group in groups}
        removed_max = self.load.groups * self.load.files // self.load.parts
        dealt = rewrite_parts(map(self._paths, by_path.values()), removed_files_max=removed_max)
        return [[by_path[paths[0]] for paths in part] for part in dealt]

    def rewrite(self, epoch: int, groups: Sequence[int]) -> WrittenEpoch:
        """Return the request that rewrites these groups."""
        written = epoch_of(self.table, "compaction", epoch, nonce_of(2**33 + epoch))
        location, regions = self.table.metadata.location, self.load.groups + 1
        added = [
            data_file(
                own_file(location, group + 1, regions, self.load.files + self.passes),
                written.attempt,
            )
            for group in groups
        ]
        named_groups = tuple(
            RewriteGroup(removed_data_files=self._paths(group), added_data_files=(file.file_path,))
            for group, file in zip(groups, added, strict=True)
        )
        snapshot_id, sequence_number = _head(self.table)
        needs = Needs(
            base_snapshot_id=snapshot_id,
            base_sequence_number=sequence_number,
            data_sequence_number=sequence_number,
            removed_data_files=tuple(
                path for one in named_groups for path in one.removed_data_files
            ),
            groups=named_groups,
            on_conflict="fail",
        )
        summary = {_REGIONS: ",".join(str(group + 1) for group in groups)}
        return replace(
            written, operation="rewrite-files", files=added, needs=needs, summary=summary
        )

    def left(self, groups: Iterable[int], live: set[str]) -> list[int]:
        """Return the groups whose files are still live."""
        return [group for group in groups if self._paths(group)[0] in live]

    def _paths(self, group: int) -> tuple[str, ...]:
        first = _first(self.first).attempt
        location, regions = self.first.metadata.location, self.load.groups + 1
        return tuple(
            own_file(location, group + 1, regions, count).path(first)
            for count in range(self.load.files)
        )


def _head(table: LoadedTable) -> tuple[int, int]:
    head = table.metadata.current_snapshot
    assert head is not None
    return head.snapshot_id, head.sequence_number
