"""The partition of a file that others wrote: proven by its footer or said by its path, never
guessed.

A footer proves the value of a field if the lowest and the highest value of the column give the
same one, and there are no nulls among them (or nothing else). A path says the value of a column
that is not in the file, where the table is partitioned by the column itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

import pyarrow.parquet as pq

from committer.errors import UnsupportedError
from committer.iceberg.schema.partition_spec import PartitionField
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.transforms import (
    IdentityTransform,
    Transform,
    UnknownTransform,
    VoidTransform,
)
from committer.iceberg.values.types import DecimalType, DoubleType, FloatType
from workers.adoption.adoption_target import AdoptionTarget
from workers.adoption.column_fit import FittedColumns
from workers.adoption.hive_path import parse_segment, path_segments
from workers.arrow.footer_metrics import Leaf, column_facts


def path_values(location: str, target: AdoptionTarget) -> dict[int, object]:
    """Return the values that a path says of columns by which the table is partitioned, by field id.

    Errors: `UnsupportedError` for a text that is no value of its column.
    """
    segments = path_segments(location)
    found: dict[int, object] = {}
    for field in target.spec.fields:
        source = target.schema.field(field.source_id)
        if source is None or not isinstance(field.transform, IdentityTransform):
            continue
        names = dict.fromkeys((target.schema.column_name(field.source_id) or "", field.name))
        name = next((one for one in names if one in segments), None)
        text = None if name is None else segments[name]
        if name is not None and text is not None:
            found[field.source_id] = parse_segment(name, text, source.field_type)
    return found


def values_lost(
    location: str, target: AdoptionTarget, columns: FittedColumns, said: Mapping[int, object]
) -> tuple[str, ...]:
    """Return what a path says of columns that would be null: they are neither in the file, nor is
    the table partitioned by them.
    """
    found = ((name, target.schema.find(name)) for name in path_segments(location))
    # That their value is missing says `partition_of`.
    partitioned = {
        field.source_id
        for field in target.spec.fields
        if isinstance(field.transform, IdentityTransform)
    }
    return tuple(
        f"column {name}: found only a folder `{name}=…`, expected the column in the file, as the"
        " table is not partitioned by it"
        for name, field in found
        if field is not None
        and field.field_id not in said
        and field.field_id not in partitioned
        and field.field_type.is_primitive
        and columns.leaf(field.field_id) is None
    )


def partition_of(
    target: AdoptionTarget,
    columns: FittedColumns,
    groups: Sequence[pq.RowGroupMetaData],
    said: Mapping[int, object],
) -> tuple[tuple[object, ...], tuple[str, ...]]:
    """Return the partition tuple of a file, and why it has none where that is so.

    `said`: the values that its path says.
    """
    values: list[object] = []
    problems: list[str] = []
    for field in target.spec.fields:
        try:
            value = _value(field, target.schema, columns.leaf(field.source_id), groups, said)
            _check_fit(field, target.schema, value)
            values.append(value)
        except UnsupportedError as error:
            problems.append(f"partition field {field.name} ({field.transform}): {error}")
    return tuple(values), tuple(problems)


def _value(
    field: PartitionField,
    schema: Schema,
    leaf: Leaf | None,
    groups: Sequence[pq.RowGroupMetaData],
    said: Mapping[int, object],
) -> object:
    transform, source = field.transform, schema.field(field.source_id)
    if isinstance(transform, VoidTransform):
        return None
    if isinstance(transform, UnknownTransform) or source is None or len(field.source_ids) > 1:
        raise UnsupportedError("the transform is not known")
    name = schema.column_name(field.source_id)
    if leaf is None:
        if field.source_id not in said:
            raise UnsupportedError(
                f"found no column {name} in the file and no folder `{name}=…` in its path"
            )
        return transform.apply(source.field_type, said[field.source_id])
    return _proven(transform, leaf, groups, name)


def _check_fit(field: PartitionField, schema: Schema, value: object) -> None:
    """Refuse a decimal that, rounded down, needs more digits than its column has: no manifest can
    hold it."""
    source = schema.field(field.source_id)
    if source is None or not isinstance(value, Decimal):
        return
    kind = source.field_type
    if isinstance(kind, DecimalType) and not kind.holds(value):
        name = schema.column_name(field.source_id)
        raise UnsupportedError(
            f"values of column {name} are rounded down to {value}, which a {kind} cannot hold"
        )


def _proven(
    transform: Transform, leaf: Leaf, groups: Sequence[pq.RowGroupMetaData], name: str | None
) -> object:
    """Return the one value that all rows have, by the footer."""
    facts = column_facts(groups, leaf)
    if facts.null_count is None:
        raise UnsupportedError(f"the footer does not count the nulls of column {name}")
    if facts.null_count == facts.value_count:
        return None
    if facts.null_count:
        raise UnsupportedError(f"column {name} has nulls and other values in one file")
    if isinstance(leaf.kind, FloatType | DoubleType):
        raise UnsupportedError(f"column {name} may have NaN, which no footer counts")
    if facts.bounds is None:
        raise UnsupportedError(f"the footer has no bounds of column {name}")
    low, high = facts.bounds
    # Results that wrap around may be equal at both ends, and others between them.
    ordered = transform.unwrapped(leaf.kind)
    if low != high and not (transform.preserves_order and ordered(low) == ordered(high)):
        raise UnsupportedError(f"the values of column {name} are of more than one partition")
    return transform.apply(leaf.kind, low)
