"""Each invariant is broken on purpose, and seen to notice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from committer.catalog.memory import MemoryCatalog
from committer.iceberg.data_file import ManifestEntry, ManifestEntryStatus, added_entry
from committer.iceberg.manifest import ManifestContext, encode_manifest, manifest_file
from committer.iceberg.manifest_list import (
    ManifestFile,
    encode_manifest_file,
    encode_manifest_list,
)
from committer.iceberg.metadata_model import TableMetadata
from committer.iceberg.metadata_update import (
    AddSnapshot,
    RemoveProperties,
    SetProperties,
    SetSnapshotRef,
    Update,
    apply_updates,
)
from committer.iceberg.snapshot import (
    MAIN,
    MetadataLogEntry,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
)
from committer.iceberg.summary import append_summary
from committer.ledger_entry import ProducerEntry, print_entry, property_key
from committer.plan.evidence import COUNT_KEY, EVIDENCE_KEY, print_evidence, read_evidence
from committer.ports import LoadedTable, NewObject, Swap
from committer.queue.memory import MemoryQueue, MemoryServer
from committer.reason import Reason
from committer.request import Receipt, ReceiptState, SealedRequest
from committer.storage.inbox import Inbox, Quarantine, QuarantineRecord
from committer.storage.memory import MemoryStorage
from tests.request_builders import build_file, build_request
from tests.simulation.history import History
from tests.simulation.invariants import Invariants
from tests.simulation.metadata_rules import (
    ages,
    linear_history,
    metadata_log,
    sequence_numbers,
    timestamps,
)
from tests.simulation.observed import ObservedCatalog, ObservedQueue, ObservedStorage
from tests.table_builders import build_table
from tests.worlds import ManualWorld

INBOX = "memory://requests"
OURS = "committer-0"
SYNC = bytes(16)
LATER_MS = 1_900_000_000_000


class Bench:
    """Servers with an onlooker, and a committer that is easily made to do wrong."""

    def __init__(self, *, format_version: int = 2) -> None:
        self.history = History(now_ms=lambda: 0)
        self.server = MemoryStorage()
        self.catalog_server = MemoryCatalog(storage=self.server)
        self.invariants = Invariants(self.server, self.catalog_server, self.history, INBOX)
        self.storage = ObservedStorage(self.server, self.history, OURS)
        self.catalog = ObservedCatalog(self.catalog_server, self.history, OURS)
        queue = MemoryQueue(MemoryServer(world=ManualWorld()), consumer=OURS)
        self.queue = ObservedQueue(queue, self.history, OURS)
        self.inbox = Inbox(self.storage, INBOX)
        self.quarantine = Quarantine(self.storage, INBOX)
        self._snapshots = 0

    async def create_table(self, **options: Any) -> LoadedTable:
        table = build_table(warehouse="memory://warehouse", **options)
        await self.catalog.create_namespace(table.identifier.namespace)
        await self.catalog.create_table(table)
        return table

    async def publish(self, table: LoadedTable, **options: Any) -> SealedRequest:
        sealed = build_request(table, **options)
        await self.inbox.put(sealed)
        return sealed

    async def commit(
        self, table: LoadedTable, *requests: SealedRequest, **wrong: Any
    ) -> LoadedTable:
        """Land requests as a committer would, apart from what is to be wrong."""
        base = await self.catalog.load(table.identifier)
        plan = self.planned(base, requests, **wrong)
        await self.storage.create(plan.objects)
        return await self.swap(base, *plan.updates)

    async def swap(self, base: LoadedTable, *updates: Update) -> LoadedTable:
        metadata = apply_updates(
            base.metadata, updates, base_location=base.metadata_location, now_ms=LATER_MS
        )
        return await self.swap_in(base, metadata)

    async def swap_in(self, base: LoadedTable, metadata: TableMetadata) -> LoadedTable:
        self._snapshots += 1
        location = f"{metadata.location}/metadata/{self._snapshots:05d}-x.metadata.json"
        swap = Swap(base, (), (), metadata, location)
        await self.storage.create(self.catalog.objects_before(swap))
        await self.catalog.swap(swap)
        return LoadedTable(base.identifier, metadata, location)

    def planned(self, base: LoadedTable, requests: Sequence[SealedRequest], **wrong: Any) -> Plan:
        self._snapshots += 1
        return Plan(base, requests, 1_000 + self._snapshots, **wrong)

    def found(self) -> set[str]:
        """The invariants that were seen to be broken."""
        return {violation.invariant for violation in self.history.violations}

    def receipt(self, sealed: SealedRequest, state: ReceiptState, **said: Any) -> Receipt:
        request = sealed.request
        return Receipt(request.producer.id, request.epoch, str(request.attempt), state, **said)


class Plan:
    """One append of ours. Every keyword makes something of it wrong."""

    def __init__(
        self,
        base: LoadedTable,
        requests: Sequence[SealedRequest],
        snapshot_id: int,
        *,
        files: Callable[[list[ManifestEntry]], list[ManifestEntry]] = lambda entries: entries,
        row: Callable[[ManifestFile], ManifestFile] = lambda row: row,
        snapshot: Callable[[Snapshot], Snapshot] = lambda snapshot: snapshot,
        entry: Callable[[ProducerEntry], ProducerEntry] = lambda entry: entry,
        keeps: bool = True,
        writes_manifest: bool = True,
        evidence: Sequence[SealedRequest] | None = None,
    ) -> None:
        metadata = base.metadata
        parent = metadata.current_snapshot
        number = metadata.last_sequence_number + 1
        entries = files([added_entry(file) for one in requests for file in _files(base, one)])
        context = ManifestContext(2, metadata.current_schema, metadata.default_spec)
        encoded = encode_manifest(entries, context, sync=SYNC)
        folder = f"{metadata.location}/metadata"
        path = f"{folder}/m-{snapshot_id}.avro"
        own = row(
            manifest_file(
                encoded,
                context,
                manifest_path=path,
                snapshot_id=snapshot_id,
                sequence_number=number,
            )
        )
        rows = [own, *(_KEPT.get(parent.snapshot_id, ()) if parent and keeps else ())]
        named = evidence if evidence is not None else requests
        location = f"{folder}/snap-{snapshot_id}.avro"
        content = encode_manifest_list(
            [encode_manifest_file(one, 2) for one in rows],
            format_version=2,
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent.snapshot_id if parent else None,
            sequence_number=number,
            first_row_id=None,
            sync=SYNC,
            extra_metadata={EVIDENCE_KEY: print_evidence([one.request for one in named])},
        )
        added = [one.data_file for one in entries if one.status == ManifestEntryStatus.ADDED]
        made = snapshot(
            Snapshot(
                snapshot_id=snapshot_id,
                parent_snapshot_id=parent.snapshot_id if parent else None,
                sequence_number=number,
                timestamp_ms=max(LATER_MS, metadata.last_updated_ms),
                manifest_list=location,
                summary=append_summary(
                    parent.summary if parent else None,
                    added_data_files=len(added),
                    added_records=sum(file.record_count for file in added),
                    added_files_size=sum(file.file_size_in_bytes for file in added),
                    changed_partition_count=1,
                    manifests_created=1,
                    manifests_kept=0,
                    extra={COUNT_KEY: str(len(named))},
                ),
                schema_id=0,
            )
        )
        _KEPT[snapshot_id] = tuple(rows)
        proofs = read_evidence(content, made)
        self.objects = [NewObject(location, content)]
        if writes_manifest:
            self.objects.append(NewObject(path, encoded.content))
        self.updates: list[Update] = [
            AddSnapshot(made),
            SetSnapshotRef(MAIN, SnapshotRef(snapshot_id, "branch")),
        ]
        for one in named:
            request = one.request
            known = ProducerEntry(metadata.require_uuid())
            landed = proofs[request.producer.id, request.epoch]
            text = print_entry(entry(known.with_landed(landed)))
            self.updates.append(SetProperties({property_key(request.producer.id): text}))


_KEPT: dict[int, tuple[ManifestFile, ...]] = {}


def _files(base: LoadedTable, sealed: SealedRequest) -> list[Any]:
    return [build_file(base.metadata, sealed.request.attempt)]


@pytest.fixture
def bench() -> Bench:
    _KEPT.clear()
    return Bench()


async def test_a_right_history_breaks_nothing(bench: Bench) -> None:
    table = await bench.create_table()
    first = await bench.publish(table)
    await bench.commit(table, first)
    second = await bench.publish(table, producer="query-2")
    after = await bench.commit(table, second)
    snapshot = after.metadata.current_snapshot
    assert snapshot is not None
    receipt = bench.receipt(
        second, ReceiptState.COMMITTED, snapshot_id=snapshot.snapshot_id, sequence_number=2
    )
    bench.invariants.replied(OURS, receipt)
    await bench.inbox.delete([first.request.inbox_key, second.request.inbox_key])
    for sealed in (first, second):
        for path in (file.file_path for file in _files(table, sealed)):
            await bench.storage.create((NewObject(path, b"x"),))
    bench.invariants.at_quiescence()
    assert bench.history.violations == []
    assert bench.invariants.commits == 2


# --- I1, I13: nothing ends without a verdict -----------------------------------------------------


async def test_a_request_that_leaves_the_inbox_unlanded_breaks_i1(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    await bench.inbox.delete([sealed.request.inbox_key])
    assert bench.found() == {"I1"}
    bench.invariants.at_quiescence()
    assert "lost" in bench.history.violations[-1].text


async def test_an_epoch_that_is_skipped_with_other_content_breaks_i1(bench: Bench) -> None:
    table = await bench.create_table()
    await bench.commit(table, await bench.publish(table, fingerprint="these rows"))
    other = await bench.publish(table, fingerprint="other rows")
    await bench.server.delete([bench.inbox.location(other.request.inbox_key)])
    bench.invariants.at_quiescence()
    assert any("skipped" in violation.text for violation in bench.history.violations)


async def test_a_quarantine_object_that_goes_without_a_copy_breaks_i1(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    key = sealed.request.inbox_key
    await bench.quarantine.put(_record(key), sealed.content)
    await bench.inbox.delete([key])
    assert bench.found() == set()
    await bench.quarantine.delete([key])
    assert bench.found() == {"I1"}


async def test_what_landed_and_is_in_quarantine_too_breaks_i1(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    await bench.commit(table, sealed)
    await bench.quarantine.put(_record(sealed.request.inbox_key), sealed.content)
    bench.invariants.at_quiescence()
    assert any("is in quarantine for" in one.text for one in bench.history.violations)


async def test_a_doorbell_that_is_acknowledged_too_early_breaks_i13(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    bench.history.tokens["1"] = sealed.request.inbox_key
    await bench.queue.acknowledge(["1"])
    assert bench.found() == {"I13"}


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
    assert bench.found() == {"I3"}


async def test_a_file_that_nobody_published_breaks_i3(bench: Bench) -> None:
    table = await bench.create_table()
    stranger = added_entry(build_file(table.metadata, UUID(int=5)))
    sealed = await bench.publish(table)
    await bench.commit(table, sealed, files=lambda entries: [*entries, stranger])
    assert bench.found() == {"I3"}


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
    (file,) = _files(table, sealed)
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


# --- I9, I10: receipts ---------------------------------------------------------------------------


async def test_a_receipt_for_what_has_not_landed_breaks_i10(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    receipt = bench.receipt(sealed, ReceiptState.COMMITTED, snapshot_id=5, sequence_number=1)
    bench.invariants.replied(OURS, receipt)
    assert bench.found() == {"I10"}


@pytest.mark.parametrize("wrong", [{"snapshot_id": 5}, {"duplicate": True}])
async def test_a_receipt_with_wrong_details_breaks_i10(
    bench: Bench, wrong: dict[str, object]
) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    after = await bench.commit(table, sealed)
    said = {"snapshot_id": after.metadata.current_snapshot_id, "sequence_number": 1, **wrong}
    bench.invariants.replied(OURS, bench.receipt(sealed, ReceiptState.COMMITTED, **said))
    assert bench.found() == {"I10"}


async def test_a_committer_that_does_not_say_where_it_committed_breaks_i10(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    await bench.commit(table, sealed)
    receipt = bench.receipt(sealed, ReceiptState.COMMITTED)
    bench.history.told(sealed.request.producer.id, receipt)
    assert bench.found() == set()
    await bench.queue.reply([("reply-to", receipt)])
    assert bench.found() == {"I10"}


async def test_a_receipt_that_says_quarantined_of_what_landed_breaks_i10(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    await bench.commit(table, sealed)
    said = {"reason": Reason.COMMIT_REJECTED.value, "message": "no"}
    bench.invariants.replied(OURS, bench.receipt(sealed, ReceiptState.QUARANTINED, **said))
    assert bench.found() == {"I10"}


async def test_what_lands_out_of_quarantine_breaks_i10(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    await bench.quarantine.put(_record(sealed.request.inbox_key), sealed.content)
    await bench.commit(table, sealed)
    assert bench.found() == {"I10"}


async def test_a_refusal_that_the_catalog_did_not_say_breaks_i10(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    record = _record(sealed.request.inbox_key, Reason.COMMIT_REJECTED)
    await bench.quarantine.put(record, sealed.content)
    assert bench.found() == {"I10"}


async def test_what_one_was_refused_another_may_land_but_it_leaves_quarantine(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    key, plan = sealed.request.inbox_key, bench.planned(table, [sealed])
    await bench.storage.create(plan.objects)
    metadata = apply_updates(
        table.metadata, plan.updates, base_location=table.metadata_location, now_ms=LATER_MS
    )
    bench.history.refuse(OURS, Swap(table, (), (), metadata, "memory://never"))
    await bench.quarantine.put(_record(key, Reason.COMMIT_REJECTED), sealed.content)
    await bench.commit(table, sealed)
    refusal = {"reason": Reason.COMMIT_REJECTED.value, "message": "no"}
    bench.history.told(OURS, bench.receipt(sealed, ReceiptState.QUARANTINED, **refusal))
    await bench.inbox.delete((key,))
    assert bench.invariants.backlog() == [key]
    await bench.quarantine.delete((key,))
    assert bench.invariants.backlog() == []
    bench.invariants.at_quiescence()
    assert not bench.found() & {"I1", "I10", "I15"}
    await bench.quarantine.put(_record(key, Reason.COMMIT_REJECTED), sealed.content)
    bench.invariants.at_quiescence()
    assert {"I1", "I15"} <= bench.found()


async def test_a_receipt_for_files_that_a_reader_misses_breaks_i9(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    first = await bench.commit(table, sealed)
    await bench.commit(table, await bench.publish(table, producer="query-2"), keeps=False)
    snapshot_id = first.metadata.current_snapshot_id
    bench.history.violations.clear()
    said = {"snapshot_id": snapshot_id, "sequence_number": 1}
    bench.invariants.replied(OURS, bench.receipt(sealed, ReceiptState.COMMITTED, **said))
    assert bench.found() == {"I9"}


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


# --- I12, I15 ------------------------------------------------------------------------------------


async def test_a_file_that_is_deleted_while_it_is_needed_breaks_i12(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    (file,) = _files(table, sealed)
    await bench.storage.create((NewObject(file.file_path, b"rows"),))
    await bench.storage.delete([file.file_path])
    assert bench.found() == set()
    await bench.storage.create((NewObject(file.file_path, b"rows"),))
    await bench.commit(table, sealed)
    await bench.storage.delete([file.file_path])
    assert bench.found() == {"I12"}


async def test_a_request_that_waits_for_ever_breaks_i15(bench: Bench) -> None:
    table = await bench.create_table()
    sealed = await bench.publish(table)
    bench.invariants.at_quiescence()
    assert bench.found() == {"I15"}
    assert bench.invariants.backlog() == [sealed.request.inbox_key]


def _record(key: str, reason: Reason = Reason.PLAN_FAILED) -> QuarantineRecord:
    return QuarantineRecord(key=key, reason=reason.value, message="no", quarantined_at_ms=0)
