"""Schemas keep their JSON, find fields, and refuse what cannot be told apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.schema.schema import (
    FIELD_ID_MAX,
    Schema,
    assign_fresh_ids,
    parse_schema,
    print_schema,
)
from committer.iceberg.values.types import (
    DoubleType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)
from tests.support.builders.fixtures import expected, metadata_files, table_names
from tests.support.iceberg.vector_values import json_text


def optional(field_id: int, name: str, kind: IcebergType) -> NestedField:
    return NestedField(field_id, name, kind, required=False)


def required(field_id: int, name: str, kind: IcebergType) -> NestedField:
    return NestedField(field_id, name, kind, required=True)


NESTED = Schema(
    (
        required(10, "id", LongType()),
        optional(
            11,
            "place",
            StructType((required(14, "x", DoubleType()), optional(15, "Name", StringType()))),
        ),
        optional(12, "tags", ListType(16, StructType((optional(20, "t", StringType()),)), True)),
        optional(13, "counts", MapType(17, StringType(), 18, IntegerType(), False)),
    ),
    schema_id=3,
    identifier_field_ids=(10,),
)


def test_schemas_of_all_tables_print_as_they_were_read() -> None:
    schemas = [(table, found) for table in table_names() for found in expected(table)["schemas"]]
    for table, metadata in metadata_files():
        schemas += [(table, found) for found in metadata.get("schemas", [])]
        schemas += [(table, metadata["schema"])] if "schema" in metadata else []
    assert len(schemas) > 450
    for table, schema in schemas:
        assert json_text(print_schema(parse_schema(schema))) == json_text(schema), table


def test_fields_at_every_level_are_found_by_id_and_by_dotted_name() -> None:
    names = {name: field.field_id for name, field in NESTED.walk()}
    assert names == {
        "id": 10,
        "place": 11,
        "place.x": 14,
        "place.Name": 15,
        "tags": 12,
        "tags.element": 16,
        "tags.element.t": 20,
        "counts": 13,
        "counts.key": 17,
        "counts.value": 18,
    }
    for name, field_id in names.items():
        found = NESTED.find(name)
        assert found is not None
        assert found == NESTED.field(field_id)
        assert NESTED.column_name(field_id) == name
    assert NESTED.highest_field_id == 20
    assert NESTED.field_ids == frozenset(names.values())
    assert NESTED.find("place.name") is None
    assert NESTED.find("nothing") is None
    assert NESTED.field(99) is None
    assert NESTED.column_name(99) is None


def test_name_is_found_without_regard_to_case_unless_it_fits_two() -> None:
    schema = Schema(
        (
            optional(1, "Id", LongType()),
            optional(2, "name", StringType()),
            optional(3, "NAME", StringType()),
        )
    )
    found = schema.find("ID", case_sensitive=False)
    assert found is not None
    assert found.field_id == 1
    exact = schema.find("NAME", case_sensitive=False)
    assert exact is not None
    assert exact.field_id == 3
    with pytest.raises(InvalidMetadataError, match="several columns"):
        schema.find("Name", case_sensitive=False)


def test_fields_of_structs_in_lists_and_maps_are_found_by_short_names_too() -> None:
    point = StructType((optional(20, "x", LongType()), optional(21, "Y", LongType())))
    key = StructType((required(40, "z", LongType()),))
    value = StructType((required(41, "z", LongType()),))
    inner = StructType((required(50, "q", LongType()),))
    schema = Schema(
        (
            optional(1, "points", ListType(2, point, False)),
            optional(3, "by_point", MapType(4, key, 5, value, False)),
            optional(6, "lists", ListType(7, ListType(8, inner, False), False)),
            optional(9, "points.x", LongType()),
        )
    )
    for name, field_id in (
        ("points.Y", 21),
        ("by_point.z", 41),
        ("by_point.key.z", 40),
        ("lists.element.q", 50),
        # A column's own name comes first.
        ("points.x", 9),
    ):
        found = schema.find(name)
        assert found is not None, name
        assert found.field_id == field_id, name
    assert schema.find("lists.q") is None
    assert schema.find("points.y") is None
    short = schema.find("POINTS.y", case_sensitive=False)
    assert short is not None
    assert short.field_id == 21
    assert schema.column_name(21) == "points.element.Y"


def test_fields_know_those_that_they_lie_in() -> None:
    assert NESTED.parent_id(20) == 16
    assert NESTED.parent_id(16) == 12
    assert NESTED.parent_id(12) is None
    assert [field.field_id for field in NESTED.ancestors(20)] == [16, 12]
    assert list(NESTED.ancestors(10)) == []


def test_unknown_column_that_is_required_is_refused() -> None:
    field = {"id": 1, "name": "u", "required": True, "type": "unknown"}
    with pytest.raises(InvalidMetadataError, match="`u`: an unknown column is optional"):
        parse_schema({"type": "struct", "fields": [field]})
    optional_field = {**field, "required": False}
    assert parse_schema({"type": "struct", "fields": [optional_field]}).highest_field_id == 1


def test_fresh_ids_number_a_level_before_what_is_nested_in_it() -> None:
    fresh = assign_fresh_ids(NESTED)
    assert {name: field.field_id for name, field in fresh.walk()} == {
        "id": 1,
        "place": 2,
        "tags": 3,
        "counts": 4,
        "place.x": 5,
        "place.Name": 6,
        "tags.element": 7,
        "tags.element.t": 8,
        "counts.key": 9,
        "counts.value": 10,
    }
    assert fresh.identifier_field_ids == (1,)
    assert fresh.schema_id == 0
    assert [field.required for _, field in fresh.walk()] == [
        field.required for _, field in NESTED.walk()
    ]


def test_fresh_ids_number_a_maps_parts_before_what_is_nested_in_them() -> None:
    key = StructType((required(5, "k", LongType()),))
    value = ListType(6, LongType(), True)
    fresh = assign_fresh_ids(Schema((optional(9, "m", MapType(7, key, 8, value, False)),)))
    assert {name: field.field_id for name, field in fresh.walk()} == {
        "m": 1,
        "m.key": 2,
        "m.value": 3,
        "m.key.k": 4,
        "m.value.element": 5,
    }


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (Schema((optional(1, "a", LongType()), optional(1, "b", LongType()))), "field id 1"),
        (Schema((optional(1, "a", LongType()), optional(2, "a", LongType()))), "both called `a`"),
        (
            Schema(
                (
                    optional(1, "a.b", LongType()),
                    optional(2, "a", StructType((optional(3, "b", LongType()),))),
                )
            ),
            r"both called `a\.b`",
        ),
        (Schema((optional(FIELD_ID_MAX + 1, "a", LongType()),)), "reserved"),
        (Schema((required(1, "a", LongType()),), 0, (2,)), "identifier field 2: expected a column"),
        (Schema((optional(1, "a", LongType()),), 0, (1,)), "identifier field 1"),
        (Schema((required(1, "a", DoubleType()),), 0, (1,)), "identifier field 1"),
        (Schema((required(1, "a", ListType(2, LongType(), True)),), 0, (2,)), "identifier field 2"),
        (
            Schema((optional(1, "a", StructType((required(2, "b", LongType()),))),), 0, (2,)),
            r"identifier field 2 \(`a.b`\)",
        ),
    ],
)
def test_schema_that_breaks_the_rules_is_refused(schema: Schema, message: str) -> None:
    broken = {
        "type": "struct",
        "schema-id": 0,
        "identifier-field-ids": list(schema.identifier_field_ids),
        "fields": print_schema(Schema(schema.fields))["fields"],
    }
    with pytest.raises(InvalidMetadataError, match=message):
        parse_schema(broken)


def test_identifier_inside_required_structs_is_accepted() -> None:
    inner = StructType((required(2, "b", LongType()),))
    schema = Schema((required(1, "a", inner),), 0, (2,))
    assert parse_schema(print_schema(schema)) == schema


@pytest.mark.parametrize(
    "json_value",
    [
        None,
        [],
        {"type": "list"},
        {"type": "struct", "schema-id": "0", "fields": []},
        {"type": "struct", "identifier-field-ids": [[1]], "fields": []},
        {"type": "struct", "identifier-field-ids": {"a": 1}, "fields": []},
        {"type": "struct", "fields": {}},
    ],
)
def test_what_is_no_schema_is_refused_with_its_place(json_value: object) -> None:
    with pytest.raises(InvalidMetadataError, match="here"):
        parse_schema(json_value, where="here")


def test_a_schema_with_other_fields_is_looked_up_anew() -> None:
    schema = Schema((NestedField(1, "id", LongType(), True),))
    assert schema.highest_field_id == 1
    wider = replace(schema, fields=(*schema.fields, NestedField(2, "v", LongType(), False)))
    assert wider.highest_field_id == 2
    assert wider.find("v") is not None
