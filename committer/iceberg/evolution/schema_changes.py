"""Changes of a schema that were asked for, and the fields that they make of the old ones.

`schema_evolution.py` decides which changes are allowed. Source: the specification, "Schema
Evolution".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from dataclasses import field as attribute

from committer.errors import InvalidMetadataError
from committer.iceberg.schema.schema import Schema, nested_fields
from committer.iceberg.values.types import IcebergType, ListType, MapType, NestedField, StructType

# The id under which changes of top-level fields are kept.
ROOT = -1


@dataclass(frozen=True, slots=True)
class Move:
    """Place a field `where` (`first`, `before` or `after` the field `beside`)."""

    field_id: int
    where: str
    beside: int | None = None


@dataclass(slots=True)
class SchemaChanges:
    """Mutable; lives as long as one change set. Parents are ids of fields, or `ROOT`."""

    deletes: set[int] = attribute(default_factory=set)
    # The latest form of every field that is changed or added.
    updates: dict[int, NestedField] = attribute(default_factory=dict)
    adds: dict[int, list[int]] = attribute(default_factory=dict)
    moves: dict[int, list[Move]] = attribute(default_factory=dict)

    def apply(self, fields: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
        """Return the changed top-level fields. Adds come before moves: new fields can be moved.

        Errors: `InvalidMetadataError` for a move of or beside a field that is deleted.
        """
        return self._fields(fields, ROOT)

    def _fields(self, fields: Iterable[NestedField], parent_id: int) -> tuple[NestedField, ...]:
        kept = [self._field(each) for each in fields if each.field_id not in self.deletes]
        kept += (self.updates[each] for each in self.adds.get(parent_id, ()))
        for move in self.moves.get(parent_id, ()):
            _move(kept, move)
        return tuple(kept)

    def _field(self, field: NestedField) -> NestedField:
        latest = self.updates.get(field.field_id, field)
        kind = self._type(latest.field_type, field.field_id)
        return latest if kind is latest.field_type else replace(latest, field_type=kind)

    def _type(self, kind: IcebergType, field_id: int) -> IcebergType:
        match kind:
            case StructType(fields):
                return StructType(self._fields(fields, field_id))
            case ListType():
                element = self._field(nested_fields(kind)[0])
                return ListType(kind.element_id, element.field_type, element.required)
            case MapType(key_id, key_type, value_id):  # keys never change
                value = self._field(nested_fields(kind)[1])
                return MapType(key_id, key_type, value_id, value.field_type, value.required)
        return kind


def _move(fields: list[NestedField], move: Move) -> None:
    moved = fields.pop(_position(fields, move.field_id))
    if move.beside is None:
        fields.insert(0, moved)
    else:
        fields.insert(_position(fields, move.beside) + (move.where == "after"), moved)


def existing_column(schema: Schema, name: str, *, case_sensitive: bool) -> NestedField:
    """Find a column. Errors: `InvalidMetadataError` without one."""
    column = schema.find(name, case_sensitive=case_sensitive)
    if column is None:
        raise InvalidMetadataError(f"expected a column `{name}`, found none")
    return column


def check_names_in_any_case(schema: Schema) -> None:
    """Refuse names that differ in case alone. Errors: `InvalidMetadataError`."""
    seen: set[str] = set()
    for name in (name.lower() for name, _ in schema.walk()):
        if name in seen:
            raise InvalidMetadataError(f"schema: several columns are called `{name}` in some case")
        seen.add(name)


def _position(fields: list[NestedField], field_id: int | None) -> int:
    for position, field in enumerate(fields):
        if field.field_id == field_id:
            return position
    raise InvalidMetadataError(f"field {field_id}: expected a field to move, but it is deleted")
