"""Partition specs keep their JSON, give the type of partitions, and name paths as Java does."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.table_metadata import (
    parse_table_metadata_json,
    print_table_metadata,
)
from committer.iceberg.schema.partition_spec import (
    UNPARTITIONED,
    PartitionField,
    PartitionSpec,
    parse_partition_fields,
    parse_partition_spec,
    partition_path,
    partition_type,
    print_partition_fields,
    print_partition_spec,
    same_fields,
)
from committer.iceberg.schema.schema import Schema, parse_schema
from committer.iceberg.values.transforms import DAY, IDENTITY, VOID, parse_transform
from committer.iceberg.values.types import (
    DateType,
    NestedField,
    StringType,
    TimestampType,
    UnknownType,
)
from tests.support.builders.fixtures import expected, metadata_files, table_names, vectors
from tests.support.builders.partition_values import read_partition
from tests.support.iceberg.metadata_builders import build_table
from tests.support.iceberg.vector_values import json_text

SCHEMA = Schema(
    (
        NestedField(1, "ts", TimestampType(), required=True),
        NestedField(2, "name", StringType(), required=False),
    )
)


def build_spec(*parts: tuple[int, str, str], spec_id: int = 0) -> PartitionSpec:
    return PartitionSpec(
        spec_id,
        tuple(
            PartitionField((source_id,), 1000 + position, name, parse_transform(transform))
            for position, (source_id, name, transform) in enumerate(parts)
        ),
    )


def test_specs_of_all_tables_print_as_they_were_read() -> None:
    for table, metadata in metadata_files():
        for spec in metadata.get("partition-specs", ()):
            assert json_text(print_partition_spec(parse_partition_spec(spec))) == json_text(spec), (
                table
            )
        fields = metadata.get("partition-spec", [])
        assert json_text(print_partition_fields(parse_partition_spec(fields))) == json_text(fields)


def test_partition_types_of_all_tables_are_those_of_java() -> None:
    count = 0
    for table in table_names():
        said = expected(table)
        schemas = {schema["schema-id"]: parse_schema(schema) for schema in said["schemas"]}
        current = schemas[said["current_schema_id"]]
        for spec in said["partition_specs"]:
            found = partition_type(parse_partition_spec(spec), current)
            assert str(found) == spec["partition_type"], table
            count += 1
    assert count > 60


def test_partition_paths_of_all_files_are_those_of_java() -> None:
    count = 0
    for table in table_names():
        said = expected(table)
        schemas = {schema["schema-id"]: parse_schema(schema) for schema in said["schemas"]}
        current = schemas[said["current_schema_id"]]
        specs = {spec["spec-id"]: parse_partition_spec(spec) for spec in said["partition_specs"]}
        for file in said["live_data_files"]:
            spec = specs[file["spec_id"]]
            partition = read_partition(spec, current, file["partition"])
            assert partition_path(spec, current, partition) == file["partition_path"], table
            count += 1
    assert count > 250


def test_table_whose_spec_has_a_transform_that_is_not_known_is_read() -> None:
    spec = PartitionSpec(
        0,
        (
            PartitionField((1, 2), 1000, "z", parse_transform("zorder[8]")),
            PartitionField((2,), 1001, "later", parse_transform("soundex")),
        ),
    )
    table = replace(build_table(format_version=3), partition_specs=(spec,), last_partition_id=1001)
    printed = print_table_metadata(table)
    assert parse_table_metadata_json(orjson.loads(printed)).default_spec == spec
    assert partition_type(spec, table.current_schema).fields[1].field_type == StringType()


def test_names_and_values_are_escaped_in_paths_as_java_escapes_them() -> None:
    cases = [case for case in vectors("names")["cases"] if case["kind"] == "partition_path"]
    assert len(cases) == 78
    for case in cases:
        spec = build_spec((2, case["field_name"], "identity"))
        assert partition_path(spec, SCHEMA, (case["value"],)) == case["path"], case


def test_path_joins_parts_and_is_empty_without_any() -> None:
    spec = build_spec((1, "ts_hour", "hour"), (2, "name", "truncate[3]"))
    assert partition_path(spec, SCHEMA, (420_034, "a/b")) == "ts_hour=2017-12-01-10/name=a%2Fb"
    assert partition_path(spec, SCHEMA, (None, None)) == "ts_hour=null/name=null"
    assert partition_path(spec, SCHEMA, (0, "*~-")) == "ts_hour=1970-01-01-00/name=*%7E-"
    assert partition_path(UNPARTITIONED, SCHEMA, ()) == ""
    with pytest.raises(ValueError, match="zip"):
        partition_path(spec, SCHEMA, (1,))


def test_field_of_a_dropped_column_has_type_unknown() -> None:
    spec = build_spec((1, "ts_day", "day"), (9, "gone", "void"))
    assert [field.field_type for field in partition_type(spec, SCHEMA).fields] == [
        DateType(),
        UnknownType(),
    ]
    assert all(not field.required for field in partition_type(spec, SCHEMA).fields)


def test_spec_with_void_fields_only_is_unpartitioned() -> None:
    assert UNPARTITIONED.is_unpartitioned
    assert build_spec((2, "name", "void")).is_unpartitioned
    assert not build_spec((2, "name", "void"), (1, "d", "day")).is_unpartitioned
    assert UNPARTITIONED.highest_field_id == 999
    assert build_spec((2, "name", "void"), (1, "d", "day")).highest_field_id == 1001


def test_specs_are_compared_by_fields_ids_included_whatever_their_spec_id() -> None:
    spec = build_spec((1, "d", "day"))
    assert same_fields(spec, build_spec((1, "d", "day"), spec_id=7))
    assert not same_fields(spec, build_spec((1, "d", "hour")))
    assert not same_fields(spec, build_spec((1, "e", "day")))
    assert not same_fields(spec, build_spec((2, "d", "day")))
    assert not same_fields(spec, PartitionSpec(0, (PartitionField((1,), 1001, "d", DAY),)))
    assert not same_fields(spec, UNPARTITIONED)


def test_old_fields_without_ids_count_from_1000() -> None:
    fields = parse_partition_fields(
        [
            {"name": "a", "transform": "identity", "source-id": 1},
            {"name": "b", "transform": "void", "source-id": 2},
        ]
    )
    assert fields == (
        PartitionField((1,), 1000, "a", IDENTITY),
        PartitionField((2,), 1001, "b", VOID),
    )


def test_several_sources_are_written_as_a_list_and_one_is_not() -> None:
    fields = [
        {"name": "z", "transform": "zorder", "source-ids": [1, 2], "field-id": 1000},
        {"name": "n", "transform": "identity", "source-ids": [2], "field-id": 1001},
    ]
    spec = parse_partition_spec({"spec-id": 4, "fields": fields})
    assert [field.source_ids for field in spec.fields] == [(1, 2), (2,)]
    assert spec.fields[0].source_id == 1
    assert print_partition_fields(spec) == [
        fields[0],
        {"name": "n", "transform": "identity", "source-id": 2, "field-id": 1001},
    ]


@pytest.mark.parametrize(
    "json_value",
    [
        None,
        {"fields": []},
        {"spec-id": 0},
        {"spec-id": 0, "fields": [7]},
        {"spec-id": 0, "fields": [{"name": "a", "transform": "day"}]},
        {"spec-id": 0, "fields": [{"name": "a", "transform": "day", "source-ids": []}]},
        {"spec-id": 0, "fields": [{"name": "a", "source-id": 1}]},
        {"spec-id": 0, "fields": [{"transform": "day", "source-id": 1}]},
        [{"name": "a", "transform": "day", "source-id": 1, "field-id": "x"}],
    ],
)
def test_what_is_no_spec_is_refused_with_its_place(json_value: object) -> None:
    with pytest.raises(InvalidMetadataError, match="here"):
        parse_partition_spec(json_value, where="here")
