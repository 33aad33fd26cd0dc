"""Metadata tables of which the fixtures say nothing, as PyIceberg answers them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from committer.iceberg.inspection.metadata_tables import (
    TableSource,
    inspect_snapshot,
    inspect_table,
)
from committer.iceberg.metadata.table_metadata import parse_table_metadata
from tests.support.builders.fixtures import expected, read_bytes
from tests.support.builders.moved_io import read_by_pyiceberg

# Deletes of all kinds, expired and rolled back snapshots, several specs, branches, rewrites.
TABLES = (
    "v1_void",
    "v2_branches_tags",
    "v2_equality_deletes",
    "v2_expired",
    "v2_odd_names",
    "v2_partition_evolution",
    "v2_position_deletes",
    "v2_rewrites",
    "v2_rollback_cherrypick",
    "v2_wap",
    "v3_deletion_vectors",
)


def time_ms(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.replace(tzinfo=UTC).timestamp() * 1000)


COUNTS = (
    "spec_id",
    "record_count",
    "file_count",
    "total_data_file_size_in_bytes",
    "position_delete_record_count",
    "position_delete_file_count",
    "equality_delete_record_count",
    "equality_delete_file_count",
    "last_updated_snapshot_id",
)
LATEST = ("latest_snapshot_id", "latest_schema_id", "latest_sequence_number")


@pytest.mark.parametrize("name", TABLES)
def test_what_the_fixtures_do_not_say_is_what_pyiceberg_says(name: str) -> None:
    location = expected(name)["metadata_location"]
    ours = TableSource(parse_table_metadata(read_bytes(location)), location, read_bytes)
    theirs = read_by_pyiceberg(name).inspect

    assert [tuple(row.values()) for row in inspect_table("history", ours)] == [
        (time_ms(row.pop("made_current_at")), *row.values()) for row in theirs.history().to_pylist()
    ]
    assert [
        (row["timestamp_ms"], *(row[key] for key in LATEST))
        for row in inspect_table("metadata_log_entries", ours)
    ] == [
        (time_ms(row["timestamp"]), *(row[key] for key in LATEST))
        for row in theirs.metadata_log_entries().to_pylist()
    ]
    assert sorted(
        (row["reference_snapshot_id"], row["manifest_path"])
        for row in inspect_table("all_manifests", ours)
    ) == sorted(
        (row["reference_snapshot_id"], row["path"]) for row in theirs.all_manifests().to_pylist()
    )
    assert in_order(row["file_path"] for row in inspect_table("all_files", ours)) == in_order(
        row["file_path"] for row in theirs.all_files().to_pylist()
    )
    partitions = inspect_snapshot("partitions", ours, ours.metadata.current_snapshot)
    assert in_order(
        (*(row[key] for key in COUNTS), row["last_updated_ms"]) for row in partitions
    ) == in_order(
        # It leaves out the spec where a table has but the unpartitioned one.
        (*({"spec_id": 0, **row}[key] for key in COUNTS), time_ms(row["last_updated_at"]))
        for row in theirs.partitions().to_pylist()
    )


def in_order(rows: Any) -> list[Any]:
    return sorted(rows, key=repr)
