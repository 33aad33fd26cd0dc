"""The rows of one task of an upsert that count, as batches for Spark: one for each key.

Runs on executors: format only. A row that deletes its key has nulls in all other columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from committer.iceberg.schema.schema import Schema
from workers.changes.tasks.row_kinds import IS_DELETED
from workers.spark.spark_batches import as_spark_batch
from workers.spark.worker_process import begin_call
from workers.upserts.upsert import Upsert
from workers.upserts.upsert_columns import bind_upsert
from workers.upserts.winning_rows import Winners, WinningRows

_ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class WinningBatches:
    """`columns`: of the table; `schema`: Spark's own, of these and `IS_DELETED` behind them."""

    upsert: Upsert
    columns: Schema
    schema: pa.Schema

    def pick(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that count, once the last one has come.

        Errors: `PublishError` for rows that do not fit the table, or that nothing orders.
        """
        begin_call()
        first = next(batches, None)
        if first is None:
            return
        collected = WinningRows(bind_upsert(self.upsert, first.schema, self.columns))
        collected.add(first)
        for batch in batches:
            collected.add(batch)
        winners = collected.finish()
        if winners is None:
            return
        for whole in (self._kept(winners), self._deleted(winners)):
            for start in range(0, whole.num_rows, _ROWS_AT_ONCE):
                yield whole.slice(start, _ROWS_AT_ONCE)

    def _kept(self, winners: Winners) -> pa.RecordBatch:
        rows = winners.rows
        is_deleted = pa.repeat(pa.scalar(False), rows.num_rows)
        return as_spark_batch(rows.append_column(IS_DELETED, is_deleted), self.schema)

    def _deleted(self, winners: Winners) -> pa.RecordBatch:
        keys = winners.keys.filter(winners.is_deleted)
        names = keys.schema.names
        found = as_spark_batch(keys, pa.schema([self.schema.field(name) for name in names]))
        columns = [
            found.column(field.name) if field.name in names else pa.nulls(keys.num_rows, field.type)
            for field in self.schema
        ]
        columns[-1] = pa.repeat(pa.scalar(True), keys.num_rows)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
