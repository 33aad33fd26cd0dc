"""Name mappings: field ids for data files that have none, found by the names of their columns.

The property `schema.name-mapping.default` holds one as JSON. Source: the specification, "Column
Projection" and "Name Mapping Serialization".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import orjson

from committer.errors import InvalidMetadataError
from committer.iceberg.schema.schema import Schema, nested_fields
from committer.iceberg.values.json_reader import Reader
from committer.iceberg.values.types import IcebergType, ListType, MapType, NestedField, StructType

NAME_MAPPING_PROPERTY = "schema.name-mapping.default"
# The id of a file's field that has none.
NO_ID = -1
_DEPTH_MAX = 100


@dataclass(frozen=True, slots=True)
class MappedField:
    """The names under which a field may stand in files.

    Shapes: no names if it is in no file; no id if it is in no schema. The parts of lists and maps
    are called `element`, `key` and `value`. A dot in a name is a part of it.
    """

    field_id: int | None
    names: tuple[str, ...]
    fields: tuple[MappedField, ...] = ()


@dataclass(frozen=True, slots=True)
class NameMapping:
    """The top-level fields of a mapping."""

    fields: tuple[MappedField, ...]


def mapped_field(fields: Iterable[MappedField], name: str) -> MappedField | None:
    """Return the field of one level that has a name; None if there is none."""
    return next((field for field in fields if name in field.names), None)


# --- JSON form -----------------------------------------------------------------------------------


def parse_name_mapping(text: str) -> NameMapping:
    """Read the property's JSON.

    Errors: `InvalidMetadataError` naming the place, also where one name has two fields of a level.
    """
    try:
        json_value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidMetadataError(f"`{NAME_MAPPING_PROPERTY}`: not JSON: {error}") from error
    return NameMapping(_parse_fields(json_value, f"`{NAME_MAPPING_PROPERTY}`", 0))


def _parse_fields(json_value: object, where: str, depth: int) -> tuple[MappedField, ...]:
    if not isinstance(json_value, list) or depth > _DEPTH_MAX:
        raise InvalidMetadataError(
            f"{where}: expected a list of fields, nested at most {_DEPTH_MAX} deep"
        )
    fields = tuple(
        _parse_field(each, f"{where}: field {position}", depth)
        for position, each in enumerate(json_value)
    )
    seen: set[str] = set()
    for name in (name for field in fields for name in set(field.names)):
        if name in seen:
            raise InvalidMetadataError(f"{where}: the name `{name}` is given to two fields")
        seen.add(name)
    return fields


def _parse_field(json_value: object, where: str, depth: int) -> MappedField:
    reader = Reader(json_value, where)
    names = reader.texts("names") if "names" in reader.rest else ()
    nested = reader.take("fields")
    return MappedField(
        reader.optional_integer("field-id", 32),
        tuple(dict.fromkeys(names)),
        () if nested is None else _parse_fields(nested, where, depth + 1),
    )


def print_name_mapping(mapping: NameMapping) -> str:
    """Print the property's JSON."""
    return orjson.dumps([_print_field(field) for field in mapping.fields]).decode()


def _print_field(field: MappedField) -> dict[str, object]:
    printed: dict[str, object] = {} if field.field_id is None else {"field-id": field.field_id}
    printed["names"] = list(field.names)
    if field.fields:
        printed["fields"] = [_print_field(each) for each in field.fields]
    return printed


# --- Made of schemas -----------------------------------------------------------------------------


def create_name_mapping(schema: Schema) -> NameMapping:
    """Map every field under its own name."""
    return NameMapping(_create(schema.as_struct))


def _create(kind: IcebergType) -> tuple[MappedField, ...]:
    return tuple(_created(field) for field in nested_fields(kind))


def _created(field: NestedField) -> MappedField:
    return MappedField(field.field_id, (field.name,), _create(field.field_type))


def update_name_mapping(mapping: NameMapping, before: Schema, after: Schema) -> NameMapping:
    """Update the mapping after a schema evolved: renamed fields gain a name, new fields are mapped.

    A name that is given anew is taken from the fields of its level that had it. Deleted fields
    stay, as old files have them.
    """
    added: dict[int | None, list[NestedField]] = {}
    for _, field in after.walk():
        parent_id = after.parent_id(field.field_id)
        is_old = before.field(field.field_id) is not None
        if not is_old and (parent_id is None or before.field(parent_id) is not None):
            added.setdefault(parent_id, []).append(field)
    return NameMapping(_updated(mapping.fields, None, _Evolution(before, after, added)))


@dataclass(frozen=True, slots=True)
class _Evolution:
    before: Schema
    after: Schema
    # The new fields of each field that was there before, of None at the top.
    added: dict[int | None, list[NestedField]]

    def new_name(self, field_id: int | None) -> str | None:
        """Return the new name of a field; None if it was not renamed."""
        if field_id is None:
            return None
        before, after = self.before.field(field_id), self.after.field(field_id)
        if before is None or after is None or before.name == after.name:
            return None
        return after.name


def _updated(
    fields: tuple[MappedField, ...], parent_id: int | None, evolution: _Evolution
) -> tuple[MappedField, ...]:
    added = evolution.added.get(parent_id, [])
    given = {field.name: field.field_id for field in added}
    for field in fields:
        new_name = evolution.new_name(field.field_id)
        if new_name is not None and field.field_id is not None:
            given[new_name] = field.field_id
    kept = tuple(_updated_field(field, given, evolution) for field in fields)
    return (*kept, *(_created(field) for field in added))


def _updated_field(field: MappedField, given: dict[str, int], evolution: _Evolution) -> MappedField:
    names = [name for name in field.names if given.get(name, field.field_id) == field.field_id]
    new_name = evolution.new_name(field.field_id)
    if new_name is not None and new_name not in names:
        names.append(new_name)
    nested = field.fields
    if field.field_id is not None:
        nested = _updated(nested, field.field_id, evolution)
    return replace(field, names=tuple(names), fields=nested)


def mapped_ids(fields: Sequence[MappedField], parent: str = "") -> dict[str, int | None]:
    """Return the id that each full name in files without ids stands for."""
    found = {}
    for field in fields:
        for name in field.names:
            found[parent + name] = field.field_id
            found |= mapped_ids(field.fields, f"{parent}{name}.")
    return found


# --- Ids for files --------------------------------------------------------------------------------


def has_ids(kind: IcebergType) -> bool:
    """Return whether any field in a file's type has an id. A mapping counts only where none has."""
    return any(
        field.field_id != NO_ID or has_ids(field.field_type) for field in nested_fields(kind)
    )


def mapped_fields(
    stored: Sequence[NestedField], mapping: Sequence[MappedField]
) -> tuple[NestedField, ...]:
    """Return the file's fields with the ids that a mapping gives them."""
    mapped = []
    # Thousands of columns are not searched one by one. Of several with one name the first counts.
    by_name = {name: field for field in reversed(mapping) for name in field.names}
    for field in stored:
        found = by_name.get(field.name, MappedField(None, ()))
        field_id = NO_ID if found.field_id is None else found.field_id
        kind = _mapped_type(field.field_type, found.fields)
        mapped.append(replace(field, field_id=field_id, field_type=kind))
    return tuple(mapped)


def _mapped_type(kind: IcebergType, mapping: Sequence[MappedField]) -> IcebergType:
    parts = mapped_fields(nested_fields(kind), mapping)
    match kind:
        case StructType():
            return StructType(parts)
        case ListType():
            return ListType(parts[0].field_id, parts[0].field_type, kind.element_required)
        case MapType():
            key, value = parts
            return MapType(
                key.field_id,
                key.field_type,
                value.field_id,
                value.field_type,
                kind.value_required,
            )
        case _:
            return kind
