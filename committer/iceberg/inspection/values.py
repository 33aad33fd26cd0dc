"""Values inside rows: partition tuples and bounds, as JSON has them and as people read them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import cast

from committer.errors import FrazilError, UnsupportedError
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.display_values import human_value
from committer.iceberg.values.single_value import decoder, print_json_value
from committer.iceberg.values.types import (
    DoubleType,
    GeographyType,
    GeometryType,
    IcebergType,
    StructType,
)

Row = dict[str, object]


def describe_partition(kind: StructType, partition: tuple[object, ...]) -> Row:
    """Return the partition's values by field name, each in JSON single-value form; null stays."""
    return {
        field.name: print_json_value(field.field_type, value)
        for field, value in zip(kind.fields, partition, strict=True)
    }


BoundDescriber = Callable[[bytes], Row]


def bound_describers(*schemas: Schema) -> Mapping[int, BoundDescriber]:
    """Return the describer of bounds by column id; of two types of one column the last counts."""
    fields = (field for schema in schemas for _, field in schema.walk())
    return {field.field_id: bound_describer(field.field_type) for field in fields}


def describe_bounds(
    bounds: Mapping[int, bytes] | None, describers: Mapping[int, BoundDescriber]
) -> Row | None:
    """Return the bounds by field id; those of unknown columns as they are stored."""
    if bounds is None:
        return None
    unknown = bound_describer(None)
    return {
        str(field_id): describers.get(field_id, unknown)(bound)
        for field_id, bound in bounds.items()
    }


@lru_cache(maxsize=512)
def bound_describer(kind: IcebergType | None) -> BoundDescriber:
    """Return a function that describes bounds of a type: look it up once, call it often.

    `hex` as stored; `value` in the JSON single-value form and `human` as text, where known. Neither
    is known without a type, of a type without such a form, and of bytes that are no value of it. A
    `value` that starts with `?` is text for want of a JSON form.
    """
    if kind is None:
        return _hexadecimal
    try:
        decode = decoder(kind)
    except UnsupportedError:
        return _hexadecimal
    is_geospatial = isinstance(kind, GeometryType | GeographyType)

    def describe(bound: bytes) -> Row:
        try:
            if is_geospatial:
                point = _point_text(bound)
                return {"hex": bound.hex(), "value": f"?{point}", "human": point}
            value = decode(bound)
            json_value, human = print_json_value(kind, value), human_value(kind, value)
            return {"hex": bound.hex(), "value": json_value, "human": human}
        except (FrazilError, ValueError, ArithmeticError, struct.error):
            return _hexadecimal(bound)

    return describe


def _hexadecimal(bound: bytes) -> Row:
    return {"hex": bound.hex()}


def _point_text(bound: bytes) -> str:
    """Print x and y, perhaps z and m: little-endian doubles. spec:
    Appendix D, bounds of geometries."""
    if len(bound) not in (16, 24, 32):
        raise ValueError("not a point")
    numbers = cast("tuple[float, ...]", struct.unpack(f"<{len(bound) // 8}d", bound))
    named = zip("xyzm", numbers, strict=False)
    parts = (f"{name}={human_value(DoubleType(), number)}" for name, number in named)
    return f"GeospatialBound({', '.join(parts)})"
