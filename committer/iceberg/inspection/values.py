"""Values inside rows: partition tuples and bounds, as JSON has them and as people read them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import cast

from committer.errors import FrazilError
from committer.iceberg.human import human_value
from committer.iceberg.schema import Schema
from committer.iceberg.single_value import decode_value, print_json_value
from committer.iceberg.types import (
    DoubleType,
    GeographyType,
    GeometryType,
    IcebergType,
    StructType,
)

Row = dict[str, object]


def describe_partition(kind: StructType, partition: tuple[object, ...]) -> Row:
    """The partition's values by field name, each in the JSON single-value form; null stays."""
    return {
        field.name: None if value is None else print_json_value(field.field_type, value)
        for field, value in zip(kind.fields, partition, strict=True)
    }


def describe_bounds(bounds: Mapping[int, bytes] | None, *schemas: Schema) -> Row | None:
    """Bounds by field id; a field has the type of the first schema that knows it."""
    if bounds is None:
        return None
    return {
        str(field_id): describe_bound(_type_of(field_id, schemas), bound)
        for field_id, bound in bounds.items()
    }


def _type_of(field_id: int, schemas: tuple[Schema, ...]) -> IcebergType | None:
    fields = (schema.field(field_id) for schema in schemas)
    return next((field.field_type for field in fields if field is not None), None)


def describe_bound(kind: IcebergType | None, bound: bytes) -> Row:
    """`hex` as written; `value` in the JSON single-value form and `human` as text, where known.

    Neither is known of a field without a type, of a type without such a form, and of bytes that are
    no value of their type. A `value` that starts with `?` is text for want of a JSON form.
    """
    row: Row = {"hex": bound.hex()}
    if kind is None:
        return row
    try:
        return row | _decoded(kind, bound)
    except (FrazilError, ValueError, ArithmeticError):
        return row


@lru_cache(maxsize=4096)
def _decoded(kind: IcebergType, bound: bytes) -> Row:
    if isinstance(kind, GeometryType | GeographyType):
        point = _point_text(bound)
        return {"value": f"?{point}", "human": point}
    value = decode_value(kind, bound)
    return {"value": print_json_value(kind, value), "human": human_value(kind, value)}


def _point_text(bound: bytes) -> str:
    """x and y, perhaps z and m: little-endian doubles. spec: Appendix D, bounds of geometries."""
    if len(bound) not in (16, 24, 32):
        raise ValueError("not a point")
    numbers = cast("tuple[float, ...]", struct.unpack(f"<{len(bound) // 8}d", bound))
    named = zip("xyzm", numbers, strict=False)
    parts = (f"{name}={human_value(DoubleType(), number)}" for name, number in named)
    return f"GeospatialBound({', '.join(parts)})"
