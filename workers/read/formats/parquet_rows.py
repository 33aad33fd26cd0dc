"""The rows of a Parquet file: one row group after the other, only the wanted columns of each."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from committer.iceberg.scan.task_part import TaskPart
from committer.iceberg.schema.metrics_config import FULL
from committer.iceberg.schema.name_mapping import NO_ID
from committer.iceberg.values.types import IcebergType
from workers.adoption.file_columns import Stored, file_columns
from workers.arrow.footer_metrics import ColumnFacts, Leaf, column_facts, row_group_offset
from workers.read.formats.stored_rows import (
    RowGroupTest,
    RowRange,
    batch_rows,
    rows_without_columns,
)


class ParquetRows:
    """An open Parquet file. `StoredRows`."""

    def __init__(self, source: pa.NativeFile) -> None:
        """Read the footer. Errors: `InvalidMetadataError`; `pa.ArrowException`; `OSError`."""
        self._file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
        self.footer = self._file.metadata
        self.columns = file_columns(self.footer)

    def readable(self, leaves: frozenset[int]) -> frozenset[int]:
        return leaves

    def ranges(
        self,
        leaves: frozenset[int],
        part: TaskPart | None = None,
        may_match: RowGroupTest | None = None,
    ) -> Iterator[RowRange]:
        first = 0
        for number in range(self.footer.num_row_groups):
            group = self.footer.row_group(number)
            if self._is_in(part, group) and (may_match is None or may_match(number)):
                yield from self._row_group(number, first, leaves)
            first += group.num_rows

    def facts(self, number: int, leaf: Stored, kind: IcebergType) -> ColumnFacts | None:
        if len(leaf.kinds) > 1:
            return None  # timestamps of old, which have no order
        place = leaf.position, leaf.units, leaf.is_ordered
        asked = Leaf(NO_ID, kind, (), False, FULL, *place)
        return column_facts([self.footer.row_group(number)], asked)

    def _is_in(self, part: TaskPart | None, group: pq.RowGroupMetaData) -> bool:
        if part is None:
            return True
        return part.has(row_group_offset(group) if group.num_columns else 0)

    def _row_group(self, number: int, first: int, leaves: frozenset[int]) -> Iterator[RowRange]:
        group = self.footer.row_group(number)
        if not leaves:
            yield from rows_without_columns(first, group.num_rows)
            return
        size_bytes = sum(group.column(leaf).total_uncompressed_size for leaf in leaves)
        # By the numbers of the leaves: a path of names may be two columns'. One group at a time:
        # bytes that were read ahead live as long as their reader.
        batches = self._file.reader.iter_batches(
            batch_rows(group.num_rows, size_bytes),
            row_groups=[number],
            column_indices=sorted(leaves),
            use_threads=True,
        )
        for batch in batches:
            yield RowRange(first, batch)
            first += batch.num_rows
