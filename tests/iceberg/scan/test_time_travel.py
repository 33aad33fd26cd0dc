"""Which snapshot is read, and with which schema."""

from __future__ import annotations

from itertools import pairwise

import pytest

from committer.errors import NotFoundError
from committer.iceberg.metadata.table_metadata import TableMetadata, parse_table_metadata
from committer.iceberg.scan.time_travel import find_snapshot, scan_schema, snapshot_as_of
from committer.iceberg.values.calendar import print_instant
from tests.support.builders.fixtures import expected, read_bytes, table_names


def metadata_of(name: str) -> TableMetadata:
    return parse_table_metadata(read_bytes(expected(name)["metadata_location"]))


@pytest.mark.parametrize("name", table_names())
def test_every_ref_and_id_of_the_fixtures_is_found(name: str) -> None:
    metadata, wanted = metadata_of(name), expected(name)
    for snapshot in wanted["snapshots"]:
        found = find_snapshot(metadata, snapshot_id=snapshot["snapshot_id"])
        assert found is not None and found.snapshot_id == snapshot["snapshot_id"]
    for ref, one in wanted["refs"].items():
        found = find_snapshot(metadata, ref=ref)
        assert found is not None and found.snapshot_id == one["snapshot-id"]
    current = find_snapshot(metadata)
    assert (current and current.snapshot_id) == metadata.current_snapshot_id


def test_a_time_finds_what_was_current_then() -> None:
    # Rolled back: the log names a snapshot twice, and the newest one is not the last that was made.
    metadata = metadata_of("v2_rollback_cherrypick")
    log = metadata.snapshot_log
    for entry, after in pairwise(log):
        for time_ms in (entry.timestamp_ms, after.timestamp_ms - 1):
            found = find_snapshot(metadata, as_of_ms=time_ms)
            assert found is not None and found.snapshot_id == entry.snapshot_id
    last = snapshot_as_of(metadata, log[-1].timestamp_ms + 10**9)
    assert last is not None and last.snapshot_id == metadata.current_snapshot_id


def test_what_is_not_there_is_named() -> None:
    metadata = metadata_of("v2_branches_tags")
    first_ms = metadata.snapshot_log[0].timestamp_ms
    with pytest.raises(NotFoundError, match="no snapshot 7"):
        find_snapshot(metadata, snapshot_id=7)
    with pytest.raises(NotFoundError, match="no branch or tag `nobody`"):
        find_snapshot(metadata, ref="nobody")
    with pytest.raises(NotFoundError, match=f"as old as {print_instant(first_ms - 1)}"):
        find_snapshot(metadata, as_of_ms=first_ms - 1)
    with pytest.raises(ValueError, match="one of"):
        find_snapshot(metadata, snapshot_id=7, ref="main")


def test_an_old_snapshot_is_read_with_its_own_schema_a_branch_with_the_current() -> None:
    metadata = metadata_of("v2_schema_evolution")
    first = metadata.snapshots[0]
    assert first.schema_id is not None and first.schema_id != metadata.current_schema_id
    assert scan_schema(metadata, first).schema_id == first.schema_id
    assert scan_schema(metadata, metadata.current_snapshot) is metadata.current_schema
    head = metadata.branch_head("main")
    assert scan_schema(metadata, head, ref="main") is metadata.current_schema
