"""The partition of a file that others wrote: proven by its footer or said by its path, never
guessed.

A footer proves the value of a field if the lowest and the highest value of the column give the
same one, and there are no nulls among them (or nothing else). A path says the value of a column
that is not in the file, where the table is partitioned by the column itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import pyarrow.parquet as pq

from committer.errors import UnsupportedError
from committer.iceberg.schema.partition_spec import PartitionField
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.locations import comparable_location
from committer.iceberg.values.transforms import (
    IdentityTransform,
    Transform,
    UnknownTransform,
    VoidTransform,
)
from committer.iceberg.values.types import DecimalType, DoubleType, FloatType
from workers.adoption.adoption_target import AdoptionTarget
from workers.adoption.column_fit import FittedColumns
from workers.adoption.hive_path import Segment, parse_segment, path_segments
from workers.arrow.footer_metrics import Leaf, column_facts

_NAMES_SHOWN_MAX = 20


class Meaning(NamedTuple):
    """The meaning of a folder's name: a column's value, or what a transform makes of it."""

    field_id: int
    is_value: bool


@dataclass(frozen=True, slots=True)
class PathValues:
    """The statement of a path. `values`: of columns by which the table is partitioned, by field id.
    `unknown`: folders of no column."""

    values: Mapping[int, object]
    folders: Mapping[Meaning, Segment]
    unknown: tuple[Segment, ...]


def path_values(location: str, target: AdoptionTarget) -> PathValues:
    """Return the statement of the folders of a path, below the table's own folders.

    Errors: `UnsupportedError` for a text that is no value of its column, for two values of one
    column, and for a name that fits several columns but for its case.
    """
    names = _FolderNames(target)
    folders: dict[Meaning, Segment] = {}
    unknown: list[Segment] = []
    for segment in _segments_below(location, target.own_folders):
        meaning = names.find(segment)
        if meaning is None:
            unknown.append(segment)
        elif folders.setdefault(meaning, segment).value != segment.value:
            raise UnsupportedError(
                f"its path has two values of `{target.schema.column_name(meaning.field_id)}`:"
                f" `{folders[meaning].folder}` and `{segment.folder}`, expected one"
            )
    values = {
        meaning.field_id: parse_segment(segment.name, segment.text, source.field_type)
        for meaning, segment in folders.items()
        if meaning in names.partitions
        and segment.text is not None
        and (source := target.schema.field(meaning.field_id))
    }
    return PathValues(values, folders, tuple(unknown))


def _segments_below(location: str, own_folders: Sequence[str]) -> tuple[Segment, ...]:
    """Return the folders `name=value` of a path, without those that lead to the table's own."""
    at = comparable_location(location)
    leading = [
        sum("=" in part for part in folder.split("/"))
        for folder in own_folders
        if at.is_within(comparable_location(folder))
    ]
    return path_segments(location)[max(leading, default=0) :]


class _FolderNames:
    """The names that folders may have: those of columns and of partition fields.

    `partitions`: the columns by whose values the current spec has partitions.
    """

    def __init__(self, target: AdoptionTarget) -> None:
        self._by_name: dict[str, Meaning] = {}
        self._by_lower_name: dict[str, dict[Meaning, str]] = {}
        for name, column in target.schema.walk():
            if column.field_type.is_primitive:
                self._add(name, Meaning(column.field_id, True))
        for spec in (target.spec, *target.older_specs):
            for part in spec.fields:
                if target.schema.field(part.source_id) is not None:
                    self._add(part.name, _meaning(part))
        self.partitions = {m for m in map(_meaning, target.spec.fields) if m.is_value}

    def _add(self, name: str, meaning: Meaning) -> None:
        # The first has the name: columns before partition fields, the current spec before others.
        if self._by_name.setdefault(name, meaning) == meaning:
            self._by_lower_name.setdefault(name.lower(), {}).setdefault(meaning, name)

    def find(self, segment: Segment) -> Meaning | None:
        """Return the meaning of a folder; None if it has none. An equal name goes before one in
        another case: Hive has names in lower case alone.

        Errors: `UnsupportedError` for a name that fits several but for its case.
        """
        exact = self._by_name.get(segment.name)
        if exact is not None:
            return exact
        fitting = self._by_lower_name.get(segment.name.lower(), {})
        if len(fitting) > 1:
            names = " and ".join(f"`{name}`" for name in sorted(fitting.values()))
            raise UnsupportedError(
                f"folder `{segment.folder}` of its path fits {names}, which differ in their case:"
                " expected one of these names, as it is"
            )
        return next(iter(fitting), None)


def _meaning(part: PartitionField) -> Meaning:
    return Meaning(part.source_id, isinstance(part.transform, IdentityTransform))


def values_lost(
    target: AdoptionTarget, columns: FittedColumns, said: PathValues
) -> tuple[str, ...]:
    """Return the statements of a path that readers would not find: of columns that are neither in
    the file nor those of the table's partitions, and of what is no column of the table.
    """
    # Their partition field is refused by itself.
    proven = {(part.source_id, False) for part in target.spec.fields}
    proven |= set(map(_meaning, target.spec.fields))
    lost = [
        f"column {target.schema.column_name(meaning.field_id)}: found only a folder"
        f" `{segment.folder}`, expected the column in the file, as the table is not partitioned by"
        " its value"
        for meaning, segment in said.folders.items()
        if meaning.field_id not in said.values
        and meaning not in proven
        and columns.leaf(meaning.field_id) is None
    ]
    if not target.allows_extra_columns:
        lost += (_unknown(segment, target) for segment in said.unknown)
    return tuple(lost)


def _unknown(segment: Segment, target: AdoptionTarget) -> str:
    names = [f"`{column.name}`" for column in target.schema.fields]
    shown = ", ".join(names[:_NAMES_SHOWN_MAX]) + (", …" if len(names) > _NAMES_SHOWN_MAX else "")
    return (
        f"folder `{segment.folder}` of its path: the table has no column `{segment.name}`, whose"
        f" value would be lost (its columns: {shown})"
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
