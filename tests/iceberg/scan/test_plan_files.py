"""Scans are planned as Iceberg Java plans them, and hold no more than a manifest in memory."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from committer.errors import InvalidFilterError, InvalidMetadataError
from committer.iceberg.entry.data_file import DataFile, DataFileContent, ManifestContent
from committer.iceberg.expressions.expression import ALWAYS_TRUE, Expression, rewrite_not
from committer.iceberg.expressions.expression_json import parse_expression, print_expression
from committer.iceberg.expressions.where_text import parse_where
from committer.iceberg.manifest.manifest_writer import ManifestContext, encode_manifest
from committer.iceberg.metadata.table_metadata import TableMetadata, parse_table_metadata
from committer.iceberg.scan.plan_files import Scan, load_deletes, plan_files
from committer.iceberg.scan.scan_filter import ScanFilter
from committer.iceberg.scan.scan_task import FileScanTask
from tests.iceberg.rows import manifest_row
from tests.support.builders.fixture_tables import BROKEN, NAMES
from tests.support.builders.fixtures import expected, read_bytes
from tests.support.iceberg.java_pruning import without_not
from tests.support.iceberg.manifest_builders import added_entry


def load(name: str) -> TableMetadata:
    return parse_table_metadata(read_bytes(expected(name)["metadata_location"]))


def scan(name: str, filter: Expression = ALWAYS_TRUE, **options: Any) -> list[FileScanTask]:
    return list(plan_files(load(name), read=read_bytes, filter=filter, **options))


def as_in_the_fixture(wanted: dict[str, Any]) -> Callable[[FileScanTask], dict[str, Any]]:
    files = [file["file_path"] for file in wanted["live_data_files"]]
    deletes = [(file["file_path"], file["content_offset"]) for file in wanted["live_delete_files"]]

    def describe(task: FileScanTask) -> dict[str, Any]:
        found = [deletes.index((one.file_path, one.content_offset)) for one in task.delete_files]
        return {
            "file": files.index(task.file.file_path),
            **({"deletes": found} if found else {}),
            "residual": print_expression(rewrite_not(task.residual)),
        }

    return describe


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_every_scan_of_the_fixtures_keeps_the_files_deletes_and_residuals_of_java(
    name: str,
) -> None:
    wanted, metadata = expected(name), load(name)
    describe = as_in_the_fixture(wanted)
    for asked in wanted.get("scans") or []:
        filter = parse_expression(asked["filter"])
        found = map(describe, plan_files(metadata, read=read_bytes, filter=filter))
        tasks = [task | {"residual": without_not(task["residual"])} for task in asked["tasks"]]
        assert sorted(found, key=lambda task: task["file"]) == tasks, asked["filter"]


def test_manifests_that_are_not_avro_are_refused_by_name() -> None:
    with pytest.raises(InvalidMetadataError, match=r"-m0\.avro: .*no such branch"):
        scan(BROKEN)


@pytest.mark.parametrize("name", NAMES)
def test_every_snapshot_has_the_rows_that_java_reads_in_it(name: str) -> None:
    """Less what its deletes delete: their files say how many rows only if they are vectors."""
    for snapshot in expected(name)["snapshots"]:
        if snapshot.get("row_count") is None:  # of files that do not exist, or of many snapshots
            continue
        tasks = scan(name, snapshot_id=snapshot["snapshot_id"])
        if any(not one.is_deletion_vector for task in tasks for one in task.delete_files):
            continue
        rows = sum(
            task.file.record_count - sum(one.record_count for one in task.delete_files)
            for task in tasks
        )
        if name not in ("v3_geo", "v3_encryption_fields"):  # of files that do not exist
            assert rows == snapshot["row_count"]


def test_a_scan_travels_by_ref_and_time() -> None:
    metadata = load("v2_branches_tags")
    for ref, one in metadata.refs.items():
        by_id = scan("v2_branches_tags", snapshot_id=one.snapshot_id)
        assert scan("v2_branches_tags", ref=ref) == by_id
    first = metadata.snapshot_log[0]
    by_time = scan("v2_branches_tags", as_of_ms=first.timestamp_ms)
    assert by_time == scan("v2_branches_tags", snapshot_id=first.snapshot_id)
    assert by_time != scan("v2_branches_tags")


def test_a_filter_of_an_old_snapshot_names_the_columns_of_then() -> None:
    metadata = load("v2_schema_evolution")
    first = metadata.snapshots[0]
    assert first.schema_id is not None
    then = {field.name for field in metadata.schema_by_id(first.schema_id).fields}
    gone = sorted(then - {field.name for field in metadata.current_schema.fields})[0]
    filter = parse_where(f"{gone} is not null")
    assert scan("v2_schema_evolution", filter, snapshot_id=first.snapshot_id)
    with pytest.raises(InvalidFilterError, match=gone):
        scan("v2_schema_evolution", filter)


def test_a_table_without_a_snapshot_has_no_tasks() -> None:
    assert scan("v2_empty") == []


def test_files_carry_their_metrics_only_if_they_are_asked_for() -> None:
    for name in ("v2_equality_deletes", "v2_metrics_modes"):
        plain, full = scan(name), scan(name, with_metrics=True)
        assert all(task.file.value_counts is None for task in plain)
        assert all(task.file.lower_bounds is None for task in plain)
        assert any(task.file.lower_bounds for task in full)
        assert [task.file.file_path for task in plain] == [task.file.file_path for task in full]


def test_case_counts_unless_it_shall_not() -> None:
    filter = parse_where("ID = 1")
    with pytest.raises(InvalidFilterError):
        scan("v2_unpartitioned", filter)
    assert scan("v2_unpartitioned", filter, case_sensitive=False) == [
        FileScanTask(task.file, task.delete_files, filter, task.head)
        for task in scan("v2_unpartitioned", parse_where("id = 1"))
    ]


# --- Deletes -------------------------------------------------------------------------------------


def test_equality_deletes_are_left_out_where_their_values_do_not_match_the_filter() -> None:
    """As Iceberg Java does: rows that they delete do not match either."""
    # Of two deletes for this partition one has the ids from 1 to 101; the metrics of the data file,
    # whose ids begin at 101, do not tell it from the others.
    (task,) = scan("v2_equality_deletes", parse_where("id = 103 and cat = 'bee'"))
    assert [delete.equality_ids for delete in task.delete_files] == [(3,)]
    (task,) = scan("v2_equality_deletes", parse_where("id = 101 and cat = 'bee'"))
    assert [delete.equality_ids for delete in task.delete_files] == [(1, 2), (3,)]


def test_only_the_values_that_a_delete_file_compares_tell_what_it_deletes() -> None:
    metadata = load("v2_equality_deletes")
    spec = metadata.spec_by_id(1)
    assert spec.is_unpartitioned
    scanned = Scan(
        metadata,
        ScanFilter(metadata.partition_specs, metadata.current_schema, parse_where("v = 1")),
    )
    context = ManifestContext(2, metadata.current_schema, spec, ManifestContent.DELETES)
    bounds = {1: struct.pack("<q", 7), 3: struct.pack("<d", 7.0)}
    for equality_ids, is_kept in (((1,), True), ((3,), False), ((1, 3), False)):
        delete = DataFile(
            content=DataFileContent.EQUALITY_DELETES,
            file_path="s3://bucket/db/t/data/deletes.parquet",
            record_count=2,
            file_size_in_bytes=100,
            lower_bounds=bounds,
            upper_bounds=bounds,
            equality_ids=equality_ids,
            value_counts={1: 2, 3: 2},
            null_value_counts={1: 0, 3: 0},
        )
        content = encode_manifest([added_entry(delete)], context, sync=bytes(16)).content
        row = replace(manifest_row(content), content=ManifestContent.DELETES, partition_spec_id=1)
        loaded = load_deletes(scanned, [row], {row.manifest_path: content}.__getitem__)
        assert loaded.index.is_empty is not is_kept, equality_ids


# --- What is read --------------------------------------------------------------------------------


def test_one_manifest_is_read_at_a_time_and_none_that_cannot_match() -> None:
    metadata, read = load("v2_long_manifest_list"), list[str]()

    def noted(location: str) -> bytes:
        read.append(location)
        return read_bytes(location)

    wanted = expected("v2_long_manifest_list")
    current = next(
        one for one in wanted["snapshots"] if one["snapshot_id"] == metadata.current_snapshot_id
    )
    tasks = plan_files(metadata, read=noted)
    assert read == []
    next(tasks)
    # The list, all manifests of deletes, and the first of data.
    deletes = [row["manifest_path"] for row in current["manifests"] if row["content"] == 1]
    assert len(read) == 1 + len(deletes) + 1
    assert set(deletes) < set(read)
    assert sum(1 for _ in tasks) == len(wanted["live_data_files"]) - 1
    assert len(read) == 1 + len(current["manifests"])
    assert len(set(read)) == len(read)

    # p is a partition field: the summaries of the list tell which manifests count.
    read.clear()
    found = list(plan_files(metadata, read=noted, filter=parse_where("p = 0 and q = 'bee'")))
    assert found
    assert len(read) < 1 + len(current["manifests"]) / 2


def test_a_task_says_when_its_file_was_added() -> None:
    entries = {
        entry["file"]["file_path"]: entry
        for found in expected("v2_merged_manifests")["manifest_entries"].values()
        for entry in found
        if entry["status"] == 1
    }
    tasks = scan("v2_merged_manifests")
    assert tasks
    for task in tasks:
        added = entries[task.file.file_path]
        assert task.snapshot_id == added["snapshot_id"]
        assert task.sequence_number == added["data_sequence_number"]


def test_row_ids_are_inherited_as_by_the_decoder() -> None:
    for name in ("v3_row_lineage", "v3_upgrade_row_lineage", "v3_deletion_vectors"):
        wanted = {
            file["file_path"]: file["first_row_id"] for file in expected(name)["live_data_files"]
        }
        tasks = scan(name)
        assert {task.file.file_path: task.file.first_row_id for task in tasks} == wanted
