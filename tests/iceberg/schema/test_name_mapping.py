"""Name mappings keep their JSON, and follow a schema's evolution as those of Java do."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from committer.errors import InvalidMetadataError
from committer.iceberg.evolution.schema_evolution import SchemaUpdate
from committer.iceberg.schema.name_mapping import (
    NAME_MAPPING_PROPERTY,
    MappedField,
    NameMapping,
    create_name_mapping,
    mapped_field,
    parse_name_mapping,
    print_name_mapping,
    update_name_mapping,
)
from committer.iceberg.schema.schema import Schema, assign_fresh_ids, print_schema
from committer.iceberg.values.types import (
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)
from tests.iceberg.schema_strategies import schemas
from tests.support.builders.fixtures import expected

POINT = StructType(
    (NestedField(0, "lat", LongType(), False), NestedField(0, "long", LongType(), False))
)
SCHEMA = assign_fresh_ids(
    Schema(
        (
            NestedField(0, "id", LongType(), False),
            NestedField(0, "data", StringType(), False),
            NestedField(0, "points", ListType(0, POINT, False), False),
            NestedField(0, "by_name", MapType(0, StringType(), 0, POINT, False), False),
        )
    )
)


def find(mapping: NameMapping, *names: str) -> MappedField | None:
    fields, found = mapping.fields, None
    for name in names:
        found = mapped_field(fields, name)
        if found is None:
            return None
        fields = found.fields
    return found


def test_mapping_that_java_wrote_is_read_and_printed_again() -> None:
    text = expected("v2_name_mapping")["properties"][NAME_MAPPING_PROPERTY]
    mapping = parse_name_mapping(text)
    assert json.loads(print_name_mapping(mapping)) == json.loads(text)
    for name in ("name", "title"):
        found = find(mapping, name)
        assert found is not None
        assert found.field_id == 2
    nested = find(mapping, "st", "a")
    assert nested is not None
    assert nested.field_id == 4
    assert find(mapping, "st.a") is None
    assert find(mapping, "st", "b") is None


def test_mapping_of_a_schema_names_the_parts_of_lists_and_maps() -> None:
    mapping = create_name_mapping(SCHEMA)
    for path, field_id in (
        (("id",), 1),
        (("points", "element"), 5),
        (("points", "element", "long"), 7),
        (("by_name", "key"), 8),
        (("by_name", "value", "lat"), 10),
    ):
        found = find(mapping, *path)
        assert found is not None
        assert found.field_id == field_id, path


@settings(max_examples=50, deadline=None)
@given(schema=schemas())
def test_mapping_of_any_schema_is_that_of_pyiceberg_and_survives_its_json(schema: Schema) -> None:
    from pyiceberg.schema import Schema as TheirSchema
    from pyiceberg.table.name_mapping import create_mapping_from_schema

    mapping = create_name_mapping(schema)
    theirs = create_mapping_from_schema(
        TheirSchema.model_validate_json(json.dumps(print_schema(schema)))
    )
    assert json.loads(theirs.model_dump_json()) == json.loads(print_name_mapping(mapping))
    assert parse_name_mapping(print_name_mapping(mapping)) == mapping


def test_names_and_ids_may_be_missing() -> None:
    text = '[{"names": ["a.b", "c", "c"]}, {"field-id": 3}, {"field-id": 4, "names": []}]'
    mapping = parse_name_mapping(text)
    assert mapping == NameMapping(
        (MappedField(None, ("a.b", "c")), MappedField(3, ()), MappedField(4, ()))
    )
    assert json.loads(print_name_mapping(mapping))[0] == {"names": ["a.b", "c"]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '[{"field-id": "1", "names": []}]',
        '[{"field-id": true, "names": []}]',
        '[{"field-id": 1, "names": "a"}]',
        '[{"field-id": 1, "names": [1]}]',
        '[{"field-id": 1, "names": ["a"], "fields": {}}]',
        '[{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["b", "a"]}]',
        '[{"names": ["a"], "fields": ' * 200 + "[]" + "}]" * 200,
    ],
    ids=lambda text: text[:50],
)
def test_what_is_no_mapping_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(InvalidMetadataError, match=NAME_MAPPING_PROPERTY):
        parse_name_mapping(text)


# --- Evolution -----------------------------------------------------------------------------------


def update() -> SchemaUpdate:
    return SchemaUpdate(SCHEMA, last_column_id=SCHEMA.highest_field_id, format_version=2)


def names_of(mapping: NameMapping, *path: str) -> tuple[int | None, tuple[str, ...]]:
    found = find(mapping, *path)
    assert found is not None, path
    return found.field_id, found.names


def test_renamed_field_has_both_names_and_deleted_fields_stay() -> None:
    evolved = (
        update().rename_column("data", "text").rename_column("points.lat", "y").delete_column("id")
    ).apply()
    mapping = update_name_mapping(create_name_mapping(SCHEMA), SCHEMA, evolved.schema)
    assert names_of(mapping, "text") == (2, ("data", "text"))
    assert names_of(mapping, "points", "element", "y") == (6, ("lat", "y"))
    assert names_of(mapping, "by_name", "value", "lat") == (10, ("lat",))
    assert names_of(mapping, "id") == (1, ("id",))


def test_new_fields_are_mapped_with_all_that_is_in_them() -> None:
    evolved = (
        update()
        .add_column("at", POINT)
        .add_column("height", IntegerType(), parent="points")
        .add_column("height", IntegerType(), parent="by_name")
    ).apply()
    mapping = update_name_mapping(create_name_mapping(SCHEMA), SCHEMA, evolved.schema)
    assert names_of(mapping, "at", "long") == (14, ("long",))
    assert names_of(mapping, "points", "element", "height") == (15, ("height",))
    assert names_of(mapping, "by_name", "value", "height") == (16, ("height",))


def test_name_that_is_given_anew_is_taken_from_the_field_that_had_it() -> None:
    evolved = update().delete_column("data").add_column("data", LongType()).apply()
    mapping = update_name_mapping(create_name_mapping(SCHEMA), SCHEMA, evolved.schema)
    assert names_of(mapping, "data") == (12, ("data",))
    assert MappedField(2, ()) in mapping.fields
    evolved = update().rename_column("id", "x").rename_column("data", "id").apply()
    mapping = update_name_mapping(create_name_mapping(SCHEMA), SCHEMA, evolved.schema)
    assert names_of(mapping, "id") == (2, ("data", "id"))
    assert names_of(mapping, "x") == (1, ("x",))


def test_mapping_of_a_schema_that_stays_does_too() -> None:
    mapping = NameMapping((MappedField(2, ("other",)), MappedField(None, ("gone",))))
    assert update_name_mapping(mapping, SCHEMA, SCHEMA) == mapping
