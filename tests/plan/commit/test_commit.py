"""The files of one attempt, read back by us, by fastavro and by PyIceberg, in every version."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import fastavro
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import read_manifest_list

from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.manifest.manifest_list import (
    ManifestFile,
    encode_manifest_file,
    encode_manifest_list,
)
from committer.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from committer.iceberg.metadata.table_metadata import parse_table_metadata
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.updates.metadata_update import (
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    SetCurrentSchema,
    SetDefaultPartitionSpec,
    SetProperties,
    SetSnapshotRef,
    UpgradeFormatVersion,
    apply_updates,
)
from committer.iceberg.updates.requirement import AssertRefSnapshotId, AssertTableUUID
from committer.iceberg.values.types import DoubleType
from committer.ledger_entry import parse_entry, print_entry, property_key
from committer.plan.batch.batch import prepare_manifests
from committer.plan.commit.ledger_changes import LedgerCleanup
from committer.plan.ledger.producer_decisions import frozen
from committer.plan.ledger.state import TableState
from committer.request.request_format import EncodedRequest
from tests.support.builders.bad_requests import good
from tests.support.builders.flights import BY_CARRIER, BY_DAY, FIELDS, build_flights
from tests.support.builders.request_builders import build_request
from tests.support.plan.committing import Table

VERSIONS = pytest.mark.parametrize("format_version", [1, 2, 3])


def table_of(**table: object) -> Table:
    return Table.of(build_flights(**table))  # type: ignore[arg-type]


def request(
    table: Table, producer: str = "query-1", epoch: int = 0, **rest: object
) -> EncodedRequest:
    return build_request(
        table.table,
        producer=producer,
        epoch=epoch,
        **{"partition": ("AA",), **rest},  # type: ignore[arg-type]
    )


# --- Read back -----------------------------------------------------------------------------------


@VERSIONS
def test_every_file_of_every_commit_is_listed_once_with_its_inherited_ids(
    format_version: int,
) -> None:
    table = table_of(format_version=format_version)
    for epoch in range(4):
        table.commit(
            request(table, "a", epoch, files_count=3), request(table, "b", epoch, files_count=2)
        )
    entries = table.entries()
    paths = [one.data_file.file_path for one in entries]
    assert len(paths) == len(set(paths)) == 20
    snapshots = {one.snapshot_id: one for one in table.state.metadata.snapshots}
    for one in entries:
        snapshot = snapshots[one.snapshot_id or 0]
        assert one.sequence_number == snapshot.sequence_number
        assert one.file_sequence_number == snapshot.sequence_number
    assert [one.sequence_number for one in table.state.metadata.snapshots] == (
        [0, 0, 0, 0] if format_version == 1 else [1, 2, 3, 4]
    )


@VERSIONS
def test_fastavro_reads_manifests_and_lists(format_version: int) -> None:
    table = table_of(format_version=format_version)
    for epoch in range(3):
        plan = table.commit(request(table, epoch=epoch, files_count=9))
    reader = fastavro.reader(BytesIO(table.objects[plan.snapshot.manifest_list or ""]))
    rows = list(reader)
    assert len(rows) == 3
    assert reader.metadata["format-version"] == str(format_version)
    assert reader.metadata["snapshot-id"] == str(plan.snapshot.snapshot_id)
    for row, manifest in zip(rows, table.manifests(), strict=True):
        content = table.objects[row["manifest_path"]]
        assert row["manifest_length"] == len(content)
        records = list(fastavro.reader(BytesIO(content)))
        assert len(records) == row["added_files_count"] == len(manifest.entries) == 9
        assert sum(one["data_file"]["record_count"] for one in records) == row["added_rows_count"]
        snapshot_ids = {one["snapshot_id"] for one in records}
        assert snapshot_ids == ({row["added_snapshot_id"]} if format_version == 1 else {None})
        (summary,) = row["partitions"]
        assert (summary["lower_bound"], summary["upper_bound"]) == (b"AA", b"AA")


@pytest.mark.parametrize("format_version", [1, 2])
def test_pyiceberg_reads_manifests_and_lists(format_version: int, tmp_path: Path) -> None:
    table = table_of(format_version=format_version, warehouse=str(tmp_path))
    for epoch in range(3):
        plan = table.commit(request(table, epoch=epoch, files_count=9))
    for location, content in table.objects.items():
        Path(location).parent.mkdir(parents=True, exist_ok=True)
        Path(location).write_bytes(content)
    io = PyArrowFileIO()
    found = []
    for manifest in read_manifest_list(io.new_input(plan.snapshot.manifest_list or "")):
        found += manifest.fetch_manifest_entry(io)
    assert sorted(one.data_file.file_path for one in found) == sorted(
        one.data_file.file_path for one in table.entries()
    )
    numbers = {one.sequence_number for one in found}
    assert numbers == ({0} if format_version == 1 else {1, 2, 3})
    assert {one.snapshot_id for one in found} == {
        one.snapshot_id for one in table.state.metadata.snapshots
    }


@VERSIONS
def test_totals_of_the_summary_equal_a_recount(format_version: int) -> None:
    table = table_of(format_version=format_version)
    for epoch in range(3):
        plan = table.commit(
            request(table, "a", epoch, files_count=3, partition=("AA",)),
            request(table, "b", epoch, files_count=2, partition=("UA",)),
        )
        files = [one.data_file for one in table.entries()]
        summary = plan.snapshot.summary or {}
        assert summary["operation"] == "append"
        assert summary["total-data-files"] == str(len(files))
        assert summary["total-records"] == str(sum(one.record_count for one in files))
        assert summary["total-files-size"] == str(sum(one.file_size_in_bytes for one in files))
        assert (summary["added-data-files"], summary["added-records"]) == ("5", "50")
        assert summary["changed-partition-count"] == "2"
        assert summary["frazil.requests-count"] == "2"


def test_an_unpartitioned_table_is_one_changed_partition_as_in_java() -> None:
    table = table_of(fields=())
    plan = table.commit(request(table, partition=()), request(table, "b", partition=()))
    assert (plan.snapshot.summary or {})["changed-partition-count"] == "1"


def test_the_metadata_that_is_written_is_what_the_updates_make_of_the_base() -> None:
    table = table_of()
    table.commit(request(table))
    base = table.table
    plan = table.commit(request(table, epoch=1))
    made = apply_updates(
        base.metadata,
        plan.swap.updates,
        base_location=base.metadata_location,
        now_ms=plan.swap.metadata.last_updated_ms,
    )
    assert made == plan.swap.metadata
    assert parse_table_metadata(table.objects[plan.swap.metadata_location]) == made
    assert plan.swap.base is base
    head = base.metadata.current_snapshot_id
    assert plan.swap.requirements == (
        AssertTableUUID(base.metadata.require_uuid()),
        AssertRefSnapshotId("main", head),
    )


def test_the_header_of_the_list_says_which_requests_it_holds() -> None:
    table = table_of()
    first, second = request(table, "a", 3), request(table, "b", 4)
    plan = table.commit(first, second)
    header = table.manifest_list().header
    assert json.loads(header["frazil.requests"]) == [
        ["a", 3, str(first.request.attempt), "spark-offsets", "offsets-3"],
        ["b", 4, str(second.request.attempt), "spark-offsets", "offsets-4"],
    ]
    assert header["sequence-number"] == str(plan.snapshot.sequence_number)


def test_a_summary_does_not_grow_with_the_requests_of_a_commit() -> None:
    sizes = []
    for count in (1, 9):
        table = table_of()
        plan = table.commit(*(request(table, f"query-{number}", 0) for number in range(count)))
        summary = plan.snapshot.summary or {}
        assert summary["frazil.requests-count"] == str(count)
        sizes.append(len(summary))
    assert sizes[0] == sizes[1]


@VERSIONS
def test_a_large_commit_has_several_manifests_of_the_size_that_the_table_wants(
    format_version: int,
) -> None:
    table = table_of(
        format_version=format_version,
        properties={"commit.manifest.target-size-bytes": "1500"},
    )
    large = request(table, "large", files_count=500)
    small = [request(table, f"small-{number}") for number in range(9)]
    plan = table.commit(*small[:6], large, *small[6:])
    counts = [row.added_files_count for row in table.manifest_list().rows]
    assert 500 in counts  # one that was handed over is not divided
    assert len(counts) > 2
    assert all((count or 0) < 9 for count in counts if count != 500)
    entries = table.entries()
    assert len(entries) == len({one.data_file.file_path for one in entries}) == 509
    assert plan.snapshot.summary is not None
    assert plan.snapshot.summary["added-data-files"] == "509"


# --- Attempts ------------------------------------------------------------------------------------


def test_attempts_of_one_batch_share_snapshot_id_and_manifests() -> None:
    table = table_of()
    batch, prepared = table.batch(request(table, "a"), request(table, "b"))
    first = table.plan(batch, prepared, number=1)
    table.foreign(SetProperties({"foreign": "1"}))
    second = table.plan(batch, prepared, number=2)
    assert first.snapshot.snapshot_id == second.snapshot.snapshot_id == batch.steps[0].snapshot_id
    assert first.objects[:-1] == second.objects[:-1]
    assert first.snapshot.manifest_list != second.snapshot.manifest_list
    assert first.swap.metadata_location != second.swap.metadata_location
    assert second.swap.metadata.properties["foreign"] == "1"
    # Planning is pure: asked again, it answers the same.
    assert prepare_manifests(batch, table.state.metadata) == prepared


def test_a_base_that_moved_is_seen_in_the_number_the_parent_and_the_totals() -> None:
    table = table_of()
    batch, prepared = table.batch(request(table, "a"))
    first = table.plan(batch, prepared)
    table.commit(request(table, "b"))
    second = table.plan(batch, prepared, number=2)
    assert (first.snapshot.sequence_number, second.snapshot.sequence_number) == (1, 2)
    assert second.snapshot.parent_snapshot_id == table.state.metadata.current_snapshot_id
    assert (second.snapshot.summary or {})["total-data-files"] == "2"


@VERSIONS
def test_a_clock_that_jumps_back_writes_no_log_that_runs_backwards(format_version: int) -> None:
    table = table_of(format_version=format_version)
    table.commit(request(table))
    table.now_ms -= 7_200_000
    table.commit(request(table, epoch=1))
    table.now_ms -= 7_200_000
    table.commit(request(table, epoch=2))
    metadata = table.state.metadata
    times = [one.timestamp_ms for one in metadata.snapshots]
    assert times == sorted(times)
    logged = [one.timestamp_ms for one in metadata.snapshot_log]
    assert logged == sorted(logged)
    files = [one.timestamp_ms for one in metadata.metadata_log]
    assert files == sorted(files)
    assert metadata.last_updated_ms >= max(times + logged + files)


def test_a_commit_after_a_commit_asks_for_no_read() -> None:
    table = table_of()
    for epoch in range(5):
        table.commit(request(table, epoch=epoch))
    assert table.reads == 0
    # After a restart the list is asked for once, and the next one follows from it byte for byte.
    table.state = TableState.of(table.table)
    plan = table.commit(request(table, epoch=5))
    assert table.reads == 1
    table.commit(request(table, epoch=6))
    assert table.reads == 1
    assert len(table.manifest_list(plan.snapshot).rows) == 6


def test_rows_of_older_manifests_are_carried_byte_for_byte() -> None:
    table = table_of()
    table.commit(request(table))
    before = table.manifest_list().encoded_rows
    table.commit(request(table, epoch=1))
    assert table.manifest_list().encoded_rows[1:] == before


# --- Specs, schemas, branches --------------------------------------------------------------------


def test_a_batch_over_an_evolved_spec_writes_one_manifest_for_each_spec() -> None:
    table = table_of()
    old = request(table, "old")
    table.foreign(AddPartitionSpec(PartitionSpec(1, BY_DAY)), SetDefaultPartitionSpec(-1))
    plan = table.commit(request(table, "new", partition=(20_000,)), old)
    rows = table.manifest_list().rows
    assert [(row.partition_spec_id, row.added_files_count) for row in rows] == [(0, 1), (1, 1)]
    assert len({row.manifest_path for row in rows}) == 2
    assert [manifest.spec.spec_id for manifest in table.manifests()] == [0, 1]
    assert [one.data_file.partition for one in table.entries()] == [("AA",), (20_000,)]
    assert (plan.snapshot.summary or {})["changed-partition-count"] == "2"


def test_values_of_an_older_spec_survive_the_drop_of_their_column() -> None:
    table = table_of()
    old = request(table, "old")
    table.foreign(AddPartitionSpec(PartitionSpec(1, ())), SetDefaultPartitionSpec(-1))
    table.foreign(
        AddSchema(Schema(tuple(f for f in FIELDS if f.name != "carrier"), schema_id=1)),
        SetCurrentSchema(-1),
    )
    table.commit(old)
    assert [one.data_file.partition for one in table.entries()] == [("AA",)]
    record = next(
        fastavro.reader(BytesIO(table.objects[table.manifest_list().rows[0].manifest_path]))
    )
    assert record["data_file"]["partition"] == {"carrier": "AA"}


@pytest.mark.parametrize("files_count", [1, 30])
def test_partition_values_from_before_a_promotion_are_written_in_the_new_type(
    files_count: int,
) -> None:
    fields = (replace(BY_CARRIER[0], source_ids=(4,), name="delay"),)
    table = table_of(fields=fields)
    old = request(table, "old", partition=(1.5,), files_count=files_count)
    promoted = tuple(
        replace(one, field_type=DoubleType()) if one.name == "delay" else one for one in FIELDS
    )
    table.foreign(AddSchema(Schema(promoted, schema_id=1)), SetCurrentSchema(-1))
    table.commit(old, request(table, "new", partition=(2.5,), files_count=files_count))
    values = sorted(one.data_file.partition for one in table.entries())
    assert values == [(1.5,)] * files_count + [(2.5,)] * files_count


def test_two_branches_have_heads_numbers_and_ledgers_of_their_own() -> None:
    table = table_of()
    first = table.commit(request(table))
    head = first.snapshot.snapshot_id
    table.foreign(SetSnapshotRef("audit", SnapshotRef(head, "branch", max_snapshot_age_ms=5)))
    on_audit = table.commit(request(table, epoch=0, branch="audit"))
    on_main = table.commit(request(table, epoch=1))
    metadata = table.state.metadata
    assert on_audit.snapshot.parent_snapshot_id == on_main.snapshot.parent_snapshot_id == head
    assert metadata.refs["audit"].snapshot_id == on_audit.snapshot.snapshot_id
    assert metadata.refs["audit"].max_snapshot_age_ms == 5
    assert metadata.current_snapshot_id == on_main.snapshot.snapshot_id
    assert [one.sequence_number for one in metadata.snapshots] == [1, 2, 3]
    assert on_audit.swap.requirements[1] == AssertRefSnapshotId("audit", head)
    entries = {
        key: parse_entry(metadata.properties[key])
        for key in metadata.properties
        if "producer" in key
    }
    assert {key: str(one.epochs) for key, one in entries.items()} == {
        property_key("query-1"): "0-1",
        property_key("query-1", "audit"): "0",
    }
    # Both grow from what the state remembers: nothing is read.
    table.commit(request(table, epoch=1, branch="audit"))
    table.commit(request(table, epoch=2))
    assert table.reads == 0
    assert len(table.state.heads) == 2
    for name in ("audit", "main"):
        head_of = table.state.metadata.branch_head(name)
        summary = (head_of.summary if head_of else None) or {}
        assert summary["total-data-files"] == str(len(table.entries(head_of))) == "3"


def test_gzip_metadata_is_written_under_its_ending() -> None:
    table = table_of(properties={"write.metadata.compression-codec": "gzip"})
    plan = table.commit(request(table))
    assert plan.swap.metadata_location.endswith(".gz.metadata.json")
    content = table.objects[plan.swap.metadata_location]
    assert parse_table_metadata(gzip.decompress(content)) == plan.swap.metadata


def test_metadata_goes_where_the_table_says() -> None:
    table = table_of(properties={"write.metadata.path": "memory://meta/flights"})
    plan = table.commit(request(table))
    assert all(one.location.startswith("memory://meta/flights/") for one in plan.objects)
    assert plan.swap.metadata_location.startswith("memory://meta/flights/00001-")


# --- Row lineage ---------------------------------------------------------------------------------


def row_ids(table: Table) -> list[int]:
    return sorted(
        one.data_file.first_row_id
        for one in table.entries()
        if one.data_file.first_row_id is not None
    )


def test_row_ids_are_handed_out_without_gap_or_overlap_over_many_commits() -> None:
    table = table_of(format_version=3)
    expected = 0
    for epoch in range(4):
        plan = table.commit(
            request(table, "a", epoch, files_count=2), request(table, "b", epoch, files_count=1)
        )
        assert plan.snapshot.first_row_id == expected
        assert plan.snapshot.added_rows == 30
        expected += 30
        assert table.state.metadata.next_row_id == expected
    assert row_ids(table) == list(range(0, expected, 10))
    assert table.manifest_list().header["first-row-id"] == "90"


def test_manifests_from_before_an_upgrade_get_row_ids_with_the_first_commit() -> None:
    table = table_of(format_version=2)
    for epoch in range(2):
        table.commit(request(table, epoch=epoch, files_count=2))
    before = request(table, "late", files_count=1)
    table.foreign(UpgradeFormatVersion(3))
    assert table.state.metadata.next_row_id == 0
    plan = table.commit(before)
    assert (plan.snapshot.first_row_id, plan.snapshot.added_rows) == (0, 50)
    assert table.state.metadata.next_row_id == 50
    assert row_ids(table) == [0, 10, 20, 30, 40]
    plan = table.commit(request(table, epoch=2))
    assert (plan.snapshot.first_row_id, plan.snapshot.added_rows) == (50, 10)
    assert row_ids(table) == [0, 10, 20, 30, 40, 50]


@pytest.mark.parametrize("is_cached", [True, False])
@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 3), (1, 3)])
def test_a_list_after_an_upgrade_is_wholly_of_the_new_version(
    before: int, after: int, is_cached: bool
) -> None:
    table = table_of(format_version=before)
    table.commit(request(table, files_count=12))
    late = request(table, "late", files_count=12)
    table.foreign(UpgradeFormatVersion(after))
    if not is_cached:
        table.state = TableState.of(table.table)
    plan = table.commit(late, request(table, "new", files_count=12))
    reader = fastavro.reader(BytesIO(table.objects[plan.snapshot.manifest_list or ""]))
    rows = list(reader)
    assert [row["added_files_count"] for row in rows] == [24, 12]
    assert [row["sequence_number"] for row in rows] == [plan.snapshot.sequence_number, before - 1]
    for row in rows:
        entries = list(fastavro.reader(BytesIO(table.objects[row["manifest_path"]])))
        assert {one["data_file"]["record_count"] for one in entries} == {10}
        assert len(entries) == row["added_files_count"]


def test_delete_manifests_are_carried_over_an_upgrade() -> None:
    """They get no row ids, so nothing but the version makes their rows be written anew."""
    table = table_of(format_version=2)
    table.commit(request(table))
    head = table.state.metadata.current_snapshot
    assert head is not None
    deletes = ManifestFile(
        manifest_path="memory://warehouse/db/flights/metadata/deletes.avro",
        manifest_length=77,
        partition_spec_id=0,
        content=ManifestContent.DELETES,
        sequence_number=2,
        min_sequence_number=2,
        added_snapshot_id=55,
        added_files_count=1,
        existing_files_count=0,
        deleted_files_count=0,
        added_rows_count=3,
        existing_rows_count=0,
        deleted_rows_count=0,
    )
    _foreign_snapshot(table, head, [deletes, *table.manifest_list().rows])
    table.foreign(UpgradeFormatVersion(3))
    plan = table.commit(request(table, epoch=1))
    rows = list(fastavro.reader(BytesIO(table.objects[plan.snapshot.manifest_list or ""])))
    assert [(row["content"], row["first_row_id"]) for row in rows] == [(0, 0), (1, None), (0, 10)]
    assert [row["manifest_length"] for row in rows][1] == 77


def _foreign_snapshot(table: Table, parent: Snapshot, rows: Sequence[ManifestFile]) -> None:
    location = "memory://warehouse/db/flights/metadata/snap-55.avro"
    table.objects[location] = encode_manifest_list(
        [encode_manifest_file(row, 2) for row in rows],
        format_version=2,
        snapshot_id=55,
        parent_snapshot_id=parent.snapshot_id,
        sequence_number=2,
        first_row_id=None,
        sync=bytes(16),
        extra_metadata={},
    )
    snapshot = Snapshot(
        snapshot_id=55,
        parent_snapshot_id=parent.snapshot_id,
        sequence_number=2,
        timestamp_ms=table.state.metadata.last_updated_ms,
        manifest_list=location,
        summary={"operation": "delete"},
        schema_id=0,
    )
    table.foreign(AddSnapshot(snapshot), SetSnapshotRef("main", SnapshotRef(55, "branch")))


# --- The ledger travels along --------------------------------------------------------------------


def entry_of(table: Table, producer: str, branch: str = "main") -> str:
    return table.state.metadata.properties[property_key(producer, branch)]


def test_the_ledger_of_the_next_attempt_is_what_was_written() -> None:
    table = table_of()
    sealed = request(table, epoch=3)
    plan = table.commit(sealed, request(table, epoch=4))
    assert table.state.ledger == TableState.of(table.table).ledger
    entry = parse_entry(entry_of(table, "query-1"))
    assert str(entry.epochs) == "3-4"
    assert {landed.snapshot_id for landed in entry.latest} == {plan.snapshot.snapshot_id}
    assert plan.landed[sealed.request.inbox_key].epoch == 3


def test_chores_close_gaps_and_drop_entries() -> None:
    table = table_of()
    for epoch in (2, 5, 9):
        table.commit(request(table, epoch=epoch))
    table.commit(request(table, "shot", one_shot=True))
    cleanup = LedgerCleanup({property_key("query-1"): 5}, frozenset({property_key("shot")}))
    plan = table.commit(request(table, "other"), cleanup=cleanup)
    assert str(parse_entry(entry_of(table, "query-1")).epochs) == "0-5,9"
    assert property_key("shot") not in table.state.metadata.properties
    assert plan.cleanup == cleanup
    assert table.state.ledger == TableState.of(table.table).ledger


def test_a_producer_of_the_batch_is_not_dropped_by_it() -> None:
    table = table_of()
    table.commit(request(table, "shot", one_shot=True))
    cleanup = LedgerCleanup(drop=frozenset({property_key("shot"), property_key("never heard of")}))
    table.commit(request(table, "shot", epoch=1, one_shot=True), cleanup=cleanup)
    assert str(parse_entry(entry_of(table, "shot")).epochs) == "0-1"


def test_a_producer_that_is_no_longer_one_shot_is_not_dropped() -> None:
    table = table_of()
    table.commit(request(table, "shot", one_shot=True))
    cleanup = LedgerCleanup(drop=frozenset({property_key("shot")}))
    # Found before, while another committer landed something that is to stay.
    table.commit(request(table, "shot", epoch=1))
    table.commit(request(table, "other"), cleanup=cleanup)
    assert str(parse_entry(entry_of(table, "shot")).epochs) == "0-1"


def test_of_a_producer_that_was_frozen_since_nothing_is_forgotten() -> None:
    table = table_of()
    for epoch in (2, 5, 9):
        table.commit(request(table, epoch=epoch))
    key = property_key("query-1")
    entry = frozen(parse_entry(entry_of(table, "query-1")), "why", 1)
    table.foreign(SetProperties({key: print_entry(entry)}))
    table.commit(request(table, "other"), cleanup=LedgerCleanup({key: 5}))
    assert str(parse_entry(entry_of(table, "query-1")).epochs) == "2,5,9"


def test_a_one_shot_producer_that_was_frozen_since_is_not_dropped() -> None:
    table = table_of()
    table.commit(request(table, "shot", one_shot=True))
    key = property_key("shot")
    entry = frozen(parse_entry(entry_of(table, "shot")), "why", 1)
    table.foreign(SetProperties({key: print_entry(entry)}))
    table.commit(request(table, "other"), cleanup=LedgerCleanup(drop=frozenset({key})))
    assert parse_entry(entry_of(table, "shot")).frozen is not None


def test_chores_of_another_branch_are_left_for_it() -> None:
    table = table_of()
    head = table.commit(request(table)).snapshot.snapshot_id
    table.foreign(SetSnapshotRef("audit", SnapshotRef(head, "branch")))
    for epoch in (2, 5):
        table.commit(request(table, epoch=epoch, branch="audit"))
    key = property_key("query-1", "audit")
    plan = table.commit(request(table, epoch=1), cleanup=LedgerCleanup({key: 5}, frozenset({key})))
    assert plan.cleanup == LedgerCleanup()
    assert str(parse_entry(entry_of(table, "query-1", "audit")).epochs) == "2,5"


def test_what_a_producer_no_longer_promises_is_not_relied_upon() -> None:
    table = table_of()
    table.commit(good(table.table, "p", sequential=True))
    assert parse_entry(entry_of(table, "p")).sequential
    table.commit(good(table.table, "p", epoch=1, sequential=False))
    table.commit(good(table.table, "p", epoch=2, sequential=True))
    assert not parse_entry(entry_of(table, "p")).sequential


def test_the_ledger_keeps_the_name_that_a_producer_gave_last() -> None:
    table = table_of()
    for epoch, name in enumerate((None, "first", "flights", None)):
        table.commit(request(table, epoch=epoch, name=name))
    assert parse_entry(entry_of(table, "query-1")).name == "flights"
