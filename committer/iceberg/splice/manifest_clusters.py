"""Manifests made of the live entries of others, in the order of their partitions, so that each is
of few partitions and readers can leave most of them out.

Entries are moved as in a merge, and cut apart: no statistics are decoded. Source:
docs/reference/iceberg-notes.md 13.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from committer.iceberg.avro.container import encode_container
from committer.iceberg.manifest.block_pool import BlockPool, EncodedBlock
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.manifest.manifest_writer import (
    EncodedManifest,
    ManifestContext,
    manifest_header,
)
from committer.iceberg.manifest.partition_summary import partition_order, summarize_partitions
from committer.iceberg.splice.entry_splice import Cut
from committer.iceberg.splice.manifest_merge import ManifestMerge

_CODEC = "deflate"
# Its bytes, its rows, and its sequence number, if it has one.
_Entry = tuple[bytes, int, int | None]


class ManifestClusters(ManifestMerge):
    """Gathers manifests of one partition spec. Memory: all their entries, inflated.

    An entry of a manifest without row ids (of before version 3) has none here.
    """

    def __init__(self, context: ManifestContext) -> None:
        super().__init__(context, codec="null")
        self._next: list[Cut] = []
        self._cuts = self._next
        self._clusters: defaultdict[bytes, list[_Entry]] = defaultdict(list)

    def add_all(self, row: ManifestFile, content: bytes) -> None:
        """Add the live entries of a manifest. Errors: as `add`."""
        for _ in self.add(row, content):
            pass

    def manifests(
        self, target_bytes: int, next_sync: Callable[[], bytes]
    ) -> Iterator[EncodedManifest]:
        """Yield manifests near a size, until all entries are in one. `next_sync`: is asked for the
        sync marker of each."""
        tuples = {self._encode_partition(one): one for one in self._tuples()}
        order = partition_order(self._kind)
        being_filled = _Manifest()
        for partition in sorted(self._clusters, key=lambda one: order(tuples[one])):
            for entry in self._clusters[partition]:
                being_filled.add(tuples[partition], *entry)
                if being_filled.size >= target_bytes:
                    yield self._encoded(being_filled, next_sync())
                    being_filled = _Manifest()
        if being_filled.files:
            yield self._encoded(being_filled, next_sync())

    def _tuples(self) -> Iterator[tuple[object, ...]]:
        for splice in self._splices.values():
            yield from splice.partitions.values()
        yield from self._partitions.values()

    def _take(self, count: int, content: bytes, *, is_compressed: bool = False) -> None:
        """Cut entries apart (a block that is not compressed at all is one that may be moved)."""
        cuts = list(self._next)
        self._next.clear()
        start = 0
        for partition, length, rows, number in cuts:
            stop = len(content) if length < 0 else start + length
            self._clusters[partition].append((content[start:stop], rows, number))
            start = stop

    def _encoded(self, filled: _Manifest, sync: bytes) -> EncodedManifest:
        filled.blocks += filled.pool.flush()
        content = encode_container(
            manifest_header(self._context, _CODEC, sync), filled.blocks, sync
        )
        return EncodedManifest(
            content=content,
            manifest_length=len(content),
            existing_files_count=filled.files,
            existing_rows_count=filled.rows,
            partitions=summarize_partitions(self._kind, filled.partitions.values()),
            min_sequence_number=min(filled.numbers, default=None),
        )


class _Manifest:
    """A manifest that is being filled. `size`: of its blocks so far, compressed."""

    def __init__(self) -> None:
        self.pool = BlockPool(_CODEC)
        self.blocks: list[EncodedBlock] = []
        self.partitions: dict[str, tuple[object, ...]] = {}
        self.numbers: set[int] = set()
        self.files = self.rows = self.size = 0

    def add(
        self, partition: tuple[object, ...], entry: bytes, rows: int, number: int | None
    ) -> None:
        for block in self.pool.add(1, entry):
            self.blocks.append(block)
            self.size += len(block[1])
        self.partitions.setdefault(repr(partition), partition)
        if number is not None:
            self.numbers.add(number)
        self.files += 1
        self.rows += rows
