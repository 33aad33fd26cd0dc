"""Each invariant of tables is broken on purpose, and seen to notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.snapshot import MAIN, MetadataLogEntry, Snapshot, SnapshotLogEntry
from committer.iceberg.updates.metadata_update import (
    RemoveProperties,
    SetProperties,
    SetSnapshotRef,
    apply_updates,
)
from committer.ledger_entry import ProducerEntry, property_key
from committer.ports.pointer_swap import Swap
from committer.ports.storage import NewObject
from committer.request.request_format import EncodedRequest
from tests.simulation.metadata_rules import (
    ages,
    linear_history,
    metadata_log,
    sequence_numbers,
    timestamps,
)
from tests.simulation.misdeeds import LATER_MS, OURS, Bench, files_of
from tests.support.builders.operation_requests import base_of, build_operation
from tests.support.builders.request_builders import (
    build_file,
    build_request,
    seal,
    sealed_manifests,
)
from tests.support.builders.table_builders import build_table
from tests.support.iceberg.manifest_builders import added_entry

# --- I2, I3: once, and whole ---------------------------------------------------------------------


async def test_a_file_that_is_listed_twice_breaks_i2(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    await bench.commit(table, sealed, files=lambda entries: entries * 2)
    assert "I2" in bench.found()


async def test_a_file_that_two_manifests_hold_breaks_i2(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    await bench.commit(table, sealed)
    await bench.commit(table, sealed)
    assert {"I2", "I3"} <= bench.found()


async def test_only_what_an_operator_lets_land_once_more_may_be_there_twice(bench: Bench) -> None:
    table = await bench.create_table()
    one, other = await bench.publish(table), await bench.publish(table, producer="query-2")
    after = await bench.commit(table, one)
    bench.history.foreign.add(OURS)
    lacking = await bench.swap(after, RemoveProperties((property_key("query-1"),)))
    bench.history.foreign.clear()
    bench.history.accept_table(lacking)
    await bench.commit(table, one)
    assert bench.found() == set()
    await bench.commit(table, other)
    await bench.commit(table, other)
    assert {"I2", "I3"} <= bench.found()


async def test_two_attempts_of_one_epoch_break_i3(bench: Bench) -> None:
    table = await bench.create_table()
    await bench.commit(table, await bench.publish(table))
    await bench.commit(table, await bench.publish(table))
    assert bench.found() == {"I3"}


async def test_half_an_attempt_breaks_i3(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table, files_count=2)
    await bench.commit(table, sealed)
    assert bench.found() == {"I3", "I21"}


async def test_a_file_that_nobody_published_breaks_i3(bench: Bench) -> None:
    table = await bench.create_table()
    stranger = added_entry(build_file(table.metadata, UUID(int=5)))
    sealed = await bench.publish(table)
    await bench.commit(table, sealed, files=lambda entries: [*entries, stranger])
    assert bench.found() == {"I3", "I21"}


async def test_a_request_that_nobody_published_breaks_i3(bench: Bench) -> None:
    table = await bench.create_table()
    await bench.commit(table, build_request(table))
    assert "I3" in bench.found()


# --- I4, I5, I8: metadata ------------------------------------------------------------------------


async def test_an_append_that_forgets_what_was_there_breaks_i4(bench: Bench) -> None:
    table = await bench.create_table()
    await bench.commit(table, await bench.publish(table))
    second = await bench.publish(table, producer="query-2")
    await bench.commit(table, second, keeps=False)
    assert "I4" in bench.found()


async def test_a_head_that_goes_back_breaks_i4(bench: Bench) -> None:
    table = await bench.create_table()
    first = await bench.commit(table, await bench.publish(table))
    second = await bench.commit(table, await bench.publish(table, producer="query-2"))
    older = first.metadata.refs[MAIN]
    assert list(linear_history(second.metadata, replace(second.metadata, refs={MAIN: older})))
    await bench.swap(second, SetSnapshotRef(MAIN, older))
    assert bench.found() == {"I4"}


async def test_a_swap_of_a_base_that_is_not_current_breaks_i4(bench: Bench) -> None:
    table = await bench.create_table()
    base = await bench.catalog.load(table.identifier)
    await bench.swap(base, SetProperties({"a": "1"}))
    location = f"{table.metadata.location}/metadata/00009-x.metadata.json"
    metadata = apply_updates(
        base.metadata,
        (SetProperties({"a": "2"}),),
        base_location=base.metadata_location,
        now_ms=LATER_MS,
    )
    bench.invariants.swapped(OURS, Swap(base, (), (), metadata, location))
    assert "I4" in bench.found()


async def test_a_version_that_comes_back_breaks_i4(bench: Bench) -> None:
    table = await bench.create_table()
    base = await bench.catalog.load(table.identifier)
    after = await bench.swap(base, SetProperties({"a": "1"}))
    bench.invariants.swapped(OURS, Swap(after, (), (), base.metadata, base.metadata_location))
    assert "I4" in bench.found()


def test_a_metadata_log_without_the_base_breaks_i4() -> None:
    table = build_table(warehouse="memory://warehouse")
    assert list(metadata_log("somewhere", table.metadata, replace(table.metadata)))


@pytest.mark.parametrize("number", [1, 3])
async def test_a_sequence_number_that_repeats_or_jumps_breaks_i5(bench: Bench, number: int) -> None:
    table = await bench.create_table()
    first = await bench.commit(table, await bench.publish(table))
    second = await bench.commit(table, await bench.publish(table, producer="query-2"))
    *others, newest = second.metadata.snapshots
    wrong = replace(
        second.metadata,
        snapshots=(*others, replace(newest, sequence_number=number)),
        last_sequence_number=number,
    )
    assert not list(sequence_numbers(first.metadata, second.metadata))
    assert list(sequence_numbers(first.metadata, wrong))


async def test_a_file_that_inherits_another_sequence_number_breaks_i5(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    await bench.commit(table, sealed, row=lambda row: replace(row, sequence_number=7))
    assert bench.found() == {"I5"}


def test_row_ids_that_are_given_twice_break_i5() -> None:
    before = replace(
        build_table(warehouse="memory://warehouse").metadata, format_version=3, next_row_id=10
    )
    snapshot = Snapshot(
        snapshot_id=1, sequence_number=1, timestamp_ms=1, first_row_id=5, added_rows=5
    )
    after = replace(before, snapshots=(snapshot,), last_sequence_number=1, next_row_id=15)
    assert len(list(sequence_numbers(before, after))) == 2


async def test_logs_that_run_backwards_break_i8(bench: Bench) -> None:
    table = await bench.create_table()
    await bench.commit(table, await bench.publish(table))
    after = await bench.commit(table, await bench.publish(table, producer="query-2"))
    metadata = after.metadata
    assert not list(timestamps(metadata))
    early = SnapshotLogEntry(5, 1)
    assert list(timestamps(replace(metadata, snapshot_log=(*metadata.snapshot_log, early))))
    late = MetadataLogEntry(LATER_MS * 2, "x")
    assert list(timestamps(replace(metadata, metadata_log=(late, *metadata.metadata_log))))
    assert list(timestamps(replace(metadata, last_updated_ms=5)))


async def test_a_snapshot_older_than_its_parent_breaks_i8(bench: Bench) -> None:
    table = await bench.create_table()
    first = (await bench.commit(table, await bench.publish(table))).metadata
    second = await bench.commit(table, await bench.publish(table, producer="query-2"))
    *others, newest = second.metadata.snapshots
    older = replace(newest, timestamp_ms=first.snapshots[0].timestamp_ms - 1)
    assert not list(ages(first, second.metadata))
    assert list(ages(first, replace(second.metadata, snapshots=(*others, older))))


# --- I6, I7: objects and counts ------------------------------------------------------------------


async def test_a_manifest_that_was_never_written_breaks_i6(bench: Bench) -> None:
    table = await bench.create_table()
    await bench.commit(table, await bench.publish(table), writes_manifest=False)
    assert "I6" in bench.found()


async def test_a_wrong_length_breaks_i6(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    await bench.commit(table, sealed, row=lambda row: replace(row, manifest_length=7))
    assert bench.found() == {"I6"}


async def test_a_data_file_that_is_gone_or_overwritten_breaks_i6(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    (file,) = files_of(table, sealed)
    await bench.commit(table, sealed)
    await bench.storage.create((NewObject(file.file_path, b"these rows"),))
    await bench.inbox.delete([sealed.request.inbox_key])
    bench.invariants.at_quiescence()
    assert bench.found() == set()
    etag = (await bench.server.head(file.file_path)).etag
    await bench.server.replace(file.file_path, b"other rows", etag=etag)
    bench.invariants.at_quiescence()
    await bench.server.delete([file.file_path])
    bench.invariants.at_quiescence()
    assert bench.found() == {"I6"}
    assert len(bench.history.violations) == 2


@pytest.mark.parametrize("count", ["added_files_count", "added_rows_count", "deleted_files_count"])
async def test_a_row_that_belies_its_manifest_breaks_i7(bench: Bench, count: str) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)

    def wrong(row: ManifestFile) -> ManifestFile:
        return replace(row, **{count: 77})  # type: ignore[arg-type]  # a name of a count

    await bench.commit(table, sealed, row=wrong)
    assert bench.found() == {"I7"}


async def test_totals_that_do_not_add_up_break_i7(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)

    def wrong(snapshot: Snapshot) -> Snapshot:
        return replace(snapshot, summary={**(snapshot.summary or {}), "total-records": "11"})

    await bench.commit(table, sealed, snapshot=wrong)
    assert bench.found() == {"I7"}


# --- I11: the ledger -----------------------------------------------------------------------------


def _forgets(entry: ProducerEntry) -> ProducerEntry:
    return ProducerEntry(entry.table_uuid)


def _claims(entry: ProducerEntry) -> ProducerEntry:
    return replace(entry, epochs=entry.epochs.with_epoch(9))


def _other_snapshot(entry: ProducerEntry) -> ProducerEntry:
    return replace(entry, latest=(replace(entry.latest[0], snapshot_id=5),))


@pytest.mark.parametrize("wrong", [_forgets, _claims, _other_snapshot])
async def test_an_entry_that_says_something_else_breaks_i11(
    bench: Bench, wrong: Callable[[ProducerEntry], ProducerEntry]
) -> None:
    table = await bench.create_table()
    await bench.commit(table, await bench.publish(table), entry=wrong)
    assert bench.found() == {"I11"}


async def test_an_entry_that_is_dropped_breaks_i11(bench: Bench) -> None:
    table = await bench.create_table()
    after = await bench.commit(table, await bench.publish(table))
    await bench.swap(after, RemoveProperties((property_key("query-1"),)))
    assert bench.found() == {"I11"}


# --- I12: what is needed stays -------------------------------------------------------------------


async def test_a_file_that_is_deleted_while_it_is_needed_breaks_i12(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    (file,) = files_of(table, sealed)
    await bench.storage.create((NewObject(file.file_path, b"rows"),))
    await bench.storage.delete([file.file_path])
    assert bench.found() == set()
    await bench.storage.create((NewObject(file.file_path, b"rows"),))
    await bench.commit(table, sealed)
    await bench.storage.delete([file.file_path])
    assert bench.found() == {"I12"}


# --- I19 to I21: operations ----------------------------------------------------------------------


async def test_an_operation_that_removes_another_file_breaks_i19(bench: Bench) -> None:
    table = await bench.create_table()
    await bench.commit(table, await bench.publish(table))
    deletes = build_operation(
        table, "delete", producer="query-2", needs={"removed-data-files": ["memory://x.parquet"]}
    )
    await bench.inbox.put(deletes)
    await bench.commit(table, deletes, keeps=False)
    assert "I19" in bench.found()


@pytest.mark.parametrize("is_copy", [True, False])
async def test_a_rewrite_that_has_other_rows_breaks_i21(bench: Bench, is_copy: bool) -> None:
    table = await bench.create_table()
    first = await bench.publish(table)
    base = await bench.commit(table, first)
    (old,) = files_of(table, first)
    needs = {**base_of(base.metadata), "removed-data-files": [old.file_path]}
    rewrite = build_operation(
        table, "rewrite-files", producer="query-2", files_count=1, needs=needs
    )
    (new,) = files_of(table, rewrite)
    if is_copy:
        rows = bench.history.written.rows(old.file_path, old.record_count)
        bench.history.written.write(new.file_path, rows)
    await bench.inbox.put(rewrite)
    await bench.commit(table, rewrite, keeps=False)
    assert ("I21" in bench.found()) is not is_copy


@pytest.mark.parametrize("branch", ["main", "audit"])
async def test_an_epoch_that_overtakes_a_lower_one_of_its_branch_breaks_i20(
    bench: Bench, branch: str
) -> None:
    table = await bench.create_table()
    lower = ordered(build_request(table, epoch=0, branch=branch))
    higher = ordered(build_request(table, epoch=1))
    for sealed in (lower, higher):
        await bench.inbox.put(sealed)
    await bench.commit(table, higher)
    assert ("I20" in bench.found()) is (branch == "main")


def ordered(sealed: EncodedRequest) -> EncodedRequest:
    producer = sealed.request.producer.model_copy(update={"ordered": True})
    line = sealed.request.model_copy(update={"producer": producer, "manifests": ()})
    return seal(line, sealed_manifests(sealed))
