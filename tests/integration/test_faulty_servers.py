"""DynamoDB, S3 and Redis behind proxies that cut, delay, truncate, repeat and lose what a committer
says and hears. One committer goes through all of it; each request is in its table once.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from itertools import cycle, islice, product
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

import pytest

from committer.storage.inbox.inbox import Inbox
from tests.integration.aws_harness import AwsHarness, aws_harness
from tests.support.faults import fault_proxy
from tests.support.faults.fault_proxy import FaultProxy
from tests.support.integration.exactness import check_files
from tests.support.integration.readers import seen_by_pyiceberg
from tests.support.integration.real_harness import until
from tests.support.integration.traffic import RealProducer, producers
from tests.support.servers.dynamodb_server import REGION, DynamoDbServer
from tests.support.servers.http_proxy import Answer, Fault, HttpProxy
from tests.support.servers.s3_server import S3Server
from workers.requests.connections import open_connections
from workers.settings.worker_settings import NO_QUEUE

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(1_800)]

SETTINGS = {"FRAZIL_COMMIT__MIN_INTERVAL_MS": "20"}
# Each fault at some request and each request with some fault; `make chaos` tries each with each.
# Waiting for an answer that never comes takes all the time that a client waits.
IS_CHAOS = "FRAZIL_TEST_CHAOS" in os.environ
THROTTLED = Answer.aws_error(400, "ProvisionedThroughputExceededException")
OUT_OF_ORDER = Answer.aws_error(500, "InternalServerError")
SLOW_DOWN = Answer.s3_error(503, "SlowDown")
CALLS: tuple[Fault | Answer, ...] = (
    Fault.CUT_REQUEST,
    Fault.CUT_ANSWER,
    Fault.CUT_IN_ANSWER,
    Fault.SENT_TWICE,
    Fault.LANDS_LATE,
    Fault.DELAY_ANSWER,
    *((Fault.HOLD_ANSWER,) if IS_CHAOS else ()),
)
COMMANDS = (
    fault_proxy.Fault.CUT_REQUEST,
    fault_proxy.Fault.CUT_ANSWER,
    fault_proxy.Fault.TRUNCATE_ANSWER,
    fault_proxy.Fault.SENT_TWICE,
    fault_proxy.Fault.LANDS_LATE,
    fault_proxy.Fault.DELAY_ANSWER,
)
_One = TypeVar("_One")
_Other = TypeVar("_Other")


def pairs(ones: Sequence[_One], others: Sequence[_Other]) -> Iterable[tuple[_One, _Other]]:
    """Pair each with each, or only as many as it takes to have had all."""
    if IS_CHAOS:
        return product(ones, others)
    return islice(zip(cycle(ones), cycle(others), strict=False), max(len(ones), len(others)))


@dataclass(slots=True)
class Proxies:
    """Between the committer and the servers. Those who write go past them."""

    dynamodb: HttpProxy
    s3: HttpProxy
    redis: FaultProxy


@dataclass(slots=True)
class Work:
    """One table: a producer that waits for its commits, one that does not, and one that clashes,
    whom no doorbell announces."""

    harness: AwsHarness
    name: str
    published: list[RealProducer]
    faults: int = 0

    async def publish(self) -> None:
        """Publish, with and without waiting for the verdict, and wait for the commits."""
        waiting, durable, _ = self.published
        await asyncio.gather(waiting.publish(), durable.publish())
        await self.settle()

    async def refuse(self) -> None:
        """Publish a request without a doorbell that is quarantined: the first has landed."""
        clashing = self.published[2]
        if not clashing.epochs:
            await clashing.publish()
            await self.settle()
        await clashing.publish_again(0, fingerprint=f"another-{self.faults}")
        await self.settle()

    async def settle(self) -> None:
        await until(self.is_settled, f"no requests of {self.name}", timeout_s=90, poll_s=0.05)

    async def is_settled(self) -> bool:
        """Return whether the inbox is empty. It uses open connections: to make new ones takes
        longer than all else here.
        """
        inbox = Inbox(self.published[0].connections.tables.storage, self.harness.settings.inbox)
        table_uuid = self.published[0].table.metadata.table_uuid
        return [found async for found in inbox.list(table_uuid)] == []


async def test_requests_land_once_whatever_the_ways_to_the_servers_do(
    dynamodb_server: DynamoDbServer, s3_server: S3Server
) -> None:
    async with AsyncExitStack() as stack:
        harness = stack.enter_context(aws_harness(dynamodb_server, s3_server))
        proxies = await _proxies(harness, stack)
        names = ("dynamodb", "s3", "redis")
        works = [await stack.enter_async_context(_table(harness, name)) for name in names]
        await harness.start()
        async with asyncio.TaskGroup() as chains:
            chains.create_task(_spoil_dynamodb(proxies, works[0]))
            chains.create_task(_spoil_s3(proxies, works[1]))
            chains.create_task(_spoil_redis(proxies, works[2]))
        await until(harness.is_healthy, "a healthy committer again")
        for work in works:
            await _check(work)


async def _proxies(harness: AwsHarness, stack: AsyncExitStack) -> Proxies:
    """Put proxies before the servers that the committer will use."""
    socket = Path(unquote(urlsplit(harness.settings.queue_url).path))
    dynamodb = await stack.enter_async_context(HttpProxy(harness.places.dynamodb_url))
    s3 = await stack.enter_async_context(HttpProxy(harness.places.s3_url))
    redis = await stack.enter_async_context(FaultProxy(socket))
    harness.variables = {
        **SETTINGS,
        "FRAZIL_CATALOG__DYNAMODB__ENDPOINT": dynamodb.url,
        "FRAZIL_CATALOG__S3__ENDPOINT": s3.url,
        "FRAZIL_QUEUE__URL": f"redis://{redis.host}:{redis.port}",
    }
    return Proxies(dynamodb, s3, redis)


@asynccontextmanager
async def _table(harness: AwsHarness, name: str) -> AsyncIterator[Work]:
    table = await harness.create_table(f"db.{name}")
    silent = await open_connections(replace(harness.settings, queue_url=NO_QUEUE))
    try:
        async with producers(harness, table, 2, waiting=1) as published:
            clashing = RealProducer(2, table, silent, harness.settings.access)
            yield Work(harness, f"db.{name}", [*published, clashing])
    finally:
        await silent.close()


# --- Spoiled answers -----------------------------------------------------------------------------


async def _spoil_dynamodb(proxies: Proxies, work: Work) -> None:
    """Fail the swap, and the look-up that finds out whether it landed."""
    proxy = proxies.dynamodb
    await work.publish()
    outcomes = (*CALLS, Fault.DAMAGE_ANSWER, THROTTLED, OUT_OF_ORDER)
    for outcome in outcomes:
        proxy.plan(b"UpdateItem", outcome)
        await _see_through(proxy, work, work.publish)
    for outcome in outcomes if IS_CHAOS else (Fault.CUT_ANSWER, Fault.DAMAGE_ANSWER):
        proxy.plan(b"UpdateItem", Fault.CUT_ANSWER)
        proxy.plan(b"GetItem", outcome)
        await _see_through(proxy, work, work.publish)


async def _spoil_s3(proxies: Proxies, work: Work) -> None:
    """Spoil the writes of a commit and of a refusal, the listings, reads and deletions."""
    proxy = proxies.s3
    await work.refuse()
    place = urlsplit(work.harness.places.root)
    root = f"/{place.netloc}{place.path}"
    requests = (
        (f"{root}/warehouse/db/s3/metadata/", work.publish),
        ("?delete", work.publish),
        ("list-type=2", work.publish),
        (f"GET {root}/requests/inbox/", work.refuse),
        (f"PUT {root}/requests/quarantine/", work.refuse),
    )
    for outcome, (match, traffic) in pairs((*CALLS, SLOW_DOWN), requests):
        proxy.plan(match.encode(), outcome)
        await _see_through(proxy, work, traffic)


async def _see_through(
    proxy: HttpProxy, work: Work, traffic: Callable[[], Awaitable[None]]
) -> None:
    work.faults += 1
    await traffic()
    while proxy.is_planned:
        await traffic()
    await proxy.land_late()


async def _spoil_redis(proxies: Proxies, work: Work) -> None:
    """Fail the commands that read, claim and acknowledge doorbells, and those for receipts."""
    await work.publish()
    for fault, command in pairs(COMMANDS, (b"XREADGROUP", b"XAUTOCLAIM", b"XACK", b":receipts:")):
        work.faults += 1
        spoiled = proxies.redis.spoil(command, fault)
        while not spoiled.struck.is_set():
            await work.publish()
        await proxies.redis.land_late()
        await work.publish()


# --- The outcome ---------------------------------------------------------------------------------


async def _check(work: Work) -> None:
    harness = work.harness
    table = await harness.load(work.name)
    found = await check_files(harness, table, work.published)
    properties = {
        "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
        "s3.endpoint": harness.places.s3_url,
        "s3.region": REGION,
    }
    assert seen_by_pyiceberg(table, properties) == found.contents
    print(
        f"{work.name}: {work.faults} faults; {found.requests} requests, {found.superseded}"
        f" superseded, {found.quarantined} in quarantine; {found.contents.rows} rows in"
        f" {found.contents.files} files, each once, by Frazil and PyIceberg;"
        f" {found.receipts} receipts true"
    )
