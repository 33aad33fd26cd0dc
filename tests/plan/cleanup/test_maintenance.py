"""A commit that takes merged manifests along: the table says of each file what it said before."""

from __future__ import annotations

import json
from dataclasses import replace
from uuid import UUID

import pytest

from committer.iceberg.entry.data_file import ManifestEntry, ManifestEntryStatus
from committer.iceberg.manifest.manifest_list import encode_manifest_file, encode_manifest_list
from committer.iceberg.manifest.manifest_writer import (
    ManifestContext,
    encode_manifest,
    manifest_file,
)
from committer.iceberg.metadata.snapshot import SnapshotRef
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.splice.manifest_merge import ManifestMerge
from committer.iceberg.updates.metadata_update import (
    AddPartitionSpec,
    SetDefaultPartitionSpec,
    SetSnapshotRef,
    UpgradeFormatVersion,
)
from committer.iceberg.values.locations import manifest_location, metadata_folder
from committer.plan.batch.batch import manifest_context
from committer.plan.cleanup.maintenance import MergedManifests, Upkeep, applicable_merges
from committer.plan.cleanup.merge_selection import plan_merges
from committer.plan.commit.commit import CommitPlan, Planning, plan_commit
from committer.plan.commit.ledger_changes import LedgerCleanup
from committer.plan.commit.step_plan import Attempt
from committer.plan.ledger.evidence import EVIDENCE_KEY
from committer.plan.ledger.state import ListedManifest
from committer.request.request_format import EncodedRequest
from tests.support.builders.flights import BY_DAY, build_flights
from tests.support.builders.request_builders import build_request
from tests.support.plan.committing import Table

VERSIONS = pytest.mark.parametrize("format_version", [1, 2, 3])
FEW = {"commit.manifest.min-count-to-merge": "3"}


def table_of(format_version: int = 2) -> Table:
    return Table.of(build_flights(format_version=format_version, properties=FEW))


def request(table: Table, epoch: int, **rest: object) -> EncodedRequest:
    return build_request(
        table.table,
        epoch=epoch,
        **{"partition": ("AA",), "files_count": 2, **rest},  # type: ignore[arg-type]
    )


def head(table: Table, branch: str = "main") -> tuple[ListedManifest, ...]:
    snapshot = table.state.metadata.branch_head(branch)
    assert snapshot is not None
    return table.state.heads[snapshot.snapshot_id]


def merged(table: Table, branch: str = "main") -> Upkeep:
    """Return all merges that the head is due for, done and written."""
    metadata = table.state.metadata
    rows = [listed.row for listed in head(table, branch)]
    found = []
    for number, group in enumerate(plan_merges(rows, metadata)):
        context = manifest_context(metadata, group[0].partition_spec_id, group[0].content)
        merge = ManifestMerge(context)
        for row in group:
            for _ in merge.add(row, table.objects[row.manifest_path]):
                pass
        encoded = merge.finish(b"the merged sync ")
        folder = metadata_folder(metadata.location, metadata.properties)
        path = manifest_location(folder, UUID(int=77 + len(table.objects)), number)
        table.objects[path] = encoded.content
        made = manifest_file(encoded, context, manifest_path=path, snapshot_id=0, sequence_number=0)
        found.append(MergedManifests(branch, metadata.format_version, group, (made,)))
    assert found
    return Upkeep(merged=tuple(found))


def commit(table: Table, upkeep: Upkeep, *requests: EncodedRequest) -> CommitPlan:
    batch, prepared = table.batch(*requests)
    attempt = Attempt(1, UUID(int=5_000 + len(table.objects)), table.now_ms)
    plan = plan_commit(Planning(table.state, batch, prepared, attempt, LedgerCleanup(), upkeep))
    assert isinstance(plan, CommitPlan)
    return table.land(plan)


def live(table: Table) -> dict[str, ManifestEntry]:
    """Return live entries of the current snapshot by path, as its manifest list makes them."""
    entries = [entry for entry in table.entries() if entry.is_live]
    found = {
        entry.data_file.file_path: replace(entry, status=ManifestEntryStatus.EXISTING)
        for entry in entries
    }
    assert len(found) == len(entries)
    return found


def assert_says_what_it_said(table: Table, before: dict[str, ManifestEntry]) -> None:
    after = live(table)
    assert {path: after[path] for path in before} == before
    assert len(after) == len(before) + 2


@VERSIONS
def test_every_file_keeps_its_ids_and_the_summary_counts_manifests(format_version: int) -> None:
    table = table_of(format_version)
    for epoch in range(4):
        table.commit(request(table, epoch))
    before, upkeep = live(table), merged(table)
    plan = commit(table, upkeep, request(table, 4))
    assert plan.upkeep == upkeep
    assert_says_what_it_said(table, before)
    assert len(head(table)) == 2
    row = head(table)[1].row
    assert row.added_snapshot_id == plan.snapshot.snapshot_id
    assert row.sequence_number == plan.snapshot.sequence_number
    assert row.min_sequence_number == (0 if format_version == 1 else 1)
    summary = plan.snapshot.summary or {}
    counts = [summary[f"manifests-{key}"] for key in ("created", "kept", "replaced")]
    assert counts == ["2", "0", "4"]
    assert summary["total-data-files"] == "10"
    # The state in memory equals the one that a reader finds.
    decoded = table.manifest_list()
    assert json.loads(decoded.header[EVIDENCE_KEY])
    assert decoded.rows == tuple(listed.row for listed in head(table))
    assert decoded.encoded_rows == tuple(listed.encoded for listed in head(table))


def test_row_ids_of_later_files_never_meet_those_of_merged_ones() -> None:
    table = table_of(3)
    for epoch in range(12):
        upkeep = merged(table) if epoch % 4 == 3 else Upkeep()
        commit(table, upkeep, request(table, epoch))
    ids: list[int] = []
    for entry in live(table).values():
        first = entry.data_file.first_row_id
        assert first is not None
        ids += range(first, first + entry.data_file.record_count)
    assert len(ids) == len(set(ids)) == 12 * 2 * 10
    next_row_id = table.state.metadata.next_row_id
    assert next_row_id is not None
    assert max(ids) < next_row_id
    snapshot = table.state.metadata.current_snapshot
    assert snapshot is not None
    assert (snapshot.first_row_id or 0) + (snapshot.added_rows or 0) == next_row_id


@VERSIONS
def test_each_spec_is_merged_for_itself(format_version: int) -> None:
    table = table_of(format_version)
    for epoch in range(3):
        table.commit(request(table, epoch))
    by_day = PartitionSpec(1, BY_DAY) if format_version > 1 else None
    if by_day is None:
        # Field ids of version 1 follow the position.
        by_day = PartitionSpec(1, (replace(BY_DAY[0], field_id=1000),))
    table.foreign(AddPartitionSpec(by_day), SetDefaultPartitionSpec(-1))
    for epoch in range(3, 6):
        table.commit(request(table, epoch, partition=(20_000 + epoch,)))
    before = live(table)
    commit(table, merged(table), request(table, 6, partition=(20_006,)))
    assert_says_what_it_said(table, before)
    assert sorted(one.row.partition_spec_id for one in head(table)) == [0, 1, 1]


def test_a_merge_is_left_out_when_one_of_its_manifests_is_gone() -> None:
    table = table_of()
    for epoch in range(4):
        table.commit(request(table, epoch))
    upkeep, rows = merged(table), head(table)
    snapshot = table.state.metadata.current_snapshot
    assert snapshot is not None
    table.state = replace(table.state, heads={snapshot.snapshot_id: rows[:-1]})
    plan = commit(table, upkeep, request(table, 4))
    assert plan.upkeep == Upkeep()
    assert [one.row for one in head(table)[1:]] == [one.row for one in rows[:-1]]
    summary = plan.snapshot.summary or {}
    assert (summary["manifests-kept"], summary["manifests-replaced"]) == ("3", "0")


def test_a_merge_from_before_an_upgrade_is_left_out() -> None:
    # An upgrade hands out row ids to the very manifests, which the merged one does not know.
    table = table_of(2)
    for epoch in range(3):
        table.commit(request(table, epoch))
    upkeep = merged(table)
    table.foreign(UpgradeFormatVersion(3))
    table.commit(request(table, 3))
    before = live(table)
    plan = commit(table, upkeep, request(table, 4))
    assert plan.upkeep == Upkeep()
    assert_says_what_it_said(table, before)


@pytest.mark.parametrize("format_version", [1, 2])
def test_a_merge_is_left_out_when_the_table_was_upgraded_behind_it(format_version: int) -> None:
    # A manifest of version 1 has no sequence numbers, and none to inherit in a list of version 2.
    table = table_of(format_version)
    for epoch in range(3):
        table.commit(request(table, epoch))
    upkeep, rows = merged(table), head(table)
    table.foreign(UpgradeFormatVersion(format_version + 1))
    snapshot = table.state.metadata.current_snapshot
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    table.state = table.state.with_head(snapshot.snapshot_id, table.objects[snapshot.manifest_list])
    assert [one.row for one in head(table)] == [one.row for one in rows]
    plan = commit(table, upkeep, request(table, 3))
    live(table)
    assert plan.upkeep == Upkeep()


def test_a_merge_is_left_out_where_a_row_says_something_else_than_it_has_read() -> None:
    table = table_of()
    for epoch in range(3):
        commit(table, Upkeep(), request(table, epoch))
    carried = head(table)
    upkeep = merged(table)
    assert applicable_merges(upkeep, "main", carried, 2) == upkeep.merged
    first, *others = carried
    other = replace(first, row=replace(first.row, min_sequence_number=0))
    assert applicable_merges(upkeep, "main", (other, *others), 2) == ()


def test_after_an_upgrade_old_manifests_are_merged_with_the_row_ids_they_were_given() -> None:
    table = table_of(1)
    for epoch in range(3):
        table.commit(request(table, epoch))
    for version in (2, 3):
        table.foreign(UpgradeFormatVersion(version))
        table.commit(request(table, version + 1))
    before = live(table)
    commit(table, merged(table), request(table, 6))
    assert_says_what_it_said(table, before)


def test_a_merge_of_one_branch_is_no_merge_of_another() -> None:
    table = table_of()
    for epoch in range(3):
        table.commit(request(table, epoch))
    current = table.state.metadata.current_snapshot_id
    assert current is not None
    table.foreign(SetSnapshotRef("audit", SnapshotRef(current, "branch")))
    upkeep = merged(table)
    plan = commit(table, upkeep, request(table, 3, branch="audit"))
    assert plan.upkeep == Upkeep()
    assert len(head(table, "audit")) == 4
    assert commit(table, upkeep, request(table, 4)).upkeep == upkeep


def test_two_merges_of_the_same_manifests_are_not_both_taken() -> None:
    table = table_of()
    for epoch in range(3):
        table.commit(request(table, epoch))
    (first,), (second,) = merged(table).merged, merged(table).merged
    plan = commit(table, Upkeep(merged=(first, second)), request(table, 3))
    assert plan.upkeep == Upkeep(merged=(first,))
    assert len(head(table)) == 2


def test_deletes_of_other_engines_stay_out_and_live_files_in() -> None:
    table = table_of()
    for epoch in range(4):
        table.commit(request(table, epoch))
    _delete_one_file(table)
    before = live(table)
    assert len(before) == 7
    commit(table, merged(table), request(table, 4))
    assert_says_what_it_said(table, before)
    statuses = {entry.status for entry in table.manifests()[1].entries}
    assert statuses == {ManifestEntryStatus.EXISTING}


def _delete_one_file(table: Table) -> None:
    """Rewrite the newest manifest as an engine that deletes a file does."""
    metadata = table.state.metadata
    rows = head(table)
    first, *others = table.manifests()[0].entries
    entries = [replace(first, status=ManifestEntryStatus.DELETED)]
    entries += [replace(entry, status=ManifestEntryStatus.EXISTING) for entry in others]
    context = ManifestContext(2, metadata.current_schema, metadata.default_spec)
    encoded = encode_manifest(entries, context, sync=b"s" * 16)
    path = rows[0].row.manifest_path.replace("-m0", "-m9")
    table.objects[path] = encoded.content
    row = manifest_file(encoded, context, manifest_path=path, snapshot_id=99, sequence_number=9)
    snapshot = metadata.current_snapshot
    assert snapshot is not None
    table.state = replace(
        table.state, heads={snapshot.snapshot_id: (ListedManifest(b"", row), *rows[1:])}
    )
    # The list of that snapshot, as a reader would find it.
    encoded_rows = [encode_manifest_file(row, 2), *(one.encoded for one in rows[1:])]
    assert snapshot.manifest_list is not None
    table.objects[snapshot.manifest_list] = encode_manifest_list(
        encoded_rows,
        format_version=2,
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=None,
        sequence_number=snapshot.sequence_number,
        first_row_id=None,
        sync=b"s" * 16,
        extra_metadata={},
    )
