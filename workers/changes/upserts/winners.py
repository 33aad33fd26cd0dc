"""The rows of a micro-batch that count, one for each key, as a DataFrame. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import functions as F  # noqa: N812  # its usual name
from pyspark.sql.types import BooleanType, StructField, StructType

from committer.iceberg.schema.schema import Schema
from workers.changes.change_run import run
from workers.changes.keys.key_filter import KeyColumn, SourceKeys, read_keys
from workers.changes.tasks.row_kinds import IS_DELETED
from workers.changes.tasks.winning_batches import WinningBatches
from workers.creation.frame_schema import arrow_schema_of
from workers.spark.spark_batches import spark_arrow_schema
from workers.spark.spark_schema import quoted, spark_schema
from workers.upserts.upsert import Upsert
from workers.upserts.upsert_columns import bind_upsert


@dataclass(frozen=True, slots=True)
class Winners:
    """`rows`: they have the table's columns and `IS_DELETED`. `names`: of the key's columns.
    `keys`: which there are."""

    rows: Any
    names: tuple[str, ...]
    keys: SourceKeys
    upsert: Upsert


@contextmanager
def winners_of(dataframe: Any, upsert: Upsert, schema: Schema) -> Iterator[Winners]:
    """Pick the rows that count, which are kept for as long as the block runs: each try looks for
    the same ones. `schema`: of the table.

    Errors: `PublishError` for rows that do not fit the table, or that nothing orders.
    """
    bound = bind_upsert(upsert, arrow_schema_of(dataframe.schema), schema)
    columns = upsert_columns(schema)
    batches = WinningBatches(upsert, schema, spark_arrow_schema(columns))
    by_key = dataframe.repartition(upsert.partitions, *map(quoted, upsert.keys))
    rows = by_key.mapInArrow(batches.pick, columns).persist()
    try:
        fields = [KeyColumn(field, F.col(quoted(field.name))) for field in bound.key_fields]
        keys = run(lambda: read_keys(rows, fields))
        names = tuple(field.name for field in bound.key_fields)
        yield Winners(rows, names, keys, upsert)
    finally:
        rows.unpersist()


def upsert_columns(schema: Schema) -> StructType:
    """Return the columns of the rows: a row that deletes has nulls in required columns too."""
    fields = [StructField(field.name, field.dataType) for field in spark_schema(schema).fields]
    return StructType([*fields, StructField(IS_DELETED, BooleanType())])
