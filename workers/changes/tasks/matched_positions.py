"""The positions that a task is told to delete, of each data file, and those that came twice.

Runs on executors. A bitmap for each data file: some bytes a position at most, mostly far less.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from committer.iceberg.deletes.deletion_vector import DeletionVector

_NOTHING = DeletionVector()


@dataclass(slots=True)
class MatchedPositions:
    """Positions by data file. `repeated`: a row that was added twice, by file and position."""

    by_file: dict[str, DeletionVector] = field(default_factory=dict)
    repeated: tuple[str, int] | None = None

    def add(self, files: pa.Array, positions: pa.Array) -> int:
        """Add rows, of any files in any order; return how many of them are new."""
        if not len(files):
            return 0
        paths = pc.dictionary_encode(files)
        codes = paths.indices.to_numpy(zero_copy_only=False)
        numbers = positions.to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        added = 0
        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
            path: str = paths.dictionary[int(codes[order[start]])].as_py()
            added += self._add_to(path, numbers[order[start:end]])
        return added

    def _add_to(self, path: str, numbers: npt.NDArray[np.int64]) -> int:
        before = self.by_file.get(path, _NOTHING)
        given = DeletionVector(array("Q", numbers.tobytes()))
        self.by_file[path] = before | given
        added = self.by_file[path].cardinality - before.cardinality
        if added < len(numbers) and self.repeated is None:
            self.repeated = path, self._twice(before, given, numbers)
        return added

    def _twice(
        self, before: DeletionVector, given: DeletionVector, numbers: npt.NDArray[np.int64]
    ) -> int:
        for number in before & given:
            return number
        found, counts = np.unique(numbers, return_counts=True)
        return int(found[counts > 1][0])
