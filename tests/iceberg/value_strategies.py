"""Random in-memory values of types, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from committer.iceberg.values.single_value import scaled
from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    MapType,
    StringType,
    StructType,
    TimeType,
    UUIDType,
)

_INT = st.integers(-(2**31), 2**31 - 1)
_LONG = st.integers(-(2**63), 2**63 - 1)
# Text that UTF-8 can hold.
_TEXT = st.text(st.characters(codec="utf-8"), max_size=8)


def values(kind: IcebergType) -> st.SearchStrategy[object]:
    """Generate values that are not null; optional parts of nested ones may be."""
    match kind:
        case BooleanType():
            return st.booleans()
        case IntegerType() | DateType():
            return _INT
        case FloatType():
            return st.floats(width=32, allow_nan=False, allow_infinity=False)
        case DoubleType():
            return st.floats(allow_nan=False, allow_infinity=False)
        case DecimalType(precision, scale):
            limit = 10**precision - 1
            return st.integers(-limit, limit).map(lambda number: scaled(number, scale))
        case TimeType():
            return st.integers(0, 86_400_000_000 - 1)
        case StringType():
            return _TEXT
        case UUIDType():
            return st.uuids()
        case FixedType(length):
            return st.binary(min_size=length, max_size=length)
        case BinaryType():
            return st.binary(max_size=8)
        case StructType(fields):
            parts = (_part(field.field_type, field.required) for field in fields)
            return st.tuples(*parts)
        case ListType():
            return st.lists(_part(kind.element_type, kind.element_required), max_size=3)
        case MapType():
            return st.dictionaries(values(kind.key_type), values(kind.value_type), max_size=3)
        case _:
            return _LONG


def _part(kind: IcebergType, required: bool) -> st.SearchStrategy[object]:
    return values(kind) if required else st.none() | values(kind)
