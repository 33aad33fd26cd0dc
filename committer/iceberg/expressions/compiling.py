"""Turning a bound expression without `Not` into one function, so that it is walked once only.

Uuids compare as the reference does, which by its order writes and reads their bounds: as two signed
halves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar
from uuid import UUID

from committer.iceberg.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    Expression,
    LiteralPredicate,
    Or,
    Predicate,
    SetPredicate,
)
from committer.iceberg.partition_summary import UUID_HALVES
from committer.iceberg.single_value import decoder
from committer.iceberg.types import IcebergType, UUIDType

Subject = TypeVar("Subject")
Test = Callable[[Subject], bool]


class Ordered(Protocol):
    """What all values of primitive types can: be compared with others of their type."""

    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...


def always(_: object) -> bool:
    return True


def never(_: object) -> bool:
    return False


def compiled(expression: Expression, leaf: Callable[[Predicate], Test[Subject]]) -> Test[Subject]:
    """The test of a whole expression, given how to make the test of one predicate."""
    match expression:
        case And(left, right):
            return _both(compiled(left, leaf), compiled(right, leaf))
        case Or(left, right):
            return _either(compiled(left, leaf), compiled(right, leaf))
        case AlwaysTrue():
            return always
        case AlwaysFalse():
            return never
        case Predicate():
            return leaf(expression)
    raise TypeError(f"cannot be compiled: {expression!r}")


def _both(left: Test[Subject], right: Test[Subject]) -> Test[Subject]:
    return lambda subject: left(subject) and right(subject)


def _either(left: Test[Subject], right: Test[Subject]) -> Test[Subject]:
    return lambda subject: left(subject) or right(subject)


# --- Values as they compare ----------------------------------------------------------------------


def comparable(value: object) -> object:
    """A value as it sorts."""
    return UUID_HALVES.unpack(value.bytes) if isinstance(value, UUID) else value


def comparable_predicate(predicate: Predicate) -> Predicate:
    """The predicate with its literals as they sort."""
    match predicate:
        case LiteralPredicate(term, value):
            return type(predicate)(term, comparable(value))
        case SetPredicate(term, values):
            return type(predicate)(term, tuple(map(comparable, values)))
    return predicate


def comparable_decoder(kind: IcebergType) -> Callable[[bytes], object]:
    """The decoder of a type's bounds, as they sort."""
    return UUID_HALVES.unpack if kind == UUIDType() else decoder(kind)
