"""Evaluates by metrics that a data file, or a file of a manifest, may hold rows that match a
predicate.

Every test says no only where that is proven: an unknown bound (None) or an unreliable one (NaN,
which compares with nothing) keeps the file. An upper bound counts beside an unreliable lower one
for `=`, `>` and `>=` and not for `in`, as in Iceberg Java 1.12.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, cast

from committer.iceberg.expressions.compiling import (
    Ordered,
    Subject,
    Test,
    TurnedBounds,
    always,
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
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Predicate,
    StartsWith,
    term_of,
)
from committer.iceberg.pruning.file_metrics import FileTest, file_evidence
from committer.iceberg.pruning.term_evidence import Evidence

# Looking up more literals than this costs more than it saves.
_SET_SIZE_MAX = 200
# By kind of comparison: whether the lower or the upper bound proves that no value matches, and how.
EXCLUDING: Mapping[type[Predicate], tuple[bool, Callable[[Any, Any], bool]]] = {
    LessThan: (True, operator.ge),
    LessThanOrEqual: (True, operator.gt),
    GreaterThan: (False, operator.le),
    GreaterThanOrEqual: (False, operator.lt),
}


def inclusive_test(predicate: Predicate) -> FileTest:
    """Return the test of data files for one bound predicate."""
    term = term_of(predicate)
    if isinstance(predicate, IsNull) and not term.preserves_order:
        return always
    # A shortened value may start otherwise than its column's.
    if isinstance(predicate, StartsWith) and not isinstance(term, BoundReference):
        return always
    return possible(predicate, file_evidence(term))


def possible(predicate: Predicate, known: Evidence[Subject]) -> Test[Subject]:
    """Return the test of one bound predicate, by what is known of its term."""
    match comparable_predicate(predicate):
        case IsNull():
            return known.may_have_nulls
        case NotNull():
            return lambda subject: not known.only_nulls(subject)
        case IsNaN():
            return lambda subject: known.may_have_nans(subject) and not known.only_nulls(subject)
        case NotNaN():
            return lambda subject: not known.only_nans(subject)
        case LessThan() | LessThanOrEqual() | GreaterThan() | GreaterThanOrEqual() as comparison:
            return _comparison_test(comparison, known)
        case EqualTo(value=value):
            return _within(known, cast(Ordered, value))
        case In(values=values):
            if len(values) > _SET_SIZE_MAX:
                return lambda subject: not known.only_incomparable(subject)
            return any_within(known, values)
        case NotEqualTo(value=value):
            return _not_only(known, frozenset((value,)))
        case NotIn(values=values):
            return _not_only(known, frozenset(values))
        case StartsWith(value=value):
            return _prefix_test(known, cast(str, value))
        case NotStartsWith(value=value):
            return _other_prefix_test(known, cast(str, value))
    raise TypeError(f"not a predicate: {predicate!r}")


def _comparison_test(predicate: LiteralPredicate, known: Evidence[Subject]) -> Test[Subject]:
    literal, is_empty = predicate.value, known.only_incomparable
    of_lower, excludes = EXCLUDING[type(predicate)]
    bound_of = known.bounds()[0 if of_lower else 1]

    def may_match(subject: Subject) -> bool:
        bound = bound_of(subject)
        return (bound is None or not excludes(bound, literal)) and not is_empty(subject)

    return may_match


def _within(known: Evidence[Subject], literal: Ordered) -> Test[Subject]:
    is_empty, (lower, upper) = known.only_incomparable, known.bounds()

    def within(subject: Subject) -> bool:
        low = lower(subject)
        if low is not None and low > literal:
            return False
        if isinstance(low, TurnedBounds):
            return not low.excludes(literal) and not is_empty(subject)
        high = upper(subject)
        return (high is None or not high < literal) and not is_empty(subject)

    return within


def any_within(known: Evidence[Subject], values: tuple[object, ...]) -> Test[Subject]:
    """Return a test whether one of these literals may be between the bounds."""
    is_empty, (lower, upper) = known.only_incomparable, known.bounds()
    literals = cast(tuple[Ordered, ...], values)

    def is_any_within(subject: Subject) -> bool:
        low, high = lower(subject), upper(subject)
        if low != low:  # NaN: the bounds of old writers, not reliable
            return not is_empty(subject)
        if isinstance(low, TurnedBounds):
            return not all(map(low.excludes, literals)) and not is_empty(subject)
        return any(
            (low is None or not low > literal) and (high is None or not high < literal)
            for literal in literals
        ) and not is_empty(subject)

    return is_any_within


def _not_only(known: Evidence[Subject], values: frozenset[object]) -> Test[Subject]:
    """Return a test that fails only if the file surely has one value throughout, among these."""
    lower, upper = known.bounds()

    def not_only(subject: Subject) -> bool:
        if known.may_have_incomparable(subject):
            return True
        low = lower(subject)
        return low is None or low not in values or low != upper(subject)

    return not_only


def _prefix_test(known: Evidence[Subject], prefix: str) -> Test[Subject]:
    """Return a test whether a value between the bounds may start with a prefix; a shortened bound
    passes."""
    is_empty, (lower, upper) = known.only_incomparable, known.bounds()

    def may_start(subject: Subject) -> bool:
        low, high = lower(subject), upper(subject)
        if isinstance(low, str) and low[: len(prefix)] > prefix:
            return False
        return not (isinstance(high, str) and high < prefix) and not is_empty(subject)

    return may_start


def _other_prefix_test(known: Evidence[Subject], prefix: str) -> Test[Subject]:
    """Return a test that fails only if both bounds start with a prefix, and so all text between
    them."""
    may_have_nulls, (lower, upper) = known.may_have_nulls, known.bounds()

    def may_start_otherwise(subject: Subject) -> bool:
        if may_have_nulls(subject):
            return True
        bounds = (lower(subject), upper(subject))
        return not all(isinstance(bound, str) and bound.startswith(prefix) for bound in bounds)

    return may_start_otherwise
