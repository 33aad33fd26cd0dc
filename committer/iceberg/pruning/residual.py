"""Residuals: what is left of a filter for the rows of one partition.

Source: the specification, "Scan Planning"; the reference's residual evaluator. A null partition
value compares with nothing, as a null of a row; in the reference it is less than every literal, so
that `x < 5` also deletes the rows without an x.
"""

from __future__ import annotations

from collections.abc import Callable

from committer.iceberg.expressions.binding import bind_predicate
from committer.iceberg.expressions.compiling import Test, always, compiled, never
from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    BoundReference,
    Expression,
    Or,
    Predicate,
    rewrite_not,
)
from committer.iceberg.expressions.row_evaluator import Row, predicate_evaluator
from committer.iceberg.pruning.projection import partition_targets, targets_of
from committer.iceberg.pruning.transform_projection import project_inclusive, project_strict
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.transforms import Transform

ResidualEvaluator = Callable[[tuple[object, ...]], Expression]


def residual_evaluator(
    spec: PartitionSpec, schema: Schema, filter: Expression, case_sensitive: bool = True
) -> ResidualEvaluator:
    """Return the function from a partition tuple to the residual of an unbound filter.

    Predicates that the partition does not decide stay as they were written, or as their opposite
    where they were negated, so residuals are unbound. Without partition fields the filter itself is
    the residual. Errors: as `bind`.
    """
    if not spec.fields:
        return lambda _: filter
    targets = partition_targets(spec, schema)

    def leaf(predicate: Predicate) -> ResidualEvaluator:
        bound = bind_predicate(predicate, schema, case_sensitive)
        if not isinstance(bound, Predicate):
            return lambda _: bound
        parts = [_part(*target, bound) for target in targets_of(bound, targets)]
        return _decision(predicate, parts)

    # A null matches neither a comparison nor its opposite, so a `Not` around it says too much.
    return _compiled(rewrite_not(filter), leaf)


def _compiled(
    expression: Expression, leaf: Callable[[Predicate], ResidualEvaluator]
) -> ResidualEvaluator:
    match expression:
        case And(left, right):
            first, second = _compiled(left, leaf), _compiled(right, leaf)
            return lambda partition: And.of(first(partition), second(partition))
        case Or(left, right):
            first, second = _compiled(left, leaf), _compiled(right, leaf)
            return lambda partition: Or.of(first(partition), second(partition))
        case Predicate():
            return leaf(expression)
    return lambda _: expression


# The proofs of one partition field: that all rows match, and that some may.
_Part = tuple[Test[Row], Test[Row]]


def _part(transform: Transform, target: BoundReference, predicate: Predicate) -> _Part:
    strict = project_strict(transform, target, predicate)
    inclusive = project_inclusive(transform, target, predicate)
    return (
        never if strict is None else compiled(strict, predicate_evaluator),
        always if inclusive is None else compiled(inclusive, predicate_evaluator),
    )


def _decision(predicate: Predicate, parts: list[_Part]) -> ResidualEvaluator:
    def residual(partition: tuple[object, ...]) -> Expression:
        for all_match, some_match in parts:
            if all_match(partition):
                return ALWAYS_TRUE
            if not some_match(partition):
                return ALWAYS_FALSE
        return predicate

    return residual
