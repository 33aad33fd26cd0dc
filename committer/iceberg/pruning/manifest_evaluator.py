"""Proves by a manifest's partition summaries that none of its files may match a filter.

Source: the specification, "Scan Planning"; Iceberg Java, `ManifestEvaluator`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import cast

from committer.errors import InvalidMetadataError
from committer.iceberg.expressions.compiling import (
    Ordered,
    Test,
    TurnedBounds,
    always,
    comparable_decoder,
    comparable_predicate,
    compiled,
    reliable_bounds,
)
from committer.iceberg.expressions.expression import (
    BoundReference,
    BoundTerm,
    EqualTo,
    Expression,
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
from committer.iceberg.manifest.manifest_list import ManifestFile, PartitionFieldSummary
from committer.iceberg.pruning.file_metrics import is_float
from committer.iceberg.pruning.inclusive_metrics import (
    EXCLUDING,
    SET_SIZE_MAX,
    both_start,
    starts_between,
)
from committer.iceberg.pruning.projection import inclusive_projection
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema

SummaryTest = Test[PartitionFieldSummary]
SummaryBound = Callable[[PartitionFieldSummary], object]


def manifest_evaluator(
    spec: PartitionSpec, schema: Schema, filter: Expression, case_sensitive: bool = True
) -> Callable[[ManifestFile], bool]:
    """Return a test whether a manifest of this spec may hold files with rows that match a filter.

    Errors: as `bind`; the test raises `InvalidMetadataError` for summaries that do not fit.
    """
    projected = inclusive_projection(spec, schema, filter, case_sensitive)
    test = compiled(projected, _summaries_test)
    field_count = len(spec.fields)

    def may_match(manifest: ManifestFile) -> bool:
        if manifest.partitions is None:
            return True
        if len(manifest.partitions) != field_count:
            raise InvalidMetadataError(
                f"{manifest.manifest_path}: {len(manifest.partitions)} partition summaries,"
                f" expected {field_count}"
            )
        try:
            return test(manifest.partitions)
        except (ValueError, struct.error) as error:
            raise InvalidMetadataError(
                f"{manifest.manifest_path}: expected summaries' bounds that are values of their"
                " fields' types"
            ) from error

    return may_match


def _summaries_test(predicate: Predicate) -> Test[tuple[PartitionFieldSummary, ...]]:
    position = term_of(predicate).reference.path[0]
    test = _summary_test(predicate)
    return lambda summaries: test(summaries[position])


def _summary_test(predicate: Predicate) -> SummaryTest:
    term = term_of(predicate)
    if not isinstance(term, BoundReference) and not term.transform.preserves_order:
        return always
    match comparable_predicate(predicate):
        case IsNull():
            return lambda summary: summary.contains_null
        case NotNull():
            return _not_only_nulls(term)
        case IsNaN():
            some = _not_only_nulls(term)
            return lambda summary: summary.contains_nan is not False and some(summary)
        case NotNaN():
            return _not_only_nans
        case LessThan() | LessThanOrEqual() | GreaterThan() | GreaterThanOrEqual() as comparison:
            return _comparison_test(comparison, term)
        case EqualTo(value=value):
            return _any_within(term, (value,))
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


# --- Null and NaN --------------------------------------------------------------------------------


def _not_only_nulls(term: BoundTerm) -> SummaryTest:
    """Return a test that fails if all values are null:
    there is no lower bound, and surely no NaN."""
    if is_float(term):
        return lambda summary: (
            not (
                summary.contains_null
                and summary.lower_bound is None
                and summary.contains_nan is False
            )
        )
    return lambda summary: not (summary.contains_null and summary.lower_bound is None)


def _not_only_nans(summary: PartitionFieldSummary) -> bool:
    return not (summary.contains_nan and not summary.contains_null and summary.lower_bound is None)


# --- Bounds --------------------------------------------------------------------------------------


def _bounds(term: BoundTerm) -> tuple[SummaryBound, SummaryBound]:
    """Return the functions to both bounds of a term, as `reliable_bounds`;
    they give None where all values are null or NaN."""
    decode = comparable_decoder(term.reference.value_type)
    through: Callable[[object], object] = _itself
    if not isinstance(term, BoundReference):
        through = term.transform.function(term.reference.value_type)

    def lower(summary: PartitionFieldSummary) -> object:
        encoded = summary.lower_bound
        return None if encoded is None else through(decode(encoded))

    def upper(summary: PartitionFieldSummary) -> object:
        encoded = summary.upper_bound
        return None if encoded is None else through(decode(encoded))

    return reliable_bounds(term, lower, upper)


def _itself(value: object) -> object:
    return value


def _comparison_test(predicate: LiteralPredicate, term: BoundTerm) -> SummaryTest:
    literal = predicate.value
    of_lower, excludes = EXCLUDING[type(predicate)]
    bound_of = _bounds(term)[0 if of_lower else 1]

    def may_match(summary: PartitionFieldSummary) -> bool:
        bound = bound_of(summary)
        return bound is not None and not excludes(bound, literal)

    return may_match


def _any_within(term: BoundTerm, values: tuple[object, ...]) -> SummaryTest:
    if len(values) > SET_SIZE_MAX:
        return lambda summary: summary.lower_bound is not None
    lower, upper = _bounds(term)
    literals = cast(tuple[Ordered, ...], values)

    def any_within(summary: PartitionFieldSummary) -> bool:
        low, high = lower(summary), upper(summary)
        if isinstance(low, TurnedBounds):
            return not all(map(low.excludes, literals))
        return low is not None and any(
            not low > literal and (high is None or not high < literal) for literal in literals
        )

    return any_within


def _not_only(term: BoundTerm, values: frozenset[object]) -> SummaryTest:
    """Return a test that fails only if there surely is one value throughout, one of these."""
    lower, upper = _bounds(term)
    has_nans = is_float(term)

    def not_only(summary: PartitionFieldSummary) -> bool:
        if summary.contains_null or (has_nans and summary.contains_nan is not False):
            return True
        low = lower(summary)
        return low is None or low not in values or low != upper(summary)

    return not_only


def _prefix_test(term: BoundTerm, prefix: str) -> SummaryTest:
    lower, upper = _bounds(term)

    def may_start(summary: PartitionFieldSummary) -> bool:
        return summary.lower_bound is not None and starts_between(
            lower(summary), upper(summary), prefix
        )

    return may_start


def _other_prefix_test(term: BoundTerm, prefix: str) -> SummaryTest:
    lower, upper = _bounds(term)

    def may_start_otherwise(summary: PartitionFieldSummary) -> bool:
        return summary.contains_null or not both_start(lower(summary), upper(summary), prefix)

    return may_start_otherwise
