"""Inbox objects that cannot be read: each is its own fault, shown until it is over."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from committer.errors import AccessError, FrazilError
from committer.ports.pointer_swap import LoadedTable
from committer.request.request_format import EncodedRequest
from committer.service.ingest.inbox_reader import FAILED_MIN, PAUSE_S_MAX
from committer.service.settle.object_conditions import NAMED_MAX
from committer.service.telemetry.health import INBOX_READS
from committer.storage.inbox.inbox import Inbox
from tests.support.builders.request_builders import build_request
from tests.support.service.scripted import PickyStorage
from tests.support.service.service_harness import INBOX, ServiceHarness

VIRTUAL_TIME = True


class Unreadable:
    """Inbox objects that a harness cannot read, and how often it has tried each."""

    def __init__(self, harness: ServiceHarness) -> None:
        self._harness = harness
        self.keys: set[str] = set()
        self.tries = Counter[str]()
        self.storage = PickyStorage(harness, self._judge)
        harness.inbox = Inbox(self.storage, INBOX)

    def _judge(self, method: str, location: str) -> FrazilError | None:
        key = self._harness.inbox.key_of(location)
        if method != "get" or key not in self.keys:
            return None
        self.tries[key] += 1
        return AccessError(f"`{location}`: Permission denied")

    async def publish(self, table: LoadedTable, producer: str) -> EncodedRequest:
        sealed = build_request(table, producer=producer)
        self.keys.add(sealed.key)
        await self._harness.publish(sealed, announce=False)
        return sealed


@pytest.mark.thorough
async def test_an_object_that_cannot_be_read_is_named_until_it_is_read() -> None:
    harness = ServiceHarness(with_queue=False)
    table = await harness.create_table()
    unreadable = Unreadable(harness)
    async with harness.running():
        stuck = await unreadable.publish(table, "stuck")
        for epoch in range(90):
            await harness.publish(build_request(table, epoch=epoch), announce=False)
            await harness.settle(1.0)
            assert not harness.health.unreachable
            if epoch > 2:
                (why,) = harness.health.conditions.values()
                assert "Permission denied" in why
                assert [*harness.health.conditions] == [f"unread inbox object {stuck.key}"]
        await harness.settle(2.0)
        assert await harness.outstanding() == [stuck.key]
        assert unreadable.tries[stuck.key] < 12
        assert re.match(r"since \d{4}-\d\d-\d\dT[\d:]{8}\+00:00, \d+ tries: ", why)
        assert harness.status_collector.status().inbox.foreign == {"unreadable": 1}
        assert await harness.quarantined() == []
        unreadable.keys.clear()
        await harness.settle(PAUSE_S_MAX + 5.0)
        assert harness.health.conditions == {}
        assert harness.status_collector.status().inbox.foreign == {}
        assert await harness.outstanding() == []
    assert len(await harness.live_files()) == 91
    assert await harness.quarantined() == []


async def test_an_object_that_could_not_be_read_and_is_gone_has_no_condition() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    unreadable = Unreadable(harness)
    async with harness.running(reconcile_interval_s=10.0):
        stuck = await unreadable.publish(table, "stuck")
        await harness.settle(30.0)
        assert [*harness.health.conditions] == [f"unread inbox object {stuck.key}"]
        await harness.storage.inner.delete([harness.inbox.location(stuck.key)])
        await harness.settle(12.0)
        assert harness.health.conditions == {}


async def test_an_inbox_whose_objects_mostly_cannot_be_read_is_not_ready_until_they_can() -> None:
    harness = ServiceHarness(with_queue=False)
    table = await harness.create_table()
    unreadable = Unreadable(harness)
    async with harness.running():
        for number in range(FAILED_MIN):
            assert not harness.health.unreachable
            await unreadable.publish(table, f"stuck-{number}")
            await harness.settle(2.0)
        assert [*harness.health.unreachable] == [INBOX_READS]
        named = [one for one in harness.health.conditions if one.startswith("unread inbox object ")]
        assert len(named) == NAMED_MAX
        others = harness.health.conditions["unread inbox objects"]
        assert others.startswith(f"{FAILED_MIN - NAMED_MAX} more")
        unreadable.keys.clear()
        await harness.settle(PAUSE_S_MAX + 5.0)
        assert harness.health.conditions == {}
        assert await harness.outstanding() == []


async def test_objects_are_read_at_once_when_the_inbox_can_be_listed_again() -> None:
    harness = ServiceHarness(with_queue=False)
    table = await harness.create_table()
    unreadable = Unreadable(harness)
    async with harness.running():
        await unreadable.publish(table, "stuck")
        await harness.settle(200.0)
        unreadable.storage.is_away = True
        await harness.settle(10.0)
        assert "inbox" in harness.health.unreachable
        unreadable.keys.clear()
        unreadable.storage.is_away = False
        await harness.settle(5.0)
        assert harness.health.conditions == {}
        assert await harness.outstanding() == []
