"""A server, or what stands before it, that answers too much, too slowly, or from elsewhere.

Each ends within bounds of time and memory, and in one sentence.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web

from committer.catalog.rest.client.rest_auth import FixedAuth
from committer.catalog.rest.client.rest_options import RestOptions
from committer.catalog.rest.rest_catalog import RestCatalog
from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    NoSuchTableError,
    ObjectTooLargeError,
    SettingsError,
)
from committer.ports.pointer_swap import Unknown
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from tests.support.builders.table_builders import build_head_swap, build_table
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.servers.fake_rest import FakeRest
from tests.support.servers.http_proxy import Answer as Said
from tests.support.servers.http_proxy import HttpProxy

WAREHOUSE = "memory://warehouse"
JSON = "application/json"
Open = Callable[..., Any]


@pytest.fixture
async def fake() -> AsyncIterator[FakeRest]:
    async with FakeRest(MemoryStorage(world=RealWorld()), warehouse=WAREHOUSE) as server:
        yield server


@pytest.fixture
async def proxy(fake: FakeRest) -> AsyncIterator[HttpProxy]:
    async with HttpProxy(fake.url) as found:
        yield found


@pytest.fixture
async def opened(fake: FakeRest, proxy: HttpProxy) -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:

        async def open_catalog(uri: str = "", **options: Any) -> RestCatalog:
            catalog = await RestCatalog.open(
                options=RestOptions(uri=uri or proxy.url, **options),
                auth=FixedAuth({"Authorization": "Bearer s3cr3t"}),
                storage=fake.tables.storage,
                world=RealWorld(),
            )
            stack.push_async_callback(catalog.close)
            return catalog

        yield open_catalog


def configuration(**overrides: str) -> Said:
    named = {name.replace("_", "-"): text for name, text in overrides.items()}
    body = {"defaults": {}, "overrides": {"prefix": "fake", **named}}
    return Said(200, json.dumps(body).encode(), JSON)


async def test_an_answer_is_read_up_to_its_limit_and_no_byte_more_is_kept(
    proxy: HttpProxy, opened: Open
) -> None:
    catalog = await opened(answer_bytes_max=100_000, large_table_advice="expire snapshots")
    table = build_table(warehouse=WAREHOUSE)
    await catalog.create_namespace(("db",))
    await catalog.create_table(table)
    large = Said(200, b" " * 200_000, JSON)
    proxy.plan(b"/tables/flights", large, large)
    with pytest.raises(ObjectTooLargeError) as caught:
        await catalog.load(table.identifier)
    assert str(caught.value).endswith(
        "/tables/flights` has 200000 bytes, and at most 100000 are read: expire snapshots"
    )
    answer = await catalog.swap(build_head_swap(table))
    assert isinstance(answer, Unknown)
    assert "more than 100,000 bytes" in answer.cause


async def test_a_packed_answer_counts_by_what_it_unpacks_to(proxy: HttpProxy, opened: Open) -> None:
    catalog = await opened(answer_bytes_max=100_000)
    bomb = gzip.compress(b" " * 20_000_000)
    assert len(bomb) < 100_000
    proxy.plan(b"/namespaces", Said(200, bomb, JSON, (("Content-Encoding", "gzip"),)))
    with pytest.raises(CatalogUnavailableError, match="the answer is lost"):
        await catalog.list_namespaces()


@pytest.mark.thorough
async def test_an_answer_that_drips_ends_by_its_whole_time(opened: Open) -> None:
    """Each byte comes in time, and the answer does not."""
    dripped = [0]

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            dripped[0] += 1
            await RealWorld().sleep(0.01)

    app = web.Application()
    app.router.add_get("/v1/config", drip)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        with pytest.raises(CatalogUnavailableError, match="TimeoutError"):
            await opened(
                f"http://127.0.0.1:{runner.addresses[0][1]}",
                connect_timeout_s=0.1,
                read_timeout_s=0.1,
            )
    finally:
        await runner.cleanup()
    assert dripped[0] > 3


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed_and_credentials_stay(
    fake: FakeRest, proxy: HttpProxy, opened: Open, status: int
) -> None:
    catalog = await opened()
    async with HttpProxy(fake.url) as elsewhere:
        to = (("Location", f"{elsewhere.url}/v1/fake/namespaces"),)
        proxy.plan(b"/namespaces", Said(status, b"", "text/html", to))
        with pytest.raises(AccessError, match=r"redirects to 127\.0\.0\.1, which is not followed"):
            await catalog.list_namespaces()
        assert elsewhere.received == []


async def test_an_error_that_is_a_page_is_told_by_its_text_in_one_line(
    proxy: HttpProxy, opened: Open
) -> None:
    catalog = await opened()
    page = b"<html><head><title>503\nBackend</title></head>" + b"<p>sorry</p>" * 100_000
    proxy.plan(b"/namespaces", Said(503, page, "text/html"))
    with pytest.raises(CatalogUnavailableError) as error:
        await catalog.list_namespaces()
    text = str(error.value)
    assert "503 Backend" in text
    assert "<" not in text
    assert "\n" not in text
    assert len(text) < 500


@pytest.mark.parametrize("token", ["again", 7, "x" * 10_000])
async def test_a_list_without_an_end_is_an_error_and_not_cut_short(
    proxy: HttpProxy, opened: Open, token: object
) -> None:
    catalog = await opened()
    page = json.dumps({"namespaces": [["db"]], "next-page-token": token}).encode()
    proxy.plan(b"/namespaces", *[Said(200, page, JSON)] * 5)
    with pytest.raises(CatalogUnavailableError, match="the list has no end"):
        await catalog.list_namespaces()
    assert len(proxy.requests) <= 3


async def test_namespaces_that_go_down_for_ever_are_an_error(opened: Open) -> None:
    async def answer(request: web.Request) -> web.Response:
        parent = request.query.get("parent", "")
        levels = parent.split("\x1f") if parent else []
        return web.json_response({"namespaces": [[*levels, "deeper"]]})

    async def say_configuration(request: web.Request) -> web.Response:
        return web.json_response({"defaults": {}, "overrides": {}})

    app = web.Application()
    app.router.add_get("/v1/config", say_configuration)
    app.router.add_get("/v1/namespaces", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        catalog = await opened(f"http://127.0.0.1:{runner.addresses[0][1]}")
        with pytest.raises(CatalogUnavailableError, match="namespaces have no end"):
            await catalog.list_namespaces()
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("etag", ["\udcff", "é", "x" * 5_000, ""])
async def test_an_etag_that_cannot_be_sent_back_is_none(
    fake: FakeRest, proxy: HttpProxy, opened: Open, etag: str
) -> None:
    catalog = await opened()
    table = build_table(warehouse=WAREHOUSE)
    await catalog.create_namespace(("db",))
    await catalog.create_table(table)
    other = await opened()
    told = await other.client.read(other.client.paths.table(table.identifier))
    proxy.plan(
        b"GET /v1/fake/namespaces/db/tables", Said(200, told.content, JSON, (("ETag", etag),))
    )
    await other.load(table.identifier)
    assert await other.current_location(table.identifier) == table.metadata_location
    assert proxy.received[-1].header("if-none-match") is None


async def test_a_refusal_with_a_long_stack_trace_is_the_protocols(
    proxy: HttpProxy, opened: Open
) -> None:
    catalog = await opened()
    trace = ["at org.apache.iceberg.Anything(Anything.java:1)"] * 5_000
    error = {"message": "gone", "type": "NoSuchTableException", "code": 404, "stack": trace}
    proxy.plan(b"/tables/t", Said(404, json.dumps({"error": error}).encode(), JSON))
    with pytest.raises(NoSuchTableError):
        await catalog.load(TableIdentifier(("db",), "t"))


# --- A configuration that leads elsewhere ---


async def test_an_address_that_the_configuration_names_is_used(
    fake: FakeRest, proxy: HttpProxy, opened: Open
) -> None:
    proxy.plan(b"/v1/config", configuration(uri=f"{fake.url}/"))
    await (await opened()).list_namespaces()
    assert proxy.requests == ["GET /v1/config"]


@pytest.mark.parametrize(
    "uri",
    ["ftp://elsewhere", "http://user:secret@elsewhere", "http://e/?x=1", "http://e\r\nX: 1", "e"],
)
async def test_an_address_of_the_configuration_that_is_none_is_refused(
    proxy: HttpProxy, opened: Open, uri: str
) -> None:
    proxy.plan(b"/v1/config", configuration(uri=uri))
    with pytest.raises(SettingsError, match="the catalog's configuration names `uri`") as error:
        await opened()
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [("X-A", "1\r\nX-B: 2"), ("X A", "1"), ("Content-Length", "0"), ("X:Y", "1")],
)
async def test_a_header_of_the_configuration_that_would_change_requests_is_refused(
    proxy: HttpProxy, opened: Open, name: str, text: str
) -> None:
    proxy.plan(b"/v1/config", configuration(**{f"header.{name}": text}))
    with pytest.raises(SettingsError, match="the catalog's configuration: `header"):
        await opened()


@pytest.mark.parametrize("separator", ["", "/", "?", "%1", " ", "\r\n", "&parent="])
async def test_a_separator_that_would_change_paths_is_refused(
    proxy: HttpProxy, opened: Open, separator: str
) -> None:
    proxy.plan(b"/v1/config", configuration(namespace_separator=separator))
    with pytest.raises(SettingsError, match="`namespace-separator`"):
        await opened()


async def test_a_prefix_stays_in_the_path(proxy: HttpProxy, opened: Open) -> None:
    body = json.dumps({"defaults": {}, "overrides": {"prefix": "a?b#c/d e"}}).encode()
    proxy.plan(b"/v1/config", Said(200, body, JSON))
    catalog = await opened()
    assert catalog.client.paths.namespaces() == "v1/a%3Fb%23c/d%20e/namespaces"


async def test_our_header_wins_over_one_of_another_case(
    fake: FakeRest, proxy: HttpProxy, opened: Open
) -> None:
    """Two headers of one name would leave it to the server which of them counts."""
    proxy.plan(b"/v1/config", configuration(**{"header.authorization": "Bearer theirs"}))
    catalog = await opened(headers={"X-Team": "ours"})
    await catalog.list_namespaces()
    sent = [text for name, text in fake.headers[-1].items() if name.lower() == "authorization"]
    assert sent == ["Bearer s3cr3t"]
