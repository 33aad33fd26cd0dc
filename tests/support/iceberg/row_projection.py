"""Rows projected one by one, as values of Python: what the projection to Arrow is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from committer.iceberg.scan.column_projection import (
    Constant,
    Deleted,
    FileColumn,
    Inherited,
    ProjectedField,
    RowNumber,
    Source,
)
from committer.iceberg.values.promotion import promoted_value
from committer.iceberg.values.types import IcebergType, ListType, MapType, StructType


def project_row(
    fields: Sequence[ProjectedField],
    row: Sequence[object],
    position: int,
    *,
    is_deleted: bool = False,
) -> tuple[object, ...]:
    """Project one row to the wanted fields.

    Shapes: `row` has one in-memory value for each of the file's fields, in the file's types;
    `position` is the row's place in the file, from 0.
    """
    reader = _RowReader(position, is_deleted)
    return tuple(reader.value(field, row) for field in fields)


@dataclass(frozen=True, slots=True)
class _RowReader:
    position: int
    is_deleted: bool

    def value(self, field: ProjectedField, row: Sequence[object]) -> object:
        return self._of(field.source, field.field.field_type, row)

    def _of(self, source: Source, kind: IcebergType, row: Sequence[object]) -> object:
        match source:
            case FileColumn(position):
                return self._stored(source, kind, row[position])
            case Constant(value):
                return value
            case RowNumber(first):
                return first + self.position
            case Inherited(stored, inherited):
                found = self._of(stored, kind, row)
                return self._of(inherited, kind, row) if found is None else found
            case Deleted():
                return self.is_deleted

    def _stored(self, column: FileColumn, kind: IcebergType, value: object) -> object:
        if value is None:
            return None
        match kind:
            case StructType():
                row = cast(Sequence[object], value)
                return tuple(self.value(part, row) for part in column.parts)
            case ListType():
                elements = cast(Sequence[object], value)
                return [self.value(column.parts[0], (each,)) for each in elements]
            case MapType():
                key, part = column.parts
                pairs = cast(Mapping[object, object], value).items()
                return {self.value(key, pair): self.value(part, pair) for pair in pairs}
            case _:
                return promoted_value(column.stored, kind, value)
