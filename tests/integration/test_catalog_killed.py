"""The catalog's server is killed while a committer commits to it, and comes back: every request
lands once, and `/status` and `/readyz` say what is wrong for as long as it is.

Moto keeps everything in memory, so there the way to it breaks instead, with all that is on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import urlsplit

import pytest
from pyarrow.fs import S3FileSystem

from committer.errors import CatalogUnavailableError
from tests.support.faults.fault_proxy import FaultProxy
from tests.support.integration.catalog_real_harness import CatalogRealHarness, catalog_real_harness
from tests.support.integration.exactness import check_exactly_once, check_files
from tests.support.integration.real_harness import until
from tests.support.integration.traffic import POLICIES, RealProducer, producers
from tests.support.servers.free_port import free_port
from tests.support.servers.hive_server import running_hive
from tests.support.servers.mariadb_server import running_mariadb
from tests.support.servers.moto_server import MotoServer, running_moto_server
from tests.support.servers.postgres_server import USER, running_postgres
from tests.support.servers.rest_server import running_rest_server
from workers.files.s3_files import s3_path

pytestmark = [pytest.mark.server, pytest.mark.heavy, pytest.mark.timeout(400)]
KINDS = ("rest", "postgres", "mariadb", "hive", "glue", "s3tables")
NAME = "db.flights"
KILLS = 3
EPOCHS = 8


class Killable(Protocol):
    """A server that a test owns: no other test's tables are on it."""

    def kill(self) -> None: ...

    def start(self) -> None: ...


@dataclass(slots=True)
class Mortal:
    """A catalog whose server `kill` ends at once, and `start` brings back. `read`: reads an object
    of tables that are not on this disk."""

    properties: Mapping[str, str]
    kill: Callable[[], Awaitable[None]]
    start: Callable[[], Awaitable[None]]
    read: Callable[[str], bytes] | None = None

    @classmethod
    def of(cls, server: Killable, properties: Mapping[str, str]) -> Mortal:
        async def kill() -> None:
            await asyncio.to_thread(server.kill)

        async def start() -> None:
            await asyncio.to_thread(server.start)

        return cls(properties, kill, start)


@pytest.fixture(params=KINDS)
async def mortal(request: pytest.FixtureRequest) -> AsyncIterator[Mortal]:
    async with AsyncExitStack() as stack:
        yield await _OPEN[request.param](stack)


async def _rest(stack: AsyncExitStack) -> Mortal:
    server = stack.enter_context(running_rest_server())
    return Mortal.of(server, {"uri": server.url, "warehouse": server.warehouse})


async def _postgres(stack: AsyncExitStack) -> Mortal:
    server = stack.enter_context(running_postgres())
    uri = f"jdbc:postgresql://127.0.0.1:{server.port}/{server.new_database()}"
    return Mortal.of(server, {"uri": uri, "jdbc.user": USER})


async def _mariadb(stack: AsyncExitStack) -> Mortal:
    server = stack.enter_context(running_mariadb())
    return Mortal.of(server, {"uri": server.uri(server.new_database())})


async def _hive(stack: AsyncExitStack) -> Mortal:
    server = stack.enter_context(running_hive(stack.enter_context(running_postgres())))
    return Mortal.of(server, {"uri": server.uri, "warehouse": server.warehouse})


async def _glue(stack: AsyncExitStack) -> Mortal:
    server = stack.enter_context(running_moto_server())
    options = server.new_account()
    properties = {
        "type": "glue",
        "glue.region": options.region,
        "glue.access-key-id": options.access_key_id,
        "glue.secret-access-key": options.secret_access_key,
    }
    return await _on_the_way(stack, server, "glue.endpoint", properties)


async def _s3_tables(stack: AsyncExitStack) -> Mortal:
    server = stack.enter_context(running_moto_server())
    bucket = await server.new_table_bucket()
    options = bucket.options
    properties = {
        "type": "s3tables",
        "warehouse": bucket.arn,
        "s3.endpoint": options.endpoint_url,
        "s3.path-style-access": "true",
        "client.region": options.region,
        "client.access-key-id": options.access_key_id,
        "client.secret-access-key": options.secret_access_key,
    }
    mortal = await _on_the_way(stack, server, "s3tables.endpoint", properties)
    files = S3FileSystem(
        region=options.region,
        scheme="http",
        endpoint_override=urlsplit(options.endpoint_url).netloc,
        access_key=options.access_key_id,
        secret_key=options.secret_access_key,
    )

    def read(location: str) -> bytes:
        with files.open_input_stream(s3_path(location)) as stream:
            return bytes(stream.read())

    return replace(mortal, read=read)


async def _on_the_way(
    stack: AsyncExitStack, server: MotoServer, endpoint: str, properties: Mapping[str, str]
) -> Mortal:
    """Return a catalog whose server stays, while the way to it breaks. `endpoint`: the property
    that names the server."""
    at = urlsplit(server.url)
    assert at.hostname and at.port
    upstream = (at.hostname, at.port)
    proxy = await stack.enter_async_context(FaultProxy(upstream))

    async def kill() -> None:
        await proxy.turn_to(("127.0.0.1", free_port()))

    async def start() -> None:
        await proxy.turn_to(upstream)

    return Mortal({**properties, endpoint: f"http://{proxy.host}:{proxy.port}"}, kill, start)


_OPEN: Mapping[str, Callable[[AsyncExitStack], Awaitable[Mortal]]] = {
    "rest": _rest,
    "postgres": _postgres,
    "mariadb": _mariadb,
    "hive": _hive,
    "glue": _glue,
    "s3tables": _s3_tables,
}


async def test_requests_land_once_although_the_catalogs_server_is_killed_again_and_again(
    mortal: Mortal,
) -> None:
    with catalog_real_harness(mortal.properties, FRAZIL_COMMIT__MIN_INTERVAL_MS="20") as harness:
        await harness.start()
        table = await harness.create_table(NAME)
        async with producers(harness, table, 2) as published:
            for _ in range(KILLS):
                publishing = [asyncio.create_task(publish(each)) for each in published]
                await until(is_committing(harness), "a commit")
                await mortal.kill()
                await until(lambda: says_so(harness), "the condition `catalog`")
                status, body = await asyncio.to_thread(harness.readiness)
                assert status == 503
                assert "catalog" in body["conditions"]
                await mortal.start()
                await asyncio.gather(*publishing)
                await until(harness.is_healthy, "a healthy committer", timeout_s=90)
            await until(harness.is_settled, "an empty inbox", timeout_s=90)
            if mortal.read is None:
                found = await check_exactly_once(harness, NAME, published)
            else:
                # No other reader here knows this catalog.
                table = await harness.load(NAME)
                found = await check_files(harness, table, published, mortal.read)
        assert await harness.quarantined() == []
    assert found.requests == 2 * KILLS * EPOCHS
    print(f"{found.requests} requests, {KILLS} kills; {found.contents.rows} rows, each once")


async def publish(producer: RealProducer) -> None:
    """Publish epochs as a query does whose catalog may be away when it looks at its table."""
    for _ in range(EPOCHS):
        written = producer.write()
        while True:
            try:
                await producer.connections.publisher.publish(written, POLICIES["durable"])
            except CatalogUnavailableError:
                await asyncio.sleep(0.2)
            else:
                break


def is_committing(harness: CatalogRealHarness) -> Callable[[], bool]:
    """Return a question: has a commit landed since it was made?"""
    before = len(harness.events("commit.landed"))
    return lambda: len(harness.events("commit.landed")) > before


async def says_so(harness: CatalogRealHarness) -> bool:
    return "catalog" in await asyncio.to_thread(harness.conditions)
