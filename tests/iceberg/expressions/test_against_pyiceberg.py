"""PyIceberg keeps and proves the same files and manifests, as far as it goes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg import expressions as theirs
from pyiceberg.expressions.visitors import (
    _InclusiveMetricsEvaluator,
    _ManifestEvalVisitor,
    _StrictMetricsEvaluator,
)
from pyiceberg.manifest import DataFile as TheirFile
from pyiceberg.manifest import ManifestFile as TheirManifest
from pyiceberg.manifest import PartitionFieldSummary as TheirSummary
from pyiceberg.schema import Schema as TheirSchema

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.expressions import expression as ours
from committer.iceberg.manifest.manifest_list import PartitionFieldSummary
from committer.iceberg.manifest.partition_summary import summarize_partitions
from committer.iceberg.pruning.manifest_evaluator import manifest_evaluator
from committer.iceberg.pruning.metrics_evaluator import (
    inclusive_metrics_evaluator,
    strict_metrics_evaluator,
)
from committer.iceberg.schema.schema import print_schema
from committer.iceberg.values.transforms import IDENTITY
from committer.iceberg.values.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)
from tests.support.builders.projections import one_column, one_field
from tests.support.iceberg.expression_builders import filters_of, predicates_of, rows_of
from tests.support.iceberg.random_metrics import LEFT_OUT, file_of, manifest_with

KINDS = [
    BooleanType(),
    IntegerType(),
    LongType(),
    DoubleType(),
    DecimalType(9, 2),
    DateType(),
    TimestampType(),
    StringType(),
]


def in_their_words(expression: ours.Expression) -> Any:
    """Return the same expression of PyIceberg."""
    match expression:
        case ours.And(left, right) | ours.Or(left, right):
            join = theirs.And if isinstance(expression, ours.And) else theirs.Or
            return join(in_their_words(left), in_their_words(right))
        case ours.Not(child):
            return theirs.Not(in_their_words(child))
        case ours.LiteralPredicate(term, value):
            return getattr(theirs, type(expression).__name__)(term.name, value)
        case ours.SetPredicate(term, values):
            return getattr(theirs, type(expression).__name__)(term.name, set(values))
        case ours.Predicate():
            return getattr(theirs, type(expression).__name__)(expression.term.name)
    raise TypeError(expression)


def their_schema(kind: IcebergType) -> TheirSchema:
    return TheirSchema.model_validate(print_schema(one_column(kind)))


def their_file(file: DataFile) -> TheirFile:
    metrics = (
        "value_counts",
        "null_value_counts",
        "nan_value_counts",
        "lower_bounds",
        "upper_bounds",
    )
    return TheirFile.from_args(
        file_path=file.file_path,
        record_count=file.record_count,
        **{key: getattr(file, key) for key in metrics},
    )


def their_manifest(summaries: tuple[PartitionFieldSummary, ...]) -> TheirManifest:
    partitions = [
        TheirSummary(each.contains_null, each.contains_nan, each.lower_bound, each.upper_bound)
        for each in summaries
    ]
    return TheirManifest.from_args(partitions=partitions)


def without_negative_zero(value: object) -> object:
    """Drop the sign of -0.0, which PyIceberg ignores; Java and Frazil order it below 0.0."""
    return abs(value) if isinstance(value, float) and value == 0 else value


# PyIceberg reads years from 1 to 9999 in a literal.
_FAR_YEAR = re.compile(r"'([-+]\d+|\d{5,}|0000)-\d\d-\d\d")


def is_read_by_pyiceberg(predicate: ours.Expression) -> bool:
    text = repr(predicate)
    return "-0.0" not in text and not _FAR_YEAR.search(text)


@st.composite
def questions(draw: st.DrawFn) -> tuple[IcebergType, ours.Expression, list[object]]:
    kind = draw(st.sampled_from(KINDS))
    leaf = predicates_of(ours.Reference("c"), kind).filter(is_read_by_pyiceberg)
    filter = draw(st.one_of(leaf, filters_of(leaf)))
    values = draw(st.lists(rows_of(kind).map(without_negative_zero), min_size=1, max_size=4))
    return kind, filter, values


# Where each of us knows more than the other can: these may differ, to our better.
SHARPER_INCLUSIVE = (ours.NotEqualTo, ours.NotIn, ours.In, ours.NotStartsWith)
SHARPER_STRICT = (ours.NotIn, ours.StartsWith, ours.NotStartsWith)
# Without these PyIceberg takes it that there are no nulls and no NaNs, and so proves too much.
NEEDED = frozenset({"null_value_counts", "nan_value_counts"})


def is_plain(filter: ours.Expression, sharper: tuple[type, ...]) -> bool:
    return isinstance(filter, ours.Predicate) and not isinstance(filter, sharper)


@pytest.mark.simulation
@settings(max_examples=250, deadline=None)
@given(questions(), LEFT_OUT)
def test_pyiceberg_keeps_every_file_that_we_keep_and_proves_no_more(
    question: tuple[IcebergType, ours.Expression, list[object]], without: frozenset[str]
) -> None:
    kind, filter, values = question
    file = file_of(kind, values, without=without - NEEDED)
    schema, translated = their_schema(kind), in_their_words(filter)
    kept = inclusive_metrics_evaluator(one_column(kind), filter)(file)
    kept_by_them = _InclusiveMetricsEvaluator(schema, translated).eval(their_file(file))
    assert kept <= kept_by_them
    proven = strict_metrics_evaluator(one_column(kind), filter)(file)
    proven_by_them = _StrictMetricsEvaluator(schema, translated).eval(their_file(file))
    assert proven >= proven_by_them
    if is_plain(filter, SHARPER_INCLUSIVE):
        assert kept == kept_by_them
    if is_plain(filter, SHARPER_STRICT):
        assert proven == proven_by_them


@pytest.mark.simulation
@settings(max_examples=250, deadline=None)
@given(questions())
def test_pyiceberg_keeps_every_manifest_that_we_keep(
    question: tuple[IcebergType, ours.Expression, list[object]],
) -> None:
    kind, filter, values = question
    summaries = summarize_partitions(one_column(kind).as_struct, [(value,) for value in values])
    kept = manifest_evaluator(one_field(IDENTITY), one_column(kind), filter)(
        manifest_with(summaries)
    )
    evaluator = _ManifestEvalVisitor(their_schema(kind), in_their_words(filter), True)
    kept_by_them = evaluator.eval(their_manifest(summaries))
    assert kept <= kept_by_them
    if is_plain(filter, SHARPER_INCLUSIVE):
        assert kept == kept_by_them
