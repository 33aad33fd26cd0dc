"""The canonical line of a commit names its requests and operations, and the causes of delay."""

from __future__ import annotations

from collections import Counter
from collections.abc import MutableMapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from committer.service.telemetry.commit_report import PRODUCERS_NAMED_MAX
from tests.support.builders.alter_requests import build_alter
from tests.support.builders.request_builders import build_request
from tests.support.faults.faulty_catalog import Fault
from tests.support.service.scraping import Page
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True
HOUR_MS = 3_600_000
ALTERATION = {"action": "add-column", "name": "x", "type": "int"}


def landed(lines: list[MutableMapping[str, Any]]) -> list[MutableMapping[str, Any]]:
    return [line for line in lines if line["event"] == "commit.landed"]


async def test_a_commit_names_its_operations_and_its_first_producers() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    count = PRODUCERS_NAMED_MAX + 4
    for number in reversed(range(count)):
        await harness.publish(build_request(table, producer=f"query-{number:02d}"))
    await harness.publish(build_alter(table, ALTERATION, producer="ops"))
    with capture_logs() as lines:
        await harness.run_until_settled()
    commits = landed(lines)
    operations = Counter[str]()
    for commit in commits:
        operations.update(commit["operations"])
    assert operations == {"append": count, "alter": 1}
    most = max(commits, key=lambda commit: commit["requests"])
    named = ["ops"] * most["operations"].get("alter", 0)
    named += [f"query-{number:02d}" for number in range(count)]
    assert most["producers"] == named[:PRODUCERS_NAMED_MAX]
    assert most["producer_count"] == len(named)


async def test_attempts_that_a_storage_fails_are_no_conflicts() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table))
        await harness.settle(10.0)
        harness.storage.is_away = True
        await harness.publish(build_request(table, epoch=1))
        await harness.settle(60.0)
        harness.storage.is_away = False
        with capture_logs() as lines:
            await harness.settle(60.0)
    (commit,) = landed(lines)
    assert commit["attempt"] > 2
    assert commit["conflicts"] == 0
    assert commit["failures"] == {"StorageUnavailableError": commit["attempt"] - 1}


async def test_conflicts_are_counted_as_such() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    harness.catalog.plan(Fault.CONFLICT, Fault.CONFLICT)
    await harness.publish(build_request(table))
    with capture_logs() as lines:
        await harness.run_until_settled()
    (commit,) = landed(lines)
    assert (commit["attempt"], commit["conflicts"]) == (3, 2)
    assert commit["failures"] == {"conflict": 2}


@pytest.mark.parametrize("step_ms", [6 * HOUR_MS, -6 * HOUR_MS])
async def test_a_step_of_the_wall_clock_during_a_commit_is_in_no_duration(step_ms: int) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table))
        await harness.settle(10.0)
        harness.storage.is_away = True
        now_ms = harness.world.now_ms()
        await harness.publish(build_request(table, epoch=1, published_at_ms=now_ms))
        await harness.settle(20.0)
        harness.world.skew_ms += step_ms
        harness.storage.is_away = False
        with capture_logs() as lines:
            await harness.settle(60.0)
    (commit,) = landed(lines)
    assert 20.0 <= commit["duration_s"] <= 60.0
    assert commit["wait_s"] <= 1.0
    page = Page(harness.status_collector.page().decode())
    longest_s = page("frazil_commit_duration_seconds_sum")
    assert longest_s is not None and longest_s <= 61.0
