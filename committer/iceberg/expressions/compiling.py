"""Turning a bound expression without `Not` into one function, so that it is walked once only.

Values compare as the reference does, which writes and reads bounds by its order: uuids as two
signed halves, -0.0 as less than 0.0.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Protocol, TypeVar, cast
from uuid import UUID

from committer.iceberg.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundReference,
    BoundTerm,
    Expression,
    LiteralPredicate,
    Or,
    Predicate,
    SetPredicate,
)
from committer.iceberg.partition_summary import UUID_HALVES
from committer.iceberg.single_value import decoder
from committer.iceberg.transforms import TruncateTransform
from committer.iceberg.types import (
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    UUIDType,
)

Subject = TypeVar("Subject")
_DOUBLE, _BITS, _WITHOUT_SIGN = struct.Struct("<d"), struct.Struct("<q"), 2**63 - 1
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
    if isinstance(value, float):
        return _float_order(value)
    return UUID_HALVES.unpack(value.bytes) if isinstance(value, UUID) else value


def _float_order(value: float) -> float:
    """An integer for a float: they sort alike, and those of -0.0 and 0.0 differ. NaN stays what it
    is: it compares with nothing."""
    if value != value:
        return value
    (bits,) = _BITS.unpack(_DOUBLE.pack(value))
    return int(bits) if bits >= 0 else -1 - (int(bits) & _WITHOUT_SIGN)


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
    decode = decoder(kind)
    if isinstance(kind, FloatType | DoubleType):
        return lambda encoded: comparable(decode(encoded))
    return UUID_HALVES.unpack if kind == UUIDType() else decode


# --- Bounds that cannot be relied on -------------------------------------------------------------


class _Unordered:
    """A bound that may be none. As NaN it compares with nothing, and so proves nothing."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    __le__ = __gt__ = __ge__ = __lt__


_UNORDERED = _Unordered()
Bound = Callable[[Subject], object]


def reliable_bounds(
    term: BoundTerm, lower: Bound[Subject], upper: Bound[Subject]
) -> tuple[Bound[Subject], Bound[Subject]]:
    """Both bounds of a term as they are, or as bounds that prove nothing, where they may be no
    bounds in the order in which values compare here, and are not in order either.

    Many writers order uuids as unsigned bytes: theirs are bounds only if both have one sign.
    Numbers that wrap around when they are truncated lie outside of their truncated bounds.
    """
    if not _may_be_unordered(term):
        return lower, upper

    def is_ordered(low: object, high: object) -> bool:
        return low is not None and high is not None and low <= cast(Ordered, high)

    def reliable_lower(subject: Subject) -> object:
        low = lower(subject)
        return low if low is None or is_ordered(low, upper(subject)) else _UNORDERED

    def reliable_upper(subject: Subject) -> object:
        high = upper(subject)
        return high if high is None or is_ordered(lower(subject), high) else _UNORDERED

    return reliable_lower, reliable_upper


def _may_be_unordered(term: BoundTerm) -> bool:
    kind = term.reference.value_type
    if isinstance(term, BoundReference):
        return isinstance(kind, UUIDType)
    is_number = isinstance(kind, IntegerType | LongType)
    return is_number and isinstance(term.transform, TruncateTransform)
