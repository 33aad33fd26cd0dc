"""Partition values and sort keys as Spark columns, computed as the writer computes them.

The driver names the columns; executors compute transforms, by Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # its usual name
from pyspark.sql.pandas.types import from_arrow_type

from committer.errors import UnsupportedError
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import SortField, SortOrder
from committer.iceberg.values.transforms import IdentityTransform, Transform, VoidTransform
from committer.iceberg.values.types import NestedField
from workers.arrow.arrow_schema import arrow_schema, match_columns
from workers.arrow.partitioning import bind_partitioner
from workers.spark.spark_schema import quoted


@dataclass(frozen=True, slots=True)
class KeyTransform:
    """A transform of a column of the table: `column` is at the top, the source may be within."""

    column: NestedField
    source_id: int
    transform: Transform

    def values(self, rows: pa.Array) -> pa.Array:
        """Compute the keys of values of the column, as Spark sends them."""
        table = Schema((replace(self.column, required=False),))
        batch = pa.RecordBatch.from_arrays([rows], names=[self.column.name])
        columns = match_columns(batch.schema, table)
        return self._bound(table, columns.schema).values(columns.conform(batch))

    def result_type(self) -> pa.DataType:
        """Return the type of the keys."""
        table = Schema((replace(self.column, required=False),))
        schema = arrow_schema(table)
        empty = pa.RecordBatch.from_pylist([], schema=schema)
        return self._bound(table, schema).values(empty).type

    def _bound(self, table: Schema, schema: pa.Schema) -> Any:
        field = PartitionField((self.source_id,), 1000, "key", self.transform)
        return bind_partitioner(PartitionSpec(0, (field,)), table, schema).fields[0]


def partition_keys(spec: PartitionSpec, schema: Schema, frame: Any) -> list[Any]:
    """Return the partition values of a DataFrame's rows. Errors: as `_key`."""
    keys = (_key(field.source_id, field.transform, schema, frame) for field in spec.fields)
    return [key for key in keys if key is not None]


def sort_keys(order: SortOrder, schema: Schema, frame: Any) -> list[tuple[Any, SortField]]:
    """Return what rows are sorted by, with the field that says how. Errors: as `_key`."""
    keys = (
        (_key(field.source_id, field.transform, schema, frame), field) for field in order.fields
    )
    return [(key, field) for key, field in keys if key is not None]


def directed(key: Any, field: SortField) -> Any:
    """Return a key in the direction of a sort field."""
    nulls_last = field.null_order == "nulls-last"
    if field.direction == "desc":
        return key.desc_nulls_last() if nulls_last else key.desc_nulls_first()
    return key.asc_nulls_last() if nulls_last else key.asc_nulls_first()


def _key(source_id: int, transform: Transform, schema: Schema, frame: Any) -> Any:
    """Return the key of a column; None where all rows have the same: the DataFrame lacks the
    column, or the transform makes nothing of it.

    Errors: `UnsupportedError` for a transform that is unknown, or that this PySpark cannot compute.
    """
    around = _ancestors(schema, source_id)
    name = _name_in(frame, around[0].name) if around else None
    if name is None or isinstance(transform, VoidTransform):
        return None
    if isinstance(transform, IdentityTransform):
        column = F.col(quoted(name))
        for inner in around[1:]:
            column = column.getField(inner.name)
        return column
    if not hasattr(F, "arrow_udf"):
        raise UnsupportedError(f"rows are distributed by `{transform}` on PySpark 4.1 and later")
    computed = KeyTransform(around[0], source_id, transform)
    return F.arrow_udf(_values(computed), from_arrow_type(_plain(computed.result_type())))(
        F.col(quoted(name))
    )


def _ancestors(schema: Schema, source_id: int) -> Sequence[NestedField]:
    """Return a field of the table with the structs that it lies in, the outermost first."""
    field = schema.field(source_id)
    return () if field is None else (*reversed([*schema.ancestors(source_id)]), field)


def _values(computed: KeyTransform) -> Any:
    def values(rows: pa.Array) -> pa.Array:
        found = computed.values(rows)
        return found.cast(_plain(found.type))

    return values


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return a type that Spark has."""
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind


def _name_in(frame: Any, name: str) -> str | None:
    """Return a DataFrame's name of a column of the table, as the writer matches them."""
    names: list[str] = frame.columns
    if name in names:
        return name
    folded = [one for one in names if one.lower() == name.lower()]
    return folded[0] if len(folded) == 1 else None
