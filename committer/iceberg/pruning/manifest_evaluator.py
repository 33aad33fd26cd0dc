"""Proves by a manifest's partition summaries that none of its files may match a filter.

Source: the specification, "Scan Planning"; Iceberg Java, `ManifestEvaluator`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from committer.errors import InvalidMetadataError
from committer.iceberg.expressions.compiling import (
    Bound,
    Test,
    always,
    bound_decoder,
    compiled,
    reliable_bounds,
)
from committer.iceberg.expressions.expression import BoundTerm, Expression, Predicate, term_of
from committer.iceberg.manifest.manifest_list import ManifestFile, PartitionFieldSummary
from committer.iceberg.pruning.inclusive_metrics import possible
from committer.iceberg.pruning.projection import inclusive_projection
from committer.iceberg.pruning.term_evidence import Evidence
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import DoubleType, FloatType

SummaryBound = Bound[PartitionFieldSummary]


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
    term = term_of(predicate)
    if not term.preserves_order:
        return always
    test, position = possible(predicate, _evidence(term)), term.reference.path[0]
    return lambda summaries: test(summaries[position])


def _evidence(term: BoundTerm) -> Evidence[PartitionFieldSummary]:
    """Return what summaries say of a term. Without bounds all values are null or NaN."""
    is_float = isinstance(term.value_type, FloatType | DoubleType)

    def may_have_nans(summary: PartitionFieldSummary) -> bool:
        return is_float and summary.contains_nan is not False

    def only_nulls(summary: PartitionFieldSummary) -> bool:
        has_others = summary.lower_bound is not None or may_have_nans(summary)
        return summary.contains_null and not has_others

    def only_nans(summary: PartitionFieldSummary) -> bool:
        has_others = summary.lower_bound is not None or summary.contains_null
        return summary.contains_nan is True and not has_others

    def has_no_bounds(summary: PartitionFieldSummary) -> bool:
        return summary.lower_bound is None and summary.upper_bound is None

    return Evidence(
        bounds=lambda: _bounds(term),
        may_have_nulls=lambda summary: summary.contains_null,
        may_have_nans=may_have_nans,
        only_nulls=only_nulls,
        only_nans=only_nans,
        only_incomparable=has_no_bounds,
    )


def _bounds(term: BoundTerm) -> tuple[SummaryBound, SummaryBound]:
    decode = bound_decoder(term)

    def lower(summary: PartitionFieldSummary) -> object:
        encoded = summary.lower_bound
        return None if encoded is None else decode(encoded)

    def upper(summary: PartitionFieldSummary) -> object:
        encoded = summary.upper_bound
        return None if encoded is None else decode(encoded)

    return reliable_bounds(term, lower, upper)
