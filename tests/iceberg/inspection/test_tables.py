from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.inspection.file_rows import file_order
from committer.iceberg.inspection.manifest_files import manifest_rows
from committer.iceberg.inspection.metadata_tables import (
    SNAPSHOT_KINDS,
    TABLE_KINDS,
    TableSource,
    inspect_snapshot,
    inspect_table,
)
from committer.iceberg.inspection.values import Row, bound_describer
from committer.iceberg.manifest.manifest_list import PartitionFieldSummary
from committer.iceberg.metadata.table_metadata import parse_table_metadata
from committer.iceberg.scan.snapshot_manifests import snapshot_manifests
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.single_value import print_json_value
from committer.iceberg.values.types import GeometryType, IntegerType, StringType, TimestampType
from tests.support.builders.fixtures import expected, read_bytes, table_names

# Broken as its writer left them: the values of its partition are no valid Avro.
UNREADABLE = "v2_identity_fixed_java_quirk"
TABLES = [name for name in table_names() if name != UNREADABLE]
# Beside what the list and the entries say: rows that a reader counts in the data files.
READ_FROM_DATA = ("manifests", "manifests_omitted", "row_count")


def source_of(name: str) -> TableSource:
    location = expected(name)["metadata_location"]
    return TableSource(parse_table_metadata(read_bytes(location)), location, read_bytes)


def plain(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return rows as a program gets them."""
    found: list[dict[str, Any]] = json.loads(orjson.dumps(list(rows)))
    return found


def table_rows(kind: str, source: TableSource) -> list[dict[str, Any]]:
    return plain(inspect_table(kind, source))


def current_rows(kind: str, source: TableSource) -> list[dict[str, Any]]:
    return plain(inspect_snapshot(kind, source, source.metadata.current_snapshot))


def without(row: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in keys}


# --- As the reference sees its own tables --------------------------------------------------------


@pytest.mark.parametrize("name", table_names())
def test_snapshots_refs_and_logs_are_those_of_the_reference(name: str) -> None:
    said, source = expected(name), source_of(name)
    snapshots = [without(one, *READ_FROM_DATA) for one in said["snapshots"]]
    assert table_rows("snapshots", source) == snapshots
    assert [list(row) for row in table_rows("snapshots", source)] == list(map(list, snapshots))
    refs = {row.pop("name"): row for row in table_rows("refs", source)}
    assert list(refs.items()) == list(said["refs"].items())
    history = table_rows("history", source)
    assert [without(one, "parent_id", "is_current_ancestor") for one in history] == said[
        "snapshot_log"
    ]
    *before, last = table_rows("metadata_log_entries", source)
    assert [{key: one[key] for key in ("timestamp_ms", "metadata_file")} for one in before] == said[
        "metadata_log"
    ]
    assert last["metadata_file"] == said["metadata_location"]


@pytest.mark.parametrize("name", table_names())
def test_manifests_of_every_snapshot_are_those_of_the_reference(name: str) -> None:
    source = source_of(name)
    every = table_rows("all_manifests", source)
    for snapshot, said in zip(source.metadata.snapshots, expected(name)["snapshots"], strict=True):
        found = plain(inspect_snapshot("manifests", source, snapshot))
        of_all = [row for row in every if row["reference_snapshot_id"] == said["snapshot_id"]]
        assert [without(row, "reference_snapshot_id") for row in of_all] == found
        if "manifests" in said:
            assert found == said["manifests"]


@pytest.mark.parametrize("name", TABLES)
def test_entries_are_those_of_the_reference(name: str) -> None:
    source, said = source_of(name), expected(name)["manifest_entries"]
    found = table_rows("all_entries", source)
    assert in_order(found) == in_order(entry for each in said.values() for entry in each)
    manifests = current_rows("manifests", source)
    wanted = [entry for row in manifests for entry in said[row["manifest_path"]]]
    current = current_rows("entries", source)
    row_ids = {one["file_path"]: one["first_row_id"] for one in expected(name)["live_data_files"]}
    for entry in wanted:
        # Told of the first list that names a manifest; an upgraded table gives row ids in a later.
        file = entry["file"]
        file["first_row_id"] = row_ids.get(file["file_path"], file["first_row_id"])
    assert current == wanted
    assert [list(row["file"]) for row in current] == [list(row["file"]) for row in wanted]


def in_order(entries: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(entry, sort_keys=True) for entry in entries)


@pytest.mark.parametrize("name", TABLES)
def test_files_are_those_of_the_reference(name: str) -> None:
    source, said = source_of(name), expected(name)
    found = sorted(current_rows("files", source), key=file_order)
    assert found == said["live_data_files"] + said["live_delete_files"]
    assert [list(row) for row in found] == [
        list(row) for row in said["live_data_files"] + said["live_delete_files"]
    ]
    assert sorted(current_rows("data_files", source), key=file_order) == said["live_data_files"]
    assert sorted(current_rows("delete_files", source), key=file_order) == said["live_delete_files"]


def test_what_the_reference_wrote_against_the_avro_schema_is_refused() -> None:
    with pytest.raises(InvalidMetadataError, match=r"-m0\.avro: "):
        current_rows("files", source_of(UNREADABLE))


def test_a_broken_manifest_list_is_named() -> None:
    source = replace(source_of("v2_unpartitioned"), read=lambda location: b"Obj\x01")
    with pytest.raises(InvalidMetadataError, match=r"/snap-.*\.avro: "):
        current_rows("manifests", source)


# --- What the reference was not asked ------------------------------------------------------------


def deleted(row: dict[str, Any]) -> bool:
    return bool(row["status"] == 2)


@pytest.mark.parametrize("name", ["v2_rewrites", "v2_equality_deletes", "v3_row_lineage"])
def test_all_files_are_the_live_entries_of_all_manifests(name: str) -> None:
    source = source_of(name)
    live = [row["file"] for row in table_rows("all_entries", source) if not deleted(row)]
    for kind, contents in (
        ("all_files", (0, 1, 2)),
        ("all_data_files", (0,)),
        ("all_delete_files", (1, 2)),
    ):
        wanted = [file["file_path"] for file in live if file["content"] in contents]
        assert [row["file_path"] for row in table_rows(kind, source)] == wanted
        assert wanted or name == "v3_row_lineage"


@pytest.mark.parametrize("name", TABLES)
def test_partitions_add_up_to_the_live_files(name: str) -> None:
    source, said = source_of(name), expected(name)
    found = current_rows("partitions", source)
    data, deletes = said["live_data_files"], said["live_delete_files"]
    tuples = {(file["spec_id"], json.dumps(file["partition"])) for file in data + deletes}
    assert {(row["spec_id"], json.dumps(row["partition"])) for row in found} == tuples
    assert len(found) == len(tuples)
    paths = [(row["spec_id"], row["partition_path"]) for row in found]
    assert paths == sorted(paths)
    assert total(found, "file_count") == len(data)
    assert total(found, "record_count") == total(data, "record_count")
    assert total(found, "total_data_file_size_in_bytes") == total(data, "file_size_in_bytes")
    for word, content in (("position", 1), ("equality", 2)):
        of_kind = [file for file in deletes if file["content"] == content]
        assert total(found, f"{word}_delete_file_count") == len(of_kind)
        assert total(found, f"{word}_delete_record_count") == total(of_kind, "record_count")


def test_null_and_the_text_null_are_two_partitions() -> None:
    found = current_rows("partitions", source_of("v2_odd_names"))
    nulls = [row["partition"] for row in found if "=null" in row["partition_path"]]
    assert len(nulls) == len({json.dumps(partition) for partition in nulls}) > 1
    assert len({row["partition_path"] for row in found}) < len(found)


def total(rows: Iterable[dict[str, Any]], key: str) -> int:
    return sum(row[key] for row in rows)


def test_a_partition_was_updated_last_by_the_newest_snapshot_that_added_a_file_to_it() -> None:
    source = source_of("v2_equality_deletes")
    rows = {row["partition_path"]: row for row in current_rows("partitions", source)}
    entries = [row for row in current_rows("entries", source) if not deleted(row)]
    assert len(rows) > 1
    for path, row in rows.items():
        ids = {one["snapshot_id"] for one in entries if one["file"]["partition_path"] == path}
        snapshots = [one for one in source.metadata.snapshots if one.snapshot_id in ids]
        newest = max(snapshots, key=lambda one: one.timestamp_ms)
        updated = (row["last_updated_ms"], row["last_updated_snapshot_id"])
        assert updated == (newest.timestamp_ms, newest.snapshot_id)


def test_a_partition_whose_snapshots_have_expired_has_no_time() -> None:
    source = source_of("v2_expired")
    kept = source.metadata.current_snapshot
    assert kept is not None
    source = replace(source, metadata=replace(source.metadata, snapshots=(kept,)))
    updates = [row["last_updated_snapshot_id"] for row in current_rows("partitions", source)]
    assert set(updates) == {None, kept.snapshot_id}


def test_history_tells_snapshots_that_were_rolled_back_and_such_that_have_expired() -> None:
    rolled_back = table_rows("history", source_of("v2_rollback_cherrypick"))
    assert {row["is_current_ancestor"] for row in rolled_back} == {False, True}
    source = source_of("v2_unpartitioned")
    *old, last = source.metadata.snapshots
    expired = replace(source, metadata=replace(source.metadata, snapshots=(last,)))
    parents = [
        (row["parent_id"], row["is_current_ancestor"]) for row in table_rows("history", expired)
    ]
    assert parents == [(None, False)] * len(old) + [(last.parent_snapshot_id, True)]


def test_metadata_files_tell_the_snapshot_that_was_current_then() -> None:
    source = source_of("v2_unpartitioned")
    first, *others = table_rows("metadata_log_entries", source)
    assert (first["latest_snapshot_id"], first["latest_sequence_number"]) == (None, None)
    assert [row["latest_snapshot_id"] for row in others] == [
        one.snapshot_id for one in source.metadata.snapshots
    ]
    assert [row["latest_sequence_number"] for row in others] == [1, 2, 3, 4]


@pytest.mark.parametrize("name", ["v1_empty", "v2_empty", "v3_empty"])
def test_a_table_without_a_snapshot_has_no_rows_but_for_its_metadata_file(name: str) -> None:
    source = source_of(name)
    assert [current_rows(kind, source) for kind in SNAPSHOT_KINDS] == [[]] * len(SNAPSHOT_KINDS)
    counts = {kind: len(table_rows(kind, source)) for kind in TABLE_KINDS}
    assert counts == dict.fromkeys(TABLE_KINDS, 0) | {"metadata_log_entries": 1}


def test_only_manifests_that_can_hold_what_was_asked_for_are_read() -> None:
    source = source_of("v2_long_manifest_list")
    read: list[str] = []

    def counting(location: str) -> bytes:
        read.append(location)
        return read_bytes(location)

    current_rows("delete_files", replace(source, read=counting))
    assert len(read) == 1 + 12


def test_more_partition_summaries_than_the_spec_has_fields_are_all_shown() -> None:
    source = source_of("v2_equality_deletes")
    (row, *_) = snapshot_manifests(source.metadata.current_snapshot, read_bytes)
    row = replace(row, partitions=(PartitionFieldSummary(False, None, b"\1", None),) * 3)
    (described,) = plain(manifest_rows(source.metadata, [row]))
    assert [summary["lower_hex"] for summary in described["partitions"]] == ["01"] * 3


# --- Bounds --------------------------------------------------------------------------------------


def test_a_bound_that_is_no_value_of_its_type_stays_hexadecimal() -> None:
    assert bound_describer(IntegerType())(b"\1\2\3") == {"hex": "010203"}
    assert bound_describer(StringType())(b"\xff") == {"hex": "ff"}
    assert bound_describer(GeometryType())(b"\1") == {"hex": "01"}
    assert bound_describer(None)(b"\1\0\0\0") == {"hex": "01000000"}


def test_a_column_has_the_type_that_it_has_now() -> None:
    source = source_of("v2_unpartitioned")
    (field, *_), now = source.metadata.current_schema.fields, TimestampType()
    schema = Schema((replace(field, field_type=now),), schema_id=source.metadata.current_schema_id)
    source = replace(source, metadata=replace(source.metadata, schemas=(schema,)))
    for file in current_rows("files", source):
        bound = file["lower_bounds"][str(field.field_id)]
        number = int.from_bytes(bytes.fromhex(bound["hex"]), "little")
        assert bound["value"] == print_json_value(now, number)
        # Of columns that are gone, the type that they had.
        assert all("value" in bound for bound in file["lower_bounds"].values())
        assert len(file["lower_bounds"]) > 1


def test_a_bound_of_a_geometry_is_a_point() -> None:
    point = struct.pack("<4d", 1.5, -2, 3, 1e9)
    text = "GeospatialBound(x=1.5, y=-2.0, z=3.0, m=1.0E9)"
    assert bound_describer(GeometryType())(point) == {
        "hex": point.hex(),
        "value": f"?{text}",
        "human": text,
    }
