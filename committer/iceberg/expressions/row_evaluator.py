"""Filters asked of rows: the meaning that every other answer is measured against.

Null and NaN compare with nothing: they match `!=`, `not in` and `not starts with`, no other
comparison, also where a predicate is asked of a partition value. -0.0 is less than 0.0, as in the
reference and in its bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast
from uuid import UUID

from committer.iceberg.expressions.compiling import (
    Ordered,
    Test,
    comparable,
    comparable_predicate,
)
from committer.iceberg.expressions.expression import (
    BoundReference,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    LiteralPredicate,
    NotEqualTo,
    NotNaN,
    NotNull,
    Predicate,
    SetPredicate,
    StartsWith,
    term_of,
)

Row = Sequence[object]


def predicate_evaluator(predicate: Predicate) -> Test[Row]:
    """Return a test whether a row (or a partition tuple) matches a bound predicate."""
    term, test = term_of(predicate), value_test(predicate)
    read = _path_reader(term.reference.path)
    if isinstance(term, BoundReference):
        return lambda row: test(read(row))
    function = term.transform.function(term.reference.value_type)
    return lambda row: test(function(read(row)))


def _path_reader(path: tuple[int, ...]) -> Callable[[Row], object]:
    first, rest = path[0], path[1:]
    if not rest:
        return lambda row: row[first]
    inner = _path_reader(rest)

    def read(row: Row) -> object:
        found = row[first]
        return None if found is None else inner(cast(Row, found))

    return read


def value_test(predicate: Predicate) -> Test[object]:
    """Return a test whether a value matches."""
    match predicate:
        case IsNull():
            return lambda value: value is None
        case NotNull():
            return lambda value: value is not None
        case IsNaN():
            return lambda value: value != value  # only NaN differs from itself
        case NotNaN():
            return lambda value: value == value
        case LiteralPredicate():
            return _literal_test(predicate)
        case SetPredicate(values=values):
            members = frozenset(map(comparable, values))
            if isinstance(predicate, In):
                return lambda value: comparable(value) in members
            return lambda value: comparable(value) not in members
    raise TypeError(f"not a predicate: {predicate!r}")


def _literal_test(predicate: LiteralPredicate) -> Test[object]:
    if isinstance(predicate.value, UUID | float):
        in_order = value_test(comparable_predicate(predicate))
        return lambda value: in_order(comparable(value))
    literal = cast(Ordered, predicate.value)
    match predicate:
        case LessThan():
            return lambda value: value is not None and value < literal
        case LessThanOrEqual():
            return lambda value: value is not None and value <= literal
        case GreaterThan():
            return lambda value: value is not None and value > literal
        case GreaterThanOrEqual():
            return lambda value: value is not None and value >= literal
        case EqualTo():
            return lambda value: value == literal
        case NotEqualTo():
            return lambda value: value != literal
    prefix = cast(str, predicate.value)
    if isinstance(predicate, StartsWith):
        return lambda value: isinstance(value, str) and value.startswith(prefix)
    return lambda value: not (isinstance(value, str) and value.startswith(prefix))
