"""Stored rows as the columns that a read wants: what `column_projection` decides, done in Arrow."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from committer.errors import InvalidMetadataError, PublishError
from committer.iceberg.scan.column_projection import (
    Constant,
    Deleted,
    FileColumn,
    Inherited,
    ProjectedField,
    RowNumber,
    Source,
)
from committer.iceberg.values.types import NestedField, VariantType
from workers.adoption.file_columns import FileColumn as StoredColumn
from workers.arrow.arrow_columns import Column, conform_column
from workers.read.formats.stored_columns import kept_position
from workers.read.formats.stored_rows import batch_without_columns
from workers.read.read_types import read_array, read_field, read_schema
from workers.read.variants import plain_variants

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a file: their stored columns, their positions in it, and which of them are deleted
    (None: none is).
    """

    batch: pa.RecordBatch
    positions: Positions
    deleted: Mask | None = None

    def kept(self, mask: Mask) -> Rows:
        """Return the rows of a mask."""
        deleted = None if self.deleted is None else self.deleted[mask]
        return Rows(self.batch.filter(pa.array(mask)), self.positions[mask], deleted)


@dataclass(frozen=True, slots=True)
class ArrowProjection:
    """Fields and their sources in the batches of one file, which have some of its leaves."""

    schema: pa.Schema
    fields: tuple[tuple[ProjectedField, Column], ...]
    file_path: str

    @classmethod
    def of(
        cls,
        fields: Sequence[ProjectedField],
        columns: Sequence[StoredColumn],
        leaves: Collection[int],
        file_path: str,
    ) -> ArrowProjection:
        """Prepare a projection. `columns` of the whole file; `leaves` are those that are read."""
        built = tuple(
            (each, _column(each.field, _stored(each.source), columns, leaves, each.field.name))
            for each in fields
        )
        return cls(read_schema(each.field for each in fields), built, file_path)

    def apply(self, rows: Rows) -> pa.RecordBatch:
        """Project rows. Errors: `InvalidMetadataError` for a required column that holds nulls, or a
        value that the wanted type does not have."""
        if not self.fields:
            return batch_without_columns(rows.batch.num_rows)
        try:
            arrays = [_array(field.source, column, rows) for field, column in self.fields]
        except (PublishError, pa.ArrowException) as error:
            raise InvalidMetadataError(f"{self.file_path}: {error}") from error
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _array(source: Source, column: Column, rows: Rows) -> pa.Array:
    match source:
        case RowNumber(first):
            return pa.array(rows.positions + first)
        case Deleted() if rows.deleted is not None:
            return pa.array(rows.deleted)
        case Inherited(_, Constant(value)):
            found = conform_column(rows.batch, column)
            return found if value is None else found.fill_null(value)
        case Inherited(_, RowNumber(first)):
            found = conform_column(rows.batch, column)
            return (
                pc.coalesce(found, pa.array(rows.positions + first)) if found.null_count else found
            )
    return conform_column(rows.batch, column)


# --- Columns of a file as the columns that are wanted --------------------------------------------


def _stored(source: Source) -> Source:
    """Return the stored column of a source that has one; false where no row is deleted."""
    match source:
        case Inherited(stored, _):
            return stored
        case Deleted():
            return Constant(False)
    return source


def _column(
    field: NestedField,
    source: Source,
    columns: Sequence[StoredColumn],
    leaves: Collection[int],
    path: str,
) -> Column:
    target = read_field(field)
    match source:
        case Constant(value):
            return Column(target, path, None, read_array([value], field.field_type), ())
        case FileColumn(position, VariantType(), _):
            at = kept_position(columns, position, leaves)
            return Column(target, path, at, None, (), plain_variants)
        case FileColumn(position, _, parts):
            inner = tuple(
                _column(
                    part.field,
                    part.source,
                    columns[position].parts,
                    leaves,
                    f"{path}.{part.field.name}",
                )
                for part in parts
            )
            return Column(target, path, kept_position(columns, position, leaves), None, inner)
    return Column(target, path, None, None, ())
