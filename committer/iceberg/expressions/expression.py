"""Expressions as values: predicates over terms, joined by and, or, not.

An expression is unbound (its terms are names, its literals as they were written) or bound to a
schema by `binding.py` (its terms are fields, its literals values of their types). Nothing is
evaluated here.
Source: the specification, "Expressions" of Appendix C and of the REST catalog.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import ClassVar

from committer.iceberg.values.transforms import Transform
from committer.iceberg.values.types import IcebergType

# --- Terms ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reference:
    """A column by its (dotted) name."""

    name: str


@dataclass(frozen=True, slots=True)
class Transformed:
    """A transform of a column."""

    transform: Transform
    reference: Reference

    @property
    def name(self) -> str:
        return self.reference.name


@dataclass(frozen=True, slots=True)
class BoundReference:
    """A field of a schema. `path` leads to it: positions in the structs from the top.

    `is_optional` says whether the field or a struct around it may be null.
    """

    field_id: int
    name: str
    value_type: IcebergType
    path: tuple[int, ...]
    is_optional: bool

    @property
    def reference(self) -> BoundReference:
        return self

    @property
    def preserves_order(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class BoundTransformed:
    """A transform of a field of a schema."""

    transform: Transform
    reference: BoundReference

    @property
    def name(self) -> str:
        return self.reference.name

    @property
    def value_type(self) -> IcebergType:
        return self.transform.result_type(self.reference.value_type)

    @property
    def preserves_order(self) -> bool:
        """Whether a greater value of the field never becomes a smaller one, nor null."""
        return self.transform.preserves_order


BoundTerm = BoundReference | BoundTransformed
Term = Reference | Transformed | BoundTerm


# --- Expressions ---------------------------------------------------------------------------------


class Expression:
    """The root of all expressions. They are equal by value and hashable."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class AlwaysTrue(Expression):
    """Every row matches."""


@dataclass(frozen=True, slots=True)
class AlwaysFalse(Expression):
    """No row matches."""


ALWAYS_TRUE = AlwaysTrue()
ALWAYS_FALSE = AlwaysFalse()


@dataclass(frozen=True, slots=True)
class And(Expression):
    """Both match."""

    left: Expression
    right: Expression

    @staticmethod
    def of(left: Expression, right: Expression) -> Expression:
        """Return the conjunction, simplified where a side is constant."""
        if left == ALWAYS_FALSE or right == ALWAYS_FALSE:
            return ALWAYS_FALSE
        if left == ALWAYS_TRUE:
            return right
        return left if right == ALWAYS_TRUE else And(left, right)


@dataclass(frozen=True, slots=True)
class Or(Expression):
    """One of them matches."""

    left: Expression
    right: Expression

    @staticmethod
    def of(left: Expression, right: Expression) -> Expression:
        """Return the disjunction, simplified where a side is constant."""
        if left == ALWAYS_TRUE or right == ALWAYS_TRUE:
            return ALWAYS_TRUE
        if left == ALWAYS_FALSE:
            return right
        return left if right == ALWAYS_FALSE else Or(left, right)


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """The child does not match."""

    child: Expression

    @staticmethod
    def of(child: Expression) -> Expression:
        """Return the negation, simplified for a constant and for another negation."""
        match child:
            case AlwaysTrue():
                return ALWAYS_FALSE
            case AlwaysFalse():
                return ALWAYS_TRUE
            case Not(grandchild):
                return grandchild
        return Not(child)


@dataclass(frozen=True, slots=True)
class Predicate(Expression):
    """A question about one term. `operation` is its name in the expression JSON."""

    operation: ClassVar[str] = ""
    term: Term


class UnaryPredicate(Predicate):
    """A question about a term alone."""

    __slots__ = ()


class IsNull(UnaryPredicate):
    __slots__ = ()
    operation = "is-null"


class NotNull(UnaryPredicate):
    __slots__ = ()
    operation = "not-null"


class IsNaN(UnaryPredicate):
    __slots__ = ()
    operation = "is-nan"


class NotNaN(UnaryPredicate):
    """Null is not NaN."""

    __slots__ = ()
    operation = "not-nan"


@dataclass(frozen=True, slots=True)
class LiteralPredicate(Predicate):
    """A term compared with a literal, which is never null or NaN."""

    value: object


class LessThan(LiteralPredicate):
    __slots__ = ()
    operation = "lt"


class LessThanOrEqual(LiteralPredicate):
    __slots__ = ()
    operation = "lt-eq"


class GreaterThan(LiteralPredicate):
    __slots__ = ()
    operation = "gt"


class GreaterThanOrEqual(LiteralPredicate):
    __slots__ = ()
    operation = "gt-eq"


class EqualTo(LiteralPredicate):
    __slots__ = ()
    operation = "eq"


class NotEqualTo(LiteralPredicate):
    """Null differs from every literal."""

    __slots__ = ()
    operation = "not-eq"


class StartsWith(LiteralPredicate):
    __slots__ = ()
    operation = "starts-with"


class NotStartsWith(LiteralPredicate):
    """Null starts with nothing."""

    __slots__ = ()
    operation = "not-starts-with"


@dataclass(frozen=True, slots=True)
class SetPredicate(Predicate):
    """A term looked up among literals. Bound, the literals are distinct and more than one."""

    values: tuple[object, ...]


class In(SetPredicate):
    __slots__ = ()
    operation = "in"


class NotIn(SetPredicate):
    """Null is in no set."""

    __slots__ = ()
    operation = "not-in"


_OPPOSITES: tuple[tuple[type[Predicate], type[Predicate]], ...] = (
    (IsNull, NotNull),
    (IsNaN, NotNaN),
    (LessThan, GreaterThanOrEqual),
    (GreaterThan, LessThanOrEqual),
    (EqualTo, NotEqualTo),
    (StartsWith, NotStartsWith),
    (In, NotIn),
)
_NEGATION: dict[type[Predicate], type[Predicate]] = {
    kind: opposite
    for first, second in _OPPOSITES
    for kind, opposite in ((first, second), (second, first))
}
PREDICATES: dict[str, type[Predicate]] = {kind.operation: kind for kind in _NEGATION}


def term_of(predicate: Predicate) -> BoundTerm:
    """Return the term of a bound predicate."""
    if not isinstance(predicate.term, BoundTerm):
        raise TypeError(f"an unbound predicate: {predicate!r}")
    return predicate.term


# --- Walking -------------------------------------------------------------------------------------


def map_predicates(
    expression: Expression, replace: Callable[[Predicate], Expression]
) -> Expression:
    """Replace every predicate, and simplify where constants result."""
    match expression:
        case And(left, right):
            return And.of(map_predicates(left, replace), map_predicates(right, replace))
        case Or(left, right):
            return Or.of(map_predicates(left, replace), map_predicates(right, replace))
        case Not(child):
            return Not.of(map_predicates(child, replace))
        case Predicate():
            return replace(expression)
    return expression


def opposite(predicate: Predicate) -> Predicate:
    """Return the predicate that the other rows match. Null counts as said at each predicate."""
    kind = _NEGATION[type(predicate)]
    return kind(*(getattr(predicate, field.name) for field in fields(predicate)))


def negate(expression: Expression) -> Expression:
    """Return the filter of the other rows, without `Not`. Null counts as said at each predicate."""
    match expression:
        case AlwaysTrue():
            return ALWAYS_FALSE
        case AlwaysFalse():
            return ALWAYS_TRUE
        case And(left, right):
            return Or.of(negate(left), negate(right))
        case Or(left, right):
            return And.of(negate(left), negate(right))
        case Not(child):
            return rewrite_not(child)
        case Predicate():
            return opposite(expression)
    raise TypeError(f"not an expression: {expression!r}")


def rewrite_not(expression: Expression) -> Expression:
    """Push negations into the predicates, so that no `Not` is left.

    Projections and evaluators need this form: what they cannot answer may only ever count as one
    thing, which a `Not` above would turn around.
    """
    match expression:
        case And(left, right):
            return And.of(rewrite_not(left), rewrite_not(right))
        case Or(left, right):
            return Or.of(rewrite_not(left), rewrite_not(right))
        case Not(child):
            return negate(child)
    return expression
