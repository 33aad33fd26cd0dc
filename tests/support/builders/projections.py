"""Columns, transforms, filters and strict projections for tests of projections and their users."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from committer.iceberg.expressions.binding import bind
from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    Expression,
    Or,
    Predicate,
    Reference,
    Transformed,
    map_predicates,
    rewrite_not,
)
from committer.iceberg.pruning.projection import partition_targets, targets_of
from committer.iceberg.pruning.transform_projection import project_strict
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.transforms import (
    Transform,
    VoidTransform,
    parse_transform,
)
from committer.iceberg.values.types import (
    IcebergType,
    NestedField,
)
from tests.support.iceberg.expression_builders import (
    VALUES,
    filters_of,
    predicates_of,
)


def one_column(kind: IcebergType) -> Schema:
    return Schema((NestedField(1, "c", kind, False),))


def one_field(transform: Transform) -> PartitionSpec:
    return PartitionSpec(0, (PartitionField((1,), 1000, "p", transform),))


def strict_projection(spec: PartitionSpec, schema: Schema, filter: Expression) -> Expression:
    """Project onto the partitions all of whose rows match: residuals rest on its predicates."""
    targets = partition_targets(spec, schema)

    def projected(predicate: Predicate) -> Expression:
        answer: Expression = ALWAYS_FALSE
        for target in targets_of(predicate, targets):
            one = project_strict(*target, predicate)
            answer = answer if one is None else Or.of(answer, one)
        return answer

    return map_predicates(bind(rewrite_not(filter), schema), projected)


TRANSFORMS = [
    parse_transform(text)
    for text in (
        "identity", "void", "year", "month", "day", "hour",
        "bucket[1]", "bucket[3]", "truncate[1]", "truncate[2]", "truncate[3]", "truncate[10]",
        "truncate[10000]", "truncate[2147483647]",
    )
]  # fmt: skip


COLUMNS = [
    (kind, transform)
    for kind in VALUES
    for transform in TRANSFORMS
    if transform.can_transform(kind)
]


@cache
def filters_on(kind: IcebergType) -> st.SearchStrategy[Expression]:
    """Return filters on a column, and on its transforms."""
    leaves = [predicates_of(Reference("c"), kind)]
    for transform in TRANSFORMS:
        result = transform.result_type(kind) if transform.can_transform(kind) else None
        if result in VALUES and not isinstance(transform, VoidTransform):
            leaves.append(predicates_of(Transformed(transform, Reference("c")), result))
    return filters_of(st.one_of(leaves[0], st.one_of(leaves)))
