"""Random schemas and values: what is written is read again, and other libraries agree."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from committer.iceberg.schema.schema import Schema, fresh_type, parse_schema, print_schema
from committer.iceberg.values.single_value import (
    decode_value,
    encode_value,
    parse_json_value,
    print_json_value,
)
from committer.iceberg.values.transforms import (
    DAY,
    TimeTransform,
    Transform,
    TruncateTransform,
    parse_transform,
)
from committer.iceberg.values.truncation import truncate_lower, truncate_upper
from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
)
from tests.iceberg.schema_strategies import V3_PRIMITIVES, schemas, types
from tests.iceberg.value_strategies import values

typed_values = st.sampled_from(V3_PRIMITIVES).flatmap(
    lambda kind: st.tuples(st.just(kind), values(kind))
)


@pytest.mark.simulation
@settings(max_examples=100, deadline=None)
@given(schema=schemas(V3_PRIMITIVES), data=st.data())
def test_any_schema_with_any_defaults_is_read_as_it_was_printed(
    schema: Schema, data: st.DataObject
) -> None:
    fields = []
    for field in schema.fields:
        default = None
        if field.field_type.is_primitive:
            default = data.draw(st.none() | values(field.field_type))
        fields.append(replace(field, initial_default=default, write_default=default))
    filled = Schema(tuple(fields), 7)
    assert parse_schema(json.loads(json.dumps(print_schema(filled)))) == filled


@settings(max_examples=100, deadline=None)
@given(typed=typed_values)
def test_binary_form_of_any_value_is_that_of_pyiceberg(typed: tuple[IcebergType, object]) -> None:
    from pyiceberg.conversions import to_bytes

    kind, value = typed
    encoded = encode_value(kind, value)
    assert decode_value(kind, encoded) == value
    assert to_bytes(their_type(kind), value) == encoded


@settings(max_examples=100, deadline=None)
@given(kind=types(V3_PRIMITIVES), data=st.data())
def test_json_form_of_any_value_is_read_again(kind: IcebergType, data: st.DataObject) -> None:
    # Fields of structs are keyed by their ids.
    kind = fresh_type(kind, count(1))
    value = data.draw(values(kind))
    printed = json.loads(json.dumps(print_json_value(kind, value)))
    assert parse_json_value(kind, printed) == value


TRANSFORMED = ("identity", "bucket[16]", "bucket[7]", "truncate[3]", "truncate[10]")
TIMES = ("year", "month", "day", "hour")


@settings(max_examples=100, deadline=None)
@given(typed=typed_values, text=st.sampled_from((*TRANSFORMED, *TIMES)))
def test_partition_value_of_any_value_is_that_of_pyiceberg(
    typed: tuple[IcebergType, object], text: str
) -> None:
    from pyiceberg.transforms import parse_transform as their_transform

    kind, value = typed
    transform, theirs = parse_transform(text), their_transform(text)
    assume(transform.can_transform(kind) and theirs.can_transform(their_type(kind)))
    assume(not is_beyond_pyiceberg(transform, kind, value))
    assert transform.apply(kind, value) == theirs.transform(their_type(kind))(value)
    assert transform.apply(kind, None) is None


def is_beyond_pyiceberg(transform: Transform, kind: IcebergType, value: Any) -> bool:
    """Return whether PyIceberg fails: Python's dates end with the years 1 and 9999, and its
    decimals round at 28 digits.

    The lowest numbers wrap around when they are cut, as the vectors show of Java.
    """
    match transform, kind:
        case TruncateTransform(), IntegerType():
            return bool(value < -(2**31) + 10)
        case TruncateTransform(), LongType():
            return bool(value < -(2**63) + 10)
        case TruncateTransform(), DecimalType(precision, _):
            return precision > 28
        case TimeTransform(), _:
            return not -719_162 <= DAY.function(kind)(value) <= 2_932_896  # type: ignore[operator]
        case _:
            return False


@settings(max_examples=100, deadline=None)
@given(
    kind=st.sampled_from((StringType(), BinaryType(), FixedType(4))),
    width=st.integers(1, 6),
    data=st.data(),
)
def test_cut_bounds_hold_the_value_between_them(
    kind: IcebergType, width: int, data: st.DataObject
) -> None:
    value: Any = data.draw(values(kind))
    lower: Any = truncate_lower(kind, value, width)
    upper: Any = truncate_upper(kind, value, width)
    assert len(lower) <= width
    assert order(lower) <= order(value)
    if upper is not None:
        assert len(upper) <= width
        assert order(value) <= order(upper)


def order(value: str | bytes) -> bytes:
    """Return the bytes of a text, by which it is ordered."""
    return value.encode() if isinstance(value, str) else value


def their_type(kind: IcebergType) -> Any:
    from pyiceberg.schema import Schema as TheirSchema

    field = {"id": 1, "name": "x", "required": False, "type": str(kind)}
    text = json.dumps({"type": "struct", "fields": [field]})
    return TheirSchema.model_validate_json(text).fields[0].field_type


@pytest.mark.parametrize("kind", [BooleanType(), FloatType(), DoubleType()], ids=str)
def test_what_is_not_hashed_has_no_buckets(kind: IcebergType) -> None:
    assert not parse_transform("bucket[4]").can_transform(kind)
