"""Equality deletes: which columns they compare, and which data files they cannot touch.

Source: the specification, "Equality Delete Files"; docs/reference/iceberg-notes.md 6.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from committer.errors import InvalidMetadataError
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.single_value import decode_value
from committer.iceberg.values.types import (
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    NestedField,
    StructType,
    UnknownType,
    VariantType,
)

# Their values have no order, or no binary form.
_WITHOUT_RANGE = (GeographyType, GeometryType, UnknownType, VariantType)


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """The metrics of a file for one column. `bounds`: lower and upper, None if unknown."""

    may_have_null: bool
    has_only_null: bool
    bounds: tuple[object, object] | None

    def may_equal(self, deleted: ColumnFacts) -> bool:
        """Return whether a value here may equal a deleted one. Null equals null."""
        if self.may_have_null and deleted.may_have_null:
            return True
        if self.has_only_null and not deleted.may_have_null:
            return False
        if deleted.has_only_null and not self.may_have_null:
            return False
        return _overlap(self.bounds, deleted.bounds)


def column_facts(file: DataFile, column: NestedField) -> ColumnFacts:
    """Read the metrics of one primitive column. Errors: `InvalidMetadataError` for a broken bound.

    A column of `compared_fields` that is required has no nulls, even if the counts say otherwise.
    """
    nulls = (file.null_value_counts or {}).get(column.field_id)
    values = (file.value_counts or {}).get(column.field_id)
    return ColumnFacts(
        may_have_null=not column.required and (nulls is None or nulls > 0),
        has_only_null=not column.required and nulls is not None and nulls == values,
        bounds=None if _may_have_nan(file, column) else _bounds(file, column),
    )


def _may_have_nan(file: DataFile, column: NestedField) -> bool:
    """Return whether a file may have NaN, which is outside of bounds, and equals NaN."""
    if not isinstance(column.field_type, FloatType | DoubleType):
        return False
    return (file.nan_value_counts or {}).get(column.field_id) != 0


def _bounds(file: DataFile, column: NestedField) -> tuple[object, object] | None:
    lower = (file.lower_bounds or {}).get(column.field_id)
    upper = (file.upper_bounds or {}).get(column.field_id)
    if lower is None or upper is None or isinstance(column.field_type, _WITHOUT_RANGE):
        return None
    try:
        return decode_value(column.field_type, lower), decode_value(column.field_type, upper)
    except InvalidMetadataError as error:
        raise InvalidMetadataError(
            f"{file.file_path}: bounds of field {column.field_id}: {error}"
        ) from error


def _overlap(first: tuple[object, object] | None, second: tuple[object, object] | None) -> bool:
    """Return whether two ranges may share a value.

    A range that is not one (its lower bound not below its upper) says nothing: NaN, and uuids whose
    writer compared them as signed numbers.
    """
    if first is None or second is None:
        return True
    (first_lower, first_upper), (second_lower, second_upper) = first, second
    if not (_in_order(first_lower, first_upper) and _in_order(second_lower, second_upper)):
        return True
    return _in_order(first_lower, second_upper) and _in_order(second_lower, first_upper)


def _in_order(lower: object, upper: object) -> bool:
    return lower <= upper  # type: ignore[operator,no-any-return]  # two values of one type


@dataclass(frozen=True, slots=True)
class EqualityDelete:
    """An equality delete file and what its metrics say of the columns that it compares."""

    file: DataFile
    columns: tuple[tuple[NestedField, ColumnFacts], ...]

    @classmethod
    def of(cls, file: DataFile, fields: Mapping[int, NestedField]) -> EqualityDelete:
        """Describe a delete file; `fields` has every field of every schema, dropped columns too.

        Errors: `InvalidMetadataError` for a file without `equality_ids`, or with an unknown one.
        """
        if not file.equality_ids:
            raise InvalidMetadataError(f"{file.file_path}: an equality delete file needs ids")
        columns = [_field(file, field_id, fields) for field_id in file.equality_ids]
        return cls(
            file,
            tuple(
                (column, column_facts(file, column))
                for column in columns
                if column.field_type.is_primitive
            ),
        )

    def may_delete_from(self, facts: Callable[[NestedField], ColumnFacts]) -> bool:
        """Return whether a row of the data file may be deleted.
        `facts` answers for the data file."""
        return all(facts(column).may_equal(deleted) for column, deleted in self.columns)


def compared_fields(schemas: Iterable[Schema]) -> dict[int, NestedField]:
    """Return every field of these schemas by id, as a delete file may compare it.

    The last schema says its type: a promoted one reads old bounds too. It is required only if no
    row of any file can lack it: in every schema, and with all structs around it.
    """
    fields: dict[int, NestedField] = {}
    for schema in sorted(schemas, key=lambda schema: schema.schema_id):
        for _, field in schema.walk():
            before = fields.get(field.field_id, field)
            around = schema.ancestors(field.field_id)
            required = before.required and field.required and all(one.required for one in around)
            fields[field.field_id] = replace(field, required=required)
    return fields


def compared_branch(schemas: Iterable[Schema], field_id: int) -> NestedField | None:
    """Return the top-level column of a compared field, with nothing in its structs but the way to
    it; None for a field that is in no schema.

    As the last schema that has it says. No part is required: rows may be older than a column.
    """
    for schema in sorted(schemas, key=lambda schema: schema.schema_id, reverse=True):
        field = schema.field(field_id)
        if field is None:
            continue
        branch = replace(field, required=False)
        for around in schema.ancestors(field_id):
            branch = replace(around, required=False, field_type=StructType((branch,)))
        return branch
    return None


def _field(file: DataFile, field_id: int, fields: Mapping[int, NestedField]) -> NestedField:
    found = fields.get(field_id)
    if found is None:
        raise InvalidMetadataError(
            f"{file.file_path}: equality field {field_id} is in no schema of the table"
        )
    return found
