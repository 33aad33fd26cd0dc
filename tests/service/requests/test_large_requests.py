"""Large requests: they wait for room and for their turn, and delay only one another."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from committer.iceberg.updates.metadata_update import RemoveProperties
from committer.ledger_entry import property_key
from committer.plan.batch.request_check import CheckedRequest, Checker, Inflates, NeedsManifests
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import ALL_SHARDS, Delivery
from committer.ports.storage import NewObject, Storage
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import EncodedRequest, seal_request
from committer.service.checks import large_checks
from committer.service.ingest import committer_pool
from committer.service.requests import large_requests
from committer.service.requests.deferred_doorbells import Waiters
from committer.service.requests.inbox_keys import InboxKey
from committer.service.requests.large_requests import Arrival, LargeRequests
from committer.service.table import verdicts
from committer.service.telemetry.instrumented_ports import InstrumentedStorage
from tests.support.builders.bad_requests import naming
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import (
    LARGE_FILES,
    build_file,
    build_line,
    build_manifest,
    build_request,
    large,
    seal,
)
from tests.support.clock.virtual_time import LoopWorld
from tests.support.faults.counting_storage import CountingStorage
from tests.support.memory.memory_queue import MemoryQueue
from tests.support.service.checks_here import ChecksHere
from tests.support.service.outside import add_table, foreign_commit, put_raw
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True
FILES = LARGE_FILES
CHECK_S = 100.0
RECORD_S = 5.0
KIB = 1024
FAT_BYTES = 5 * 1024 * KIB


class SlowChecks(ChecksHere):
    """Every large request takes long to check, one after another."""

    def __init__(self, check_s: float = CHECK_S) -> None:
        super().__init__()
        self.turn = asyncio.Lock()
        self.check_s = check_s
        self.checked: list[str] = []

    async def check(
        self,
        checker: Checker,
        sealed: EncodedRequest,
        producer: str,
        read: Mapping[str, bytes] | None,
        inflated_bytes_max: int,
    ) -> CheckedRequest | NeedsManifests | Inflates:
        async with self.turn:
            await asyncio.sleep(self.check_s)
            self.checked.append(sealed.request.producer.id)
            return await super().check(checker, sealed, producer, read, inflated_bytes_max)


class SlowReads(InstrumentedStorage):
    """Whole large objects take an hour to be read; to refuse them by their size takes no time."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner, CountingStorage(inner))

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        content = await self.inner.get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )
        if len(content) > large_requests.LARGE_BYTES_MIN:
            await asyncio.sleep(3_600)
        return content


class SlowQuarantine(InstrumentedStorage):
    """Each record takes its time to be written."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner, CountingStorage(inner))

    async def create(self, objects: Sequence[NewObject]) -> None:
        if "/quarantine/" in objects[0].location:
            await asyncio.sleep(RECORD_S)
        await self.inner.create(objects)


async def landed(harness: ServiceHarness, producer: str) -> bool:
    receipts = await harness.receipts(producer)
    return [one.state for one in receipts] == [ReceiptState.COMMITTED]


# --- Neighbors ----------------------------------------------------------------------------------


async def test_small_requests_land_while_large_ones_of_their_table_are_checked() -> None:
    checks = SlowChecks()
    harness = ServiceHarness(checks=checks)
    table = await harness.create_table()
    async with harness.running():
        for number in range(5):
            await harness.publish(large(table, f"large-{number}"))
        await harness.settle(1.0)
        await harness.publish(build_request(table, producer="small"))
        await harness.settle(1.0)
        assert await landed(harness, "small")
        await harness.settle(6 * CHECK_S)
        assert all([await landed(harness, f"large-{number}") for number in range(5)])
    assert len(checks.checked) == 5
    assert len(await harness.live_files()) == 5 * FILES + 1
    assert await harness.outstanding() == []


async def test_large_requests_that_are_checked_soon_after_one_another_land_in_one_commit() -> None:
    harness = ServiceHarness(checks=SlowChecks(large_checks.GATHER_S / 10))
    table = await harness.create_table()
    for number in range(5):
        await harness.publish(large(table, f"large-{number}"))
    await harness.run_until_settled()
    assert len((await harness.load()).snapshots) == 1
    assert len(await harness.live_files()) == 5 * FILES


async def test_a_checked_request_does_not_wait_for_a_long_check_of_another() -> None:
    harness = ServiceHarness(checks=SlowChecks())
    table = await harness.create_table()
    async with harness.running():
        for number in range(2):
            await harness.publish(large(table, f"large-{number}"))
        await harness.settle(CHECK_S + 2 * large_checks.GATHER_S)
        assert await landed(harness, "large-0")


async def test_a_doorbell_behind_large_requests_is_not_delayed_by_them() -> None:
    harness = ServiceHarness(wrap=SlowReads)
    table = await harness.create_table()
    async with harness.running():
        for number in range(40):
            await harness.publish(large(table, f"large-{number}"))
        await harness.settle(1.0)
        await harness.publish(build_request(table, producer="small"))
        await harness.settle(1.0)
        assert await landed(harness, "small")


@pytest.mark.thorough
async def test_a_good_request_lands_before_all_of_many_bad_ones_of_its_table_are_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verdicts, "RECORDS_A_ROUND", 4)
    harness = ServiceHarness(wrap=SlowQuarantine)
    table = await harness.create_table()
    for number in range(60):
        await harness.inbox.put(large(table, f"bad-{number}", catalog="elsewhere"))
    async with harness.running(reconcile_interval_s=5.0):
        await harness.settle(0.5)
        await harness.publish(build_request(table, producer="small"))
        await harness.settle(2 * RECORD_S)
        assert await landed(harness, "small")
        assert len(await harness.quarantined()) < 20
        await harness.settle(60 * RECORD_S)
        assert len(await harness.quarantined()) == 60


async def test_names_that_are_no_tables_are_not_remembered() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    for number in range(20):
        sealed = build_request(table, producer=f"query-{number}")
        line = sealed.request.model_copy(
            update={"table": sealed.request.table.model_copy(update={"name": f"no{number}"})}
        )
        content = line.model_dump_json(by_alias=True, exclude_none=True).encode() + b"\n"
        await put_raw(harness, line.inbox_key, content + sealed.content[sealed.body :])
    async with harness.running(reconcile_interval_s=5.0):
        await harness.settle(30.0)
        assert harness.tables.all == ()
    assert {one.reason for one in await harness.quarantined()} == {Reason.TABLE_UNKNOWN}


# --- Turns and room ------------------------------------------------------------------------------


class Taking:
    """Takes large requests, a second each, and remembers how much it had in hand."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.in_hand = 0
        self.most = 0

    async def take(self, request: Arrival) -> None:
        self.in_hand += request.size_bytes
        self.most = max(self.most, self.in_hand)
        await asyncio.sleep(1.0)
        self.in_hand -= request.size_bytes
        self.taken.append(request.key)


def waiting(producer: str, number: int, size_bytes: int, *, table: int = 0) -> Arrival:
    key = f"{UUID(int=table)}/{producer}/{number:020d}/a"
    return Arrival(InboxKey(key), Waiters(), 0, size_bytes=size_bytes)


async def take_all(requests: list[Arrival], taking: Taking) -> None:
    turns = LargeRequests(LoopWorld(), lambda: 0)
    for request in requests:
        turns.add(request)
        turns.add(replace(request))

    async def take() -> None:
        while True:
            async with turns.turn() as request:
                await taking.take(request)

    reading = [asyncio.create_task(take()) for _ in range(4)]
    await asyncio.sleep(1_000.0)
    for each in reading:
        each.cancel()
    assert turns.oldest_ms() == {}


async def test_what_is_in_hand_stays_within_its_bytes_whatever_waits() -> None:
    room = large_requests.IN_HAND_BYTES_MAX
    taking = Taking()
    await take_all([waiting(f"query-{n % 7}", n, room // (1 + n % 5)) for n in range(50)], taking)
    assert taking.most <= room
    assert len(taking.taken) == 50


async def test_one_that_is_larger_than_all_room_has_its_turn_alone() -> None:
    taking = Taking()
    huge = waiting("huge", 0, 2 * large_requests.IN_HAND_BYTES_MAX)
    await take_all([huge, *(waiting("query", n, 100 * KIB) for n in range(20))], taking)
    assert len(taking.taken) == 21
    assert taking.most == huge.size_bytes


async def test_one_producers_backlog_does_not_delay_another_producers_request() -> None:
    room = large_requests.IN_HAND_BYTES_MAX
    greedy = [waiting("greedy", n, room // 2) for n in range(100)]
    modest = waiting("modest", 0, room // 2)
    taking = Taking()
    await take_all([*greedy, modest], taking)
    assert taking.taken.index(modest.key) < 8


async def test_one_tables_many_producers_do_not_delay_another_tables_request() -> None:
    room = large_requests.IN_HAND_BYTES_MAX
    crowd = [waiting(f"query-{n}", 0, room // 2) for n in range(100)]
    quiet = waiting("query", 0, room // 2, table=1)
    taking = Taking()
    await take_all([*crowd, quiet], taking)
    assert taking.taken.index(quiet.key) < 8


async def test_a_table_that_gets_nowhere_holds_no_large_request_in_memory() -> None:
    harness = ServiceHarness()
    frozen = await harness.create_table()
    other = await harness.create_table("db.other")
    async with harness.running(reconcile_interval_s=60.0, reconcile_age_s=120.0):
        await harness.publish(build_request(frozen, producer="query-1", epoch=0))
        await harness.settle()
        await foreign_commit(harness, frozen, RemoveProperties((property_key("query-1"),)))
        await harness.publish(large(frozen, "query-1", epoch=1))
        await harness.settle(300.0)
        assert [one.waiting.large_bytes for one in harness.tables.all] == [0]
        await harness.publish(large(other, "query-2"))
        await harness.settle()
        assert len(await harness.live_files("db.other")) == FILES
        await harness.accept()
        await harness.settle(300.0)
        assert await harness.outstanding() == []


# --- Manifests that are named --------------------------------------------------------------------


async def test_more_bytes_of_named_manifests_than_a_request_may_have_are_not_read() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    sealed, _ = naming(table, "query-1")
    references = sealed.request.manifests
    many = [
        references[0].model_copy(update={"path": f"{references[0].path}-{n}", "length": 60_000_000})
        for n in range(2)
    ]
    line = sealed.request.model_copy(update={"manifests": tuple(many)})
    content = line.model_dump_json(by_alias=True, exclude_none=True).encode() + b"\n"
    await put_raw(harness, line.inbox_key, content)
    await harness.run_until_settled()
    [record] = await harness.quarantined()
    assert record.reason == Reason.REQUEST_TOO_LARGE


def fat(table: LoadedTable, producer: str) -> EncodedRequest:
    """Build a request of some kilobytes, of which one block inflates to five megabytes."""
    line = build_line(table, producer=producer)
    file = replace(build_file(table.metadata, line.attempt), lower_bounds={2: bytes(FAT_BYTES)})
    sealed = seal(line, [build_manifest(table.metadata, [file])])
    assert len(sealed.content) < large_requests.LARGE_BYTES_MIN
    return sealed


async def test_what_stays_inflated_waits_for_room_and_lands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(large_requests, "IN_HAND_BYTES_MAX", 2 * FAT_BYTES + 100 * KIB)
    harness = ServiceHarness(min_interval_ms=60_000)
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table, producer="first"))
        await harness.settle(1.0)
        for number in range(5):
            await harness.publish(fat(table, f"fat-{number}"))
        await harness.publish(build_request(table, producer="thin"))
        most = 0
        for _ in range(40):
            await harness.settle(10.0)
            most = max(most, harness.wiring.named.in_hand_bytes)
        assert 2 * FAT_BYTES < most <= large_requests.IN_HAND_BYTES_MAX
        assert harness.wiring.named.in_hand_bytes == 0
        assert await harness.outstanding() == []
    assert len(await harness.live_files()) == 7


async def test_more_that_stays_inflated_than_a_request_may_have_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(large_checks, "REQUEST_BYTES_MAX", FAT_BYTES - 1)
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.publish(fat(table, "fat"))
    await harness.publish(build_request(table, producer="thin"))
    await harness.run_until_settled()
    [record] = await harness.quarantined()
    assert record.reason == Reason.REQUEST_TOO_LARGE
    assert len(await harness.live_files()) == 1
    assert harness.wiring.named.in_hand_bytes == 0


async def test_few_bytes_that_announce_many_entries_are_not_walked_in_the_round() -> None:
    checks = SlowChecks()
    harness = ServiceHarness(checks=checks)
    table = await harness.create_table()
    line = build_line(table, producer="many")
    files = [build_file(table.metadata, line.attempt, number=number) for number in range(800)]
    sealed = seal(line, [build_manifest(table.metadata, files)])
    assert len(sealed.content) < large_requests.LARGE_BYTES_MIN
    await harness.publish(sealed)
    await harness.run_until_settled(seconds=2 * CHECK_S)
    assert checks.checked == ["many"]
    assert len(await harness.live_files()) == 800


# --- Small ones ----------------------------------------------------------------------------------


@pytest.mark.thorough
async def test_small_requests_whose_lines_become_many_objects_weigh_what_they_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committer_pool, "PENDING_WEIGHT_BYTES_MAX", 20 * 1024 * KIB)
    harness = ServiceHarness(min_interval_ms=3_600_000)
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=5.0):
        await harness.publish(build_request(table))
        await harness.settle(1.0)
        for number in range(200):
            line = build_line(table, producer=f"hostile-{number}")
            await harness.publish(seal_request(line.model_copy(update={"files": ({},) * 20_000})))
            await harness.settle(0.1)
        assert harness.tables.are_full
        assert sum(len(one.waiting) for one in harness.tables.all) < 40


class WatchedQueue(MemoryQueue):
    """Remembers how many doorbells it was asked for."""

    asked: list[int]

    async def read(
        self,
        *,
        count_max: int,
        wait_s: float,
        shards: Collection[int] = ALL_SHARDS,
        more_max: int = 0,
    ) -> Sequence[Delivery]:
        self.asked.append(count_max)
        return await super().read(
            count_max=count_max, wait_s=wait_s, shards=shards, more_max=more_max
        )


@pytest.mark.thorough
async def test_few_doorbells_are_read_at_once_until_they_are_known_to_be_small() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    harness.queue = queue = WatchedQueue(harness.server, consumer="committer")
    queue.asked = []
    line = build_line(table).model_copy(update={"files": ({},) * 15_000})
    fat = seal_request(line)
    async with harness.running():
        await harness.settle(60.0)
        assert queue.asked[0] <= 32 and queue.asked[-1] == 128
        for _ in range(100):
            await harness.publish(fat, durable=False)
        await harness.settle(1.0)
        assert 32 in queue.asked[queue.asked.index(128) :]
