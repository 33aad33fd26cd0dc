"""Builders of what a benchmark has measured, and of what its writers begin with."""

from __future__ import annotations

from dataclasses import replace

from bench.records import Record, Value
from committer.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from committer.iceberg.updates.metadata_update import AddSnapshot, SetSnapshotRef, apply_updates
from committer.ports.pointer_swap import LoadedTable
from committer.request.receipt_model import Receipt, ReceiptState
from tests.support.builders.table_builders import build_table


def record(
    scenario: str = "a", system: str = "frazil", case: str = "16 writers", **values: Value
) -> Record:
    return Record(scenario, system, case, 0, values)


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
