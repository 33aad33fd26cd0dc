"""Scenario (f): the requests of its writers, and the proof that a foreign reader gives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.operating import KINDS, OWN_FILES, OperatingWriter, first_epoch
from bench.operations import is_proven
from bench.runs import Operating, Outcome
from bench.tables import Live
from committer.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from committer.iceberg.updates.metadata_update import AddSnapshot, SetSnapshotRef, apply_updates
from committer.ports.pointer_swap import LoadedTable
from committer.request.receipt_model import Receipt, ReceiptState
from tests.support.builders.table_builders import build_table


def table_with_a_head() -> LoadedTable:
    table = build_table(warehouse="memory:/warehouse", format_version=3)
    head = Snapshot(
        snapshot_id=7,
        sequence_number=1,
        timestamp_ms=table.metadata.last_updated_ms,
        first_row_id=0,
        added_rows=0,
        manifest_list="memory:/list",
    )
    updates = (AddSnapshot(head), SetSnapshotRef("main", SnapshotRef(7)))
    metadata = apply_updates(
        table.metadata, updates, base_location=table.metadata_location, now_ms=head.timestamp_ms
    )
    return replace(table, metadata=metadata)


def committed(snapshot_id: int, sequence_number: int) -> Receipt:
    return Receipt("writer-1", 0, "", ReceiptState.COMMITTED, snapshot_id, sequence_number)


def test_each_vector_takes_the_place_of_the_one_before_and_rests_on_it() -> None:
    table = table_with_a_head()
    writer = OperatingWriter("vectors", 1, 4, table)
    first = writer.next()
    assert writer.next() == first, "a change that failed is made again"
    assert first.needs.base_snapshot_id == 7
    [vector] = first.files
    assert vector.referenced_data_file in {file.file_path for file in first_epoch(table, 4).files}
    writer.landed(first, committed(8, 2))
    for _ in range(OWN_FILES - 1):
        written = writer.next()
        assert not written.needs.removed_delete_files
        writer.landed(written, committed(9, 3))
    again = writer.next()
    assert [one.file_path for one in again.needs.removed_delete_files] == [vector.file_path]
    assert again.files[0].record_count == 2
    assert again.needs.base_sequence_number == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_proven_by_what_is_live_alone(kind: str) -> None:
    outcome = Outcome(0.0, requests=[(0.0, None, 1.0)] * 5)
    load = Operating(kind, writers=2, window_s=1.0)
    live = {
        "vectors": Live(data_files=8, delete_files=3, deleted_rows=5, overwrites=0),
        "upserts": Live(data_files=13, delete_files=5, deleted_rows=0, overwrites=5),
        "overwrites": Live(data_files=2, delete_files=0, deleted_rows=0, overwrites=5),
    }[kind]
    assert is_proven(load, outcome, live)
    less = Outcome(0.0, requests=[(0.0, None, 1.0)] * 4)
    assert not is_proven(load, less, live)
