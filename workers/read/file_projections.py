"""Several projections of one open file, which read each of its columns once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.scan.column_projection import FileContext, project_columns
from committer.iceberg.scan.task_part import TaskPart
from committer.iceberg.values.types import NestedField
from workers.read.arrow_projection import ArrowProjection, Rows
from workers.read.formats.stored_columns import needed_leaves, stored_type
from workers.read.formats.stored_rows import RowGroupTest, StoredRows
from workers.read.shared_read import TableRead


@dataclass(frozen=True, slots=True)
class FileProjections:
    """An open file, the leaves that are read of it, and a projection for each list of fields."""

    stored: StoredRows
    leaves: frozenset[int]
    projections: tuple[ArrowProjection, ...]

    @classmethod
    def of(
        cls,
        read: TableRead,
        file: DataFile,
        stored: StoredRows,
        context: FileContext,
        *wanted: Sequence[NestedField],
    ) -> FileProjections:
        """Prepare projections to these lists of fields. Errors: as `project_columns`."""
        kind = stored_type(stored.columns, read.known_types, read.name_mapping)
        projected = [project_columns(one, kind, context, read.name_mapping) for one in wanted]
        needed = [needed_leaves(one, stored.columns) for one in projected]
        leaves = stored.readable(frozenset().union(*needed))
        return cls(
            stored,
            leaves,
            tuple(
                ArrowProjection.of(one, stored.columns, leaves, file.file_path) for one in projected
            ),
        )

    def rows(
        self, part: TaskPart | None = None, may_match: RowGroupTest | None = None
    ) -> Iterator[Rows]:
        """Yield the stored rows, as `StoredRows.ranges`."""
        for found in self.stored.ranges(self.leaves, part, may_match):
            count = found.batch.num_rows
            yield Rows(found.batch, np.arange(found.first, found.first + count, dtype=np.int64))
