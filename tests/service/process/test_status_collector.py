"""The lag and the backlog in virtual time, and what is polled."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from committer.errors import CatalogUnavailableError, StorageUnavailableError, TransientError
from committer.iceberg.updates.metadata_update import RemoveProperties, SetProperties
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
from committer.service.telemetry.lag import LagCause
from committer.storage.inbox.inbox import Quarantine, QuarantineRecord
from tests.support.builders.request_builders import build_request, ordered
from tests.support.builders.table_builders import build_table
from tests.support.builders.transactions import build_group
from tests.support.clock.virtual_time import LoopWorld
from tests.support.faults.faulty_catalog import Fault
from tests.support.memory.memory_queue import MemoryQueue
from tests.support.service.outside import foreign_commit
from tests.support.service.scraping import Page
from tests.support.service.service_harness import INBOX, WAREHOUSE, ServiceHarness
from tests.support.service.several_tables import create, publish

VIRTUAL_TIME = True
TABLE = "db.flights"
AWAY = [Fault.UNAVAILABLE] * 1_000
UNKNOWN_TABLE = {"reason": "table_unknown", "table": "unknown"}
LABELS = {
    "catalog",
    "inbox",
    "answer",
    "call",
    "cause",
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
    """Allow for the clock of a loop, whose fractions add up to a little less, or more."""
    return pytest.approx(number, abs=0.01)


def page(harness: ServiceHarness) -> Page:
    return Page(harness.status_collector.page().decode())


def lags(harness: ServiceHarness, **labels: str) -> dict[str, float | None]:
    """Return the lag by cause, of everything or of one table."""
    name, seen = "frazil_table_lag_seconds" if labels else "frazil_lag_seconds", page(harness)
    return {cause: seen(name, cause=cause, **labels) for cause in LagCause}


# --- Lag -----------------------------------------------------------------------------------------


async def test_the_lag_is_the_age_of_the_oldest_request_until_it_is_committed() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.settle(100.0)
        assert lags(harness) == {"waiting": 0, "held": 0, "unavailable": 0}
        harness.catalog.plan(*AWAY)
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(20.0)
        await harness.publish(build_request(table, epoch=1))
        await harness.settle(22.5)
        seen = page(harness)
        assert lags(harness) == {"waiting": 0, "held": 0, "unavailable": seconds(42.5)}
        of_table = {"waiting": 0, "held": None, "unavailable": seconds(42.5)}
        assert lags(harness, table=TABLE) == of_table
        assert seen("frazil_pending_requests", table=TABLE) == 2
        assert seen("frazil_component_degraded", component="table", table=TABLE) == 1
        harness.catalog.recover()
        await harness.settle(60.0)
        seen = page(harness)
        assert lags(harness) == {"waiting": 0, "held": 0, "unavailable": 0}
        assert seen("frazil_pending_requests", table=TABLE) == 0
        assert seen("frazil_component_degraded", component="table", table=TABLE) is None


async def test_the_lag_sees_a_request_that_nobody_announced() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=30.0):
        await harness.settle(5.0)
        harness.catalog.plan(*AWAY)
        await harness.publish(build_request(table), announce=False)
        await harness.settle(40.0)
        seen = page(harness)
        assert lags(harness)["unavailable"] == seconds(40)
        assert seen("frazil_missed_doorbells_total") == 1
        assert seen("frazil_inbox_requests") == 1


@pytest.mark.parametrize("with_queue", [True, False])
async def test_the_lag_goes_on_over_a_restart_and_needs_no_queue(with_queue: bool) -> None:
    harness = ServiceHarness(with_queue=with_queue)
    table = await harness.create_table()
    harness.server.available = with_queue
    await harness.publish(build_request(table), announce=with_queue)
    harness.catalog.plan(*AWAY)
    await harness.settle(3_600.0)
    async with harness.running():
        await harness.settle(10.0)
        assert lags(harness)["unavailable"] == seconds(3_610)


async def test_the_lag_counts_what_memory_has_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committer_pool, "PENDING_REQUESTS_MAX", 0)
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.publish(build_request(table), announce=False)
    async with harness.running(reconcile_interval_s=30.0):
        await harness.settle(95.0)
        seen = page(harness)
        assert lags(harness) == {"waiting": seconds(95), "held": 0, "unavailable": 0}
        assert seen("frazil_pending_requests", table=TABLE) is None


async def test_the_lag_counts_what_cannot_be_read() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.publish(build_request(table), announce=False)
    harness.inbox_storage.get = _away  # type: ignore[method-assign]
    async with harness.running(reconcile_interval_s=30.0):
        await harness.settle(95.0)
        assert lags(harness) == {"waiting": 0, "held": 0, "unavailable": seconds(95)}


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
    harness = ServiceHarness()
    await harness.create_table()
    harness.inbox_storage.is_away = True
    async with harness.running(reconcile_interval_s=30.0):
        await harness.settle(95.0)
        seen = page(harness)
        assert lags(harness) == {"waiting": None, "held": None, "unavailable": None}
        assert seen("frazil_inbox_listed_timestamp_seconds") is None
        harness.inbox_storage.is_away = False
        await harness.settle(30.0)
        seen = page(harness)
        assert lags(harness)["waiting"] == 0
        listed_s = seen("frazil_inbox_listed_timestamp_seconds")
        assert listed_s is not None
        assert 0 <= harness.world.now_ms() / 1000 - listed_s <= 30


async def test_tables_that_the_catalog_has_not_shown_share_one_label() -> None:
    harness = ServiceHarness()
    first, second = await harness.create_table(), await harness.create_table("db.other")
    harness.catalog.load = _no_table  # type: ignore[method-assign]
    async with harness.running():
        await harness.publish(build_request(first))
        await harness.settle(10.0)
        await harness.publish(build_request(second))
        await harness.settle(10.0)
        assert page(harness)("frazil_pending_requests", table="unknown") == 2
        assert lags(harness, table="unknown")["unavailable"] == seconds(20)
        assert lags(harness)["unavailable"] == seconds(20)


async def test_a_request_is_as_old_as_the_oldest_of_its_copies() -> None:
    world = LoopWorld()
    sealed = build_request(build_table(warehouse=WAREHOUSE))
    waiting = Waiting(world, NamedManifests(world))
    for durable_ms in (200, 100, 300):
        waiting.add(Pending(InboxKey(sealed.key), sealed, durable_ms))
    assert waiting.oldest_ms() == {LagCause.WAITING: 100}
    (pending,) = waiting.ready(1)
    waiting.defer(pending, TransientError("away"))
    assert waiting.oldest_ms() == {LagCause.UNAVAILABLE: 100}


# --- Lag by cause --------------------------------------------------------------------------------


async def test_requests_of_a_producer_with_an_open_breaker_are_held_and_no_other_waits() -> None:
    harness = ServiceHarness(breaker_threshold=2)
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=10.0):
        for epoch in range(4):
            await harness.publish(build_request(table, epoch=epoch, producer="bad", branch="none"))
        await harness.publish(build_request(table))
        await harness.settle(40.0)
        assert lags(harness) == {"waiting": 0, "held": seconds(40), "unavailable": 0}
        of_table = {"waiting": 0, "held": seconds(40), "unavailable": None}
        assert lags(harness, table=TABLE) == of_table
        status = harness.status_collector.status()
        assert (status.lag_s, status.held_s, status.unavailable_s) == (0, seconds(40), 0)


async def test_requests_of_a_frozen_table_are_held() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(10.0)
        await foreign_commit(harness, table, RemoveProperties((property_key("query-1"),)))
        await harness.publish(build_request(table, epoch=1))
        await harness.settle(30.0)
        assert lags(harness) == {"waiting": 0, "held": seconds(30), "unavailable": 0}
        await harness.accept()
        await harness.settle(30.0)
        assert lags(harness) == {"waiting": 0, "held": 0, "unavailable": 0}


async def test_an_epoch_above_one_that_has_not_landed_is_held() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(ordered(build_request(table, epoch=0)))
        await harness.settle(10.0)
        await harness.publish(ordered(build_request(table, epoch=1)), announce=False)
        await harness.publish(ordered(build_request(table, epoch=2)))
        await harness.settle(30.0)
        assert lags(harness, table=TABLE)["held"] == seconds(30)
        assert lags(harness)["waiting"] == 0


async def test_an_incomplete_transaction_is_held() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    first, *others = build_group(tables)
    async with harness.running():
        await harness.publish(first)
        await harness.settle(30.0)
        assert lags(harness) == {"waiting": 0, "held": seconds(30), "unavailable": 0}
        await publish(harness, others)
        await harness.settle(10.0)
        assert lags(harness) == {"waiting": 0, "held": 0, "unavailable": 0}


async def test_a_request_that_cannot_be_read_counts_for_its_table() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=3600.0):
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(10.0)
        harness.inbox_storage.get = _away  # type: ignore[method-assign]
        sealed = build_request(table, epoch=1)
        await harness.inbox.put(sealed)
        bell = replace(harness.doorbell(sealed), content=None)
        await harness.publisher_queue.announce([bell])
        await harness.settle(167.0)
        of_table = {"waiting": 0, "held": None, "unavailable": seconds(167)}
        assert lags(harness, table=TABLE) == of_table


@pytest.mark.parametrize("with_queue", [True, False])
async def test_a_held_request_that_was_discarded_counts_no_longer_after_a_listing(
    with_queue: bool,
) -> None:
    harness = ServiceHarness(breaker_threshold=1, with_queue=with_queue)
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=10.0):
        for epoch in range(3):
            sealed = build_request(table, epoch=epoch, producer="bad", branch="none")
            await harness.publish(sealed, announce=with_queue)
        await harness.settle(20.0)
        assert lags(harness)["held"] == seconds(20)
        await harness.inbox.delete(await harness.outstanding())
        await harness.settle(21.0)
        assert lags(harness)["held"] == 0
        assert page(harness)("frazil_open_breakers") == 0, "it has nothing to hold"


# --- A catalog that is down ----------------------------------------------------------------------


async def test_a_catalog_that_does_not_answer_is_one_condition_and_not_one_of_each_table() -> None:
    harness = ServiceHarness()
    names = [f"db.t{number}" for number in range(5)]
    tables = [await harness.create_table(name) for name in names]
    broken = await harness.create_table("db.broken")
    await harness.storage.inner.delete([broken.metadata_location])
    async with harness.running():
        harness.catalog.unavailable = set(names)
        for table in (*tables, broken):
            await harness.publish(build_request(table))
        await harness.settle(10.0)
        shown = harness.health.shown
        assert set(shown) == {f"table {name}" for name in (*names, "db.broken")}
        with capture_logs() as lines:
            harness.health.unavailable("catalog", CatalogUnavailableError("away"))
            await harness.settle(60.0)
            assert set(harness.health.shown) == {"catalog", "table db.broken"}
            assert set(harness.status_collector.status().conditions) == set(harness.health.shown)
            seen = page(harness)
            assert seen("frazil_component_degraded", component="catalog") == 1
            assert seen("frazil_component_degraded", component="table", table="db.t0") is None
            degraded = seen("frazil_component_degraded", component="table", table="db.broken")
            assert degraded == 1
            harness.catalog.unavailable = set()
            await harness.settle(60.0)
            harness.health.recovered("catalog")
        assert set(harness.health.shown) == {"table db.broken"}
    recovered = [line["table"] for line in lines if line["event"] == "table.recovered"]
    assert sorted(recovered) == names, "each was logged as unavailable before"


# --- Counts that need time -----------------------------------------------------------------------


async def test_a_doorbell_that_rings_again_is_counted() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        harness.catalog.plan(*AWAY)
        await harness.publish(build_request(table))
        await harness.settle(1.0)
    harness.catalog.recover()
    # Another process takes over what the first has left unacknowledged.
    harness.queue = MemoryQueue(harness.server, consumer="another")
    async with harness.running():
        await harness.settle(400.0)
        assert page(harness)("frazil_redelivered_doorbells_total") == 1


async def test_without_a_queue_no_doorbell_counts_as_missed() -> None:
    harness = ServiceHarness(with_queue=False)
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table), announce=False)
        await harness.settle(30.0)
        assert page(harness)("frazil_missed_doorbells_total") == 0
    assert len(await harness.live_files()) == 1


async def test_labels_are_bounded_whatever_requests_name() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        harness.catalog.plan(*AWAY)
        for number in range(5):
            await harness.publish(build_request(table, producer=f"producer-{number}"))
        await harness.settle(10.0)
        other = await harness.create_table("db.gone")
        await harness.catalog.inner.drop_table(other.identifier)
        await harness.publish(build_request(other, producer="stranger"))
        await harness.settle(10.0)
        seen = page(harness)
    assert seen.labels <= LABELS | {"version"}
    tables = {labels for _, labels in seen.values if "table" in dict(labels)}
    assert {dict(labels)["table"] for labels in tables} <= {TABLE, "unknown"}
    assert seen("frazil_quarantined_requests_total", reason="table_unknown") == 1


# --- The watch -----------------------------------------------------------------------------------


def watch(harness: ServiceHarness) -> Poller:
    return Poller(
        queue=harness.queue,
        quarantine=Quarantine(harness.inbox_storage, INBOX),
        storage=harness.storage.inner,
        folders={"witness": f"{INBOX}/witness/"},
        resolved_refusals=ResolvedRefusals(harness.catalog, harness.storage, harness.quarantine),
        world=harness.world,
        metrics=harness.metrics,
    )


async def quarantine(harness: ServiceHarness, epochs: range, reason: str) -> list[str]:
    table = await harness.create_table(f"db.{reason}")
    keys = []
    for epoch in epochs:
        sealed = build_request(table, epoch=epoch)
        record = QuarantineRecord(
            key=sealed.request.inbox_key, reason=reason, message="", quarantined_at_ms=0
        )
        await harness.quarantine.put(record, sealed.content)
        keys.append(record.key)
    return keys


async def test_what_lies_in_quarantine_is_counted_by_reason_until_it_leaves() -> None:
    harness = ServiceHarness()
    gone = await quarantine(harness, range(3), "table_unknown")
    await quarantine(harness, range(2), "of_another_release")
    looking = asyncio.ensure_future(watch(harness).run())
    await harness.settle(1.0)
    seen = page(harness)
    assert seen("frazil_quarantine_requests", reason="table_unknown", table="unknown") == 3
    assert seen("frazil_quarantine_requests", reason=OTHER_REASON, table="unknown") == 2
    await harness.quarantine.delete(gone)
    await harness.settle(INTERVAL_S)
    seen = page(harness)
    assert seen("frazil_quarantine_requests", reason="table_unknown", table="unknown") is None
    assert seen("frazil_quarantine_requests", reason=OTHER_REASON, table="unknown") == 2
    looking.cancel()


async def test_the_quarantine_has_a_size_and_an_age() -> None:
    harness = ServiceHarness()
    await watch(harness).look()
    assert page(harness)("frazil_quarantine_bytes") == 0
    assert page(harness)("frazil_quarantine_age_seconds") == 0
    (first,) = await quarantine(harness, range(1), "table_unknown")
    await harness.settle(50.0)
    await quarantine(harness, range(1), "unsupported")
    await harness.settle(10.0)
    await watch(harness).look()
    sizes = [one.size_bytes async for one in harness.quarantine.list()]
    assert page(harness)("frazil_quarantine_bytes") == sum(sizes)
    assert page(harness)("frazil_quarantine_age_seconds") == seconds(60.0)
    await harness.quarantine.delete([first])
    await watch(harness).look()
    assert page(harness)("frazil_quarantine_age_seconds") == seconds(10.0)
    assert harness.status_collector.status().quarantine_age_s == seconds(10.0)


async def test_a_quarantine_that_cannot_be_listed_has_no_size_and_no_age() -> None:
    harness = ServiceHarness()
    harness.inbox_storage.is_away = True
    await watch(harness).look()
    for name in ("frazil_quarantine_bytes", "frazil_quarantine_age_seconds"):
        assert page(harness)(name) is None
    assert harness.status_collector.status().quarantine_age_s is None


async def test_open_breakers_and_frozen_producers_are_shown() -> None:
    harness = ServiceHarness(breaker_threshold=2)
    table = await harness.create_table()
    frozen = replace(ProducerEntry(table.metadata.require_uuid()), frozen=Freeze("why", 17))
    await foreign_commit(harness, table, SetProperties({property_key("q"): print_entry(frozen)}))
    async with harness.running():
        for epoch in range(4):
            await harness.publish(build_request(table, epoch=epoch, producer="bad", branch="none"))
        await harness.publish(build_request(table))
        await harness.settle(20.0)
        assert page(harness)("frazil_open_breakers") == 1
        assert page(harness)("frazil_frozen_producers", table=TABLE) == 1
        status = harness.status_collector.status()
    (opened,) = status.open_breakers
    assert (opened.table, opened.producer, opened.failures) == (TABLE, "bad", 2)
    assert (opened.reason, opened.again_s) == ("branch_unknown", seconds(40.0))
    assert [one.frozen_producers for one in status.tables] == [1]


async def test_a_large_quarantine_costs_a_listing_and_a_hundred_reads_and_each_record_once() -> (
    None
):
    harness = ServiceHarness()
    await quarantine(harness, range(RECORDS_MAX + 20), "table_unknown")
    watching = watch(harness)
    await watching.look()
    assert dict(harness.inbox_storage.calls) == {"list": 1, "get": RECORDS_MAX}
    assert page(harness)("frazil_quarantine_requests", reason=NOT_READ, table="unknown") == 20
    await watching.look()
    await watching.look()
    assert dict(harness.inbox_storage.calls) == {"list": 3, "get": RECORDS_MAX + 20}
    in_quarantine = page(harness)("frazil_quarantine_requests", **UNKNOWN_TABLE)
    assert in_quarantine == RECORDS_MAX + 20
    assert page(harness)("frazil_quarantine_requests", reason=NOT_READ, table="unknown") is None


async def test_a_listing_of_the_quarantine_ends_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "LISTED_MAX", 5)
    harness = ServiceHarness()
    await quarantine(harness, range(8), "table_unknown")
    await watch(harness).look()
    assert page(harness)("frazil_quarantine_requests", reason="table_unknown", table="unknown") == 5


async def test_the_depth_of_the_queue_is_shown_while_it_answers() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.publish(build_request(table, epoch=0))
    await harness.publish(build_request(table, epoch=1))
    assert harness.queue is not None
    await harness.queue.read(count_max=1, wait_s=0.0)
    watching = watch(harness)
    await watching.look()
    seen = page(harness)
    assert seen("frazil_queue_waiting_doorbells") == 2
    assert seen("frazil_queue_pending_doorbells") == 1
    harness.server.available = False
    harness.inbox_storage.is_away = True
    with capture_logs() as events:
        await watching.look()
    assert page(harness)("frazil_queue_waiting_doorbells") is None
    assert [event["component"] for event in events] == ["quarantine"]
