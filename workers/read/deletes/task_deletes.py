"""The rows of one data file that are deleted, asked of its batches."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from committer.iceberg.deletes.deletion_vector import DeletionVector
from workers.read.arrow_projection import ArrowProjection, Mask, Rows
from workers.read.deletes.delete_access import DeleteFiles
from workers.read.deletes.deleted_values import EqualityGroup, equality_sets, key_columns
from workers.read.deletes.equality_sets import EqualitySet

# The keys of all rows of the data file, with their positions, read anew by each call.
ReadKeys = Callable[[EqualityGroup], Iterator[tuple[Rows, pa.RecordBatch]]]


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Positions, and the sets of equality deletes with the projections to what they compare."""

    positions: DeletionVector
    sets: tuple[tuple[EqualitySet, ArrowProjection], ...] = ()

    def mask(self, rows: Rows) -> Mask | None:
        """Return which rows are deleted; None if none is. The rows are behind one another."""
        mask = self._by_position(rows)
        for values, keys in self.sets:
            found = values.matches(key_columns(keys.apply(rows)))
            mask = found if mask is None else mask | found
        return mask if mask is not None and mask.any() else None

    def _by_position(self, rows: Rows) -> Mask | None:
        if not self.positions or not len(rows.positions):
            return None
        first, count = int(rows.positions[0]), len(rows.positions)
        found = (self.positions & DeletionVector.of_range(first, first + count)).to_array()
        if not found:
            return None
        mask = np.zeros(count, np.bool_)
        mask[np.frombuffer(found, np.int64) - first] = True
        return mask


def deleted_rows(
    positions: DeletionVector,
    groups: Sequence[tuple[EqualityGroup, ArrowProjection]],
    files: DeleteFiles,
    read_keys: ReadKeys,
) -> DeletedRows:
    """Load the equality deletes of these groups, each with the projection to its columns.

    A group that is too large for one set becomes positions, by one turn through the data file's
    compared columns for each of its sets. Errors: as `read_task`.
    """
    whole = []
    for group, projection in groups:
        sets = equality_sets(group, files)
        first, second = next(sets, None), next(sets, None)
        if first is None:
            continue
        if second is None:
            whole.append((first, projection))
            continue
        for one in chain((first, second), sets):
            positions |= _positions(one, read_keys(group))
    return DeletedRows(positions, tuple(whole))


def _positions(values: EqualitySet, keys: Iterator[tuple[Rows, pa.RecordBatch]]) -> DeletionVector:
    found = DeletionVector()
    for rows, batch in keys:
        matching = rows.positions[values.matches(key_columns(batch))]
        found |= DeletionVector(array("Q", matching.tobytes()))
    return found
