"""Whether all rows of a data file surely match a predicate.

Every test says yes only where that is proven. Columns inside structs prove nothing here, because
the metrics do not count the structs that are null; transformed terms neither.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, cast

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.expressions.compiling import Ordered, comparable_predicate, never
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
from committer.iceberg.pruning.inclusive_metrics import both_start, starts_between
from committer.iceberg.pruning.term_evidence import Evidence


def strict_test(predicate: Predicate) -> FileTest:
    """Return the test of one bound predicate."""
    term = term_of(predicate)
    if not isinstance(term, BoundReference) or len(term.path) > 1:
        return never
    known = file_evidence(term)
    match comparable_predicate(predicate):
        case IsNull():
            return known.only_nulls
        case NotNull():
            return lambda file: not known.may_have_nulls(file)
        case IsNaN():
            return known.only_nans
        case NotNaN():
            return lambda file: not known.may_have_nans(file) or known.only_nulls(file)
        case LessThan() | LessThanOrEqual() | GreaterThan() | GreaterThanOrEqual() as comparison:
            return _comparison_test(comparison, known)
        case EqualTo(value=value):
            return _only_one_of(known, frozenset((value,)))
        case In(values=values):
            return _only_one_of(known, frozenset(values))
        case NotEqualTo(value=value):
            return _none_within(known, (value,))
        case NotIn(values=values):
            return _none_within(known, values)
        case StartsWith(value=value):
            return _prefix_test(known, cast(str, value))
        case NotStartsWith(value=value):
            return _other_prefix_test(known, cast(str, value))
    raise TypeError(f"not a predicate: {predicate!r}")


FileEvidence = Evidence[DataFile]

# By kind of comparison: whether the lower or the upper bound proves that all values match, and how.
_PROVING: Mapping[type[LiteralPredicate], tuple[bool, Callable[[Any, Any], bool]]] = {
    LessThan: (False, operator.lt),
    LessThanOrEqual: (False, operator.le),
    GreaterThan: (True, operator.gt),
    GreaterThanOrEqual: (True, operator.ge),
}


def _comparison_test(predicate: LiteralPredicate, known: FileEvidence) -> FileTest:
    literal, has_others = predicate.value, known.may_have_incomparable
    of_lower, proves = _PROVING[type(predicate)]
    bound_of = known.bounds()[0 if of_lower else 1]

    def all_match(file: DataFile) -> bool:
        bound = bound_of(file)
        return bound is not None and proves(bound, literal) and not has_others(file)

    return all_match


def _only_one_of(known: FileEvidence, values: frozenset[object]) -> FileTest:
    """Return a test whether the file has one value throughout, and it is among these."""
    has_others, (lower, upper) = known.may_have_incomparable, known.bounds()

    def only_one_of(file: DataFile) -> bool:
        low = lower(file)
        return low is not None and low in values and low == upper(file) and not has_others(file)

    return only_one_of


def _none_within(known: FileEvidence, values: tuple[object, ...]) -> FileTest:
    """Return a test whether no literal is between the bounds.
    Null and NaN differ from every literal."""
    is_empty, (lower, upper) = known.only_incomparable, known.bounds()
    literals = cast(tuple[Ordered, ...], values)

    def none_within(file: DataFile) -> bool:
        if is_empty(file):
            return True
        low, high = lower(file), upper(file)
        if low != low:  # NaN: the bounds of old writers, not reliable
            return False
        return all(
            (low is not None and low > literal) or (high is not None and high < literal)
            for literal in literals
        )

    return none_within


def _prefix_test(known: FileEvidence, prefix: str) -> FileTest:
    may_have_nulls, (lower, upper) = known.may_have_nulls, known.bounds()

    def all_start(file: DataFile) -> bool:
        return both_start(lower(file), upper(file), prefix) and not may_have_nulls(file)

    return all_start


def _other_prefix_test(known: FileEvidence, prefix: str) -> FileTest:
    only_nulls, (lower, upper) = known.only_nulls, known.bounds()

    def none_start(file: DataFile) -> bool:
        return only_nulls(file) or not starts_between(lower(file), upper(file), prefix)

    return none_start
