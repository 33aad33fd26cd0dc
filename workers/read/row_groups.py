"""Leaves out row groups whose statistics prove that none of their rows matches a filter.

Bloom filters are not asked: pyarrow does not read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.expressions.compiling import compiled
from committer.iceberg.pruning.inclusive_metrics import inclusive_test
from committer.iceberg.scan.column_projection import ProjectedField
from committer.iceberg.values.promotion import promoted_value
from committer.iceberg.values.single_value import encode_value
from committer.iceberg.values.types import IcebergType, NestedField, UUIDType
from workers.adoption.file_columns import FileColumn as StoredColumn
from workers.adoption.file_columns import Stored
from workers.read.arrow_projection import ArrowProjection
from workers.read.formats.stored_columns import file_column
from workers.read.formats.stored_rows import RowGroupTest, StoredRows
from workers.read.row_filter import RowFilter


@dataclass(frozen=True, slots=True)
class _Column:
    """A field of the filter, and the leaf that it is read from."""

    field: NestedField
    kind: IcebergType
    leaf: Stored


def row_group_test(
    stored: StoredRows, asked: RowFilter, projection: ArrowProjection
) -> RowGroupTest:
    """Return a test whether a row group may have rows that match.
    `projection`: to the filter's columns."""
    columns = list(_columns((field for field, _ in projection.fields), stored.columns))
    test = compiled(asked.bound, inclusive_test)
    return lambda number: test(_described(stored, number, columns))


def _columns(
    fields: Iterable[ProjectedField], columns: Sequence[StoredColumn]
) -> Iterator[_Column]:
    for field in fields:
        source = file_column(field)
        if source is None:
            continue
        column = columns[source.position]
        if column.stored is None:
            yield from _columns(source.parts, column.parts)
        elif not isinstance(field.field.field_type, UUIDType):
            # Parquet orders uuids by unsigned bytes, filters as the reference does.
            yield _Column(field.field, source.stored, column.stored)


def _described(stored: StoredRows, number: int, columns: Iterable[_Column]) -> DataFile:
    """Describe a row group as if it were a data file, by the metrics of the filter's columns."""
    values: dict[int, int] = {}
    nulls: dict[int, int] = {}
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for column in columns:
        facts, field_id = stored.facts(number, column.leaf, column.kind), column.field.field_id
        if facts is None:
            continue
        values[field_id] = facts.value_count
        if facts.null_count is not None:
            nulls[field_id] = facts.null_count
        if facts.bounds is not None:
            lower[field_id], upper[field_id] = (_encoded(column, one) for one in facts.bounds)
    return DataFile(
        content=DataFileContent.DATA,
        file_path="",
        file_format="PARQUET",
        partition=(),
        spec_id=0,
        record_count=1,
        file_size_in_bytes=0,
        value_counts=values,
        null_value_counts=nulls,
        lower_bounds=lower,
        upper_bounds=upper,
    )


def _encoded(column: _Column, bound: object) -> bytes:
    kind = column.field.field_type
    return encode_value(kind, promoted_value(column.kind, kind, bound))
