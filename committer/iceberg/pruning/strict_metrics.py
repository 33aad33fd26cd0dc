"""Evaluates by metrics that all rows of a data file match a predicate: none may match its opposite.

Every test says yes only where that is proven. Columns inside structs prove nothing here, because
the metrics do not count the structs that are null; transformed terms neither.
"""

from __future__ import annotations

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.expressions.compiling import comparable_predicate, never
from committer.iceberg.expressions.expression import (
    BoundReference,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    LiteralPredicate,
    NotEqualTo,
    NotIn,
    Predicate,
    opposite,
    term_of,
)
from committer.iceberg.pruning.file_metrics import FileTest, file_evidence
from committer.iceberg.pruning.inclusive_metrics import EXCLUDING, any_within, possible
from committer.iceberg.pruning.term_evidence import Evidence


def strict_test(predicate: Predicate) -> FileTest:
    """Return the test of one bound predicate."""
    term = term_of(predicate)
    if not isinstance(term, BoundReference) or len(term.path) > 1:
        return never
    known = file_evidence(term)
    match comparable_predicate(predicate):
        case LessThan() | LessThanOrEqual() | GreaterThan() | GreaterThanOrEqual() as comparison:
            return _comparison_test(comparison, known)
        case NotEqualTo(value=value):
            may_fail = any_within(known, (value,))
        case NotIn(values=values):
            may_fail = any_within(known, values)
        case _:
            may_fail = possible(opposite(predicate), known)
    return lambda file: not may_fail(file)


def _comparison_test(predicate: LiteralPredicate, known: Evidence[DataFile]) -> FileTest:
    """Return the test of a comparison. Null and NaN match neither it nor its opposite."""
    literal, has_others = predicate.value, known.may_have_incomparable
    of_lower, excludes = EXCLUDING[type(opposite(predicate))]
    bound_of = known.bounds()[0 if of_lower else 1]

    def all_match(file: DataFile) -> bool:
        bound = bound_of(file)
        return bound is not None and excludes(bound, literal) and not has_others(file)

    return all_match
