"""Types are read from JSON, printed and compared."""

from __future__ import annotations

import copy
import pickle

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.values.type_json import parse_type, print_type
from committer.iceberg.values.types import (
    BinaryType,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

SIMPLE = (
    *("boolean", "int", "long", "float", "double", "string", "uuid", "binary"),
    *("date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"),
    *("unknown", "variant"),
)
PARAMETERIZED: dict[str, IcebergType] = {
    "decimal(9,2)": DecimalType(9, 2),
    "decimal( 38 , 38 )": DecimalType(38, 38),
    "fixed[16]": FixedType(16),
    "geometry": GeometryType("OGC:CRS84"),
    "geometry(srid:4326)": GeometryType("srid:4326"),
    "geometry (EPSG:4326, then)": GeometryType("EPSG:4326, then"),
    "GEOGRAPHY ( srid:4326 , Karney )": GeographyType("srid:4326", "karney"),
    "geometry( projjson:my.property )": GeometryType("projjson:my.property"),
    "geography": GeographyType("OGC:CRS84", "spherical"),
    "geography(srid:4326)": GeographyType("srid:4326", "spherical"),
    "geography(srid:4326,karney)": GeographyType("srid:4326", "karney"),
}


def test_types_without_parameters_print_as_they_were_read() -> None:
    for text in SIMPLE:
        kind = parse_type(text)
        assert print_type(kind) == text
        assert kind.is_primitive
    assert len({parse_type(text) for text in SIMPLE}) == len(SIMPLE)


def test_types_with_parameters_are_read_with_or_without_spaces() -> None:
    for text, kind in PARAMETERIZED.items():
        assert parse_type(text) == kind, text
        assert parse_type(print_type(kind)) == kind, text


def test_a_simple_type_has_one_instance_also_after_copying_and_pickling() -> None:
    kind = LongType()
    assert LongType() is kind
    assert copy.deepcopy(kind) is kind
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert kind != IntegerType()
    assert ListType(1, BinaryType(), True) == pickle.loads(
        pickle.dumps(ListType(1, BinaryType(), True))
    )


def test_nested_types_print_as_they_were_read_in_the_order_of_keys() -> None:
    kind = StructType(
        (
            NestedField(1, "a", ListType(2, StringType(), True), False, doc="words"),
            NestedField(3, "b", MapType(4, StringType(), 5, IntegerType(), False), True),
        )
    )
    printed = print_type(kind)
    assert parse_type(printed) == kind
    assert isinstance(printed, dict)
    assert list(printed["fields"][0]) == ["id", "name", "required", "type", "doc"]
    assert list(printed["fields"][0]["type"]) == [
        "type",
        "element-id",
        "element",
        "element-required",
    ]
    assert list(printed["fields"][1]["type"]) == [
        "type",
        "key-id",
        "key",
        "value-id",
        "value",
        "value-required",
    ]


@pytest.mark.parametrize(
    "json_value",
    [
        "integer",
        "decimal(39, 2)",
        "decimal(0, 0)",
        "decimal(9)",
        "decimal(" + "9" * 5000 + ", 2)",
        "fixed[" + "9" * 5000 + "]",
        "fixed[]",
        "fixed[٤]",
        "decimal(٩, 2)",
        "geography(a, flat)",
        "geometry()",
        None,
        7,
        [],
        {},
        {"type": "set"},
        {"type": ["struct"]},
        {"type": "struct"},
        {"type": "struct", "fields": ["a"]},
        {"type": "struct", "fields": [{"id": True, "name": "a", "required": True, "type": "int"}]},
        {"type": "struct", "fields": [{"id": 1, "name": "a", "required": 1, "type": "int"}]},
        {"type": "struct", "fields": [{"id": 1, "required": True, "type": "int"}]},
        {"type": "list", "element-id": "1", "element": "int", "element-required": True},
        {"type": "map", "key-id": 1, "key": "int", "value-id": 2, "value": "int"},
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_no_type_is_refused_with_its_place(json_value: object) -> None:
    with pytest.raises(InvalidMetadataError, match="here"):
        parse_type(json_value, where="here")


def test_empty_doc_is_not_the_same_as_none() -> None:
    field: dict[str, object] = {"id": 1, "name": "a", "required": False, "type": "int", "doc": ""}
    struct = {"type": "struct", "fields": [field]}
    assert print_type(parse_type(struct)) == struct
    del field["doc"]
    assert print_type(parse_type(struct)) == struct


def test_endless_nesting_is_refused() -> None:
    kind: object = "int"
    for number in range(500):
        kind = {"type": "list", "element-id": number, "element": kind, "element-required": True}
    with pytest.raises(InvalidMetadataError, match="nested deeper"):
        parse_type(kind)


def test_default_that_does_not_fit_its_type_is_refused_with_its_place() -> None:
    field = {"id": 1, "name": "a", "required": False, "type": "date", "write-default": "2017-13-01"}
    with pytest.raises(InvalidMetadataError, match=r"type\.a: write-default"):
        parse_type({"type": "struct", "fields": [field]})
