"""The snapshot of a step: row ids of manifests that no list has counted, and totals."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from committer.iceberg.updates.metadata_update import UpgradeFormatVersion
from committer.plan.ledger.state import TableState
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_request
from tests.support.plan.committing import Table
from tests.support.plan.old_lists import forget_counts


def append(table: Table, epoch: int) -> None:
    request = build_request(table.table, producer="first", epoch=epoch, partition=("AA",))
    table.commit(request)


def old_table(appends: int = 3) -> Table:
    """Return a version 1 table with one file of each of so many commits, none of them counted."""
    table = Table.of(build_flights(format_version=1))
    for epoch in range(appends):
        append(table, epoch)
    forget_counts(table)
    return table


@pytest.mark.parametrize("is_written_as_version_2", [False, True])
def test_rows_that_no_list_counts_have_row_ids_of_their_own(is_written_as_version_2: bool) -> None:
    table = old_table()
    table.foreign(UpgradeFormatVersion(2))
    if is_written_as_version_2:
        append(table, 10)
        # Another process reads the stand-ins for the counts.
        table.state = TableState.of(table.table)
    table.foreign(UpgradeFormatVersion(3))
    append(table, 11)
    append(table, 12)
    files = [one.data_file for one in table.entries()]
    taken = sorted((one.first_row_id or 0, one.record_count) for one in files)
    assert all(first + count <= after for (first, count), (after, _) in pairwise(taken))
    assert table.table.metadata.next_row_id == sum(count for _, count in taken)


def test_manifests_are_counted_once() -> None:
    table = old_table()
    table.foreign(UpgradeFormatVersion(2))
    table.foreign(UpgradeFormatVersion(3))
    before = table.reads
    append(table, 11)
    assert table.reads == before + 4  # the list and three manifests
    table.state = TableState.of(table.table)
    append(table, 12)
    assert table.reads == before + 5  # the list
    counts = [
        (row.added_files_count, row.existing_files_count, row.deleted_files_count)
        for row in table.manifest_list().rows
    ]
    assert counts == [(1, 0, 0)] * 5


@pytest.mark.parametrize("has_head", [True, False])
def test_totals_start_from_zero_on_a_branch_without_a_head_alone(*, has_head: bool) -> None:
    table = Table.of(build_flights())
    if has_head:
        append(table, 0)
        metadata = table.table.metadata
        (head,) = metadata.snapshots
        metadata = replace(metadata, snapshots=(replace(head, summary=None),))
        table.state = TableState.of(replace(table.table, metadata=metadata))
    append(table, 1)
    snapshot = table.table.metadata.current_snapshot
    assert snapshot is not None and snapshot.summary is not None
    assert snapshot.summary["added-records"] == "10"
    assert snapshot.summary.get("total-records") == (None if has_head else "10")
