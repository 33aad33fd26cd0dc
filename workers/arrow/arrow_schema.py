"""Turns a DataFrame's columns into a table's columns: matched by name, checked, and reshaped.

Types are in `arrow_types.py`, the reshaping of arrays is in `arrow_columns.py`. Nothing is written.

The rules are those of Iceberg's Spark runtime for writes. A missing optional column is filled with
its write default or null; a missing required one, an extra one, and any change of type that ANSI
store assignment does not allow (`store_assignment.py`) are errors. All problems are reported at
once, before anything is written. Spark calls nearly every column nullable, so nullability is
checked on the rows instead.

Names are compared as Spark does by default: without regard to case, an exact match first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from committer.errors import InvalidMetadataError, PublishError
from committer.iceberg.metadata.metadata_check import check_column_names
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import (
    BinaryType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
    VariantType,
)
from workers.arrow import arrow_types
from workers.arrow.arrow_columns import Column, conform_batch
from workers.arrow.arrow_types import (
    VARIANT,
    arrow_schema,
    arrow_type,
    describe,
    describe_arrow,
    is_writable,
)
from workers.arrow.arrow_values import to_array
from workers.arrow.store_assignment import is_assignable

__all__ = ["MatchedColumns", "Problem", "arrow_schema", "match_columns"]

_VARIANT_MARK = b"variant"

# Types that may be written into a column besides its own. Spark has neither uuid nor fixed: it
# shows a uuid column as string and a fixed column as binary.
_SAFE: dict[type[IcebergType], tuple[type[IcebergType], ...]] = {
    UUIDType: (StringType, FixedType),
    FixedType: (BinaryType,),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason for which one column cannot be written."""

    column: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.column}: found {self.found}, expected {self.expected}"


@dataclass(frozen=True, slots=True)
class MatchedColumns:
    """The answer of `match_columns`: the schema of the data files, and the way to it."""

    schema: pa.Schema
    columns: tuple[Column, ...]

    def conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with the table's columns. Columns that fit already are not copied.

        Errors: `PublishError` names a required column that holds nulls, or a value that does not
        fit (a text that is no uuid, a binary of another length than the fixed column).
        """
        return conform_batch(batch, self.columns, self.schema)


def match_columns(dataframe: pa.Schema, table: Schema) -> MatchedColumns:
    """Find each table column among the DataFrame's.

    Errors: `PublishError` lists every column that does not fit.
    """
    try:
        check_column_names(table)
    except InvalidMetadataError as error:
        raise PublishError(str(error)) from None
    matcher = _Matcher()
    columns = matcher.members(list(dataframe), StructType(table.fields), "")
    if matcher.problems:
        raise PublishError(_report(matcher.problems))
    if not columns:
        raise PublishError("the table has no column that could be written")
    return MatchedColumns(pa.schema([column.target for column in columns]), columns)


def _report(problems: Sequence[Problem]) -> str:
    if len(problems) == 1:
        return f"1 column does not fit the table: {problems[0]}"
    lines = [f"{len(problems)} columns do not fit the table:", *(f"  {one}" for one in problems)]
    return "\n".join(lines)


@dataclass(slots=True)
class _Matcher:
    """Walks the table's type beside the DataFrame's and collects what does not fit."""

    problems: list[Problem] = field(default_factory=list)

    def members(self, found: list[pa.Field], struct: StructType, path: str) -> tuple[Column, ...]:
        """Return the writable members of a struct (or of the table), in the table's order."""
        positions = self._positions(found, struct, path)
        columns = [
            self._member(found, positions.get(wanted.field_id), wanted, path + wanted.name)
            for wanted in struct.fields
        ]
        return tuple(column for column in columns if column is not None)

    def _positions(self, found: list[pa.Field], struct: StructType, path: str) -> dict[int, int]:
        """Map field ids to positions among the DataFrame's fields;
        report fields that are left over."""
        positions: dict[int, int] = {}
        for position, candidate in enumerate(found):
            wanted = self._wanted(candidate.name, struct)
            name = path + candidate.name
            if wanted is None:
                self._report(name, describe_arrow(candidate.type), "no such column")
            elif wanted.field_id in positions:
                other = found[positions[wanted.field_id]].name
                self._report(name, f"a second column beside `{other}`", "one column")
            else:
                positions[wanted.field_id] = position
        return positions

    def _wanted(self, name: str, struct: StructType) -> NestedField | None:
        exact = [wanted for wanted in struct.fields if wanted.name == name]
        if exact:
            return exact[0]
        folded = [wanted for wanted in struct.fields if wanted.name.lower() == name.lower()]
        return folded[0] if len(folded) == 1 else None

    def _member(
        self, found: list[pa.Field], position: int | None, wanted: NestedField, path: str
    ) -> Column | None:
        if position is None:
            return self._missing(wanted, path)
        source = found[position]
        if pa.types.is_null(source.type):
            return self._null(wanted, path)
        if not is_writable(wanted.field_type):
            self._report(path, describe_arrow(source.type), _unwritable(wanted))
            return None
        kind, inner = self._value(source.type, wanted.field_type, path)
        return Column(arrow_types.field_of(wanted, kind), path, position, None, inner)

    def _missing(self, wanted: NestedField, path: str) -> Column | None:
        if not is_writable(wanted.field_type) and not wanted.required:
            return None
        if wanted.required and wanted.write_default is None:
            self._report(path, "nothing", f"{describe(wanted.field_type)}, required")
            return None
        return self._filled(wanted, path)

    def _null(self, wanted: NestedField, path: str) -> Column | None:
        if wanted.required:
            self._report(path, "null", f"{describe(wanted.field_type)}, required")
            return None
        if not is_writable(wanted.field_type):
            return None
        return _constant(wanted, path, None)

    def _filled(self, wanted: NestedField, path: str) -> Column:
        """Return a column of the write default. A struct's own is `{}`: its members have theirs."""
        if isinstance(wanted.field_type, StructType) and wanted.write_default is not None:
            inner = self.members([], wanted.field_type, path + ".")
            kind = pa.struct([column.target for column in inner])
            return Column(arrow_types.field_of(wanted, kind), path, None, None, inner)
        return _constant(wanted, path, wanted.write_default)

    def _value(
        self, found: pa.DataType, wanted: IcebergType, path: str
    ) -> tuple[pa.DataType, tuple[Column, ...]]:
        """Return the type to write, and the columns inside of it."""
        match wanted:
            case VariantType() if _is_variant(found):
                return VARIANT, _variant(found, path)
            case StructType() if pa.types.is_struct(found):
                return self._struct(found, wanted, path)
            case ListType() if pa.types.is_list(found) or pa.types.is_large_list(found):
                return self._list(found.value_field, wanted, path)
            case MapType() if pa.types.is_map(found):
                return self._map(found, wanted, path)
        if pa.types.is_null(found) and is_writable(wanted):
            return arrow_type(wanted), ()  # what `array()` holds: nothing, or nulls
        if not _accepts(found, wanted):
            self._report(path, describe_arrow(found), describe(wanted))
            return found, ()
        return arrow_type(wanted), ()

    def _struct(
        self, found: pa.DataType, wanted: StructType, path: str
    ) -> tuple[pa.DataType, tuple[Column, ...]]:
        known = len(self.problems)
        inner = self.members(arrow_types.children(found), wanted, path + ".")
        if not inner and len(self.problems) == known:
            self._report(path, describe_arrow(found), "a struct with a column to write")
        return pa.struct([column.target for column in inner]), inner

    def _list(
        self, found: pa.Field, wanted: ListType, path: str
    ) -> tuple[pa.DataType, tuple[Column, ...]]:
        path += ".element"
        kind, inner = self._value(found.type, wanted.element_type, path)
        target = arrow_types.element_field(wanted, kind)
        return pa.list_(target), (Column(target, path, 0, None, inner),)

    def _map(
        self, found: pa.DataType, wanted: MapType, path: str
    ) -> tuple[pa.DataType, tuple[Column, ...]]:
        paths = f"{path}.key", f"{path}.value"
        key_kind, in_key = self._value(found.key_type, wanted.key_type, paths[0])
        value_kind, in_value = self._value(found.item_type, wanted.value_type, paths[1])
        key = arrow_types.key_field(wanted, key_kind)
        value = arrow_types.value_field(wanted, value_kind)
        columns = Column(key, paths[0], 0, None, in_key), Column(value, paths[1], 1, None, in_value)
        return pa.map_(key, value), columns

    def _report(self, column: str, found: str, expected: str) -> None:
        self.problems.append(Problem(column, found, expected))


def _constant(wanted: NestedField, path: str, value: object) -> Column:
    constant = to_array([value], wanted.field_type)
    return Column(arrow_types.field_of(wanted, constant.type), path, None, constant, ())


def _unwritable(wanted: NestedField) -> str:
    return f"nothing: columns of type {describe(wanted.field_type)} cannot be written"


def _is_variant(found: pa.DataType) -> bool:
    """Return whether a type is Spark's of variants: their two binaries, one of them marked."""
    if not pa.types.is_struct(found) or {field.name for field in found} != {
        part.name for part in VARIANT
    }:
        return False
    return (found.field("metadata").metadata or {}).get(_VARIANT_MARK) == b"true"


def _variant(found: pa.StructType, path: str) -> tuple[Column, ...]:
    return tuple(Column(part, path, found.get_field_index(part.name), None, ()) for part in VARIANT)


def _accepts(found: pa.DataType, wanted: IcebergType) -> bool:
    kind = arrow_types.primitive_of(found)
    if kind is None or kind == wanted:
        return kind is not None
    if isinstance(kind, FixedType) and isinstance(wanted, UUIDType):
        return kind.length == 16
    return isinstance(kind, _SAFE.get(type(wanted), ())) or is_assignable(kind, wanted)
