"""Disks that are full or read-only: those of requests, catalog and queue. Nothing is lost, and all
goes on once there is room again. The warehouse: `test_dirty_environment`.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from committer.errors import FrazilError
from tests.integration.dying_harness import DyingHarness
from tests.integration.mounts import full, read_only, tmpfs
from tests.support.integration.exactness import check_exactly_once
from tests.support.integration.real_harness import living_in, until
from tests.support.integration.traffic import RealProducer, producers
from workers.requests.publisher import PublishPolicy
from workers.requests.written_epoch import WrittenEpoch

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(120)]

TABLE = "db.flights"
Spoil = Callable[[Path], AbstractContextManager[None]]


class DisksHarness(DyingHarness):
    """A harness whose catalog is in a folder of its own, too."""

    @property
    def catalog_file(self) -> Path:
        return self.folder / "catalog/catalog.db"


@contextmanager
def harness_with_disk(place: str) -> Iterator[tuple[DisksHarness, Path]]:
    """Start a harness with one of its folders on a disk of its own."""
    with living_in(DisksHarness) as harness:
        harness.variables = {"FRAZIL_CATALOG__URI": harness.settings.catalog.uri}
        harness.catalog_file.parent.mkdir()
        assert harness.server is not None
        harness.server.stop()
        with tmpfs(harness.folder / place, size="4m") as disk:
            harness.start_queue()
            try:
                yield harness, disk
            finally:
                harness.close()


# Files that are open for writing keep a disk from becoming read-only: those of catalog and queue.
@pytest.mark.parametrize(
    ("place", "spoil"),
    [
        ("requests", full),
        pytest.param("requests", read_only, marks=pytest.mark.heavy),
        ("catalog", full),
        ("queue", full),
    ],
)
async def test_requests_land_once_after_a_disk_took_nothing(place: str, spoil: Spoil) -> None:
    with harness_with_disk(place) as (harness, disk):
        table = await harness.create_table(TABLE)
        async with producers(harness, table, 3, waiting=1) as published:
            waiting, durable, clashing = published
            await harness.start()
            await asyncio.gather(*(each.publish() for each in published))
            await until(harness.is_settled, "an empty inbox")
            harness.signal(signal.SIGSTOP)
            await durable.publish(2)
            await clashing.publish_again(0)
            await clashing.publish_again(0, fingerprint="another")
            written = waiting.write()
            with spoil(disk):
                harness.signal(signal.SIGCONT)
                publishing = asyncio.create_task(_publish_at_last(waiting, written))
                await until(lambda: _shows(harness), "what the matter is, or that nothing is")
            await publishing
            await until(harness.is_settled, "an empty inbox")
            await until(harness.is_healthy, "a healthy committer again")
            found = await check_exactly_once(harness, TABLE, published)
            assert (found.superseded, found.quarantined) == (1, 1)


async def _publish_at_last(producer: RealProducer, written: WrittenEpoch) -> None:
    """Publish what is written, again and again: as Spark does with a micro-batch that failed."""
    policy = PublishPolicy(wait="committed", wait_timeout_s=60.0)
    while True:
        try:
            receipt = await producer.connections.publisher.publish(written, policy)
        except FrazilError as error:
            print(f"not published yet: {error}")
            await asyncio.sleep(0.2)
        else:
            producer.receipts[written.epoch] = receipt
            return


async def _shows(harness: DyingHarness) -> bool:
    """Return whether the committer reports the problem, as a condition or by a deferred request, or
    had room enough: SQLite has some of its own.
    """
    assert harness.committer is not None and harness.committer.poll() is None
    conditions, deferred = harness.conditions(), harness.events("request.deferred")
    if conditions or deferred:
        print(conditions or deferred)
        return True
    return await harness.is_settled()
