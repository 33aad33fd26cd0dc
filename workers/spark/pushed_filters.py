"""Spark's filters as Iceberg's: those that mean the same are taken, the others stay with Spark.

Spark keeps a row where a filter is true. It orders NaN above all numbers and equal to itself; a
comparison with null is null, and so is its negation. A filter is taken only where the reader's
answer is Spark's for every row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation, localcontext
from uuid import UUID

from pyspark.sql import datasource as spark

from committer.errors import InvalidFilterError, InvalidMetadataError
from committer.iceberg.expressions.binding import bind
from committer.iceberg.expressions.expression import (
    ALWAYS_TRUE,
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
    NotNull,
    Or,
    Reference,
    StartsWith,
    rewrite_not,
)
from committer.iceberg.schema.schema import Schema
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
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS_MAX = 100


@dataclass(frozen=True, slots=True)
class PushedFilters:
    """`expression`: all that were taken; `remaining`: what Spark still has to evaluate."""

    expression: Expression = ALWAYS_TRUE
    remaining: tuple[spark.Filter, ...] = ()


def push_filters(filters: Sequence[spark.Filter], schema: Schema) -> PushedFilters:
    """Take the filters of a query that the reader answers as Spark does."""
    taken: Expression = ALWAYS_TRUE
    remaining = []
    for each in filters:
        found = _converted(each, schema)
        if found is None:
            remaining.append(each)
        else:
            taken = And.of(taken, found)
    return PushedFilters(taken, tuple(remaining))


def _converted(found: spark.Filter, schema: Schema) -> Expression | None:
    try:
        expression = _expression(found, schema)
        if expression is not None:
            bind(expression, schema)
    except (InvalidFilterError, InvalidMetadataError, _Unlike):
        return None
    return expression


class _Unlike(Exception):
    """A value that Iceberg compares in another way than Spark, or cannot hold."""


def _expression(found: spark.Filter, schema: Schema) -> Expression | None:
    if isinstance(found, spark.Not):
        opposite = _OPPOSITES.get(type(found.child))
        if opposite is not None:
            # Iceberg's own negation would lose NaN, which is in no order there.
            return _expression(opposite(found.child.attribute, found.child.value), schema)
        child = _expression(found.child, schema)
        if child is None:
            return None
        # A condition that is null for a null is neither true nor false of it.
        is_null_test = isinstance(found.child, spark.IsNull | spark.IsNotNull | spark.EqualNullSafe)
        known = ALWAYS_TRUE if is_null_test else NotNull(_column(found.child, schema)[0])
        return And.of(known, rewrite_not(Not(child)))
    convert = _CONVERSIONS.get(type(found))
    if convert is None:
        return None
    term, kind = _column(found, schema)
    return convert(found, term, kind)


def _column(found: spark.Filter, schema: Schema) -> tuple[Reference, IcebergType]:
    name = ".".join(getattr(found, "attribute", ()))
    field = schema.find(name)
    if field is None:
        raise _Unlike(name)
    return Reference(name), field.field_type


# --- One function for each kind ------------------------------------------------------------------

Convert = Callable[[spark.Filter, Reference, IcebergType], Expression]


def _null_test(found: spark.Filter, term: Reference, _: IcebergType) -> Expression:
    return IsNull(term) if isinstance(found, spark.IsNull) else NotNull(term)


def _equal(found: spark.Filter, term: Reference, kind: IcebergType) -> Expression:
    value = getattr(found, "value", None)
    if value is None and isinstance(found, spark.EqualNullSafe):
        return IsNull(term)
    if isinstance(value, float) and math.isnan(value):
        return IsNaN(term)
    return EqualTo(term, _literal(value, kind))


def _in(found: spark.Filter, term: Reference, kind: IcebergType) -> Expression:
    assert isinstance(found, spark.In)  # noqa: S101  # the dispatch below; tells the type checker
    return In(term, tuple(_literal(value, kind) for value in found.value))


def _ordered(predicate: type[LiteralPredicate]) -> Convert:
    def convert(found: spark.Filter, term: Reference, kind: IcebergType) -> Expression:
        if isinstance(kind, UUIDType):
            raise _Unlike("Spark compares the text of uuids")
        value = _literal(getattr(found, "value", None), kind)
        expression = predicate(term, value)
        is_float = isinstance(kind, FloatType | DoubleType)
        if is_float and predicate in (GreaterThan, GreaterThanOrEqual):
            return Or(expression, IsNaN(term))
        return expression

    return convert


def _starts_with(found: spark.Filter, term: Reference, kind: IcebergType) -> Expression:
    assert isinstance(found, spark.StringStartsWith)  # noqa: S101
    if not isinstance(kind, StringType):
        raise _Unlike("a prefix of what is no text")
    return StartsWith(term, found.value)


_CONVERSIONS: Mapping[type[spark.Filter], Convert] = {
    spark.IsNull: _null_test,
    spark.IsNotNull: _null_test,
    spark.EqualTo: _equal,
    spark.EqualNullSafe: _equal,
    spark.In: _in,
    spark.LessThan: _ordered(LessThan),
    spark.LessThanOrEqual: _ordered(LessThanOrEqual),
    spark.GreaterThan: _ordered(GreaterThan),
    spark.GreaterThanOrEqual: _ordered(GreaterThanOrEqual),
    spark.StringStartsWith: _starts_with,
}

_OPPOSITES: Mapping[type[spark.Filter], type[spark.Filter]] = {
    spark.LessThan: spark.GreaterThanOrEqual,
    spark.LessThanOrEqual: spark.GreaterThan,
    spark.GreaterThan: spark.LessThanOrEqual,
    spark.GreaterThanOrEqual: spark.LessThan,
}

# --- Literals ------------------------------------------------------------------------------------


def _literal(value: object, kind: IcebergType) -> object:
    """Return Spark's value as a literal that becomes that very value of the column's type."""
    match kind, value:
        case (BooleanType(), bool()) | (StringType(), str()):
            return value
        case (IntegerType() | LongType(), int()) if not isinstance(value, bool):
            return value
        case (FloatType() | DoubleType(), float()) if value and math.isfinite(value):
            return value  # Iceberg tells the two zeros apart, Spark does not
        case (DecimalType(), Decimal()):
            return _decimal(value, kind.scale)
        case (DateType(), date()) if not isinstance(value, datetime):
            return (value - _EPOCH.date()).days
        case (TimestampType(), datetime()) if value.tzinfo is None:
            return (value - _EPOCH.replace(tzinfo=None)) // timedelta(microseconds=1)
        case (TimestamptzType(), datetime()) if value.tzinfo is not None:
            return (value - _EPOCH) // timedelta(microseconds=1)
        case (BinaryType() | FixedType(), bytes() | bytearray()):
            return bytes(value)
        case (UUIDType(), str()):
            return _uuid(value)
    raise _Unlike(f"{type(value).__name__} for {kind}")


def _decimal(value: Decimal, scale: int) -> Decimal:
    with localcontext(prec=_DIGITS_MAX):
        try:
            found = value.quantize(Decimal(1).scaleb(-scale))
        except InvalidOperation:
            raise _Unlike("a decimal that is no number") from None
    if found != value:
        raise _Unlike("a decimal with more digits than the column has")
    return found


def _uuid(text: str) -> UUID:
    try:
        found = UUID(text)
    except ValueError:
        raise _Unlike("a text that is no uuid") from None
    if str(found) != text:
        raise _Unlike("a uuid in another spelling than Spark's")
    return found
