"""Iceberg types as readers get them in Arrow, and values as arrays of these types.

All types are here, also those that no writer has: an unknown is null, a variant is its two
binaries, a geometry or geography is its well-known binary. Fields have the names of the table, and
no field ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import cast

import pyarrow as pa

from committer.iceberg.schema.schema import nested_fields
from committer.iceberg.values.types import (
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    UnknownType,
    VariantType,
)
from workers.arrow.arrow_types import VARIANT, arrow_type
from workers.arrow.arrow_values import to_array


def read_schema(fields: Iterable[NestedField]) -> pa.Schema:
    """Return the columns of batches with these fields."""
    return pa.schema([read_field(field) for field in fields])


def read_field(field: NestedField) -> pa.Field:
    return pa.field(field.name, read_type(field.field_type), nullable=not field.required)


def read_type(kind: IcebergType) -> pa.DataType:
    """Convert a type to Arrow's."""
    match kind:
        case UnknownType():
            return pa.null()
        case VariantType():
            return VARIANT
        case GeometryType() | GeographyType():
            return pa.binary()
        case StructType():
            return pa.struct([read_field(field) for field in kind.fields])
        case ListType():
            return pa.list_(read_field(nested_fields(kind)[0]))
        case MapType():
            key, value = nested_fields(kind)
            return pa.map_(read_field(key), read_field(value))
    return arrow_type(kind)


def read_array(values: Sequence[object], kind: IcebergType) -> pa.Array:
    """Build an array of `read_type(kind)` with these in-memory values.

    Shapes: a struct is a tuple of its fields' values, a list any sequence, a map any mapping, a
    variant the tuple of its two binaries.
    """
    match kind:
        case UnknownType():
            return pa.nulls(len(values))
        case GeometryType() | GeographyType():
            return pa.array(values, pa.binary())
        case VariantType():
            pairs = cast("Sequence[tuple[bytes, bytes] | None]", values)
            children = [
                pa.array([pair and pair[at] for pair in pairs], pa.binary()) for at in (0, 1)
            ]
            return _struct(values, children, VARIANT)
        case StructType():
            rows = cast("Sequence[tuple[object, ...] | None]", values)
            children = [
                read_array([None if row is None else row[at] for row in rows], field.field_type)
                for at, field in enumerate(kind.fields)
            ]
            return _struct(values, children, read_type(kind))
        case ListType():
            lists = cast("Sequence[Sequence[object] | None]", values)
            elements = [each for one in lists if one is not None for each in one]
            child = read_array(elements, kind.element_type)
            return pa.ListArray.from_arrays(_offsets(lists), child, type=read_type(kind))
        case MapType():
            maps = cast("Sequence[Mapping[object, object] | None]", values)
            keys = [each for one in maps if one is not None for each in one]
            items = [each for one in maps if one is not None for each in one.values()]
            parts = read_array(keys, kind.key_type), read_array(items, kind.value_type)
            return pa.MapArray.from_arrays(_offsets(maps), *parts, type=read_type(kind))
    return to_array(values, kind)


def _struct(values: Sequence[object], children: list[pa.Array], kind: pa.DataType) -> pa.Array:
    if not kind.num_fields:
        return pa.array([None if value is None else {} for value in values], kind)
    mask = pa.array([value is None for value in values], pa.bool_())
    fields = [kind.field(at) for at in range(kind.num_fields)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _offsets(values: Sequence[Sequence[object] | Mapping[object, object] | None]) -> pa.Array:
    """Return where each list starts, null for a null one, and where the last one ends."""
    ends = list(accumulate((0 if one is None else len(one) for one in values), initial=0))
    starts = [None if one is None else at for one, at in zip(values, ends, strict=False)]
    return pa.array([*starts, ends[-1]], pa.int32())
