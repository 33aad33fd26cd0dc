"""Finds the table's column of each column of a file, and says which of them do not fit.

By field id if the file has ids, else by the table's name mapping. Ids alone prove little: they
count from 1 in every table, so a column must have a name of its field as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow.parquet as pq

from committer.iceberg.schema.name_mapping import NAME_MAPPING_PROPERTY, MappedField
from committer.iceberg.schema.schema import FIELD_ID_MAX, nested_fields
from committer.iceberg.values.promotion import is_promotion_allowed
from committer.iceberg.values.types import IcebergType, ListType, MapType, NestedField, StructType
from workers.adoption.adoption_target import AdoptionTarget
from workers.adoption.file_columns import FileColumn, Shape, Stored
from workers.arrow.arrow_types import describe
from workers.arrow.footer_metrics import Leaf, column_facts

# Promotions that version 3 adds change values; files of these are not adopted.
_PROMOTIONS_OF = 2
_PARTS = {Shape.LIST: ("element",), Shape.MAP: ("key", "value")}


@dataclass(frozen=True, slots=True)
class FittedColumns:
    """The Parquet columns that the table has, by field id, and why others do not fit."""

    leaves: tuple[Leaf, ...]
    problems: tuple[str, ...]

    def leaf(self, field_id: int) -> Leaf | None:
        return next((leaf for leaf in self.leaves if leaf.field_id == field_id), None)


def fit_columns(
    columns: Sequence[FileColumn],
    target: AdoptionTarget,
    groups: Sequence[pq.RowGroupMetaData],
    given: Collection[int] = (),
) -> FittedColumns:
    """Match the columns of a file. `given`: fields whose value the file's path says.

    Errors: `InvalidMetadataError` for a name mapping that cannot be read.
    """
    fit = _Fit(target, groups, given, any(column.has_ids for column in columns))
    named = columns if fit.has_ids else with_mapped_ids(columns, target.mapping.fields)
    fit.members(named, target.schema.fields, "", repeated=False)
    return FittedColumns(tuple(fit.leaves), tuple(fit.problems))


def with_mapped_ids(
    columns: Sequence[FileColumn], mapping: Sequence[MappedField], shape: Shape = Shape.STRUCT
) -> tuple[FileColumn, ...]:
    """Return the columns with the ids that a name mapping gives them, by the names of one level."""
    by_name = {name: found for found in mapping for name in found.names}
    names = _PARTS.get(shape) or [column.name for column in columns]
    mapped = []
    for name, column in zip(names, columns, strict=True):
        found = by_name.get(name, MappedField(None, ()))
        parts = with_mapped_ids(column.parts, found.fields, column.shape)
        mapped.append(replace(column, field_id=found.field_id, parts=parts))
    return tuple(mapped)


@dataclass(slots=True)
class _Fit:
    """Walks the table's type beside the file's."""

    target: AdoptionTarget
    groups: Sequence[pq.RowGroupMetaData]
    given: Collection[int]
    has_ids: bool
    leaves: list[Leaf] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def members(
        self,
        found: Iterable[FileColumn],
        wanted: Sequence[NestedField],
        prefix: str,
        *,
        repeated: bool,
    ) -> None:
        """Match the members of a struct, or of the table."""
        fields = {one.field_id: one for one in wanted}
        seen: set[int] = set()
        for column in found:
            at = prefix + column.name
            fitting = None if column.field_id is None else fields.get(column.field_id)
            if fitting is None:
                self._unknown(column, at, wanted)
            elif fitting.field_id in seen:
                self._report(at, "a second column of one field", "one")
            elif self.has_ids and column.name not in self.target.names[fitting.field_id]:
                self._report(
                    at,
                    f"field id {column.field_id}, which is `{fitting.name}` in the table",
                    "the name of that field: the file may be another table's",
                )
            else:
                self._member(column, fitting, at, repeated=repeated)
            if fitting is not None:
                seen.add(fitting.field_id)
        for one in wanted:
            if one.field_id not in seen:
                self._missing(one, prefix + one.name)

    def _unknown(self, column: FileColumn, at: str, wanted: Sequence[NestedField]) -> None:
        field_id = column.field_id
        alike = [one.name for one in wanted if one.name.lower() == column.name.lower()]
        if field_id is not None and field_id > FIELD_ID_MAX:
            self._report(at, "a column of metadata", "none: readers would take it for the table's")
        elif alike and field_id not in self.target.names:
            # Readers would find nulls there, whatever extra columns may be.
            found = "no field id" if self.has_ids else f"no `{NAME_MAPPING_PROPERTY}` for this name"
            self._report(at, found, f"one that finds the table's column `{alike[0]}`")
        elif field_id not in self.target.names and not self.target.allows_extra_columns:
            self._report(at, "a column that the table does not have", "no such column")

    def _missing(self, wanted: NestedField, at: str) -> None:
        is_filled = wanted.initial_default is not None or wanted.field_id in self.given
        if wanted.required and not is_filled:
            self._report(at, "no such column", "a value in each row: the column is required")

    def _member(self, column: FileColumn, wanted: NestedField, at: str, *, repeated: bool) -> None:
        before = len(self.leaves)
        self._value(column, wanted, at, repeated=repeated)
        if wanted.required and column.nullable:
            self._check_nulls(self.leaves[before:], at)

    def _check_nulls(self, leaves: Sequence[Leaf], at: str) -> None:
        """Check that an optional column which the table requires has no nulls."""
        if any(column_facts(self.groups, leaf).null_count != 0 for leaf in leaves):
            self._report(at, "nulls, or no count of them", "none: the column is required")

    def _value(self, column: FileColumn, wanted: NestedField, at: str, *, repeated: bool) -> None:
        kind = wanted.field_type
        match kind, column.shape:
            case StructType(fields), Shape.STRUCT:
                self.members(column.parts, fields, f"{at}.", repeated=repeated)
            case (ListType(), Shape.LIST) | (MapType(), Shape.MAP):
                self._elements(column, kind, at)
            case _, Shape.VALUE if column.stored is not None and _fits(column.stored, kind):
                mode = self.target.modes[wanted.field_id]
                stored = column.stored
                place = stored.position, stored.units, stored.is_ordered
                self.leaves.append(Leaf(wanted.field_id, kind, (), repeated, mode, *place))
            case _:
                self._report(at, _described(column), describe(kind))

    def _elements(self, column: FileColumn, kind: IcebergType, at: str) -> None:
        parts = zip(_PARTS[column.shape], column.parts, nested_fields(kind), strict=True)
        for name, part, wanted in parts:
            if part.field_id == wanted.field_id:
                self._member(part, wanted, f"{at}.{name}", repeated=True)
            else:
                self._report(f"{at}.{name}", f"field id {part.field_id}", f"{wanted.field_id}")

    def _report(self, at: str, found: str, expected: str) -> None:
        self.problems.append(f"column {at}: found {found}, expected {expected}")


def _fits(stored: Stored, kind: IcebergType) -> bool:
    return any(
        is_promotion_allowed(one, kind, format_version=_PROMOTIONS_OF) for one in stored.kinds
    )


def _described(column: FileColumn) -> str:
    if column.stored is None:
        return f"a {column.shape.name.lower()}"
    kinds = column.stored.kinds
    return describe(kinds[0]) if len(kinds) == 1 else column.stored.text
