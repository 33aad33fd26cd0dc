"""Whether a data file may hold rows that match a predicate.

Every test says no only where that is proven: an unknown bound (None) or an unreliable one (NaN,
which compares with nothing) keeps the file.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, cast

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.expressions.compiling import (
    Ordered,
    TurnedBounds,
    always,
    comparable_predicate,
)
from committer.iceberg.expressions.expression import (
    BoundReference,
    BoundTerm,
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
from committer.iceberg.pruning.file_metrics import (
    FileTest,
    bounds_of,
    is_float,
    may_have_nans,
    may_have_nulls,
    nothing_to_compare,
    only_nans,
    only_nulls,
)

# Looking up more literals than this costs more than it saves.
SET_SIZE_MAX = 200
# By kind of comparison: whether the lower or the upper bound proves that no value matches, and how.
EXCLUDING: Mapping[type[LiteralPredicate], tuple[bool, Callable[[Any, Any], bool]]] = {
    LessThan: (True, operator.ge),
    LessThanOrEqual: (True, operator.gt),
    GreaterThan: (False, operator.le),
    GreaterThanOrEqual: (False, operator.lt),
}


def inclusive_test(predicate: Predicate) -> FileTest:
    """Return the test of one bound predicate."""
    term = term_of(predicate)
    field_id = term.reference.field_id
    match comparable_predicate(predicate):
        case IsNull():
            if not _keeps_values(term):
                return always
            return lambda file: may_have_nulls(file, field_id)
        case NotNull():
            return lambda file: not only_nulls(file, field_id)
        case IsNaN():
            return lambda file: may_have_nans(file, field_id) and not only_nulls(file, field_id)
        case NotNaN():
            return lambda file: not only_nans(file, field_id)
        case LessThan() | LessThanOrEqual() | GreaterThan() | GreaterThanOrEqual() as comparison:
            return _comparison_test(comparison, term)
        case EqualTo(value=value):
            return _within(term, cast(Ordered, value))
        case In(values=values):
            return _any_within(term, values)
        case NotEqualTo(value=value):
            return _not_only(term, frozenset((value,)))
        case NotIn(values=values):
            return _not_only(term, frozenset(values))
        case StartsWith(value=value):
            return _prefix_test(term, cast(str, value))
        case NotStartsWith(value=value):
            return _other_prefix_test(term, cast(str, value))
    raise TypeError(f"not a predicate: {predicate!r}")


def _keeps_values(term: BoundTerm) -> bool:
    """Return whether a term keeps a value that is not null from becoming null."""
    return isinstance(term, BoundReference) or term.transform.preserves_order


def _comparison_test(predicate: LiteralPredicate, term: BoundTerm) -> FileTest:
    literal = predicate.value
    is_empty, (lower, upper) = nothing_to_compare(term), bounds_of(term)
    of_lower, excludes = EXCLUDING[type(predicate)]
    bound_of = lower if of_lower else upper

    def may_match(file: DataFile) -> bool:
        bound = bound_of(file)
        return (bound is None or not excludes(bound, literal)) and not is_empty(file)

    return may_match


def _within(term: BoundTerm, literal: Ordered) -> FileTest:
    is_empty, (lower, upper) = nothing_to_compare(term), bounds_of(term)

    def within(file: DataFile) -> bool:
        low = lower(file)
        if low is not None and low > literal:
            return False
        if isinstance(low, TurnedBounds):
            return not low.excludes(literal) and not is_empty(file)
        high = upper(file)
        return (high is None or not high < literal) and not is_empty(file)

    return within


def _any_within(term: BoundTerm, values: tuple[object, ...]) -> FileTest:
    is_empty, (lower, upper) = nothing_to_compare(term), bounds_of(term)
    if len(values) > SET_SIZE_MAX:
        return lambda file: not is_empty(file)
    literals = cast(tuple[Ordered, ...], values)

    def any_within(file: DataFile) -> bool:
        low, high = lower(file), upper(file)
        if low != low:  # NaN: the bounds of old writers, not reliable
            return not is_empty(file)
        if isinstance(low, TurnedBounds):
            return not all(map(low.excludes, literals)) and not is_empty(file)
        return any(
            (low is None or not low > literal) and (high is None or not high < literal)
            for literal in literals
        ) and not is_empty(file)

    return any_within


def _not_only(term: BoundTerm, values: frozenset[object]) -> FileTest:
    """Return a test that fails only if the file surely has one value throughout, among these."""
    field_id, (lower, upper) = term.reference.field_id, bounds_of(term)
    has_nans = is_float(term)

    def not_only(file: DataFile) -> bool:
        if may_have_nulls(file, field_id) or (has_nans and may_have_nans(file, field_id)):
            return True
        low = lower(file)
        return low is None or low not in values or low != upper(file)

    return not_only


def _prefix_test(term: BoundTerm, prefix: str) -> FileTest:
    """Return a test whether a value between the bounds may start with a prefix; a shortened bound
    passes. A shortened value may not: it passes."""
    if not isinstance(term, BoundReference):
        return always
    is_empty, (lower, upper) = nothing_to_compare(term), bounds_of(term)

    def may_start(file: DataFile) -> bool:
        return starts_between(lower(file), upper(file), prefix) and not is_empty(file)

    return may_start


def starts_between(low: object, high: object, prefix: str) -> bool:
    """Return whether text between two bounds (None: unknown) may start with a prefix."""
    if isinstance(low, str) and low[: len(prefix)] > prefix:
        return False
    return not (isinstance(high, str) and high < prefix)


def _other_prefix_test(term: BoundTerm, prefix: str) -> FileTest:
    field_id, (lower, upper) = term.reference.field_id, bounds_of(term)

    def may_start_otherwise(file: DataFile) -> bool:
        return may_have_nulls(file, field_id) or not both_start(lower(file), upper(file), prefix)

    return may_start_otherwise


def both_start(low: object, high: object, prefix: str) -> bool:
    """Return whether two bounds start with a prefix, and so all text between them."""
    return (
        isinstance(low, str)
        and isinstance(high, str)
        and low.startswith(prefix)
        and high.startswith(prefix)
    )
