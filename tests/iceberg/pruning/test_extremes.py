"""At the ends of each type no filter loses a row, and none takes one that does not match.

Each pair of extreme literal and extreme row is asked, by each transform; the rows are the oracle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.expressions.compiling import compiled
from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    EqualTo,
    Expression,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    LiteralPredicate,
    NotEqualTo,
    NotIn,
    NotNull,
    NotStartsWith,
    Reference,
    StartsWith,
    Term,
    Transformed,
)
from committer.iceberg.expressions.row_evaluator import predicate_evaluator
from committer.iceberg.manifest.partition_summary import summarize_partitions
from committer.iceberg.pruning.manifest_evaluator import manifest_evaluator
from committer.iceberg.pruning.metrics_evaluator import inclusive_metrics_evaluator
from committer.iceberg.pruning.projection import inclusive_projection
from committer.iceberg.pruning.residual import residual_evaluator
from committer.iceberg.schema.partition_spec import partition_type
from committer.iceberg.values.single_value import encode_value
from committer.iceberg.values.transforms import IDENTITY, Transform
from committer.iceberg.values.types import (
    DecimalType,
    IcebergType,
    StringType,
)
from tests.support.builders.projections import one_column, one_field, strict_projection
from tests.support.iceberg.expression_builders import literal_of
from tests.support.iceberg.extremes import CASES, EXTREMES
from tests.support.iceberg.random_metrics import manifest_with
from tests.support.iceberg.row_evaluator import row_evaluator

C = Reference("c")
COMPARISONS: tuple[type[LiteralPredicate], ...] = (
    LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual, EqualTo, NotEqualTo,
)  # fmt: skip


def predicates(term: Term, kind: IcebergType, values: Sequence[object]) -> Iterator[Expression]:
    literals = [literal_of(kind, value) for value in values]
    yield from (IsNull(term), NotNull(term))
    for literal in literals:
        yield from (comparison(term, literal) for comparison in COMPARISONS)
        if isinstance(kind, StringType):
            yield from (StartsWith(term, literal), NotStartsWith(term, literal))
    for pair in pairwise(literals):
        yield from (In(term, pair), NotIn(term, pair))


def filters(kind: IcebergType, transform: Transform) -> Iterator[Expression]:
    """Yield filters on the column, and on the same and other transforms of it."""
    yield from predicates(C, kind, EXTREMES[kind])
    if transform is not IDENTITY:
        result = transform.result_type(kind)
        values = dict.fromkeys(transform.apply(kind, value) for value in EXTREMES[kind])
        if not isinstance(kind, DecimalType):
            yield from predicates(Transformed(transform, C), result, list(values))


def rows(kind: IcebergType) -> list[object]:
    return [None, *EXTREMES[kind]]


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "transform"), CASES, ids=str)
def test_no_projection_believes_a_partition_value_at_an_end_of_its_type(
    kind: IcebergType, transform: Transform
) -> None:
    schema, spec = one_column(kind), one_field(transform)
    partitions = [(value, (transform.apply(kind, value),)) for value in rows(kind)]
    for filter in filters(kind, transform):
        matches = row_evaluator(schema, filter)
        inclusive = compiled(inclusive_projection(spec, schema, filter), predicate_evaluator)
        strict = compiled(strict_projection(spec, schema, filter), predicate_evaluator)
        residual = residual_evaluator(spec, schema, filter)
        for value, partition in partitions:
            is_match = matches((value,))
            assert inclusive(partition) >= is_match >= strict(partition), (filter, value)
            left = residual(partition)
            assert (left != ALWAYS_FALSE) >= is_match >= (left == ALWAYS_TRUE), (filter, value)
            assert row_evaluator(schema, left)((value,)) == is_match, (filter, value)


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "transform"), CASES, ids=str)
def test_no_manifest_and_no_file_with_an_extreme_row_is_left_out(
    kind: IcebergType, transform: Transform
) -> None:
    """Its summary and its bounds are those of two rows, of which one is extreme."""
    schema, spec = one_column(kind), one_field(transform)
    struct, values = partition_type(spec, schema), EXTREMES[kind]
    pairs = [(first, second) for first in values[:3] for second in values]
    manifests = [
        manifest_with(summarize_partitions(struct, [(transform.apply(kind, one),) for one in pair]))
        for pair in pairs
    ]
    files = [file_of(kind, pair) for pair in pairs]
    for filter in filters(kind, transform):
        matches = row_evaluator(schema, filter)
        matching = {value for value in values if matches((value,))}
        may_match = manifest_evaluator(spec, schema, filter)
        may_match_file = inclusive_metrics_evaluator(schema, filter)
        for pair, manifest, file in zip(pairs, manifests, files, strict=True):
            is_match = not matching.isdisjoint(pair)
            assert may_match(manifest) >= is_match, (filter, pair)
            assert may_match_file(file) >= is_match, (filter, pair)


def file_of(kind: IcebergType, values: Sequence[object]) -> DataFile:
    low, high = sorted(values)  # type: ignore[type-var]
    return DataFile(
        file_path="f",
        record_count=len(values),
        file_size_in_bytes=1,
        value_counts={1: len(values)},
        null_value_counts={1: 0},
        lower_bounds={1: encode_value(kind, low)},
        upper_bounds={1: encode_value(kind, high)},
    )
