"""The rows of one task, of which one for each key counts: that with the highest sequence.

They wait in memory until the last has come. Where many are of few keys, those that have lost are
dropped on the way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from committer.errors import PublishError
from workers.arrow.arrow_values import physical
from workers.arrow.partitioning import Codes, row_codes
from workers.files.row_buffer import RowBuffer, batch_bytes, owned_bytes
from workers.upserts.upsert_columns import UpsertColumns

MIB = 1 << 20
# Dropping the losers costs a pass over all rows: worth it once there are this many bytes of them.
DROP_BYTES = 128 * MIB
ROWS_BYTES_MAX = 1024 * MIB
_KEYS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Winners:
    """`keys`: of all rows that count. `rows`: those of them that are not deleted, in their order.
    `is_deleted`: for each of the keys."""

    keys: pa.RecordBatch
    rows: pa.RecordBatch
    is_deleted: pa.Array


class WinningRows:
    """Collects rows of a DataFrame. `drop_bytes`, `bytes_max`: limits, of tests."""

    def __init__(
        self,
        columns: UpsertColumns,
        *,
        drop_bytes: int = DROP_BYTES,
        bytes_max: int = ROWS_BYTES_MAX,
    ) -> None:
        self._columns = columns
        self._waiting = RowBuffer()
        self._drop_bytes = drop_bytes
        self._next_drop_bytes = drop_bytes
        self._bytes_max = bytes_max

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows. Errors: `PublishError` for a null in a key or sequence, and for more rows than
        fit in memory."""
        if not batch.num_rows:
            return
        self._waiting.add(batch, batch_bytes(batch))
        if self._waiting.size_bytes >= self._next_drop_bytes:
            self._drop()
        if self._waiting.size_bytes > self._bytes_max:
            raise PublishError(
                f"upsert: the rows of one task have more than {self._bytes_max // MIB} MiB: use"
                " more partitions, or smaller micro-batches"
            )

    def finish(self) -> Winners | None:
        """Return what counts; None without rows. Errors: as `add`, and for two rows that nothing
        orders."""
        if not self._waiting.num_rows:
            return None
        batch = self._taken()
        best = self._best(batch)
        self._check_ties(batch, best)
        counting = batch.take(pa.array(np.sort(best.order[best.is_last])))
        is_deleted = self._columns.is_deleted(counting)
        kept = counting.filter(pc.invert(is_deleted))
        return Winners(self._columns.keys_of(counting), self._columns.rows_of(kept), is_deleted)

    def _drop(self) -> None:
        """Drop rows that have lost. Those that tie stay: a later row may win over all of them."""
        batch = self._taken()
        best = self._best(batch)
        kept = batch.take(pa.array(np.sort(best.order[best.is_best])))
        self._waiting.add(kept, owned_bytes(kept))
        self._next_drop_bytes = max(self._drop_bytes, 2 * self._waiting.size_bytes)

    def _taken(self) -> pa.RecordBatch:
        (batch,) = self._waiting.take_all().combine_chunks().to_batches()
        return batch

    def _best(self, batch: pa.RecordBatch) -> _Best:
        keys = self._columns.keys_of(batch)
        codes = row_codes([physical(column) for column in keys.columns], batch.num_rows)
        return _best_of(codes, _ranks(self._columns.sequence_of(batch), batch.num_rows))

    def _check_ties(self, batch: pa.RecordBatch, best: _Best) -> None:
        """Refuse two rows of one key that nothing orders, unless they are equal: a source may
        deliver a row twice."""
        places = np.flatnonzero(best.ties)
        pairs = zip(
            _rows(batch, best.order[places]), _rows(batch, best.order[places + 1]), strict=True
        )
        differing = [
            place for place, (one, other) in zip(places, pairs, strict=True) if one != other
        ]
        if not differing:
            return
        shown = self._columns.keys_of(batch.take(pa.array(best.order[differing[:_KEYS_SHOWN]])))
        sequence = self._columns.upsert.sequence
        remedy = (
            "name the column that orders the rows of a key in option `upsert-sequence-column`"
            if sequence is None
            else f"they are equal in `{sequence}`, which has to order the rows of a key"
        )
        raise PublishError(
            f"upsert: a key has several different rows in one micro-batch, such as"
            f" {', '.join(map(str, shown.to_pylist()))}: {remedy}"
        )


@dataclass(frozen=True, slots=True)
class _Best:
    """The rows in the order of their keys, and of their ranks within each. `is_best`: its rank is
    the highest of its key. `is_last`: the last of its key. `ties`: it and the next one are best."""

    order: npt.NDArray[np.intp]
    is_best: npt.NDArray[np.bool_]
    is_last: npt.NDArray[np.bool_]
    ties: npt.NDArray[np.bool_]


def _best_of(codes: Codes, ranks: npt.NDArray[np.int64]) -> _Best:
    order = np.lexsort((ranks, codes))
    is_last = np.append(np.diff(codes[order]) != 0, True)
    lasts = np.flatnonzero(is_last)
    ordered = ranks[order]
    is_best = ordered == np.repeat(ordered[lasts], np.diff(lasts, prepend=-1))
    return _Best(order, is_best, is_last, is_best[:-1] & ~is_last[:-1])


def _ranks(sequence: pa.Array | None, rows: int) -> npt.NDArray[np.int64]:
    if sequence is None:
        return np.zeros(rows, np.int64)
    return np.asarray(pc.rank(sequence, "ascending", tiebreaker="dense"), np.int64)


def _rows(batch: pa.RecordBatch, places: npt.NDArray[np.intp]) -> list[str]:
    """Return rows as texts: equal values have equal ones, NaN too."""
    return [repr(row) for row in batch.take(pa.array(places)).to_pylist()]
