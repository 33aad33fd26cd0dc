"""The queue's server comes back older than it was: its log lost its tail, or a stale replica took
over. Doorbells are lost, acknowledgments undone; each request is in its table once all the same.
"""

from __future__ import annotations

import asyncio
import random
import signal
from contextlib import AsyncExitStack
from functools import partial
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from tests.integration.dying_harness import dying_harness
from tests.support.faults.fault_proxy import FaultProxy
from tests.support.integration.exactness import Exactness, check_exactly_once
from tests.support.integration.real_harness import RealHarness, living_in, local_queue, until
from tests.support.integration.traffic import RealProducer, producers
from tests.support.servers.queue_servers import TcpServer, tcp_server

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(240)]

TABLE = "db.flights"
SETTINGS = {"FRAZIL_COMMIT__MIN_INTERVAL_MS": "50"}
EPOCHS = 4
RANDOM_CUTS = 4
# The markers of what has landed go with the snapshots: the ledger has to know without them.
EXPIRING = {
    "frazil.expire.enabled": "true",
    "history.expire.max-snapshot-age-ms": "1",
    "history.expire.min-snapshots-to-keep": "1",
}


# --- A log without its tail ----------------------------------------------------------------------


@pytest.mark.heavy
async def test_requests_land_once_after_the_log_of_the_queue_lost_its_tail() -> None:
    seed = uuid4().int % 2**32
    chance = random.Random(seed)
    print(f"seed {seed}")
    with dying_harness(**SETTINGS) as harness:
        table = await harness.create_table(TABLE, properties=EXPIRING)
        async with producers(harness, table, 3, waiting=1) as published:
            await harness.start()
            faults = [_lose_doorbells, _undo_acknowledgments]
            faults += [partial(_cut_anywhere, chance=chance)] * RANDOM_CUTS
            for fault in faults:
                async with asyncio.TaskGroup() as tasks:
                    await fault(harness, published, tasks)
                    await until(harness.is_healthy, "a healthy committer again")
                await until(harness.is_settled, "an empty inbox")
                found = await check_exactly_once(harness, TABLE, published)
        harness.signal(signal.SIGTERM)
    _tell(harness, found, f"{len(faults)} times without its tail")


async def _lose_doorbells(
    harness: RealHarness, published: list[RealProducer], tasks: asyncio.TaskGroup
) -> None:
    """Publish doorbells that no committer has read, and remove them from the server's log."""
    harness.signal(signal.SIGSTOP)
    log = _Log(harness)
    before = log.size
    for each in published[1:]:
        await each.publish(EPOCHS)
    assert log.size > before
    log.cut(before)
    harness.signal(signal.SIGCONT)


async def _undo_acknowledgments(
    harness: RealHarness, published: list[RealProducer], tasks: asyncio.TaskGroup
) -> None:
    """Restore doorbells of requests that have landed, and whose snapshots have expired since."""
    harness.signal(signal.SIGSTOP)
    for each in published[1:]:
        await each.publish(EPOCHS)
    log = _Log(harness)
    rung = log.size
    harness.signal(signal.SIGCONT)
    await until(harness.is_settled, "an empty inbox")
    landed = (await harness.load(TABLE)).metadata.current_snapshot
    assert landed is not None

    async def has_expired() -> bool:
        await published[1].publish()
        await until(harness.is_settled, "an empty inbox")
        return (await harness.load(TABLE)).metadata.snapshot_by_id(landed.snapshot_id) is None

    await until(has_expired, "the end of the snapshot")
    harness.signal(signal.SIGSTOP)
    log.cut(rung)
    assert await _rung(harness) >= 2 * EPOCHS, "nothing that had landed will be handed over again"
    harness.signal(signal.SIGCONT)
    await until(lambda: _is_silent(harness), "an end of all doorbells")


async def _rung(harness: RealHarness, url: str = "") -> int:
    """Return how many doorbells a queue server knows: that of the harness, or one at `url`."""
    queue = local_queue(url or harness.settings.queue_url, harness.settings.inbox, "onlooker")
    try:
        return (await queue.depth()).waiting
    finally:
        await queue.close()


async def _is_silent(harness: RealHarness) -> bool:
    return await _rung(harness) == 0


async def _cut_anywhere(
    harness: RealHarness,
    published: list[RealProducer],
    tasks: asyncio.TaskGroup,
    chance: random.Random,
) -> None:
    """Cut the log in the middle of traffic, perhaps of a command."""
    log = _Log(harness)
    before = log.size
    for each in published:
        tasks.create_task(each.publish(EPOCHS))
    await asyncio.sleep(chance.uniform(0.0, 0.4))
    log.cut(before + int((log.size - before) * chance.random()))


class _Log:
    """The append-only file of the harness's queue server."""

    def __init__(self, harness: RealHarness) -> None:
        self._harness = harness
        [self._file] = (harness.folder / "queue/appendonlydir").glob("*.incr.aof")

    @property
    def size(self) -> int:
        return self._file.stat().st_size

    def cut(self, size_bytes: int) -> None:
        """Kill the server, and restart it with so many bytes of its log."""
        self._harness.kill_queue()
        with self._file.open("rb+") as file:
            file.truncate(size_bytes)
        self._harness.start_queue()


# --- A stale replica -----------------------------------------------------------------------------


class ReplicatedHarness(RealHarness):
    """A harness whose queue is where `queue_url` leads to."""

    def start_queue(self) -> None:
        """Do nothing: a primary and a replica run already."""


async def test_requests_land_once_after_a_stale_replica_was_promoted() -> None:
    async with AsyncExitStack() as stack:
        primary, replica = (stack.enter_context(tcp_server()) for _ in range(2))
        link = await stack.enter_async_context(FaultProxy(primary.address))
        clients = await stack.enter_async_context(FaultProxy(primary.address))
        url = f"redis://{clients.host}:{clients.port}"
        harness = stack.enter_context(
            living_in(lambda at: ReplicatedHarness(at, SETTINGS, queue_url=url))
        )
        table = await harness.create_table(TABLE)
        published = await stack.enter_async_context(producers(harness, table, 3, waiting=1))
        await _follow(replica, link)
        await harness.start()
        await published[1].publish(EPOCHS)
        await until(harness.is_settled, "an empty inbox")
        await until(lambda: _is_level(primary, replica), "a replica that is level")
        harness.signal(signal.SIGSTOP)
        await published[1].publish(EPOCHS)
        await until(lambda: _is_level(primary, replica), "a replica that is level")
        # From now on the replica learns nothing: of these the acknowledgment, of others all.
        link.hold()
        harness.signal(signal.SIGCONT)
        await until(harness.is_settled, "an empty inbox")
        async with asyncio.TaskGroup() as tasks:
            for each in published:
                tasks.create_task(each.publish(EPOCHS))
            await until(lambda: _has_work(harness), "a request in the inbox", poll_s=0.001)
            primary.kill()
            await _promote(replica)
            again = await _rung(harness, replica.url)
            await clients.turn_to(replica.address)
        await until(harness.is_settled, "an empty inbox")
        await until(harness.is_healthy, "a healthy committer again")
        await until(lambda: _is_silent(harness), "an end of all doorbells")
        found = await check_exactly_once(harness, TABLE, published)
        assert again >= EPOCHS, "nothing that had landed was handed over again"
        _tell(harness, found, f"as a stale replica; {again} handed over again after landing")


async def _follow(replica: TcpServer, link: FaultProxy) -> None:
    async with Redis.from_url(replica.url) as client:
        await client.replicaof(link.host, link.port)
        await until(lambda: _is_following(client), "a replica that follows")


async def _is_following(client: Redis) -> bool:
    return bool((await client.info("replication"))["master_link_status"] == "up")


async def _is_level(primary: TcpServer, replica: TcpServer) -> bool:
    async with Redis.from_url(primary.url) as one, Redis.from_url(replica.url) as other:
        written = (await one.info("replication"))["master_repl_offset"]
        read = (await other.info("replication"))["slave_repl_offset"]
    return bool(written == read)


async def _promote(replica: TcpServer) -> None:
    async with Redis.from_url(replica.url) as client:
        await client.replicaof("NO", "ONE")


async def _has_work(harness: RealHarness) -> bool:
    return bool(await harness.outstanding())


def _tell(harness: RealHarness, found: Exactness, what: str) -> None:
    recovered = sum(event["requests"] for event in harness.events("doorbells.missed"))
    print(
        f"{found.requests} requests; the queue came back {what}; {recovered} found in the inbox;"
        f" {found.contents.rows} rows in {found.contents.files} files, each once, by three readers;"
        f" {found.receipts} receipts true"
    )
