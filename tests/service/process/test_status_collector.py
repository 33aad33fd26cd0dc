"""The lag and the backlog in virtual time, and what is looked at now and then."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from committer.errors import CatalogUnavailableError, StorageUnavailableError, TransientError
from committer.iceberg.updates.metadata_update import SetProperties
from committer.ledger_entry import Freeze, ProducerEntry, print_entry, property_key
from committer.ports.pointer_swap import LoadedTable
from committer.request.table_identifier import TableIdentifier
from committer.service.ingest import committer_pool
from committer.service.ingest import poller as watch_module
from committer.service.ingest.poller import INTERVAL_S, NOT_READ, OTHER_REASON, RECORDS_MAX, Poller
from committer.service.ingest.resolved_refusals import ResolvedRefusals
from committer.service.requests.inbox_keys import InboxKey
from committer.service.requests.large_requests import NamedManifests
from committer.service.requests.pending import Pending, Waiting
from committer.storage.inbox import Quarantine, QuarantineRecord
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_table
from tests.support.clock.virtual_time import LoopWorld
from tests.support.faults.faulty_catalog import Fault
from tests.support.memory.memory_queue import MemoryQueue
from tests.support.service.outside import foreign_commit
from tests.support.service.scraping import Page
from tests.support.service.service_harness import INBOX, WAREHOUSE, ServiceHarness

VIRTUAL_TIME = True
TABLE = "db.flights"
AWAY = [Fault.UNAVAILABLE] * 1_000
LABELS = {
    "answer",
    "call",
    "component",
    "error",
    "kind",
    "le",
    "move",
    "port",
    "reason",
    "table",
    "where",
}


def seconds(number: float) -> object:
    """The clock of a loop counts in fractions that add up to a little less, or more."""
    return pytest.approx(number, abs=0.01)


def page(house: ServiceHarness) -> Page:
    return Page(house.status_collector.page().decode())


# --- Lag -----------------------------------------------------------------------------------------


async def test_the_lag_is_the_age_of_the_oldest_request_until_it_is_committed() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    async with house.running():
        await house.settle(100.0)
        assert page(house)("frazil_lag_seconds") == 0
        house.catalog.plan(*AWAY)
        await house.publish(build_request(table, epoch=0))
        await house.settle(20.0)
        await house.publish(build_request(table, epoch=1))
        await house.settle(22.5)
        seen = page(house)
        assert seen("frazil_lag_seconds") == seconds(42.5)
        assert seen("frazil_table_lag_seconds", table=TABLE) == seconds(42.5)
        assert seen("frazil_pending_requests", table=TABLE) == 2
        assert seen("frazil_component_degraded", component=f"table {TABLE}") == 1
        house.catalog.recover()
        await house.settle(60.0)
        seen = page(house)
        assert seen("frazil_lag_seconds") == 0
        assert seen("frazil_pending_requests", table=TABLE) == 0
        assert seen("frazil_component_degraded", component=f"table {TABLE}") is None


async def test_the_lag_sees_a_request_that_nobody_announced() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    async with house.running(reconcile_interval_s=30.0):
        await house.settle(5.0)
        house.catalog.plan(*AWAY)
        await house.publish(build_request(table), announce=False)
        await house.settle(40.0)
        seen = page(house)
        assert seen("frazil_lag_seconds") == seconds(40)
        assert seen("frazil_missed_doorbells_total") == 1
        assert seen("frazil_inbox_requests") == 1


@pytest.mark.parametrize("with_queue", [True, False])
async def test_the_lag_goes_on_over_a_restart_and_needs_no_queue(with_queue: bool) -> None:
    house = ServiceHarness(with_queue=with_queue)
    table = await house.create_table()
    house.server.available = with_queue
    await house.publish(build_request(table), announce=with_queue)
    house.catalog.plan(*AWAY)
    await house.settle(3_600.0)
    async with house.running():
        await house.settle(10.0)
        assert page(house)("frazil_lag_seconds") == seconds(3_610)


async def test_the_lag_counts_what_memory_has_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committer_pool, "PENDING_REQUESTS_MAX", 0)
    house = ServiceHarness()
    table = await house.create_table()
    await house.publish(build_request(table), announce=False)
    async with house.running(reconcile_interval_s=30.0):
        await house.settle(95.0)
        seen = page(house)
        assert seen("frazil_lag_seconds") == seconds(95)
        assert seen("frazil_pending_requests", table=TABLE) is None


async def test_the_lag_counts_what_cannot_be_read() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    await house.publish(build_request(table), announce=False)
    house.inbox_storage.get = _away  # type: ignore[method-assign]
    async with house.running(reconcile_interval_s=30.0):
        await house.settle(95.0)
        assert page(house)("frazil_lag_seconds") == seconds(95)


async def _no_table(identifier: TableIdentifier) -> LoadedTable:
    raise CatalogUnavailableError("the test keeps it away")


async def _away(
    location: str,
    *,
    offset: int = 0,
    length: int | None = None,
    size_bytes_max: int | None = None,
) -> bytes:
    raise StorageUnavailableError("the test keeps it away")


async def test_without_a_listing_the_lag_is_not_known_and_said_so() -> None:
    house = ServiceHarness()
    await house.create_table()
    house.inbox_storage.is_away = True
    async with house.running(reconcile_interval_s=30.0):
        await house.settle(95.0)
        seen = page(house)
        assert seen("frazil_lag_seconds") is None
        assert seen("frazil_inbox_listed_timestamp_seconds") is None
        house.inbox_storage.is_away = False
        await house.settle(30.0)
        seen = page(house)
        assert seen("frazil_lag_seconds") == 0
        listed_s = seen("frazil_inbox_listed_timestamp_seconds")
        assert listed_s is not None
        assert 0 <= house.world.now_ms() / 1000 - listed_s <= 30


async def test_tables_that_the_catalog_has_not_shown_share_one_label() -> None:
    house = ServiceHarness()
    first, second = await house.create_table(), await house.create_table("db.other")
    house.catalog.load = _no_table  # type: ignore[method-assign]
    async with house.running():
        await house.publish(build_request(first))
        await house.settle(10.0)
        await house.publish(build_request(second))
        await house.settle(10.0)
        seen = page(house)
    assert seen("frazil_pending_requests", table="unknown") == 2
    assert seen("frazil_table_lag_seconds", table="unknown") == seconds(20)
    assert seen("frazil_lag_seconds") == seconds(20)


async def test_a_request_is_as_old_as_the_oldest_of_its_copies() -> None:
    world = LoopWorld()
    sealed = build_request(build_table(warehouse=WAREHOUSE))
    waiting = Waiting(world, NamedManifests(world))
    for durable_ms in (200, 100, 300):
        waiting.add(Pending(InboxKey(sealed.key), sealed, durable_ms))
    assert waiting.oldest_ms == 100
    (pending,) = waiting.ready(1)
    waiting.defer(pending, TransientError("away"))
    assert waiting.oldest_ms == 100


# --- Counts that need time -----------------------------------------------------------------------


async def test_a_doorbell_that_rings_again_is_counted() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    async with house.running():
        house.catalog.plan(*AWAY)
        await house.publish(build_request(table))
        await house.settle(1.0)
    house.catalog.recover()
    # Another process takes over what the first has left unacknowledged.
    house.queue = MemoryQueue(house.server, consumer="another")
    async with house.running():
        await house.settle(400.0)
        assert page(house)("frazil_redelivered_doorbells_total") == 1


async def test_without_a_queue_no_doorbell_counts_as_missed() -> None:
    house = ServiceHarness(with_queue=False)
    table = await house.create_table()
    async with house.running():
        await house.publish(build_request(table), announce=False)
        await house.settle(30.0)
        assert page(house)("frazil_missed_doorbells_total") == 0
    assert len(await house.live_files()) == 1


async def test_labels_are_bounded_whatever_requests_name() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    async with house.running():
        house.catalog.plan(*AWAY)
        for number in range(5):
            await house.publish(build_request(table, producer=f"producer-{number}"))
        await house.settle(10.0)
        other = await house.create_table("db.gone")
        await house.catalog.inner.drop_table(other.identifier)
        await house.publish(build_request(other, producer="stranger"))
        await house.settle(10.0)
        seen = page(house)
    assert seen.labels <= LABELS | {"version"}
    tables = {labels for _, labels in seen.values if "table" in dict(labels)}
    assert {dict(labels)["table"] for labels in tables} <= {TABLE, "unknown"}
    assert seen("frazil_quarantined_requests_total", reason="table_unknown") == 1


# --- The watch -----------------------------------------------------------------------------------


def watch(house: ServiceHarness) -> Poller:
    return Poller(
        queue=house.queue,
        quarantine=Quarantine(house.inbox_storage, INBOX),
        storage=house.storage.inner,
        folders={"witness": f"{INBOX}/witness/"},
        resolved_refusals=ResolvedRefusals(house.catalog, house.storage, house.quarantine),
        world=house.world,
        metrics=house.metrics,
    )


async def quarantine(house: ServiceHarness, epochs: range, reason: str) -> list[str]:
    table = await house.create_table(f"db.{reason}")
    keys = []
    for epoch in epochs:
        sealed = build_request(table, epoch=epoch)
        record = QuarantineRecord(
            key=sealed.request.inbox_key, reason=reason, message="", quarantined_at_ms=0
        )
        await house.quarantine.put(record, sealed.content)
        keys.append(record.key)
    return keys


async def test_what_lies_in_quarantine_is_counted_by_reason_until_it_leaves() -> None:
    house = ServiceHarness()
    gone = await quarantine(house, range(3), "table_unknown")
    await quarantine(house, range(2), "of_another_release")
    looking = asyncio.ensure_future(watch(house).run())
    await house.settle(1.0)
    seen = page(house)
    assert seen("frazil_quarantine_requests", reason="table_unknown") == 3
    assert seen("frazil_quarantine_requests", reason=OTHER_REASON) == 2
    await house.quarantine.delete(gone)
    await house.settle(INTERVAL_S)
    seen = page(house)
    assert seen("frazil_quarantine_requests", reason="table_unknown") is None
    assert seen("frazil_quarantine_requests", reason=OTHER_REASON) == 2
    looking.cancel()


async def test_the_quarantine_has_a_size_and_an_age() -> None:
    house = ServiceHarness()
    await watch(house).look()
    assert page(house)("frazil_quarantine_bytes") == 0
    assert page(house)("frazil_quarantine_age_seconds") == 0
    (first,) = await quarantine(house, range(1), "table_unknown")
    await house.settle(50.0)
    await quarantine(house, range(1), "unsupported")
    await house.settle(10.0)
    await watch(house).look()
    sizes = [one.size_bytes async for one in house.quarantine.list()]
    assert page(house)("frazil_quarantine_bytes") == sum(sizes)
    assert page(house)("frazil_quarantine_age_seconds") == seconds(60.0)
    await house.quarantine.delete([first])
    await watch(house).look()
    assert page(house)("frazil_quarantine_age_seconds") == seconds(10.0)
    assert house.status_collector.status().quarantine_age_s == seconds(10.0)


async def test_a_quarantine_that_cannot_be_listed_has_no_size_and_no_age() -> None:
    house = ServiceHarness()
    house.inbox_storage.is_away = True
    await watch(house).look()
    for name in ("frazil_quarantine_bytes", "frazil_quarantine_age_seconds"):
        assert page(house)(name) is None
    assert house.status_collector.status().quarantine_age_s is None


async def test_open_breakers_and_frozen_producers_are_shown() -> None:
    house = ServiceHarness(breaker_threshold=2)
    table = await house.create_table()
    frozen = replace(ProducerEntry(table.metadata.require_uuid()), frozen=Freeze("why", 17))
    await foreign_commit(house, table, SetProperties({property_key("q"): print_entry(frozen)}))
    async with house.running():
        for epoch in range(4):
            await house.publish(build_request(table, epoch=epoch, producer="bad", branch="none"))
        await house.publish(build_request(table))
        await house.settle(20.0)
        assert page(house)("frazil_open_breakers") == 1
        assert page(house)("frazil_frozen_producers", table=TABLE) == 1
        status = house.status_collector.status()
    (opened,) = status.open_breakers
    assert (opened.table, opened.producer, opened.failures) == (TABLE, "bad", 2)
    assert (opened.reason, opened.again_s) == ("branch_unknown", seconds(40.0))
    assert [one.frozen_producers for one in status.tables] == [1]


async def test_a_large_quarantine_costs_a_listing_and_a_hundred_reads_and_each_record_once() -> (
    None
):
    house = ServiceHarness()
    await quarantine(house, range(RECORDS_MAX + 20), "table_unknown")
    watching = watch(house)
    await watching.look()
    assert dict(house.inbox_storage.calls) == {"list": 1, "get": RECORDS_MAX}
    assert page(house)("frazil_quarantine_requests", reason=NOT_READ) == 20
    await watching.look()
    await watching.look()
    assert dict(house.inbox_storage.calls) == {"list": 3, "get": RECORDS_MAX + 20}
    assert page(house)("frazil_quarantine_requests", reason="table_unknown") == RECORDS_MAX + 20
    assert page(house)("frazil_quarantine_requests", reason=NOT_READ) is None


async def test_a_listing_of_the_quarantine_ends_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "LISTED_MAX", 5)
    house = ServiceHarness()
    await quarantine(house, range(8), "table_unknown")
    await watch(house).look()
    assert page(house)("frazil_quarantine_requests", reason="table_unknown") == 5


async def test_the_depth_of_the_queue_is_shown_while_it_answers() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    await house.publish(build_request(table, epoch=0))
    await house.publish(build_request(table, epoch=1))
    assert house.queue is not None
    await house.queue.read(count_max=1, wait_s=0.0)
    watching = watch(house)
    await watching.look()
    seen = page(house)
    assert seen("frazil_queue_waiting_doorbells") == 2
    assert seen("frazil_queue_pending_doorbells") == 1
    house.server.available = False
    house.inbox_storage.is_away = True
    with capture_logs() as events:
        await watching.look()
    assert page(house)("frazil_queue_waiting_doorbells") is None
    assert [event["what"] for event in events] == ["quarantine"]
