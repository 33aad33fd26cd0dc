"""The Spark job that writes the files of one group anew. Runs on the driver.

Rows that stay as they come never leave their task: it reads files and writes files. Rows that are
ordered go through Spark, which ranges them by their keys and sorts each range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # its usual name
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.schema import Schema
from workers.compaction.group_writer import GroupRows, GroupWriter, OrderedRows
from workers.compaction.rewrite_groups import FileGroup, group_splits, output_files
from workers.compaction.rewritten_table import RewrittenTable
from workers.compaction.row_order import RowOrder
from workers.distribution.distribution_keys import directed
from workers.spark.reported_files import ReportedFiles
from workers.spark.slim_tasks import slim_tasks
from workers.spark.spark_batches import spark_arrow_schema
from workers.spark.spark_schema import spark_schema
from workers.spark.task_messages import MESSAGE_SCHEMA, packed, read_messages

# Whose files are deleted, where the log says so.
WHAT = "a compaction that did not land"


@dataclass(frozen=True, slots=True)
class GroupJob:
    """`attempt`: of the request that the files of the group will be in."""

    spark: Any
    table: RewrittenTable
    group: FileGroup
    attempt: str

    def run(self) -> list[DataFile]:
        """Write the group; return its files, which are durable then.

        Errors: those of a task, as Spark tells them; `UnsupportedError` for an order of rows that
        have a column which Spark has no type for.
        """
        order, reported = self.table.order, ReportedFiles(self.spark)
        with reported.deleted_on_failure(self.table.state.access, WHAT):
            written = (
                self._as_they_come(reported) if order is None else self._in_order(order, reported)
            )
            return [file for files in read_messages(written.collect()) for file in files]

    def _as_they_come(self, reported: ReportedFiles) -> Any:
        rows = self._rows()
        writer = GroupWriter(self.table.target, self.attempt, reported, rows)
        return self._numbers(rows).mapInArrow(writer.write, MESSAGE_SCHEMA)

    def _in_order(self, order: RowOrder, reported: ReportedFiles) -> Any:
        rows = self._rows()
        own = spark_schema(Schema(rows.table.columns))
        schema = StructType([*own.fields, *_key_fields(rows, order)])
        source = OrderedRows(rows, order, spark_arrow_schema(schema))
        keys = [
            directed(F.col(name), field)
            for name, field in zip(order.names, order.directions, strict=True)
        ]
        count = output_files(self.group.size_bytes, self.table.sizes)
        ordered = (
            self._numbers(rows)
            .mapInArrow(source.read, schema)
            .repartitionByRange(count, *keys)
            .sortWithinPartitions(*keys)
        )
        writer = GroupWriter(
            self.table.target,
            self.attempt,
            reported,
            columns=tuple(own.names),
        )
        return ordered.mapInArrow(writer.write, MESSAGE_SCHEMA)

    def _rows(self) -> GroupRows:
        slim = FileGroup(tuple(slim_tasks(self.group.tasks)), self.group.partition)
        splits = group_splits(slim, self.table.sizes)
        return GroupRows(self.table.read, self.table.state.access, tuple(map(packed, splits)))

    def _numbers(self, rows: GroupRows) -> Any:
        """Return a DataFrame with the number of each split in a partition of its own."""
        count = len(rows.splits)
        return self.spark.range(0, count, 1, count)


def _key_fields(rows: GroupRows, order: RowOrder) -> list[StructField]:
    """Return the columns of the keys, by the types that they have for no rows at all."""
    empty = pa.RecordBatch.from_pylist([], schema=rows.table.arrow_schema)
    keys = order.keys(empty, rows.table.columns)
    return [
        StructField(name, from_arrow_type(key.type))
        for name, key in zip(order.names, keys, strict=True)
    ]
