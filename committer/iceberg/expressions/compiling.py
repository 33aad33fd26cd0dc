"""Turning a bound expression without `Not` into one function, so that it is walked once only.

Values compare as Iceberg Java does, which writes and reads bounds by its order: uuids as two
signed halves, -0.0 as less than 0.0.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
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
from committer.iceberg.manifest.partition_summary import UUID_HALVES
from committer.iceberg.values.single_value import decoder
from committer.iceberg.values.types import (
    DoubleType,
    FloatType,
    IcebergType,
    UUIDType,
)

Subject = TypeVar("Subject")
_DOUBLE, _BITS, _WITHOUT_SIGN = struct.Struct("<d"), struct.Struct("<q"), 2**63 - 1
Test = Callable[[Subject], bool]


class Ordered(Protocol):
    """A value that can be compared with others of its type, as those of all primitive types can."""

    def __lt__(self, other: object, /) -> bool: ...
    def __le__(self, other: object, /) -> bool: ...
    def __gt__(self, other: object, /) -> bool: ...
    def __ge__(self, other: object, /) -> bool: ...


def always(_: object) -> bool:
    return True


def never(_: object) -> bool:
    return False


def compiled(expression: Expression, leaf: Callable[[Predicate], Test[Subject]]) -> Test[Subject]:
    """Compile a whole expression to a test; `leaf` compiles one predicate."""
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
    """Return a value as it sorts."""
    if isinstance(value, float):
        return _float_order(value)
    return UUID_HALVES.unpack(value.bytes) if isinstance(value, UUID) else value


def _float_order(value: float) -> float:
    """Return an integer for a float: they sort alike, and those of -0.0 and 0.0 differ.
    NaN stays what it is: it compares with nothing."""
    if value != value:
        return value
    (bits,) = _BITS.unpack(_DOUBLE.pack(value))
    return int(bits) if bits >= 0 else -1 - (int(bits) & _WITHOUT_SIGN)


def comparable_predicate(predicate: Predicate) -> Predicate:
    """Return the predicate with its literals as they sort."""
    match predicate:
        case LiteralPredicate(term, value):
            return type(predicate)(term, comparable(value))
        case SetPredicate(term, values):
            return type(predicate)(term, tuple(map(comparable, values)))
    return predicate


def bound_decoder(term: BoundTerm) -> Callable[[bytes], object]:
    """Return the decoder of the bounds of a term that preserves order, as they sort."""
    decode = _comparable_decoder(term.reference.value_type)
    if isinstance(term, BoundReference):
        return decode
    function = term.transform.function(term.reference.value_type)
    return lambda encoded: function(decode(encoded))


def _comparable_decoder(kind: IcebergType) -> Callable[[bytes], object]:
    decode = decoder(kind)
    if isinstance(kind, FloatType | DoubleType):
        return lambda encoded: comparable(decode(encoded))
    return UUID_HALVES.unpack if kind == UUIDType() else decode


# --- Bounds that are turned round ----------------------------------------------------------------


@dataclass(slots=True, eq=False)
class TurnedBounds:
    """Replaces a lower bound above its upper one (None: unknown): no value is between the two.

    As NaN it compares with nothing, and so proves nothing else.
    """

    lower: object
    upper: object

    def _never(self, other: object) -> bool:
        return False

    __lt__ = __le__ = __gt__ = __ge__ = _never

    def excludes(self, value: Ordered) -> bool:
        """Return whether no value in the file is this one."""
        return self.upper is not None and value < self.lower and value > self.upper


Bound = Callable[[Subject], object]


def reliable_bounds(
    term: BoundTerm, lower: Bound[Subject], upper: Bound[Subject]
) -> tuple[Bound[Subject], Bound[Subject]]:
    """Return both bounds of a term; `TurnedBounds` where they may be turned round and no lower
    bound lies below an upper one.

    Numbers whose transform wraps around lie beyond the transformed bounds of the others, or between
    them: a bound that may have wrapped proves at most that some values are in none of the two
    parts. Bounds of uuids are taken as they are, though writers that order them as unsigned bytes
    turn them round where signs differ: so does the reference, and loses the same files.
    """
    wrapped = _wrapped_results(term)
    if not wrapped:
        return lower, upper

    def is_wrapped(value: object) -> bool:
        return any(value in results for results in wrapped)

    def reliable(bound: Bound[Subject]) -> Bound[Subject]:
        def read(subject: Subject) -> object:
            found, low, high = bound(subject), lower(subject), upper(subject)
            in_order = None not in (low, high) and cast(Ordered, low) <= high
            if found is None or (in_order and not is_wrapped(low) and not is_wrapped(high)):
                return found
            return TurnedBounds(low, None if is_wrapped(high) else high)

        return read

    return reliable(lower), reliable(upper)


def _wrapped_results(term: BoundTerm) -> tuple[range, ...]:
    if isinstance(term, BoundReference):
        return ()
    return term.transform.wrapped_results(term.reference.value_type)
