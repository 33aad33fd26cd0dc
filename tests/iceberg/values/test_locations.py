"""Files are called and placed as the reference implementation does it."""

from __future__ import annotations

from uuid import UUID

import pytest

from committer.iceberg.schema.partition_spec import (
    PartitionField,
    PartitionSpec,
    parse_partition_spec,
    partition_path,
)
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.locations import (
    comparable_location,
    data_file_location,
    data_folder,
    is_shortened,
    manifest_list_location,
    manifest_location,
    metadata_file_location,
    metadata_folder,
    metadata_version,
    object_storage_location,
    shortened_path,
)
from committer.iceberg.values.transforms import IDENTITY
from committer.iceberg.values.types import NestedField, StringType
from tests.support.builders.fixtures import expected, table_names, vectors

COMMIT = UUID("5fc29d47-4d6a-4d8c-a94a-6e3d6b4f3b0a")
OBJECTS = {"write.object-storage.enabled": "true"}
FLAT = OBJECTS | {"write.object-storage.partitioned-paths": "false"}


def test_folders_are_below_the_table_unless_properties_say_otherwise() -> None:
    assert metadata_folder("s3://b/t/", {}) == "s3://b/t/metadata"
    assert data_folder("s3://b/t", {}) == "s3://b/t/data"
    assert metadata_folder("s3://b/t", {"write.metadata.path": "s3://m/"}) == "s3://m"
    assert data_folder("s3://b/t", {"write.data.path": "s3://d/t/"}) == "s3://d/t"


def test_names_of_metadata_files() -> None:
    assert manifest_location("m", COMMIT, 3) == f"m/{COMMIT}-m3.avro"
    assert manifest_list_location("m", 7, 1, COMMIT) == f"m/snap-7-1-{COMMIT}.avro"
    assert metadata_file_location("m", 12, COMMIT) == f"m/00012-{COMMIT}.metadata.json"
    assert metadata_file_location("m", 1, COMMIT, gzip=True) == f"m/00001-{COMMIT}.gz.metadata.json"
    assert metadata_file_location("m", 123456, COMMIT).startswith("m/123456-")


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("00000-x.metadata.json", 0),
        ("00017-x.gz.metadata.json", 17),
        ("123456-x.metadata.json", 123456),
        ("v3.metadata.json", -1),
        ("metadata.json", -1),
        ("-x.metadata.json", -1),
        ("x1-2.metadata.json", -1),
        ("9" * 5000 + "-x.metadata.json", -1),
    ],
    ids=lambda value: str(value)[:30],
)
def test_version_is_read_from_a_metadata_file_name(name: str, version: int) -> None:
    assert metadata_version(f"s3://12-b/34-t/metadata/{name}") == version


def test_metadata_and_manifest_list_names_of_all_tables_are_ours() -> None:
    for table in table_names():
        said = expected(table)
        location = said["metadata_location"]
        folder, _, name = location.rpartition("/")
        if (version := metadata_version(location)) >= 0:
            made = UUID(name[6:42])
            gzip = ".gz." in name
            assert metadata_file_location(folder, version, made, gzip=gzip) == location
        for snapshot in said["snapshots"]:
            listed = snapshot.get("manifest_list")
            if not listed:
                continue
            folder, _, name = listed.rpartition("/")
            made = UUID(name.removesuffix(".avro")[-36:])
            attempt = int(name.split("-")[2])
            assert manifest_list_location(folder, snapshot["snapshot_id"], attempt, made) == listed


def test_object_storage_locations_are_those_of_java() -> None:
    cases = [case for case in vectors("names")["cases"] if case["kind"] == "object_storage_path"]
    assert len(cases) == 24
    schema = Schema((NestedField(1, "v", StringType(), required=False),))
    spec = PartitionSpec(0, (PartitionField((1,), 1000, "p x/é", IDENTITY),))
    for case in cases:
        properties = OBJECTS if case["partitioned_paths"] else FLAT
        path = partition_path(spec, schema, (case["value"],))
        assert data_file_location("s3://b/t", properties, "", case["file"]) == case["location"]
        assert (
            data_file_location("s3://b/t", properties, path, case["file"])
            == case["location_partitioned"]
        )


def test_files_of_the_object_storage_table_lie_where_we_would_put_them() -> None:
    said = expected("v2_object_storage_paths")
    assert parse_partition_spec(said["partition_specs"][0]).fields
    assert said["live_data_files"]
    for file in said["live_data_files"]:
        name = file["file_path"].rpartition("/")[2]
        found = data_file_location(
            said["location"], said["properties"], file["partition_path"], name
        )
        assert found == file["file_path"]


def test_data_outside_the_table_has_the_tables_folders_behind_the_hash() -> None:
    properties = {"write.data.path": "s3://other/files"}
    for layout, path in ((OBJECTS, "p=1/f.parquet"), (FLAT, "f.parquet")):
        inside = data_file_location("s3://b/db/t", layout, "p=1", "f.parquet")
        outside = data_file_location("s3://b/db/t", layout | properties, "p=1", "f.parquet")
        hashed = inside.removeprefix("s3://b/db/t/data/").removesuffix(path).rstrip("/-")
        assert hashed.replace("/", "").isdigit()
        assert outside == f"s3://other/files/{hashed}/db/t/{path}"


def test_plain_layout_is_folder_partition_and_name() -> None:
    assert data_file_location("s3://b/t/", {}, "p=1/q=2", "f") == "s3://b/t/data/p=1/q=2/f"
    assert data_file_location("s3://b/t", {}, "", "f") == "s3://b/t/data/f"
    switched_off = {"write.object-storage.enabled": "false"}
    assert data_file_location("s3://b/t", switched_off, "", "f") == "s3://b/t/data/f"


def test_partition_paths_can_be_left_out_of_object_storage_locations() -> None:
    with_path = object_storage_location("d", "d", "p=1", "f", partitioned_paths=True)
    without = object_storage_location("d", "d", "p=1", "f", partitioned_paths=False)
    assert with_path.endswith("/p=1/f")
    assert without.endswith("-f")


@pytest.mark.parametrize(
    ("location", "folder", "is_within"),
    [
        ("s3a://bucket/a/b", "s3://bucket/a/", True),
        ("s3://bucket/a", "s3://bucket/a/", True),
        ("s3://bucket/ab", "s3://bucket/a", False),
        ("s3://other/a/b", "s3://bucket/a", False),
        ("file:///a/b", "/a", True),
        ("/a//b", "file:/a/b", True),
        ("gs://bucket/a/b", "s3://bucket/a", False),
        ("s3://bucket/a", "s3://bucket", True),
        ("wasbs://c@a.blob.core.windows.net/t/x", "abfss://c@a.dfs.core.windows.net/t", True),
        ("abfs://c@a.dfs.core.windows.net/t/x", "abfss://c@b.dfs.core.windows.net/t", False),
    ],
)
def test_a_location_lies_within_a_folder_however_both_are_spelled(
    location: str, folder: str, is_within: bool
) -> None:
    assert comparable_location(location).is_within(comparable_location(folder)) is is_within


# --- Long values in folders ---------------------------------------------------------------------


def test_a_folder_of_a_long_value_is_cut_and_ends_with_a_hash() -> None:
    exact, longer = "c=" + "x" * 253, "c=" + "x" * 254
    assert shortened_path(exact) == exact
    [folder] = shortened_path(longer).split("/")
    assert len(folder) == 255 and folder.startswith("c=xxx") and is_shortened(folder)
    assert not is_shortened(exact)
    others = {shortened_path("c=" + "x" * 300 + end) for end in "abc"}
    assert len(others) == 3


def test_no_escaped_byte_is_cut_in_half() -> None:
    for count in range(3):
        folder = shortened_path("c" * (count + 1) + "=" + "%C3%A9" * 100)
        assert len(folder.encode()) <= 255
        text = folder.rsplit("~", 1)[0]
        assert text.count("%") * 3 == len(text) - count - 2
    # Names of columns are not escaped by every caller.
    assert len(shortened_path("\u00e9" * 200).encode()) <= 255


def test_many_long_folders_leave_room_in_a_key() -> None:
    for count in (1, 2, 3, 8, 10):
        path = "/".join(f"c{number}=" + "x" * 400 for number in range(count))
        assert len(shortened_path(path)) <= 512 + count
        assert shortened_path(path).count("/") == count - 1
    two = "a=" + "x" * 253 + "/b=" + "x" * 253
    assert shortened_path(two) == two


def test_a_file_of_a_long_value_lies_in_the_shortened_folder() -> None:
    path = "c=" + "x" * 300
    for properties in ({}, OBJECTS):
        location = data_file_location("s3://b/t", properties, path, "f.parquet")
        assert location.endswith(f"/{shortened_path(path)}/f.parquet")
