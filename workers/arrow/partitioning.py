"""Computes the partition of each row: a spec applied to Arrow columns, and a batch split by it.

The transforms themselves are in `vectors.py`. No buffering, no files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from committer.errors import InvalidMetadataError, PublishError, UnsupportedError
from committer.iceberg.metadata.metadata_check import check_partition_names
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec, partition_type
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.transforms import (
    BucketTransform,
    IdentityTransform,
    TimeTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
)
from committer.iceberg.values.types import DecimalType, FixedType, IcebergType
from workers.arrow import vectors
from workers.arrow.arrow_types import field_id
from workers.arrow.arrow_values import physical, to_values

Partition = tuple[object, ...]
Codes = npt.NDArray[np.int64] | npt.NDArray[np.int16]
Rows = npt.NDArray[np.intp]

_TIME: dict[str, Callable[[pa.Array], pa.Array]] = {
    "year": vectors.year,
    "month": vectors.month,
    "day": vectors.day,
    "hour": vectors.hour,
}
# Codes of several fields are joined in one number while it stays below this.
_CODE_MAX = 1 << 62
_RADIX_MAX = (1 << 15) - 1


def apply_transform(transform: Transform, array: pa.Array) -> pa.Array:
    """Compute the partition values of a column; dates, times and uuids in their physical form.

    Errors: `UnsupportedError` for a transform that this version does not know.
    """
    match transform:
        case IdentityTransform():
            return physical(array)
        case VoidTransform():
            return pa.nulls(len(array), physical(array).type)
        case BucketTransform(buckets):
            return vectors.bucket(array, buckets)
        case TruncateTransform(width):
            return vectors.truncate(array, width)
        case TimeTransform(unit):
            return _TIME[unit](array)
    raise UnsupportedError(f"rows cannot be partitioned by `{transform}`: the transform is unknown")


@dataclass(frozen=True, slots=True)
class Partitioner:
    """A partition spec bound to the columns of the files that are written."""

    fields: tuple[_BoundField, ...]

    def split(self, batch: pa.RecordBatch) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        """Cut the batch into one batch per partition; rows keep their order.

        Each part owns its memory, or is the whole batch: a part that waits long does not hold on
        to the rows of the others. Errors: `PublishError` for a row whose partition value is none of
        its field's type.
        """
        if not batch.num_rows:
            return
        if not self.fields:
            yield (), batch
            return
        arrays = [bound.values(batch) for bound in self.fields]
        codes = row_codes(arrays, batch.num_rows)
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        firsts = order[starts]
        partitions = self._partitions(arrays, firsts)
        for place, bound in enumerate(self.fields):
            bound.check_fit([partition[place] for partition in partitions], batch, firsts)
        if len(starts) == 1:
            yield partitions[0], batch
            return
        ends = [*starts[1:], batch.num_rows]
        narrow = order.astype(np.int32)
        for partition, start, end in zip(partitions, starts, ends, strict=True):
            yield partition, pc.take(batch, pa.array(narrow[start:end]), boundscheck=False)

    def _partitions(self, arrays: Sequence[pa.Array], rows: Rows) -> list[Partition]:
        """Return the partition tuples of the given rows."""
        picked = pa.array(rows)
        columns = [
            to_values(array.take(picked), bound.result_type)
            for array, bound in zip(arrays, self.fields, strict=True)
        ]
        return list(zip(*columns, strict=True))


@dataclass(frozen=True, slots=True)
class _BoundField:
    """A partition field and the way to its source column; an empty path means always null."""

    name: str
    transform: Transform
    path: tuple[int, ...]
    result_type: IcebergType
    column: str | None

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        if not self.path:
            return pa.nulls(batch.num_rows)
        return apply_transform(self.transform, column_at(batch, self.path))

    def check_fit(self, values: Sequence[object], batch: pa.RecordBatch, rows: Rows) -> None:
        """Require that the partition values of some rows are values of the field's type: rounded
        down, a decimal may need more digits than its column has, which no manifest can hold.

        Errors: `PublishError` with the column, the row's value and the partition field.
        """
        kind = self.result_type
        if not isinstance(kind, DecimalType) or isinstance(self.transform, IdentityTransform):
            return
        for value, row in zip(values, rows, strict=True):
            if isinstance(value, Decimal) and not kind.holds(value):
                source = column_at(batch, self.path)[int(row)].as_py()
                raise PublishError(
                    f"column {self.column} has the value {source}, which partition field"
                    f" {self.name} ({self.transform}) rounds down to {value}: a {kind} cannot hold"
                    " that. Widen the column's type, partition by another transform, or leave the"
                    " row out"
                )


def bind_partitioner(spec: PartitionSpec, table: Schema, file_schema: pa.Schema) -> Partitioner:
    """Find the source columns of a spec.

    Errors: `UnsupportedError` for an unknown transform, `InvalidMetadataError` for a source column
    that the table does not have, and for names that are one name in manifests.
    """
    check_partition_names(spec)
    results = partition_type(spec, table).fields
    return Partitioner(
        tuple(
            _bind(field, result.field_type, table, file_schema)
            for field, result in zip(spec.fields, results, strict=True)
        )
    )


def _bind(
    field: PartitionField, result_type: IcebergType, table: Schema, file_schema: pa.Schema
) -> _BoundField:
    if isinstance(field.transform, UnknownTransform):
        raise UnsupportedError(f"partition field {field.name}: unknown transform {field.transform}")
    is_void = isinstance(field.transform, VoidTransform)
    if isinstance(result_type, FixedType) and not is_void:
        raise UnsupportedError(
            f"partition field {field.name}: {field.transform} of a fixed column is not supported"
        )
    if table.field(field.source_id) is None and not is_void:
        raise InvalidMetadataError(
            f"partition field {field.name}: expected a column with field id {field.source_id}"
        )
    path = () if is_void else column_path(list(file_schema), field.source_id)
    column = table.column_name(field.source_id)
    return _BoundField(field.name, field.transform, path, result_type, column)


def column_path(fields: Sequence[pa.Field], wanted: int) -> tuple[int, ...]:
    """Return child positions down to a column, through structs; empty for a column not in files."""
    for position, candidate in enumerate(fields):
        if field_id(candidate) == wanted:
            return (position,)
        if pa.types.is_struct(candidate.type) and (
            inner := column_path(list(candidate.type), wanted)
        ):
            return (position, *inner)
    return ()


def column_at(rows: pa.RecordBatch | pa.Table, path: Sequence[int]) -> pa.Array | pa.ChunkedArray:
    """Return the column that such a path leads to, null wherever a struct around it is."""
    column = rows.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def row_codes(arrays: Sequence[pa.Array], rows: int) -> Codes:
    """Return a number per row, equal for equal partitions.
    Nulls are a value, so are NaN and -0.0."""
    codes, size = np.zeros(rows, np.int64), 1
    for array in arrays:
        if array.null_count == rows:
            continue
        encoded = array.dictionary_encode(null_encoding="encode")
        count = len(encoded.dictionary)
        if size * count > _CODE_MAX:
            _, codes = np.unique(codes, return_inverse=True)
            size = rows
        codes = codes * count + encoded.indices.to_numpy()
        size *= count
    # numpy sorts 16-bit numbers by radix, seven times faster.
    return codes.astype(np.int16) if size <= _RADIX_MAX else codes


def partition_key(partition: Partition) -> Partition:
    """Return the dictionary key of a partition: NaN equals NaN, -0.0 is not 0.0."""
    return tuple(_key(value) if isinstance(value, float) else value for value in partition)


def _key(value: float) -> tuple[str, float]:
    return ("nan", 0.0) if math.isnan(value) else (str(math.copysign(1, value)), value)
