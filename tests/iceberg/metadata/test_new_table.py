"""New tables: the first metadata file is the one that Iceberg Java writes."""

from __future__ import annotations

import orjson
import pytest

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.metadata.metadata_check import RESERVED_PROPERTIES
from committer.iceberg.metadata.new_table import new_table_metadata
from committer.iceberg.metadata.table_metadata import parse_table_metadata, print_table_metadata
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED, SortField, SortOrder
from committer.iceberg.updates.metadata_update import AddSchema, apply_updates
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import (
    DoubleType,
    FixedType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    UnknownType,
)
from tests.support.builders.fixtures import table_dir, table_names
from tests.support.iceberg.metadata_builders import START_MS, build_table

FIXED_PARTITIONS = "v2_identity_fixed_java_quirk"


@pytest.mark.parametrize("name", ["v1_empty", "v2_empty", "v3_empty"])
def test_a_new_table_is_byte_for_byte_that_of_iceberg_java(name: str) -> None:
    (path,) = table_dir(name).rglob("*.metadata.json")
    content = path.read_bytes()
    java = parse_table_metadata(content)
    created = new_table_metadata(
        table_uuid=java.require_uuid(),
        location=java.location,
        schema=_renumbered(java.current_schema),
        partition_spec=java.default_spec,
        sort_order=UNSORTED,
        properties={"owner": "frazil", "write.metadata.previous-versions-max": "100"},
        format_version=java.format_version,
        now_ms=java.last_updated_ms,
    )
    assert print_table_metadata(created) == content


@pytest.mark.parametrize("name", sorted({*table_names()} - {FIXED_PARTITIONS}))
def test_the_first_file_of_every_table_of_iceberg_java_is_made_alike(name: str) -> None:
    paths = [
        path
        for path in table_dir(name).rglob("*.metadata.json")
        if not (found := parse_table_metadata(path.read_bytes())).metadata_log
        and not found.snapshots
    ]
    for path in paths:
        java = parse_table_metadata(path.read_bytes())
        created = new_table_metadata(
            table_uuid=java.require_uuid(),
            location=java.location,
            schema=java.current_schema,
            partition_spec=java.default_spec,
            sort_order=java.default_sort_order,
            properties=java.properties,
            format_version=java.format_version,
            now_ms=java.last_updated_ms,
        )
        assert orjson.loads(print_table_metadata(created)) == orjson.loads(path.read_bytes())


def _renumbered(schema: Schema) -> Schema:
    """Return the schema as an engine submits it, with ids of its own."""
    fields = tuple(
        NestedField(found.field_id + 40, found.name, found.field_type, found.required)
        for found in schema.fields
    )
    return Schema(fields, 7)


def test_spec_and_order_follow_their_columns_to_the_new_ids() -> None:
    nested = StructType((NestedField(31, "lat", DoubleType(), required=False),))
    schema = Schema(
        (
            NestedField(10, "tags", ListType(90, StringType(), False), required=False),
            NestedField(20, "place", nested, required=False),
            NestedField(5, "id", LongType(), required=True),
        ),
        3,
        (5,),
    )
    bucket, identity = parse_transform("bucket[4]"), parse_transform("identity")
    table = build_table(
        schema=schema,
        partition_spec=PartitionSpec(6, (PartitionField((5,), 1020, "id_bucket", bucket),)),
        sort_order=SortOrder(8, (SortField((31,), identity, "desc", "nulls-last"),)),
    )
    assert [field.field_id for field in table.current_schema.fields] == [1, 2, 3]
    assert table.current_schema.identifier_field_ids == (3,)
    assert table.last_column_id == 5
    assert table.default_spec == PartitionSpec(
        0, (PartitionField((3,), 1000, "id_bucket", bucket),)
    )
    assert table.last_partition_id == 1000
    assert table.default_sort_order_id == 1
    (key,) = table.default_sort_order.fields
    assert table.current_schema.column_name(key.source_id) == "place.lat"


def test_the_codec_of_parquet_is_persisted_unless_it_was_chosen() -> None:
    key = "write.parquet.compression-codec"
    assert build_table().properties == {key: "zstd"}
    assert build_table(properties={key: "snappy"}).properties == {key: "snappy"}


def test_reserved_properties_are_not_stored() -> None:
    table = build_table(properties={**dict.fromkeys(RESERVED_PROPERTIES, "1"), "mine": "2"})
    assert set(table.properties) == {"mine", "write.parquet.compression-codec"}


def test_the_location_loses_its_last_slash() -> None:
    assert build_table(location="s3://lake/t/").location == "s3://lake/t"


def test_what_does_not_fit_together_is_refused() -> None:
    spec = PartitionSpec(0, (PartitionField((9,), 1000, "p", parse_transform("identity")),))
    with pytest.raises(InvalidMetadataError, match="partition field `p`: expected a column with"):
        build_table(partition_spec=spec)
    spec = PartitionSpec(0, (PartitionField((1,), 1000, "p", parse_transform("day")),))
    with pytest.raises(InvalidMetadataError, match="transform `day` cannot take the long"):
        build_table(partition_spec=spec)
    order = SortOrder(1, (SortField((9,), parse_transform("identity"), "asc", "nulls-first"),))
    with pytest.raises(InvalidMetadataError, match="sort order: expected a column with id 9"):
        build_table(sort_order=order)


def test_types_and_versions_that_do_not_exist_yet_are_refused() -> None:
    schema = Schema((NestedField(1, "at", TimestampNanoType(), required=False),))
    with pytest.raises(InvalidMetadataError, match=r"column `at`.* needs format version 3"):
        build_table(schema=schema)
    assert build_table(schema=schema, format_version=3).next_row_id == 0
    with pytest.raises(UnsupportedError, match="version 4"):
        build_table(format_version=4)


@pytest.mark.parametrize(
    ("fields", "identifiers", "words"),
    [
        ((NestedField(1, "a", LongType(), True),), (9,), "identifier field 9: expected a column"),
        ((NestedField(4, "a", LongType(), False),), (4,), r"identifier field 1 \(`a`\): expected"),
        ((NestedField(1, "a", UnknownType(), True),), (), "an unknown column is optional"),
    ],
)
def test_a_schema_that_no_reader_accepts_is_refused(
    fields: tuple[NestedField, ...], identifiers: tuple[int, ...], words: str
) -> None:
    schema = Schema(fields, 0, identifiers)
    with pytest.raises(InvalidMetadataError, match=words):
        build_table(format_version=3, schema=schema)
    if identifiers != (9,):
        base = build_table(format_version=3)
        with pytest.raises(InvalidMetadataError, match="optional"):
            apply_updates(base, [AddSchema(schema)], base_location=None, now_ms=START_MS)


def test_no_new_table_is_partitioned_by_fixed_values() -> None:
    schema = Schema((NestedField(1, "code", FixedType(4), False),))
    for transform, is_refused in (("identity", True), ("bucket[4]", False), ("void", False)):
        spec = PartitionSpec(0, (PartitionField((1,), 1000, "p", parse_transform(transform)),))
        if is_refused:
            with pytest.raises(UnsupportedError, match="`p`: identity of a fixed column"):
                build_table(schema=schema, partition_spec=spec)
        else:
            assert build_table(schema=schema, partition_spec=spec).default_spec.fields
