from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from random import Random
from uuid import UUID

import pytest

from committer.errors import (
    AccessError,
    AlreadyExistsError,
    NoSuchTableError,
    PublishError,
    StorageUnavailableError,
)
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.manifest.manifest import decode_manifest
from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo
from committer.request import request_format
from committer.request.commit_request import REQUEST_BYTES_MAX, Fingerprint, Producer
from committer.request.needs import Needs
from committer.request.receipt_model import Receipt, ReceiptState
from committer.request.request_format import EncodedRequest, line_digest, read_request
from committer.request.request_key import inbox_key
from committer.storage.inbox.inbox import QuarantineRecord
from tests.support.builders.table_builders import build_table
from tests.support.memory.memory_queue import MemoryQueue
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.workers.publishing import FLIGHTS, Bench, build_bench, quarantine
from workers.requests.publisher import PublishPolicy
from workers.requests.written_epoch import SeenTable

DURABLE = PublishPolicy()
COMMITTED = PublishPolicy(wait="committed", wait_timeout_s=30.0)


async def read_back(bench: Bench) -> EncodedRequest:
    (key,) = await bench.inbox_keys()
    return read_request(await bench.inbox.get(key), key=key)


async def test_a_row_delta_is_published_with_its_delete_files_and_its_needs() -> None:
    """Vectors of one Puffin file keep the order of their places, whatever the caller's order."""
    bench = await build_bench(format_version=3)
    written = bench.written(epoch=5, names=("a", "b"))
    folder = f"{bench.metadata.location}/data"
    puffin = DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"{folder}/deletes-{written.attempt}.puffin",
        file_format="PUFFIN",
        record_count=3,
        file_size_in_bytes=200,
    )
    vectors = [
        replace(
            puffin,
            referenced_data_file=f"{folder}/old-{place}.parquet",
            content_offset=place,
            content_size_in_bytes=40,
        )
        for place in (50, 4)
    ]
    needs = Needs(base_snapshot_id=7, base_sequence_number=3, updates_rows=True)
    written = replace(
        written,
        files=[*vectors, *written.files],
        operation="row-delta",
        needs=needs,
        summary={"job": "merge"},
    )
    await bench.publisher.publish(written, DURABLE)
    sealed = await read_back(bench)
    request = sealed.request
    assert (request.operation, request.needs, request.summary) == (
        "row-delta",
        needs,
        {"job": "merge"},
    )
    data, deletes = request.manifests
    assert (data.content, data.added_files_count) == ("data", 2)
    assert (deletes.content, deletes.added_files_count, deletes.added_rows_count) == (
        "deletes",
        2,
        6,
    )
    entries = decode_manifest(bytes(sealed.manifest(deletes))).entries
    assert [entry.data_file.content_offset for entry in entries] == [4, 50]
    assert entries[0].data_file.referenced_data_file == f"{folder}/old-4.parquet"


async def test_an_epoch_of_a_branch_has_its_attempt_from_the_branch() -> None:
    bench = await build_bench()
    on_main = bench.written(epoch=5)
    written = replace(on_main, branch="audit", files=())
    assert written.attempt != on_main.attempt
    written = replace(written, files=[bench.file("a", written.attempt)])
    await bench.publisher.publish(written, DURABLE)
    assert (await read_back(bench)).request.branch == "audit"


# --- Durable -------------------------------------------------------------------------------------


async def test_a_published_epoch_can_be_read_back_with_its_files() -> None:
    bench = await build_bench()
    written = bench.written(epoch=5, names=("a", "b"))
    receipt = await bench.publisher.publish(written, DURABLE)
    sealed = await read_back(bench)
    request = sealed.request
    assert receipt == Receipt("stream", 5, str(written.attempt), ReceiptState.DURABLE)
    assert (request.catalog, str(request.identifier)) == ("main", "db.flights")
    assert (request.table_uuid, request.epoch) == (bench.metadata.table_uuid, 5)
    assert request.producer == Producer(id="stream", sequential=True)
    assert request.published_at_ms == bench.world.now_ms()
    (reference,) = request.manifests
    assert (reference.added_files_count, reference.added_rows_count) == (2, 20)
    entries = decode_manifest(bytes(sealed.manifest(reference))).entries
    assert [entry.data_file.file_path for entry in entries] == [
        file.file_path for file in written.files
    ]
    assert entries[0].snapshot_id is None
    assert entries[0].data_file.lower_bounds == {1: b"\1\0\0\0\0\0\0\0"}


async def test_a_published_epoch_is_announced_with_its_content() -> None:
    bench = await build_bench()
    await bench.publisher.publish(bench.written(), DURABLE)
    (delivery,) = await MemoryQueue(bench.server, consumer="c").read(count_max=9, wait_s=0)
    sealed = await read_back(bench)
    assert delivery.doorbell.inbox_key == sealed.request.inbox_key
    assert delivery.doorbell.digest == line_digest(sealed.content)
    assert delivery.doorbell.content == sealed.content
    assert delivery.doorbell.reply_to is None


async def test_an_epoch_that_cannot_be_announced_is_published_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = await build_bench()
    bench.server.available = False
    receipt = await bench.publisher.publish(bench.written(), DURABLE)
    assert receipt.state == ReceiptState.DURABLE
    assert len(await bench.inbox_keys()) == 1
    assert "was not announced" in caplog.text


async def test_a_repeated_commit_of_one_attempt_changes_nothing() -> None:
    bench = await build_bench()
    await bench.publisher.publish(bench.written(names=("a", "b")), DURABLE)
    first = (await read_back(bench)).content
    bench.world.advance(60)
    await bench.publisher.publish(bench.written(names=("b", "a")), DURABLE)
    assert (await read_back(bench)).content == first


async def test_two_writes_of_one_attempt_ask_for_a_sink_name() -> None:
    bench = await build_bench()
    await bench.publisher.publish(bench.written(names=("a",)), DURABLE)
    with pytest.raises(PublishError, match="give each write its own `sink` option"):
        await bench.publisher.publish(bench.written(names=("b",)), DURABLE)


class _ForgetfulStorage(MemoryStorage):
    """The answer to the first create below the inbox is lost, though it was done."""

    failures = 1

    async def create(self, objects: Sequence[NewObject]) -> None:
        await super().create(objects)
        if self.failures and "/inbox/" in objects[0].location:
            self.failures -= 1
            raise StorageUnavailableError("no answer")


async def test_a_put_whose_answer_was_lost_is_tried_again_and_found_done() -> None:
    bench = await build_bench(storage=_ForgetfulStorage())
    receipt = await bench.publisher.publish(bench.written(), DURABLE)
    assert receipt.state == ReceiptState.DURABLE
    assert len(await bench.inbox_keys()) == 1


class _QuickCommitter(MemoryStorage):
    """The answer to the first write is lost; what it wrote is gone between a look and a look."""

    calls = 0

    async def create(self, objects: Sequence[NewObject]) -> None:
        is_request = "/inbox/" in objects[0].location
        self.calls += is_request
        try:
            await super().create(objects)
        except AlreadyExistsError:
            await self.delete([created.location for created in objects])
            raise
        if is_request and self.calls == 1:
            raise StorageUnavailableError("no answer")


async def test_a_request_that_lands_while_it_is_sent_again_is_published() -> None:
    storage = _QuickCommitter()
    bench = await build_bench(storage=storage)
    receipt = await bench.publisher.publish(bench.written(), DURABLE)
    assert receipt.state == ReceiptState.DURABLE
    assert storage.calls == 3


class _DeafStorage(MemoryStorage):
    async def create(self, objects: Sequence[NewObject]) -> None:
        if "/inbox/" in objects[0].location:
            raise StorageUnavailableError("no answer")
        await super().create(objects)


async def test_a_storage_that_stays_away_fails_the_publication() -> None:
    bench = await build_bench(storage=_DeafStorage())
    started_s = bench.world.monotonic_s()
    with pytest.raises(StorageUnavailableError):
        await bench.publisher.publish(bench.written(), DURABLE)
    assert 5 < bench.world.monotonic_s() - started_s < 10


# --- The table has changed -----------------------------------------------------------------------


async def test_files_of_a_table_that_was_created_again_are_refused() -> None:
    bench = await build_bench()
    with pytest.raises(PublishError, match="dropped and created again"):
        await bench.publisher.publish(bench.written(table_uuid=UUID(int=1)), DURABLE)
    assert await bench.inbox_keys() == []


async def test_files_of_a_schema_that_was_removed_are_refused() -> None:
    bench = await build_bench()
    with pytest.raises(PublishError, match="was removed"):
        await bench.publisher.publish(bench.written(schema_id=99), DURABLE)


async def test_a_table_that_was_dropped_is_named() -> None:
    bench = await build_bench()
    await bench.catalog.drop_table(bench.written().identifier)
    with pytest.raises(NoSuchTableError, match="flights"):
        await bench.publisher.publish(bench.written(), DURABLE)


# --- Quarantine ----------------------------------------------------------------------------------


async def test_publishing_stops_at_an_earlier_epoch_in_quarantine() -> None:
    bench = await build_bench()
    await quarantine(bench, bench.written(epoch=3))
    with pytest.raises(PublishError, match=r"epoch 3 .*schema_mismatch: no column `x`"):
        await bench.publisher.publish(bench.written(epoch=4), DURABLE)
    assert await bench.inbox_keys() == []


async def test_publishing_goes_on_past_a_quarantined_epoch_if_told_to() -> None:
    bench = await build_bench()
    await quarantine(bench, bench.written(epoch=3))
    policy = PublishPolicy(on_quarantine="continue")
    await bench.publisher.publish(bench.written(epoch=4), policy)
    assert len(await bench.inbox_keys()) == 1


async def test_publishing_goes_on_past_a_conflict_that_was_only_told() -> None:
    bench = await build_bench()
    for epoch, is_told_only in ((1, True), (3, False)):
        written = bench.written(epoch=epoch)
        key = inbox_key(written.table_uuid, written.producer.id, epoch, written.attempt)
        record = QuarantineRecord(
            key=key, reason="conflict", message="", quarantined_at_ms=1, is_told_only=is_told_only
        )
        await bench.quarantine.put(record, b"")
    await bench.publisher.publish(bench.written(epoch=2), PublishPolicy())
    with pytest.raises(PublishError, match=r"epoch 3 of .* is in quarantine"):
        await bench.publisher.publish(bench.written(epoch=4), PublishPolicy())


async def test_a_rerun_of_the_quarantined_epoch_itself_is_published() -> None:
    bench = await build_bench()
    await quarantine(bench, bench.written(epoch=3))
    await bench.publisher.publish(bench.written(epoch=3, attempt=2), DURABLE)
    assert len(await bench.inbox_keys()) == 1


async def test_the_quarantine_of_another_producer_stops_nobody() -> None:
    bench = await build_bench()
    await quarantine(bench, bench.written(epoch=3, producer=Producer(id="other")))
    await bench.publisher.publish(bench.written(epoch=4), DURABLE)
    assert len(await bench.inbox_keys()) == 1


# --- Waiting -------------------------------------------------------------------------------------


async def reply(bench: Bench, receipt: Receipt) -> str:
    """Answer the next announced request, as the committer does, and say where to."""
    queue = MemoryQueue(bench.server, consumer="c")
    (delivery,) = await queue.read(count_max=9, wait_s=5)
    assert delivery.doorbell.reply_to is not None
    await queue.reply([(delivery.doorbell.reply_to, receipt)])
    await queue.acknowledge([delivery.token])
    return delivery.doorbell.reply_to


async def test_a_receipt_of_the_queue_ends_waiting() -> None:
    bench = await build_bench()
    written = bench.written(epoch=1)
    sent = Receipt("stream", 1, str(written.attempt), ReceiptState.COMMITTED, 4711, 42)
    answer = asyncio.create_task(reply(bench, sent))
    assert await bench.publisher.publish(written, COMMITTED) == sent
    await answer


async def test_a_receipt_of_one_table_is_not_taken_for_that_of_another() -> None:
    """One micro-batch may be written to two tables: producer, epoch and nonce are equal then."""
    bench = await build_bench()
    other = build_table("db.trains", warehouse="memory:/warehouse")
    await bench.catalog.create_table(other)
    first = bench.written(epoch=1)
    receipt = Receipt("stream", 1, str(first.attempt), ReceiptState.COMMITTED, 4711, 42)
    answer = asyncio.create_task(reply(bench, receipt))
    assert await bench.publisher.publish(first, COMMITTED) == receipt
    # It comes again: the committer did not hear that it was taken.
    queue = MemoryQueue(bench.server, consumer="c")
    await queue.reply([(await answer, receipt)])
    second = replace(
        first,
        identifier=other.identifier,
        table_uuid=other.metadata.require_uuid(),
        files=first.files,
    )
    own = Receipt("stream", 1, str(second.attempt), ReceiptState.COMMITTED, 4712, 1)
    answer = asyncio.create_task(reply(bench, own))
    assert await bench.publisher.publish(second, COMMITTED) == own
    await answer


@pytest.mark.parametrize("is_up", [True, False])
async def test_waiting_without_a_queue_ends_when_the_ledger_shows_the_epoch(is_up: bool) -> None:
    bench = await build_bench(with_queue=is_up)
    bench.server.available = False
    written = bench.written(epoch=1)
    await bench.land(written)
    receipt = await bench.publisher.publish(written, COMMITTED)
    assert (receipt.state, receipt.snapshot_id, receipt.sequence_number) == (
        ReceiptState.COMMITTED,
        4711,
        42,
    )
    assert not receipt.duplicate


async def test_the_ledger_does_not_say_which_snapshot_was_staged() -> None:
    """It names the head of the branch then."""
    bench = await build_bench(with_queue=False)
    written = replace(bench.written(epoch=1), stage_only=True, summary={"wap.id": "w"})
    await bench.land(written)
    receipt = await bench.publisher.publish(written, COMMITTED)
    assert (receipt.state, receipt.snapshot_id) == (ReceiptState.COMMITTED, None)


async def test_a_queue_that_denies_receipts_fails_no_durable_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def deny(queue: MemoryQueue, reply_to: str, *, wait_s: float) -> Sequence[Receipt]:
        raise AccessError("NOPERM this user has no permissions to access the key")

    monkeypatch.setattr(MemoryQueue, "wait_for_receipts", deny)
    bench = await build_bench()
    written = bench.written(epoch=1)
    await bench.land(written)
    receipt = await bench.publisher.publish(written, COMMITTED)
    assert (receipt.state, receipt.snapshot_id) == (ReceiptState.COMMITTED, 4711)


async def test_waiting_tells_when_another_attempt_has_landed() -> None:
    bench = await build_bench(with_queue=False)
    await bench.land(bench.written(epoch=1), attempt=9)
    receipt = await bench.publisher.publish(bench.written(epoch=1), COMMITTED)
    assert receipt.state == ReceiptState.COMMITTED
    assert receipt.duplicate


async def test_other_rows_under_a_landed_epoch_are_not_said_to_be_committed() -> None:
    """A restored checkpoint: the committer refuses them, and its word is waited for."""
    storage = _Committer()
    storage.reason = "epoch_content_differs"
    bench = await build_bench(with_queue=False, storage=storage)
    await bench.land(bench.written(epoch=1), attempt=9)
    other = Fingerprint(kind="spark-offsets", value="other offsets")
    written = replace(bench.written(epoch=1), fingerprint=other)
    with pytest.raises(PublishError, match="went to quarantine: epoch_content_differs"):
        await bench.publisher.publish(written, COMMITTED)


@pytest.mark.parametrize("reason", ["conflict", "transaction_incomplete"])
async def test_a_conflict_that_is_only_told_is_not_said_to_be_in_quarantine(reason: str) -> None:
    storage = _Committer()
    storage.reason, storage.conflict = reason, "missing"
    bench = await build_bench(with_queue=False, storage=storage)
    told = replace(bench.written(epoch=1), needs=Needs(on_conflict="fail"))
    with pytest.raises(PublishError, match="did not land, and is not kept: because"):
        await bench.publisher.publish(told, COMMITTED)


async def test_a_conflict_that_is_only_told_is_an_answer_to_who_tries_again() -> None:
    storage = _Committer()
    storage.reason = "conflict"
    bench = await build_bench(with_queue=False, storage=storage)
    told = replace(bench.written(epoch=1), needs=Needs(on_conflict="fail"))
    trying = replace(COMMITTED, answers_conflicts=True)
    receipt = await bench.publisher.publish(told, trying)
    assert (receipt.state, receipt.reason) == (ReceiptState.QUARANTINED, "conflict")
    # What is kept for an operator is none.
    bench = await build_bench(with_queue=False, storage=storage)
    with pytest.raises(PublishError, match="went to quarantine: conflict"):
        await bench.publisher.publish(bench.written(epoch=2), trying)


async def test_an_epoch_that_landed_long_ago_is_committed_once_its_request_has_left() -> None:
    """The committer finds the proof in a manifest list; or none, and refuses it."""
    storage = _Committer()
    bench = await build_bench(with_queue=False, storage=storage)
    await bench.land(bench.written(epoch=1), attempt=9, is_remembered=False)
    receipt = await bench.publisher.publish(bench.written(epoch=1), COMMITTED)
    assert receipt.state == ReceiptState.COMMITTED
    storage.reason = "epoch_landed_unproven"
    with pytest.raises(PublishError, match="went to quarantine: epoch_landed_unproven"):
        await bench.publisher.publish(bench.written(epoch=1, attempt=2), COMMITTED)


async def test_an_epoch_that_landed_long_ago_is_waited_for_while_its_request_is_durable() -> None:
    bench = await build_bench(with_queue=False)
    await bench.land(bench.written(epoch=1), attempt=9, is_remembered=False)
    with pytest.raises(PublishError, match="nothing is lost, it lands once the committer"):
        await bench.publisher.publish(bench.written(epoch=1), COMMITTED)


async def test_waiting_in_vain_says_that_nothing_is_lost() -> None:
    bench = await build_bench(with_queue=False)
    with pytest.raises(PublishError, match=r"is durable, but .* within 30 s"):
        await bench.publisher.publish(bench.written(), COMMITTED)
    assert len(await bench.inbox_keys()) == 1


class _Committer(MemoryStorage):
    """Takes each request out of the inbox the moment that it is looked for."""

    async def _settle(self, location: str) -> None:
        content = await self.get(location)
        key = location.partition("/inbox/")[2]
        await self.delete([location])
        if self.reason:
            record = QuarantineRecord(
                key=key,
                reason=self.reason,
                message="because",
                quarantined_at_ms=1,
                conflict=self.conflict,
            )
            line = record.model_dump_json().encode()
            await self.create(
                [NewObject(location.replace("/inbox/", "/quarantine/"), line + b"\n" + content)]
            )

    reason = ""
    conflict: str | None = None

    async def create(self, objects: Sequence[NewObject]) -> None:
        await super().create(objects)
        for created in objects:
            if "/inbox/" in created.location:
                await self._settle(created.location)


async def test_a_one_shot_producer_is_committed_once_its_request_is_gone_from_the_inbox() -> None:
    bench = await build_bench(with_queue=False, storage=_Committer())
    written = bench.written(producer=Producer(id="once", one_shot=True))
    receipt = await bench.publisher.publish(written, COMMITTED)
    assert receipt.state == ReceiptState.COMMITTED


@pytest.mark.parametrize("folder", ["inbox", "quarantine"])
async def test_a_one_shot_request_that_was_replayed_is_not_taken_for_landed(folder: str) -> None:
    """It left the inbox for the quarantine and came back between two looks, under a fresh key; and
    perhaps it went to quarantine again.
    """
    storage = _Operator(folder)
    bench = await build_bench(with_queue=False, storage=storage)
    written = bench.written(producer=Producer(id="once", one_shot=True))
    with pytest.raises(PublishError, match="is durable, but"):
        await bench.publisher.publish(written, COMMITTED)


class _Operator(_Committer):
    """Replays each request at once, after a committer has quarantined it."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    async def _settle(self, location: str) -> None:
        if "." not in location.rpartition("/")[2]:
            content = await self.get(location)
            await self.delete([location])
            fresh = location.replace("/inbox/", f"/{self._folder}/") + f".{UUID(int=1)}"
            await self.create([NewObject(fresh, content)])


async def test_waiting_for_a_request_that_goes_to_quarantine_fails_with_the_reason() -> None:
    storage = _Committer()
    storage.reason = "spec_mismatch"
    bench = await build_bench(with_queue=False, storage=storage)
    with pytest.raises(PublishError, match="went to quarantine: spec_mismatch: because"):
        await bench.publisher.publish(bench.written(), COMMITTED)


async def test_waiting_for_a_request_that_goes_to_quarantine_goes_on_if_told_to(
    caplog: pytest.LogCaptureFixture,
) -> None:
    storage = _Committer()
    storage.reason = "spec_mismatch"
    bench = await build_bench(with_queue=False, storage=storage)
    policy = PublishPolicy("continue", "committed", 30.0)
    with caplog.at_level(logging.WARNING):
        receipt = await bench.publisher.publish(bench.written(), policy)
    assert receipt.state == ReceiptState.QUARANTINED
    assert "spec_mismatch" in caplog.text


# --- Round trips ---------------------------------------------------------------------------------


class _CountedStorage(MemoryStorage):
    """Notes the name of each call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        self.calls.append("get")
        return await super().get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )

    async def create(self, objects: Sequence[NewObject]) -> None:
        self.calls.append("create")
        await super().create(objects)

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        self.calls.append("list")
        async for info in super().list(prefix, skips=skips):
            yield info


async def test_an_epoch_costs_one_look_into_the_quarantine_and_one_put() -> None:
    storage = _CountedStorage()
    bench = await build_bench(storage=storage)
    await bench.publisher.load_table(FLIGHTS)
    storage.calls.clear()
    await bench.publisher.publish(bench.written(epoch=0), DURABLE)
    await bench.publisher.publish(bench.written(epoch=1), DURABLE)
    assert storage.calls == ["list", "create"] * 2
    bench.world.advance(60)
    await bench.publisher.publish(bench.written(epoch=2), DURABLE)
    assert storage.calls == ["list", "create"] * 3, "the pointer did not move"


async def test_a_producer_whose_last_epoch_was_seen_to_commit_does_not_ask_the_quarantine() -> None:
    storage = _CountedStorage()
    bench = await build_bench(storage=storage, with_queue=False)
    await bench.land(bench.written(epoch=0))
    await bench.publisher.publish(bench.written(epoch=0), COMMITTED)
    storage.calls.clear()
    await bench.publisher.publish(bench.written(epoch=1), DURABLE)
    assert storage.calls == ["create"]
    await bench.publisher.publish(bench.written(epoch=0, attempt=2), DURABLE)
    assert storage.calls == ["create", "list", "create"], "a replay is no proof of anything"


async def test_a_table_that_is_created_again_is_read_again_although_it_was_seen_lately() -> None:
    storage = _CountedStorage()
    bench = await build_bench(storage=storage)
    await bench.publisher.load_table(FLIGHTS)
    again = build_table("db.flights", warehouse="memory:/warehouse2")
    await bench.catalog.drop_table(FLIGHTS)
    await bench.catalog.create_table(again)
    storage.calls.clear()
    await bench.publisher.publish(bench.written(table_uuid=again.metadata.table_uuid), DURABLE)
    assert storage.calls == ["get", "list", "create"]


@pytest.mark.parametrize(
    ("age_ms", "asked"), [(0, []), (29_999, []), (30_000, ["get"]), (-1, ["get"])]
)
async def test_a_table_that_was_seen_as_the_write_was_planned_is_not_asked_again(
    age_ms: int, asked: list[str]
) -> None:
    storage = _CountedStorage()
    bench = await build_bench(storage=storage)
    storage.calls.clear()
    table = bench.metadata
    seen = SeenTable(
        table.require_uuid(),
        table.format_version,
        table.schemas,
        table.partition_specs,
        bench.world.now_ms() - age_ms,
    )
    await bench.publisher_elsewhere().publish(replace(bench.written(), seen=seen), DURABLE)
    assert storage.calls == [*asked, "list", "create"]
    found = await read_back(bench)
    await bench.inbox.delete(await bench.inbox_keys())
    await bench.publisher.publish(bench.written(), DURABLE)
    assert found == await read_back(bench), "it is the request that a look would give"


# --- Size ----------------------------------------------------------------------------------------


async def test_an_epoch_whose_request_is_too_large_is_refused_before_it_is_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = await build_bench()
    written = bench.written(epoch=7, names=[f"file-{number}" for number in range(120)])
    monkeypatch.setattr(request_format, "REQUEST_BYTES_MAX", 8_000)
    with pytest.raises(
        PublishError,
        match=r"^epoch 7 of producer `stream` of table `db.flights` is not published, with 120 data"
        r" files: the request has \d+ bytes, the limit is 8000. Write fewer, larger files",
    ):
        await bench.publisher.publish(written, DURABLE)
    assert await bench.inbox_keys() == []
    assert bench.server.waiting(written.table_uuid) == 0
    await bench.publisher.publish(bench.written(epoch=7, names=("one",), attempt=2), DURABLE)
    assert (await read_back(bench)).request.epoch == 7


@pytest.mark.thorough
async def test_a_manifest_that_no_request_has_room_for_is_refused_by_its_size() -> None:
    bench = await build_bench()
    written = bench.written()
    bound = Random(1).randbytes(REQUEST_BYTES_MAX)
    files = [replace(written.files[0], lower_bounds={2: bound})]
    with pytest.raises(PublishError, match=f"the limit is {REQUEST_BYTES_MAX}. Write"):
        await bench.publisher.publish(replace(written, files=files), DURABLE)
    assert await bench.inbox_keys() == []
