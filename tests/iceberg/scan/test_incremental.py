"""Files appended between two snapshots, held against the entries that Iceberg Java sees."""

from __future__ import annotations

from typing import Any

import pytest

from committer.errors import NotFoundError
from committer.iceberg.expressions.where_text import parse_where
from committer.iceberg.metadata.table_metadata import TableMetadata, parse_table_metadata
from committer.iceberg.scan.incremental import SnapshotRange, plan_appends
from tests.support.builders.fixtures import expected, read_bytes, table_names

BROKEN = "v2_identity_fixed_java_quirk"


def load(name: str) -> TableMetadata:
    return parse_table_metadata(read_bytes(expected(name)["metadata_location"]))


def lineage(metadata: TableMetadata) -> list[int]:
    """Return snapshot ids, the oldest first."""
    found, current = [], metadata.current_snapshot
    while current is not None:
        found.append(current.snapshot_id)
        parent = current.parent_snapshot_id
        current = None if parent is None else metadata.snapshot_by_id(parent)
    return found[::-1]


def said(name: str, statuses: tuple[int, ...], snapshot_ids: list[int]) -> set[tuple[Any, ...]]:
    """Return paths of the entries that Java finds, with status and snapshot."""
    return {
        (entry["file"]["file_path"], entry["status"], entry["snapshot_id"])
        for entries in expected(name)["manifest_entries"].values()
        for entry in entries
        if entry["status"] in statuses
        and entry["snapshot_id"] in snapshot_ids
        and entry["file"]["content"] == 0
    }


@pytest.mark.parametrize("name", [name for name in table_names() if name != BROKEN])
def test_appended_files_are_those_that_append_snapshots_have_added(name: str) -> None:
    metadata = load(name)
    ids = lineage(metadata)
    ranges = [(SnapshotRange(), ids)]
    ranges += [(SnapshotRange(ids[at]), ids[at + 1 :]) for at in range(0, len(ids), 3)]
    for found_in, counted in ranges:
        snapshots = [metadata.snapshot_by_id(one) for one in counted]
        counted = [one.snapshot_id for one in snapshots if one and one.operation == "append"]
        tasks = list(plan_appends(metadata, found_in, read=read_bytes))
        found = {(task.file.file_path, 1, task.snapshot_id) for task in tasks}
        assert found == said(name, (1,), counted)
        assert len(found) == len(tasks)


def test_a_filter_leaves_out_files() -> None:
    metadata = load("v2_unpartitioned")
    every = list(plan_appends(metadata, SnapshotRange(), read=read_bytes))
    some = list(
        plan_appends(metadata, SnapshotRange(), read=read_bytes, filter=parse_where("id = 0"))
    )
    assert 0 < len(some) < len(every)


def test_a_range_may_start_after_a_snapshot_that_has_expired() -> None:
    metadata = load("v2_expired")
    ids = lineage(metadata)
    first = metadata.snapshot_by_id(ids[0])
    assert first is not None and first.parent_snapshot_id is not None
    after_it = SnapshotRange(first.parent_snapshot_id)
    everything = SnapshotRange()
    assert list(plan_appends(metadata, after_it, read=read_bytes)) == list(
        plan_appends(metadata, everything, read=read_bytes)
    )
    with pytest.raises(NotFoundError, match="lineage"):
        plan_appends(
            metadata, SnapshotRange(first.parent_snapshot_id, with_first=True), read=read_bytes
        )


def test_a_range_must_lie_in_one_lineage() -> None:
    metadata = load("v2_rollback_cherrypick")
    outside = {one.snapshot_id for one in metadata.snapshots} - set(lineage(metadata))
    for snapshot_id in outside:
        with pytest.raises(NotFoundError, match=str(snapshot_id)):
            plan_appends(metadata, SnapshotRange(snapshot_id), read=read_bytes)
    with pytest.raises(NotFoundError):
        plan_appends(metadata, SnapshotRange(up_to=1), read=read_bytes)
    assert outside


def test_nothing_comes_after_the_current_snapshot() -> None:
    metadata = load("v2_unpartitioned")
    assert not list(
        plan_appends(metadata, SnapshotRange(metadata.current_snapshot_id), read=read_bytes)
    )
    assert not list(plan_appends(load("v2_empty"), SnapshotRange(), read=read_bytes))
