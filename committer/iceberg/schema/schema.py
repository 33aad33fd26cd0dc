"""Table schemas: fields with ids, looked up by id or dotted name.

Source: the specification, "Schemas and Data Types"; docs/reference/iceberg-notes.md 2.1, 2.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as attribute
from itertools import count

from committer.errors import InvalidMetadataError
from committer.iceberg.values.json_reader import is_integer
from committer.iceberg.values.type_json import parse_fields, print_field
from committer.iceberg.values.types import (
    DoubleType,
    FloatType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    UnknownType,
)

FIELD_ID_MAX = 2**31 - 1 - 200


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table under one schema id.

    Nested fields have dotted names; a list's element is `.element`, a map's parts `.key`, `.value`.
    Fields of structs in a list or map are also found without `.element` and `.value`.
    """

    fields: tuple[NestedField, ...]
    schema_id: int = 0
    identifier_field_ids: tuple[int, ...] = ()
    _index: _Index | None = attribute(default=None, init=False, compare=False, repr=False)

    @property
    def columns(self) -> tuple[NestedField, ...]:
        """The top-level fields."""
        return self.fields

    @property
    def as_struct(self) -> StructType:
        return StructType(self.fields)

    @property
    def field_ids(self) -> frozenset[int]:
        """The ids at every level."""
        return frozenset(self._indexed.by_id)

    @property
    def highest_field_id(self) -> int:
        """The highest id at any level, 0 without fields."""
        return max(self._indexed.by_id, default=0)

    def field(self, field_id: int) -> NestedField | None:
        """Return the field of an id at any level; None if there is none.
        Elements, keys and values are fields too."""
        return self._indexed.by_id.get(field_id)

    def find(self, name: str, *, case_sensitive: bool = True) -> NestedField | None:
        """Return the field of a dotted name; None if there is none.

        Errors: `InvalidMetadataError` for a name that fits several fields but for its case.
        """
        index = self._indexed
        field_id = index.by_name.get(name, index.short_names.get(name))
        if field_id is None and not case_sensitive:
            fitting = index.by_lower_name.get(name.lower(), ())
            if len(fitting) > 1:
                raise InvalidMetadataError(f"schema: several columns are called `{name}`")
            field_id = fitting[0] if fitting else None
        return None if field_id is None else index.by_id[field_id]

    def column_name(self, field_id: int) -> str | None:
        """Return the full dotted name of an id; None if no field has it."""
        return self._indexed.names.get(field_id)

    def parent_id(self, field_id: int) -> int | None:
        """Return the id of a field's parent, None for a top-level one."""
        return self._indexed.parents.get(field_id)

    def ancestors(self, field_id: int) -> Iterator[NestedField]:
        """Return the enclosing fields of a field, the innermost first."""
        index = self._indexed
        parent_id = index.parents.get(field_id)
        while parent_id is not None:
            yield index.by_id[parent_id]
            parent_id = index.parents.get(parent_id)

    def walk(self) -> Iterator[tuple[str, NestedField]]:
        """Yield every field at every level with its dotted name, parents first."""
        index = self._indexed
        for field_id, name in index.names.items():
            yield name, index.by_id[field_id]

    @property
    def _indexed(self) -> _Index:
        if self._index is None:
            object.__setattr__(self, "_index", _Index.of(self.fields))
        assert self._index is not None  # noqa: S101  # set above; tells the type checker
        return self._index


@dataclass(frozen=True, slots=True)
class _Index:
    by_id: Mapping[int, NestedField]
    names: Mapping[int, str]
    parents: Mapping[int, int]
    by_name: Mapping[str, int]
    by_lower_name: Mapping[str, tuple[int, ...]]
    short_names: Mapping[str, int]

    @classmethod
    def of(cls, fields: tuple[NestedField, ...]) -> _Index:
        by_id: dict[int, NestedField] = {}
        names: dict[int, str] = {}
        parents: dict[int, int] = {}
        by_name: dict[str, int] = {}
        lower: dict[str, tuple[int, ...]] = {}
        short_names: dict[str, int] = {}
        for name, short_name, found, parent_id in _walk(StructType(fields), "", "", None):
            if name in by_name:
                raise InvalidMetadataError(
                    f"schema: fields {by_name[name]} and {found.field_id} are both called `{name}`"
                )
            if found.field_id in by_id:
                raise InvalidMetadataError(
                    f"schema: field id {found.field_id} is given to both"
                    f" `{names[found.field_id]}` and `{name}`"
                )
            by_id[found.field_id] = found
            names[found.field_id] = name
            by_name[name] = found.field_id
            if parent_id is not None:
                parents[found.field_id] = parent_id
            if short_name != name:
                short_names.setdefault(short_name, found.field_id)
            for each in {name.lower(), short_name.lower()}:
                lower[each] = (*lower.get(each, ()), found.field_id)
        return cls(by_id, names, parents, by_name, lower, short_names)


def _walk(
    kind: IcebergType, prefix: str, short_prefix: str, parent_id: int | None
) -> Iterator[tuple[str, str, NestedField, int | None]]:
    """Yield every field with its name, its short name and its parent's id."""
    in_struct = isinstance(kind, StructType)
    for found in nested_fields(kind):
        name, short_name = prefix + found.name, short_prefix + found.name
        yield name, short_name, found, parent_id
        is_left_out = (
            not in_struct and found.name != "key" and isinstance(found.field_type, StructType)
        )
        inner = short_prefix if is_left_out else short_name + "."
        yield from _walk(found.field_type, name + ".", inner, found.field_id)


def nested_fields(kind: IcebergType) -> tuple[NestedField, ...]:
    """Return the fields directly inside a type: of a struct, or the parts of a list or map."""
    match kind:
        case StructType(fields):
            return fields
        case ListType():
            return (
                NestedField(kind.element_id, "element", kind.element_type, kind.element_required),
            )
        case MapType():
            return (
                NestedField(kind.key_id, "key", kind.key_type, True),
                NestedField(kind.value_id, "value", kind.value_type, kind.value_required),
            )
        case _:
            return ()


# --- JSON form -----------------------------------------------------------------------------------


def parse_schema(json_value: object, *, where: str = "schema") -> Schema:
    """Read a schema from its JSON form. Errors: `InvalidMetadataError` naming the place."""
    if not isinstance(json_value, Mapping) or json_value.get("type") != "struct":
        raise InvalidMetadataError(f"{where}: expected an object of type `struct`")
    schema_id = json_value.get("schema-id", 0)
    identifiers = json_value.get("identifier-field-ids") or []
    if (
        not is_integer(schema_id, 32)
        or not isinstance(identifiers, list)
        or not all(is_integer(field_id, 32) for field_id in identifiers)
    ):
        raise InvalidMetadataError(
            f"{where}: expected an integer `schema-id` and a list of integers"
            " `identifier-field-ids`"
        )
    schema = Schema(
        parse_fields(json_value.get("fields"), where=where), schema_id, tuple(identifiers)
    )
    validate_schema(schema, where=where)
    return schema


def print_schema(schema: Schema) -> dict[str, object]:
    """Print the JSON form, keys in the reference's order."""
    printed: dict[str, object] = {"type": "struct", "schema-id": schema.schema_id}
    if schema.identifier_field_ids:
        printed["identifier-field-ids"] = list(schema.identifier_field_ids)
    printed["fields"] = [print_field(found) for found in schema.fields]
    return printed


def validate_schema(schema: Schema, *, where: str = "schema") -> None:
    """Check ids, names, unknown columns and identifier fields. Errors: `InvalidMetadataError`."""
    for name, found in schema.walk():
        if not 0 <= found.field_id <= FIELD_ID_MAX:
            raise InvalidMetadataError(
                f"{where}: column `{name}`: field id {found.field_id}, expected 0 to"
                f" {FIELD_ID_MAX}: others are reserved"
            )
        if found.required and isinstance(found.field_type, UnknownType):
            raise InvalidMetadataError(f"{where}: column `{name}`: an unknown column is optional")
    if not schema.identifier_field_ids:
        return
    allowed = set(_identifier_ids(schema.fields))
    for field_id in schema.identifier_field_ids:
        if schema.field(field_id) is None:
            raise _no_identifier(field_id, where)
        if field_id not in allowed:
            raise InvalidMetadataError(
                f"{where}: identifier field {field_id} (`{schema.column_name(field_id)}`): expected"
                " a required primitive other than float and double, not inside a list, a map or an"
                " optional struct"
            )


def _no_identifier(field_id: int, where: str) -> InvalidMetadataError:
    return InvalidMetadataError(
        f"{where}: identifier field {field_id}: expected a column with this id, found none"
    )


def _identifier_ids(fields: tuple[NestedField, ...]) -> Iterator[int]:
    """Yield the ids that may identify a row."""
    for found in fields:
        if not found.required:
            continue
        if isinstance(found.field_type, StructType):
            yield from _identifier_ids(found.field_type.fields)
        elif found.field_type.is_primitive and not isinstance(
            found.field_type, FloatType | DoubleType
        ):
            yield found.field_id


# --- New tables ----------------------------------------------------------------------------------


def fresh_type(kind: IcebergType, numbers: Iterator[int]) -> IcebergType:
    """Return a type with the next numbers as the ids of all that is nested in it."""
    return _fresh_type(kind, numbers, {})


def assign_fresh_ids(schema: Schema) -> Schema:
    """Assign new ids to all fields, from 1, as the reference does for a new table.

    The fields of a level are numbered before the fields nested in them. Errors:
    `InvalidMetadataError` for an identifier field that is not there.
    """
    numbers = count(1)
    renamed: dict[int, int] = {}
    fields = _fresh_fields(schema.fields, numbers, renamed)
    for field_id in schema.identifier_field_ids:
        if field_id not in renamed:
            raise _no_identifier(field_id, "schema")
    identifiers = tuple(sorted(renamed[field_id] for field_id in schema.identifier_field_ids))
    return Schema(fields, 0, identifiers)


def _fresh_fields(
    fields: tuple[NestedField, ...], numbers: Iterator[int], renamed: dict[int, int]
) -> tuple[NestedField, ...]:
    fresh_ids = [next(numbers) for _ in fields]
    renamed.update(zip((found.field_id for found in fields), fresh_ids, strict=True))
    return tuple(
        replace(
            found, field_id=fresh_id, field_type=_fresh_type(found.field_type, numbers, renamed)
        )
        for found, fresh_id in zip(fields, fresh_ids, strict=True)
    )


def _fresh_type(kind: IcebergType, numbers: Iterator[int], renamed: dict[int, int]) -> IcebergType:
    match kind:
        case StructType(fields):
            return StructType(_fresh_fields(fields, numbers, renamed))
        case ListType():
            element_id = renamed[kind.element_id] = next(numbers)
            element = _fresh_type(kind.element_type, numbers, renamed)
            return ListType(element_id, element, kind.element_required)
        case MapType():
            key_id = renamed[kind.key_id] = next(numbers)
            value_id = renamed[kind.value_id] = next(numbers)
            key = _fresh_type(kind.key_type, numbers, renamed)
            value = _fresh_type(kind.value_type, numbers, renamed)
            return MapType(key_id, key, value_id, value, kind.value_required)
        case _:
            return kind
