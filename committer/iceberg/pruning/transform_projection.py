"""Projects a predicate on a column to one partition field, through the field's transform.

Source: the specification, "Scan Planning"; the reference's transforms, whose answers these are but
where they would lose rows: said where it happens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import cast

from committer.iceberg.expressions.expression import (
    And,
    BoundReference,
    BoundTransformed,
    EqualTo,
    Expression,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotStartsWith,
    Or,
    Predicate,
    StartsWith,
    UnaryPredicate,
    negate,
    opposite,
)
from committer.iceberg.values.single_value import scaled, unscaled
from committer.iceberg.values.transforms import (
    BucketTransform,
    IdentityTransform,
    TimeTransform,
    Transform,
    TruncateTransform,
)
from committer.iceberg.values.types import (
    BinaryType,
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
)

Projection = Expression | None
Step = Callable[[object], object]


def project_inclusive(
    transform: Transform, target: BoundReference, predicate: Predicate
) -> Projection:
    """Return a filter that holds for the partition of every matching row; None if unknown.

    `target` is the partition field, `predicate` is bound to its source column.
    """
    return _project(transform, target, predicate, rounded_max=-1)


def project_strict(
    transform: Transform, target: BoundReference, predicate: Predicate
) -> Projection:
    """Return a filter that holds only for partitions whose rows all match; None without one.

    Those are the partitions that no row is in which the opposite matches.
    """
    # That 0 may be rounded too is the reference's answer.
    of_others = _project(transform, target, opposite(predicate), rounded_max=0)
    return None if of_others is None else negate(of_others)


def _project(
    transform: Transform, target: BoundReference, predicate: Predicate, rounded_max: int
) -> Projection:
    """Project as `project_inclusive`. Bounds of times up to `rounded_max` may be rounded up."""
    term = predicate.term
    if isinstance(term, BoundTransformed):
        return _of_transformed(transform, target, predicate, term)
    if isinstance(transform, IdentityTransform):
        return replace(predicate, term=target)
    if not isinstance(transform, BucketTransform | TruncateTransform | TimeTransform):
        return None
    if isinstance(predicate, UnaryPredicate):
        return type(predicate)(target)
    source_type = cast(BoundReference, term).value_type
    if _is_unknown(transform, source_type):
        return None
    projector = _Projector(transform, target, source_type)
    if isinstance(transform, BucketTransform):
        return projector.values(predicate)
    if isinstance(predicate, StartsWith | NotStartsWith):
        return projector.prefix(predicate)
    projected = projector.ordered(predicate)
    if isinstance(transform, TimeTransform) and not (
        transform.unit == "day" and isinstance(source_type, DateType)
    ):
        projected = projector.with_old_negatives(projected, rounded_max)
    return projector.with_wrapped(projected)


def _of_transformed(
    transform: Transform, target: BoundReference, predicate: Predicate, term: BoundTransformed
) -> Projection:
    """Project a predicate on the very transform to one on the partition value.

    A field that is the column itself can be asked the same question. (The reference compares the
    literal with the column's own value there, and so loses the rows that the transform changes.)
    """
    if transform == term.transform:
        is_unknown = _is_unknown(transform, term.reference.value_type)
        return None if is_unknown else replace(predicate, term=target)
    if isinstance(transform, IdentityTransform):
        return replace(predicate, term=BoundTransformed(term.transform, target))
    return None


@dataclass(frozen=True, slots=True)
class _Projector:
    """Projects predicates on a column of a type to a partition field, inclusively."""

    transform: Transform
    target: BoundReference
    source_type: IcebergType

    def apply(self, value: object) -> object:
        return self.transform.apply(self.source_type, value)

    def limit(self, value: object) -> object:
        """Transform a literal that partition values are ordered by."""
        return self.transform.unwrapped(self.source_type)(value)

    def values(self, predicate: Predicate) -> Projection:
        """Project a question about single values."""
        match predicate:
            case EqualTo(value=value):
                return EqualTo(self.target, self.apply(value))
            case In(values=values):
                return In(self.target, tuple(dict.fromkeys(map(self.apply, values))))
        return None

    def prefix(self, predicate: StartsWith | NotStartsWith) -> Projection:
        """Project a question about a prefix to a truncation.

        The reference counts UTF-16 units here, the transform code points. It decides as the
        reference does where that is safe: a prefix as wide in units is the whole value only if it
        is so in code points too, because else longer values have other partition values.
        """
        prefix, width = cast(str, predicate.value), cast(TruncateTransform, self.transform).width
        units = len(prefix.encode("utf-16-le", "surrogatepass")) // 2
        is_positive = isinstance(predicate, StartsWith)
        if units > width:
            return StartsWith(self.target, self.apply(prefix)) if is_positive else None
        if len(prefix) < width:
            return replace(predicate, term=self.target)
        return (EqualTo if is_positive else NotEqualTo)(self.target, prefix)

    def with_successors(self, values: tuple[object, ...]) -> tuple[object, ...]:
        """Return the values, and after each negative one the next."""
        numbers = cast(tuple[int, ...], values)
        found: dict[object, None] = {}
        for number in numbers:
            found[number] = None
            if number < 0:
                found[number + 1] = None
        return tuple(found)

    def ordered(self, predicate: Predicate) -> Projection:
        before, after = _neighbors(self.source_type)
        match predicate:
            case LessThan(value=value):
                return LessThanOrEqual(self.target, self.limit(before(value)))
            case LessThanOrEqual(value=value):
                return LessThanOrEqual(self.target, self.limit(value))
            case GreaterThan(value=value):
                return GreaterThanOrEqual(self.target, self.limit(after(value)))
            case GreaterThanOrEqual(value=value):
                return GreaterThanOrEqual(self.target, self.limit(value))
        return self.values(predicate)

    def with_wrapped(self, projected: Projection) -> Projection:
        """Take the partition values that wrapped around out of their order. (The reference believes
        them, and so loses rows, or deletes rows that do not match.) A value itself wraps as its
        rows do.
        """
        if not isinstance(projected, LessThanOrEqual | GreaterThanOrEqual):
            return projected
        found: Expression = projected
        for results in self.transform.wrapped_results(self.source_type):
            if isinstance(projected, GreaterThanOrEqual) and self.is_above(results, projected):
                found = And.of(found, NotEqualTo(self.target, results[0]))
            else:
                found = Or.of(found, _in_range(self.target, results))
        return found

    def is_above(self, results: range, projected: GreaterThanOrEqual) -> bool:
        """Return whether all that wraps comes from below a limit: integers that are truncated wrap
        at the lower end alone, and nothing else becomes what they become."""
        bits = 64 if isinstance(self.target.value_type, LongType) else 32
        return len(results) == 1 and cast(int, projected.value) > results[0] - (1 << bits)

    def with_old_negatives(self, projected: Projection, rounded_max: int) -> Projection:
        """Widen a projection: old writers rounded times before 1970 up,
        so values may be one too high."""
        match projected:
            case LessThanOrEqual(value=int() as value) if value <= rounded_max:
                return LessThanOrEqual(self.target, value + 1)
            case EqualTo(value=int() as value) if value < 0:
                return In(self.target, (value, value + 1))
            case In(values=values):
                return In(self.target, self.with_successors(values))
        return projected


def _in_range(target: BoundReference, results: range) -> Predicate:
    """Return the predicate of partition values in a range, which reaches to an end of their type
    or holds one value."""
    if len(results) == 1:
        return EqualTo(target, results[0])
    is_lowest = results[0] < 0
    return (LessThanOrEqual if is_lowest else GreaterThanOrEqual)(
        target, results[-1] if is_lowest else results[0]
    )


def _is_unknown(transform: Transform, source_type: IcebergType) -> bool:
    """Return whether writers disagree about any partition value of a column."""
    half = 2**31
    return range(-half, half) in transform.wrapped_results(source_type)


# --- The values next to a value ------------------------------------------------------------------


def _neighbors(kind: IcebergType) -> tuple[Step, Step]:
    """Return functions to the value before and the value after one.
    Text and bytes have none: they stay."""
    match kind:
        case DecimalType(_, scale):
            return (
                lambda value: scaled(unscaled(cast(Decimal, value), scale) - 1, scale),
                lambda value: scaled(unscaled(cast(Decimal, value), scale) + 1, scale),
            )
        case StringType() | BinaryType():
            return _itself, _itself
        case IntegerType() | DateType():
            return _step(-1, 32), _step(1, 32)
    return _step(-1, 64), _step(1, 64)


def _itself(value: object) -> object:
    return value


def _step(by: int, bits: int) -> Step:
    """Return a step that wraps around at either end, as in Iceberg Java: it proves nothing then."""
    half = 1 << (bits - 1)
    return lambda value: (cast(int, value) + by + half) % (2 * half) - half
