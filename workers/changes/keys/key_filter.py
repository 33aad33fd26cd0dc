"""Builds a filter of the table from the keys of a source's rows: a few values, or their range.

Runs on the driver. Files without such rows need not be read, and rows that others add beside them
are no conflict. A column whose values Spark and Iceberg may compare in different ways (floats,
collated texts) is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pyspark.sql import functions as F  # noqa: N812  # its usual name
from pyspark.sql import types as T  # noqa: N812

from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    Expression,
    GreaterThanOrEqual,
    In,
    LessThanOrEqual,
    Reference,
)
from committer.iceberg.values.types import (
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

# Iceberg's evaluators look into sets of that many values.
VALUES_MAX = 200
# Spark's estimate of distinct values is 5 % off, sometimes more.
_ESTIMATED_MAX = 2 * VALUES_MAX
_CHARACTERS_MAX = 1_000
_INTEGERS = T.ByteType | T.ShortType | T.IntegerType | T.LongType
_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of the table that has to equal a value of the source, which is a Spark column."""

    field: NestedField
    value: Any


@dataclass(frozen=True, slots=True)
class SourceKeys:
    """`rows`: of the source. `expression`: all rows of the table that it may match. `is_within`:
    whether a row of the source has such keys, as a Spark column; None where each has."""

    rows: int
    expression: Expression = ALWAYS_TRUE
    is_within: Any = None


def read_keys(source: Any, keys: Sequence[KeyColumn]) -> SourceKeys:
    """Look at the keys of all rows: one job, and one more for each column with few values."""
    measured = [(key, one) for key in keys if (one := _measure(source, key)) is not None]
    aggregates = [
        F.struct(F.min(one), F.max(one), F.approx_count_distinct(one)) for _, one in measured
    ]
    rows, *found = source.agg(F.count(F.lit(1)), *aggregates).first()
    keys_of_all = SourceKeys(rows, ALWAYS_TRUE if rows else ALWAYS_FALSE)
    for (key, one), (low, high, estimate) in zip(measured, found, strict=True):
        if low is None:
            continue
        values = _values(source, one) if estimate <= _ESTIMATED_MAX else None
        bounded = _bounded(key.field, one, values or (low, high), is_set=values is not None)
        if bounded is not None:
            keys_of_all = _both(keys_of_all, bounded)
    return keys_of_all


def _both(one: SourceKeys, other: SourceKeys) -> SourceKeys:
    within = other.is_within if one.is_within is None else one.is_within & other.is_within
    return SourceKeys(one.rows, And.of(one.expression, other.expression), within)


def _bounded(
    field: NestedField, measure: Any, values: Sequence[Any], *, is_set: bool
) -> SourceKeys | None:
    """Return what the values of a key say; None where Iceberg has no such filter."""
    literals = [_literal(field, value) for value in values]
    if any(each is None for each in literals):
        return None
    column = Reference(field.name)
    if is_set:
        # A null matches no row.
        within = measure.isNull() | measure.isin(list(values))
        return SourceKeys(0, In(column, tuple(literals)), within)
    if isinstance(field.field_type, UUIDType):
        return None  # Spark compares their texts
    low, high = literals
    expression = And.of(GreaterThanOrEqual(column, low), LessThanOrEqual(column, high))
    return SourceKeys(0, expression, measure.isNull() | measure.between(*values))


def _values(source: Any, measure: Any) -> list[Any] | None:
    """Return all values but null; None where there are more than a filter should have."""
    rows: Iterable[Any] = (
        source.select(measure.alias("value"))
        .where("value is not null")
        .distinct()
        .limit(VALUES_MAX + 1)
        .collect()
    )
    values = sorted(row["value"] for row in rows)
    return values if len(values) <= VALUES_MAX else None


# --- Values --------------------------------------------------------------------------------------


def _measure(source: Any, key: KeyColumn) -> Any:
    """Return a key as a value that Python reads without a zone or a calendar: Iceberg's own
    representation. None for a type whose equality is not Iceberg's."""
    kind = source.select(key.value.alias("value")).schema["value"].dataType
    match key.field.field_type, kind:
        case (IntegerType() | LongType(), _) if isinstance(kind, _INTEGERS):
            return key.value.cast("bigint")
        case (StringType() | UUIDType(), T.StringType()) if kind == T.StringType():
            return key.value
        case (DecimalType(precision, scale), T.DecimalType()):
            return key.value if (kind.precision, kind.scale) == (precision, scale) else None
        case DateType(), T.DateType():
            return F.unix_date(key.value)
        case TimestamptzType(), T.TimestampType():
            return F.unix_micros(key.value)
        case TimestampType(), T.TimestampNTZType():
            return F.timestamp_diff("MICROSECOND", F.expr(_EPOCH), key.value)
    return None


def _literal(field: NestedField, value: Any) -> object:
    """Return a value as a literal of Iceberg's; None where it has none."""
    if isinstance(field.field_type, UUIDType):
        return _uuid(value)
    if isinstance(value, str) and len(value) > _CHARACTERS_MAX:
        return None
    return value


def _uuid(text: str) -> UUID | None:
    """Return a uuid in the one spelling that equals what Spark reads of the table."""
    try:
        found = UUID(text)
    except ValueError:
        return None
    return found if str(found) == text else None
