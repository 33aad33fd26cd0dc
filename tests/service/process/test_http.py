"""The endpoints over real HTTP, before a whole committer on memory adapters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from committer.request.receipt_model import Receipt
from committer.service.process.http import ServedNames, application
from committer.service.telemetry.health import Phase
from committer.service.telemetry.instruments import CONTENT_TYPE
from tests.support.builders.request_builders import build_request
from tests.support.faults.faulty_catalog import Fault
from tests.support.service.scraping import Page
from tests.support.service.service_harness import INBOX, ServiceHarness

TABLE = "db.flights"


class ProducerAdmin:
    """Asks the endpoints of a harness."""

    def __init__(self, client: TestClient) -> None:  # type: ignore[type-arg]
        self.client = client

    async def page(self) -> Page:
        async with self.client.get("/metrics") as answer:
            assert answer.status == 200
            assert answer.headers["Content-Type"] == CONTENT_TYPE
            return Page(await answer.text())

    async def ask(self, path: str) -> tuple[int, dict[str, Any]]:
        async with self.client.get(path) as answer:
            return answer.status, await answer.json()


@asynccontextmanager
async def operating(harness: ServiceHarness) -> AsyncIterator[ProducerAdmin]:
    async with TestClient(TestServer(application(harness.status_collector))) as client:
        yield ProducerAdmin(client)


async def receipts(harness: ServiceHarness, producer: str, count: int) -> list[Receipt]:
    """Return the next receipts of a producer, as soon as they are there."""
    found: list[Receipt] = []
    while len(found) < count:
        found.extend(await harness.publisher_queue.wait_for_receipts(producer, wait_s=10.0))
    return found


async def test_after_known_traffic_each_number_is_exact_in_metrics_and_status() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    for number in range(3):
        await harness.publish(build_request(table, producer=f"query-{number}", files_count=2))
    async with operating(harness) as operator, harness.running():
        for number in range(3):
            await receipts(harness, f"query-{number}", 1)
        harness.catalog.plan(Fault.CONFLICT)
        await harness.publish(build_request(table, producer="query-0", epoch=1))
        await receipts(harness, "query-0", 1)
        harness.catalog.plan(Fault.LOST_REPLY)
        await harness.publish(build_request(table, producer="query-0", epoch=2))
        await receipts(harness, "query-0", 1)
        await harness.publish(build_request(table, producer="query-0", epoch=1))
        await receipts(harness, "query-0", 1)
        other = build_request(table, producer="query-0", epoch=1, fingerprint="another")
        await harness.publish(other)
        await receipts(harness, "query-0", 1)
        harness.catalog.plan(Fault.REJECTED)
        await harness.publish(build_request(table, producer="query-0", epoch=3))
        await receipts(harness, "query-0", 1)
        page = await operator.page()
        code, status = await operator.ask("/status")

    assert page("frazil_commits_total", table=TABLE) == 2
    assert page("frazil_committed_requests_total", table=TABLE) == 4
    assert page("frazil_committed_files_total", table=TABLE) == 7
    assert page("frazil_committed_rows_total", table=TABLE) == 70
    assert page("frazil_committed_bytes_total", table=TABLE) == 3 * 2_001 + 1_000
    answers = {"committed": 2, "conflict": 1, "unknown": 1, "rejected": 1}
    for answer, count in answers.items():
        assert page("frazil_swap_answers_total", table=TABLE, answer=answer) == count
    assert page("frazil_recovered_requests_total", table=TABLE) == 1
    assert page("frazil_duplicate_requests_total", table=TABLE) == 1
    quarantined = "frazil_quarantined_requests_total"
    assert page(quarantined, reason="epoch_content_differs") == 1
    assert page(quarantined, reason="commit_rejected") == 1
    assert page("frazil_quarantine_requests", reason="commit_rejected", table=TABLE) == 1
    assert page("frazil_batch_requests_count") == 2
    assert page("frazil_batch_requests_sum") == 4
    assert page("frazil_batch_files_sum") == 7
    assert page("frazil_wait_seconds_count") == 4
    assert page("frazil_commit_duration_seconds_count") == 2
    metadata_bytes = page("frazil_metadata_bytes", table=TABLE)
    assert page("frazil_metadata_alarm", table=TABLE) == 0
    assert page("frazil_lag_seconds", cause="waiting") == 0
    assert page("frazil_pending_requests", table=TABLE) == 0

    assert code == 200
    (row,) = status["tables"]
    assert row.pop("last_commit_s") > 0
    assert status["quarantined"] == {"epoch_content_differs": 1, "commit_rejected": 1}
    assert row == {
        "table": TABLE,
        "lag_s": 0,
        "held_s": 0,
        "unavailable_s": 0,
        "pending_requests": 0,
        "pending_bytes": 0,
        "commits": 2,
        "requests": 4,
        "files": 7,
        "rows": 70,
        "bytes": 7_003,
        "recovered": 1,
        "duplicates": 1,
        "metadata_bytes": metadata_bytes,
        "frozen_producers": 0,
        "swaps": answers,
    }
    assert (status["catalog"], status["lag_s"]) == ("frazil", 0)
    assert status["inbox"] == {
        "location": INBOX,
        "requests": 3,
        "listed_s": _listed_s(page),
        "foreign": {},
    }


def _listed_s(page: Page) -> float | None:
    return page("frazil_inbox_listed_timestamp_seconds")


async def test_metadata_is_as_large_as_its_file() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.publish(build_request(table))
    async with harness.running():
        await receipts(harness, "query-1", 1)
    current = await harness.catalog.inner.load(table.identifier)
    written = await harness.storage.inner.head(current.metadata_location)
    page = Page(harness.status_collector.page().decode())
    assert page("frazil_metadata_bytes", table=TABLE) == written.size_bytes


@pytest.mark.parametrize(
    ("phase", "conditions", "code"),
    [
        ("starting", {}, 503),
        ("running", {}, 200),
        ("running", {"queue": "away"}, 200),
        ("running", {"table db.flights": "broken", "keys": "away", "leases": "refused"}, 200),
        ("running", {"catalog": "away"}, 503),
        ("running", {"storage": "away"}, 503),
        ("running", {"inbox": "away"}, 503),
        ("draining", {}, 503),
    ],
)
async def test_readiness_is_running_with_catalog_and_inbox_and_no_tables_affair(
    phase: Phase, conditions: dict[str, str], code: int
) -> None:
    harness = ServiceHarness()
    harness.health.phase = phase
    harness.health.conditions = dict(conditions)
    async with operating(harness) as operator:
        assert await operator.ask("/readyz") == (
            code,
            {
                "status": "ok" if code == 200 else "unavailable",
                "phase": phase,
                "conditions": conditions if code == 503 else {},
            },
        )
        page = await operator.page()
        _, status = await operator.ask("/status")
    assert page("frazil_ready") == (1 if code == 200 else 0)
    assert status["conditions"] == conditions
    assert status["ready"] == (code == 200)
    for component in conditions:
        assert page("frazil_component_degraded", component=component) == 1


async def test_a_broken_table_leaves_the_committer_ready_and_shows_in_its_status() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.storage.inner.delete([table.metadata_location])
    async with operating(harness) as operator, harness.running():
        harness.health.phase = "running"
        await harness.publish(build_request(table))
        while not harness.health.conditions:
            await harness.settle(0.05)
        code, _ = await operator.ask("/readyz")
        _, status = await operator.ask("/status")
        page = await operator.page()
    assert (code, page("frazil_ready")) == (200, 1)
    assert list(status["conditions"]) == [f"table {TABLE}"]
    assert page("frazil_component_degraded", component="table", table=TABLE) == 1


async def test_liveness_is_the_heartbeat_and_no_condition_outside() -> None:
    harness = ServiceHarness()
    harness.health.conditions = {"queue": "away", "catalog": "away", "inbox": "away"}
    async with operating(harness) as operator:
        assert (await operator.ask("/livez"))[0] == 200
        harness.health.last_beat_s = harness.world.monotonic_s() - 31
        assert (await operator.ask("/livez"))[0] == 503
        harness.health.last_beat_s = harness.world.monotonic_s() - 1
        assert (await operator.ask("/livez"))[0] == 200


async def test_before_the_start_metrics_and_status_answer_and_the_lag_is_not_known() -> None:
    harness = ServiceHarness()
    harness.health.degraded("catalog", "it does not answer")
    async with operating(harness) as operator:
        page = await operator.page()
        _, status = await operator.ask("/status")
    assert page("frazil_lag_seconds", cause="waiting") is None
    assert "frazil_lag_seconds" in page.names
    assert page("frazil_component_degraded", component="catalog") == 1
    assert status["lag_s"] is None
    assert (status["phase"], status["ready"]) == ("starting", False)
    assert status["conditions"] == {"catalog": "it does not answer"}


async def test_a_name_that_a_web_page_may_have_taken_is_refused_and_not_repeated() -> None:
    served = application(ServiceHarness().status_collector, ServedNames.from_settings("::1", ""))
    async with TestClient(TestServer(served)) as client:
        for path in ("/livez", "/readyz", "/metrics", "/status", "/other"):
            async with client.get(path, headers={"Host": "rebound.example"}) as answer:
                text = await answer.text()
            assert answer.status == 403
            assert "FRAZIL_SERVICE__HTTP_NAMES" in text
            assert "rebound" not in text
        async with client.get("/livez", headers={"Host": "localhost:1"}) as answer:
            assert answer.status == 200


async def test_a_page_is_compressed_on_its_way() -> None:
    async with (
        operating(ServiceHarness()) as operator,
        operator.client.get("/metrics", headers={"Accept-Encoding": "gzip"}) as answer,
    ):
        assert answer.headers["Content-Encoding"] == "gzip"
        assert Page(await answer.text())("frazil_ready") == 0
