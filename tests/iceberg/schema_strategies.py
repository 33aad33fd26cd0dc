"""Random types and schemas for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from committer.iceberg.schema.schema import Schema, assign_fresh_ids
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
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

PRIMITIVES: tuple[IcebergType, ...] = (
    BooleanType(),
    IntegerType(),
    LongType(),
    FloatType(),
    DoubleType(),
    DecimalType(9, 2),
    DecimalType(38, 2),
    DateType(),
    TimeType(),
    TimestampType(),
    TimestamptzType(),
    StringType(),
    UUIDType(),
    BinaryType(),
    FixedType(4),
)
V3_PRIMITIVES: tuple[IcebergType, ...] = (*PRIMITIVES, TimestampNanoType(), TimestamptzNanoType())
NAMES = ("a", "b", "c", "d", "e", "f")


def types(primitives: tuple[IcebergType, ...] = PRIMITIVES) -> st.SearchStrategy[IcebergType]:
    """Generate types of some depth. All ids are 0: see `fresh_type` and `assign_fresh_ids`."""
    return st.recursive(
        st.sampled_from(primitives),
        lambda inner: st.one_of(
            structs(inner),
            st.builds(lambda kind, required: ListType(0, kind, required), inner, st.booleans()),
            st.builds(
                lambda key, value, required: MapType(0, key, 0, value, required),
                st.sampled_from(primitives),
                inner,
                st.booleans(),
            ),
        ),
        max_leaves=4,
    )


def structs(inner: st.SearchStrategy[IcebergType]) -> st.SearchStrategy[IcebergType]:
    return _fields(inner).map(StructType)


def _fields(
    inner: st.SearchStrategy[IcebergType],
) -> st.SearchStrategy[tuple[NestedField, ...]]:
    docs = st.sampled_from((None, None, "", "some words"))
    field = st.tuples(st.sampled_from(NAMES), inner, st.booleans(), docs)
    return st.lists(field, min_size=1, max_size=4, unique_by=lambda parts: parts[0]).map(
        lambda fields: tuple(NestedField(0, *parts) for parts in fields)
    )


def schemas(primitives: tuple[IcebergType, ...] = PRIMITIVES) -> st.SearchStrategy[Schema]:
    """Generate schemas without identifier fields, numbered from 1 as those of new tables are."""
    return _fields(types(primitives)).map(lambda fields: assign_fresh_ids(Schema(fields)))
