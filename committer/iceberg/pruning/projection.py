"""Inclusive projections of filters on rows.

An inclusive projection holds for the partition of every row that matches. It is bound to the
partition type.
Source: the specification, "Scan Planning".
"""

from __future__ import annotations

from committer.iceberg.expressions.binding import bind
from committer.iceberg.expressions.expression import (
    ALWAYS_TRUE,
    And,
    BoundReference,
    Expression,
    Predicate,
    map_predicates,
    rewrite_not,
    term_of,
)
from committer.iceberg.pruning.transform_projection import project_inclusive
from committer.iceberg.schema.partition_spec import PartitionSpec, partition_type
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.transforms import Transform


def inclusive_projection(
    spec: PartitionSpec, schema: Schema, filter: Expression, case_sensitive: bool = True
) -> Expression:
    """Return the inclusive projection of an unbound filter. Errors: as `bind`."""
    targets = partition_targets(spec, schema)

    def projected(predicate: Predicate) -> Expression:
        answer: Expression = ALWAYS_TRUE
        for target in targets_of(predicate, targets):
            one = project_inclusive(*target, predicate)
            answer = answer if one is None else And.of(answer, one)
        return answer

    bound = bind(rewrite_not(filter), schema, case_sensitive=case_sensitive)
    return map_predicates(bound, projected)


Targets = dict[int, list[tuple[Transform, BoundReference]]]


def partition_targets(spec: PartitionSpec, schema: Schema) -> Targets:
    """Return, for each source column, the partition fields that are made of it alone, as terms."""
    targets: Targets = {}
    struct = partition_type(spec, schema)
    for position, (field, part) in enumerate(zip(spec.fields, struct.fields, strict=True)):
        if len(field.source_ids) == 1:
            term = BoundReference(field.field_id, field.name, part.field_type, (position,), True)
            targets.setdefault(field.source_id, []).append((field.transform, term))
    return targets


def targets_of(predicate: Predicate, targets: Targets) -> list[tuple[Transform, BoundReference]]:
    """Return the partition fields that may decide a bound predicate."""
    return targets.get(term_of(predicate).reference.field_id, [])
