"""Expressions are values, simplified where they are made and negated without loss."""

from __future__ import annotations

from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    PREDICATES,
    And,
    EqualTo,
    GreaterThanOrEqual,
    IsNull,
    LessThan,
    LiteralPredicate,
    Not,
    NotNull,
    Or,
    Reference,
    SetPredicate,
    negate,
    rewrite_not,
)

A, B = IsNull(Reference("a")), EqualTo(Reference("b"), 5)


def test_constants_vanish_from_what_is_joined() -> None:
    assert And.of(ALWAYS_TRUE, A) == And.of(A, ALWAYS_TRUE) == A
    assert Or.of(ALWAYS_FALSE, A) == Or.of(A, ALWAYS_FALSE) == A
    assert And.of(A, ALWAYS_FALSE) == And.of(ALWAYS_FALSE, A) == ALWAYS_FALSE
    assert Or.of(A, ALWAYS_TRUE) == Or.of(ALWAYS_TRUE, A) == ALWAYS_TRUE
    assert And.of(A, B) == And(A, B)
    assert Or.of(A, B) == Or(A, B)


def test_a_double_negation_vanishes() -> None:
    assert Not.of(Not.of(A)) == A
    assert Not.of(ALWAYS_TRUE) == ALWAYS_FALSE
    assert Not.of(ALWAYS_FALSE) == ALWAYS_TRUE


def test_predicates_of_other_kinds_differ() -> None:
    less, more = LessThan(Reference("b"), 5), GreaterThanOrEqual(Reference("b"), 5)
    assert len({less, more}) == 2
    assert IsNull(Reference("a")) == A
    assert len({A, IsNull(Reference("a")), B}) == 2


def test_every_predicate_is_the_negation_of_its_negation() -> None:
    assert len(PREDICATES) == 14
    for kind in PREDICATES.values():
        literals: tuple[object, ...] = (5,) if issubclass(kind, LiteralPredicate) else ()
        if issubclass(kind, SetPredicate):
            literals = ((5, 6),)
        predicate = kind(Reference("a"), *literals)
        assert negate(predicate) != predicate
        assert negate(negate(predicate)) == predicate
        assert rewrite_not(Not(predicate)) == negate(predicate)


def test_negations_are_pushed_through_and_or_and_not() -> None:
    rewritten = rewrite_not(Not(And(A, Or(B, Not(A)))))
    assert rewritten == Or(NotNull(Reference("a")), And(negate(B), A))
