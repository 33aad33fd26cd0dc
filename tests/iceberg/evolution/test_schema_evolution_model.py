"""Random evolutions: ids as PyIceberg gives them, and what holds for every schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.errors import InvalidMetadataError
from committer.iceberg.evolution.schema_evolution import SchemaUpdate
from committer.iceberg.evolution.union_by_name import union_by_name
from committer.iceberg.schema.schema import (
    Schema,
    assign_fresh_ids,
    nested_fields,
    print_schema,
    validate_schema,
)
from committer.iceberg.values.type_json import print_type
from committer.iceberg.values.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
)
from tests.iceberg.schema_strategies import NAMES, schemas, types

# The operation, three numbers to choose columns and names by, and a type.
Step = tuple[str, int, int, int, IcebergType]
KINDS = (
    "add",
    "delete",
    "rename",
    "doc",
    "promote",
    "optional",
    "first",
    "before",
    "after",
    "identify",
)
PROMOTED: Mapping[IcebergType, IcebergType] = {
    IntegerType(): LongType(),
    FloatType(): DoubleType(),
    DecimalType(9, 2): DecimalType(38, 2),
}


def steps() -> st.SearchStrategy[list[Step]]:
    number = st.integers(0, 40)
    step = st.tuples(st.sampled_from(KINDS), number, number, number, types())
    return st.lists(step, min_size=1, max_size=8)


class Ours:
    """One step after another on our side."""

    def __init__(self, schema: Schema) -> None:
        self.update = SchemaUpdate(schema, last_column_id=schema.highest_field_id, format_version=2)

    def add(self, parent: str | None, name: str, kind: IcebergType) -> None:
        self.update.add_column(name, kind, parent=parent)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.update, name)


class Theirs:
    """The same on PyIceberg's."""

    def __init__(self, schema: Schema) -> None:
        from pyiceberg.schema import Schema as TheirSchema
        from pyiceberg.table.update.schema import UpdateSchema

        theirs = TheirSchema.model_validate_json(json.dumps(print_schema(schema)))
        metadata = SimpleNamespace(partition_specs=[], schemas=[theirs])
        transaction = SimpleNamespace(table_metadata=metadata)
        self.update = UpdateSchema(transaction, schema=theirs)

    def add(self, parent: str | None, name: str, kind: IcebergType) -> None:
        path = (name,) if parent is None else (parent, name)
        self.update.add_column(path, their_type(kind))

    def update_column(self, name: str, kind: IcebergType) -> None:
        self.update.update_column(name, their_type(kind))

    def update_column_doc(self, name: str, doc: str) -> None:
        self.update.update_column(name, doc=doc)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.update, name)


def their_type(kind: IcebergType) -> Any:
    from pyiceberg.schema import Schema as TheirSchema

    field = {"id": 1, "name": "x", "required": False, "type": numbered(print_type(kind))}
    text = json.dumps({"type": "struct", "fields": [field]})
    return TheirSchema.model_validate_json(text).fields[0].field_type


def numbered(kind: Any) -> Any:
    """Return the JSON of a type with distinct ids, as PyIceberg indexes them."""
    numbers = iter(range(2, 1000))

    def number(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: next(numbers) if key == "id" or key.endswith("-id") else number(each)
                for key, each in value.items()
            }
        return [number(each) for each in value] if isinstance(value, list) else value

    return number(kind)


def perform(side: Ours | Theirs, schema: Schema, step: Step, gone: set[str]) -> None:
    """Apply a step to a suitable column; do nothing where there is none.

    Not with those that are `gone`: a name that is given again means the old column to PyIceberg.
    """
    kind, first, second, third, new_type = step
    column = chosen([name for name in suitable(kind, schema) if name not in gone], first)
    if column is None:
        return
    name = (*NAMES, "g", "h", "i", "j")[third % 10]
    match kind:
        case "add":
            inside = is_struct_inside(schema, column) and second % 2 == 0
            side.add(column if inside else None, name, new_type)
        case "delete":
            # PyIceberg makes nothing of a struct that lost its last field.
            if not gone.issuperset(siblings(schema, column)):
                side.delete_column(column)
        case "rename":
            side.rename_column(column, name)
        case "doc":
            side.update_column_doc(column, name)
        case "promote":
            side.update_column(column, PROMOTED[found(schema, column).field_type])
        case "optional":
            side.make_column_optional(column)
        case "first":
            side.move_first(column)
        case "identify":
            side.set_identifier_fields(column)
        case "before" | "after":
            beside = [each for each in siblings(schema, column) if each not in gone]
            other = chosen(beside, second)
            if other is not None:
                (side.move_before if kind == "before" else side.move_after)(column, other)


def suitable(kind: str, schema: Schema) -> list[str]:
    columns = dict(schema.walk())
    match kind:
        case "promote":
            return [name for name, field in columns.items() if field.field_type in PROMOTED]
        case "identify":
            return [name for name in columns if is_identifying(schema, name)]
        case "rename" | "doc" | "first" | "before" | "after":
            return [name for name in columns if siblings(schema, name) or "." not in name]
    return list(columns)


def chosen(names: list[str], number: int) -> str | None:
    return names[number % len(names)] if names else None


def found(schema: Schema, name: str) -> NestedField:
    field = schema.find(name)
    assert field is not None
    return field


def siblings(schema: Schema, name: str) -> list[str]:
    """Return the other fields of the struct that a field is in."""
    parent = name.rpartition(".")[0]
    kind = schema.as_struct if not parent else found(schema, parent).field_type
    if not isinstance(kind, StructType):
        return []
    prefix = f"{parent}." if parent else ""
    return [prefix + field.name for field in kind.fields if prefix + field.name != name]


def is_struct_inside(schema: Schema, name: str) -> bool:
    kind = found(schema, name).field_type
    inner = nested_fields(kind)[-1].field_type if isinstance(kind, ListType | MapType) else kind
    return isinstance(inner, StructType)


def is_identifying(schema: Schema, name: str) -> bool:
    try:
        validate_schema(replace(schema, identifier_field_ids=(found(schema, name).field_id,)))
    except InvalidMetadataError:
        return False
    return True


@pytest.mark.thorough
@settings(max_examples=80, deadline=None)
@given(schema=schemas(), steps=steps())
def test_an_evolution_gives_the_fields_and_ids_that_pyiceberg_gives(
    schema: Schema, steps: list[Step]
) -> None:
    ours, theirs = Ours(schema), Theirs(schema)
    evolved = ours.update.apply()
    for step in steps:
        kept = evolved.schema.field_ids
        gone = {name for name, each in schema.walk() if each.field_id not in kept}
        try:
            perform(ours, schema, step, gone)
        except InvalidMetadataError:
            continue
        perform(theirs, schema, step, gone)
        try:
            evolved = ours.update.apply()
        except InvalidMetadataError:
            # Names collide: so this evolution never ends in a schema.
            return
    found = json.loads(theirs.update._apply().model_dump_json())
    wanted = print_schema(evolved.schema)
    assert found["fields"] == wanted["fields"]
    assert found.get("identifier-field-ids", []) == wanted.get("identifier-field-ids", [])
    assert next(theirs.update._last_column_id) == evolved.last_column_id + 1


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(schema=schemas(), steps=steps())
def test_a_union_gives_the_fields_and_ids_that_pyiceberg_gives(
    schema: Schema, steps: list[Step]
) -> None:
    """Of optional fields: PyIceberg takes over what is required, which Java does not."""
    other = assign_fresh_ids(Schema(tuple(map(as_optional, evolved_schema(schema, steps).fields))))
    evolved = union_by_name(Ours(schema).update, other).apply()
    theirs = Theirs(schema)
    from pyiceberg.schema import Schema as TheirSchema

    theirs.update.union_by_name(TheirSchema.model_validate_json(json.dumps(print_schema(other))))
    found = json.loads(theirs.update._apply().model_dump_json())
    assert found["fields"] == print_schema(evolved.schema)["fields"]


def evolved_schema(schema: Schema, steps: list[Step]) -> Schema:
    """Evolve a schema by the steps that a union can follow: those that keep names."""
    side = Ours(schema)
    for step in steps:
        if step[0] not in ("rename", "delete", "identify"):
            with suppress(InvalidMetadataError):
                perform(side, schema, step, set())
    return side.update.apply().schema


def as_optional(field: NestedField) -> NestedField:
    return replace(field, required=False, field_type=with_optional_parts(field.field_type))


def with_optional_parts(kind: IcebergType) -> IcebergType:
    match kind:
        case StructType(fields):
            return StructType(tuple(map(as_optional, fields)))
        case ListType():
            return replace(
                kind, element_type=with_optional_parts(kind.element_type), element_required=False
            )
        case MapType():
            return replace(
                kind, value_type=with_optional_parts(kind.value_type), value_required=False
            )
        case _:
            return kind
