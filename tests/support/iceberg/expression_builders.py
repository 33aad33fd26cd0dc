"""Expressions for tests: of the vectors, and random ones with values to ask them about."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from uuid import UUID

from hypothesis import strategies as st

from committer.iceberg.expressions.expression import (
    And,
    EqualTo,
    Expression,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    LiteralPredicate,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    Predicate,
    Reference,
    SetPredicate,
    StartsWith,
    Term,
    map_predicates,
)
from committer.iceberg.expressions.expression_json import print_expression
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.single_value import print_json_value, shortest_float
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
    LongType,
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


def vector_schema(kind: IcebergType) -> Schema:
    """Return the schema of the vectors: `c` optional, `r` required, `st.in` nested."""
    return Schema(
        (
            NestedField(1, "c", kind, False),
            NestedField(2, "r", kind, True),
            NestedField(3, "st", StructType((NestedField(4, "in", kind, False),)), False),
        )
    )


def unbound(expression: Expression) -> Expression:
    """Unbind an expression as Java prints projections: dates and times are plain numbers."""

    def unbind(predicate: Predicate) -> Expression:
        term: Term = Reference(predicate.term.name)
        is_float = getattr(predicate.term, "value_type", None) == FloatType()
        plain: Callable[[object], object] = (
            (lambda value: shortest_float(float(str(value)))) if is_float else (lambda value: value)
        )
        match predicate:
            case LiteralPredicate(value=value):
                return type(predicate)(term, plain(value))
            case SetPredicate(values=values):
                return type(predicate)(term, tuple(map(plain, values)))
        return type(predicate)(term)

    return map_predicates(expression, unbind)


def sets_in_order(json_value: object) -> object:
    """Sort the literals of sets in expression JSON, each once: Java keeps them hashed."""
    if not isinstance(json_value, dict):
        return json_value
    found = {key: sets_in_order(value) for key, value in json_value.items()}
    if "values" in found:
        found["values"] = sorted({json.dumps(value) for value in json_value["values"]})
    return found


def printed(expression: Expression) -> object:
    """Return the expression's JSON with sets in order."""
    return sets_in_order(print_expression(expression))


# --- Random values -------------------------------------------------------------------------------

# Text over few characters, so that prefixes meet: beyond the 16-bit range too.
_TEXT = st.text(alphabet="ab\ud7ff\ue000\U00010000\U0010ffff", max_size=4)
_BYTES = st.binary(max_size=3)


def _mixed(few: list[int], low: int, high: int) -> st.SearchStrategy[int]:
    return st.one_of(st.sampled_from(few), st.integers(low, high))


_SMALL = list(range(-13, 14))
_LONG_MIN, _LONG_MAX, _INT_MIN, _INT_MAX = -(2**63), 2**63 - 1, -(2**31), 2**31 - 1
_LONG_ENDS = [_LONG_MIN, _LONG_MIN + 9, _LONG_MAX - 9, _LONG_MAX]
_INT_ENDS = [_INT_MIN, _INT_MIN + 9, _INT_MAX - 9, _INT_MAX]
_LONGS = _mixed([*_SMALL, *_LONG_ENDS], _LONG_MIN, _LONG_MAX)
_INTS = _mixed([*_SMALL, *_INT_ENDS], _INT_MIN, _INT_MAX)
_DAY = 86_400_000_000
_NEAR_EPOCH = [
    unit * count + tick
    for unit in (_DAY // 24, _DAY, 31 * _DAY, 365 * _DAY)
    for count in (-2, -1, 0, 1, 2)
    for tick in (-1, 0, 1)
]
_MICROS = st.one_of(
    _mixed([*_NEAR_EPOCH, *_LONG_ENDS], -(2**55), 2**55), st.integers(_LONG_MIN, _LONG_MAX)
)
# A literal counts microseconds.
_NANOS = _mixed(
    [
        *(value * 1_000 + tick for value in _NEAR_EPOCH for tick in (0, 1)),
        _LONG_MIN + 1_000,
        _LONG_MAX - 1_000,
    ],
    -(2**62),
    2**62,
)
_DAYS = _mixed([*_SMALL, -366, -365, -31, 31, 365, *_INT_ENDS], -400_000, 400_000)
_DOUBLES = st.one_of(
    st.sampled_from([-1.5, -0.0, 0.0, 1.0, 2.5]), st.floats(allow_nan=False, width=32)
)

VALUES: dict[IcebergType, st.SearchStrategy[object]] = {
    BooleanType(): st.booleans(),
    IntegerType(): _INTS,
    LongType(): _LONGS,
    FloatType(): _DOUBLES,
    DoubleType(): _DOUBLES,
    DecimalType(9, 2): _mixed(_SMALL, -999_999_999, 999_999_999).map(
        lambda number: Decimal(number).scaleb(-2)
    ),
    DateType(): _DAYS,
    TimeType(): st.integers(0, _DAY - 1),
    TimestampType(): _MICROS,
    TimestamptzType(): _MICROS,
    TimestampNanoType(): _NANOS,
    TimestamptzNanoType(): _NANOS,
    StringType(): _TEXT,
    UUIDType(): st.one_of(
        st.sampled_from([UUID(int=0), UUID(int=1 << 127), UUID(int=(1 << 128) - 1)]), st.uuids()
    ),
    FixedType(2): st.binary(min_size=2, max_size=2),
    BinaryType(): _BYTES,
}


@cache
def rows_of(kind: IcebergType) -> st.SearchStrategy[object]:
    """Generate values of a column: null and NaN too."""
    extra: list[object] = [None]
    if isinstance(kind, FloatType | DoubleType):
        extra.append(float("nan"))
    return st.one_of(st.sampled_from(extra), VALUES[kind], VALUES[kind])


def literal_of(kind: IcebergType, value: object) -> object:
    """Return a value as the expression JSON spells it."""
    return print_json_value(kind, value)


# --- Random filters ------------------------------------------------------------------------------

_COMPARISONS: tuple[type[LiteralPredicate], ...] = (
    LessThan,
    LessThanOrEqual,
    GreaterThan,
    GreaterThanOrEqual,
    EqualTo,
    NotEqualTo,
)


@cache
def predicates_of(term: Term, kind: IcebergType) -> st.SearchStrategy[Expression]:
    """Generate every predicate that a term of a type allows."""
    literals = VALUES[kind].map(lambda value: literal_of(kind, value))
    sets = st.lists(literals, min_size=1, max_size=3).map(tuple)
    kinds: list[st.SearchStrategy[Expression]] = [
        st.sampled_from([IsNull(term), NotNull(term)]),
        st.builds(lambda cls, value: cls(term, value), st.sampled_from(_COMPARISONS), literals),
        st.builds(lambda cls, values: cls(term, values), st.sampled_from((In, NotIn)), sets),
    ]
    if isinstance(kind, FloatType | DoubleType):
        kinds.append(st.sampled_from([IsNaN(term), NotNaN(term)]))
    if isinstance(kind, StringType):
        prefixes = st.sampled_from((StartsWith, NotStartsWith))
        kinds.append(st.builds(lambda cls, value: cls(term, value), prefixes, literals))
    return st.one_of(kinds)


@cache
def filters_of(leaf: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    """Generate predicates joined by and, or, not."""
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(And, inner, inner), st.builds(Or, inner, inner), st.builds(Not, inner)
        ),
        max_leaves=4,
    )
