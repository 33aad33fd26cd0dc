"""Partitions as a filter on rows, for files of other partition specs.

A file of the same spec is in a partition or not. Of another spec only the rows tell, so partition
values become predicates on what they were made of. Parts that no predicate says are left out: the
filter may match more rows than the partitions have, and never fewer.
"""

from __future__ import annotations

from collections.abc import Sequence

from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    EqualTo,
    Expression,
    IsNaN,
    IsNull,
    Or,
    Reference,
    Term,
    Transformed,
)
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.transforms import IdentityTransform, UnknownTransform, VoidTransform
from committer.iceberg.values.types import TimestampNanoType, TimestamptzNanoType

# Above it the filter is everything: each manifest would be tested with all of them.
PARTITIONS_MAX = 200


def partition_filter(
    spec: PartitionSpec, schema: Schema, partitions: Sequence[tuple[object, ...]]
) -> Expression:
    """Return an unbound filter that every row of these partitions of a spec matches."""
    if len(partitions) > PARTITIONS_MAX:
        return ALWAYS_TRUE
    return _any_of([_of_partition(spec, schema, one) for one in partitions])


def says_all(spec: PartitionSpec, schema: Schema, partition: tuple[object, ...]) -> bool:
    """Return whether the filter of a partition matches no row of another: each of its values is a
    predicate. A float is not: both zeros are equal for a predicate, but no partition has both.
    """
    return all(
        isinstance(field.transform, VoidTransform)
        or (_term(field, schema) is not None and not isinstance(value, float))
        for field, value in zip(spec.fields, partition, strict=True)
    )


def _any_of(filters: Sequence[Expression]) -> Expression:
    """Join in halves: an expression is walked by recursion."""
    if len(filters) < 2:
        return filters[0] if filters else ALWAYS_FALSE
    middle = len(filters) // 2
    return Or.of(_any_of(filters[:middle]), _any_of(filters[middle:]))


def _of_partition(spec: PartitionSpec, schema: Schema, partition: tuple[object, ...]) -> Expression:
    found: Expression = ALWAYS_TRUE
    for field, value in zip(spec.fields, partition, strict=True):
        found = And.of(found, _of_value(field, schema, value))
    return found


def _of_value(field: PartitionField, schema: Schema, value: object) -> Expression:
    term = _term(field, schema)
    if term is None:
        return ALWAYS_TRUE
    if value is None:
        return IsNull(term)
    if isinstance(value, float) and value != value:
        return IsNaN(term)
    return EqualTo(term, value)


def _term(field: PartitionField, schema: Schema) -> Term | None:
    """Return what a partition value was made of; None where no literal can be compared with it."""
    transform = field.transform
    if len(field.source_ids) != 1 or isinstance(transform, VoidTransform | UnknownTransform):
        return None
    source = schema.field(field.source_id)
    name = schema.column_name(field.source_id)
    # A literal counts microseconds, also where the column has nanoseconds.
    if source is None or name is None or source.field_type in _IN_NANOSECONDS:
        return None
    if isinstance(transform, IdentityTransform):
        return Reference(name)
    return Transformed(transform, Reference(name))


_IN_NANOSECONDS = (TimestampNanoType(), TimestamptzNanoType())
