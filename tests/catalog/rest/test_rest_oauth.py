"""Tokens under load, at their end in the middle of work, and while the endpoint gives none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from committer.backends.catalog_kinds import open_catalog
from committer.catalog.catalog_properties import CatalogProperties
from committer.catalog.rest.client.rest_options import OAuth2Options, RestOptions
from committer.catalog.rest.rest_catalog import RestCatalog
from committer.errors import AccessError, CatalogUnavailableError
from committer.ports.pointer_swap import Committed
from committer.real_world import RealWorld
from tests.support.builders.table_builders import build_head_swap, build_table
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.servers.fake_rest import FakeRest
from tests.support.servers.http_proxy import Answer as Said
from tests.support.servers.http_proxy import Fault, HttpProxy

TOKENS = b"/oauth/tokens"


@pytest.fixture
async def fake() -> AsyncIterator[FakeRest]:
    storage = MemoryStorage(world=RealWorld())
    async with FakeRest(storage, warehouse="memory://warehouse") as server:
        server.tokens.credential = "robot:s3cr3t"
        yield server


@pytest.fixture
async def proxy(fake: FakeRest) -> AsyncIterator[HttpProxy]:
    async with HttpProxy(fake.url) as found:
        yield found


@pytest.fixture
async def catalog(fake: FakeRest, proxy: HttpProxy) -> AsyncIterator[RestCatalog]:
    found = await RestCatalog.open(
        options=RestOptions(uri=proxy.url),
        auth=OAuth2Options(credential="robot:s3cr3t"),
        storage=fake.tables.storage,
        world=RealWorld(),
    )
    yield found
    await found.close()


async def test_of_many_requests_that_are_refused_at_once_one_renews_and_all_go_through(
    fake: FakeRest, catalog: RestCatalog
) -> None:
    await catalog.create_namespace(("db",))
    tables = [build_table(f"db.t{number}", warehouse="memory://warehouse") for number in range(20)]
    for table in tables:
        await catalog.create_table(table)
    bases = [await catalog.load(table.identifier) for table in tables]
    fetched = len(fake.tokens.requests)
    fake.tokens.revoke_all()
    answers = await asyncio.gather(*(catalog.swap(build_head_swap(base)) for base in bases))
    assert all(isinstance(answer, Committed) for answer in answers)
    assert fake.tables.commits == len(tables)
    assert len(fake.tokens.requests) == fetched + 1
    assert 1 <= fake.tokens.refused <= len(tables)


@pytest.mark.parametrize(
    "down",
    [Said(503), Said(429), Said(200, b"<html>", "text/html"), Fault.CUT_REQUEST, Fault.CUT_ANSWER],
)
async def test_a_commit_without_a_token_was_not_applied_and_goes_through_once_there_is_one(
    fake: FakeRest, proxy: HttpProxy, catalog: RestCatalog, down: Said | Fault
) -> None:
    table = build_table(warehouse="memory://warehouse")
    await catalog.create_namespace(("db",))
    await catalog.create_table(table)
    base = await catalog.load(table.identifier)
    fake.tokens.revoke_all()
    proxy.plan(TOKENS, down, down)
    for _ in range(2):
        with pytest.raises(CatalogUnavailableError, match="/v1/oauth/tokens"):
            await catalog.swap(build_head_swap(base))
    assert fake.tables.commits == 0
    assert isinstance(await catalog.swap(build_head_swap(base)), Committed)


async def test_a_token_endpoint_that_redirects_gets_no_second_look_at_the_secret(
    fake: FakeRest, proxy: HttpProxy, catalog: RestCatalog
) -> None:
    async with HttpProxy(fake.url) as elsewhere:
        to = (("Location", f"{elsewhere.url}/v1/oauth/tokens"),)
        proxy.plan(TOKENS, Said(307, b"", "text/html", to))
        fake.tokens.revoke_all()
        with pytest.raises(AccessError, match=r"HTTP 307.*no token") as error:
            await catalog.list_namespaces()
        assert elsewhere.received == []
    assert "s3cr3t" not in str(error.value)


@pytest.mark.parametrize(
    "body", [b'{"access_token": 7}', b"{}", b'{"access_token": "a\\r\\nX-B: 1"}']
)
async def test_a_token_that_cannot_stand_in_a_header_is_refused(
    fake: FakeRest, proxy: HttpProxy, catalog: RestCatalog, body: bytes
) -> None:
    proxy.plan(TOKENS, Said(200, body, "application/json"))
    fake.tokens.revoke_all()
    with pytest.raises(AccessError, match="no usable `access_token`"):
        await catalog.list_namespaces()


@pytest.mark.parametrize("lifetime", ["-5", "0", "1e308", '"soon"', "true", "null"])
async def test_a_strange_lifetime_does_no_harm(
    fake: FakeRest, proxy: HttpProxy, catalog: RestCatalog, lifetime: str
) -> None:
    fake.tokens.fixed.add("good")
    body = f'{{"access_token": "good", "expires_in": {lifetime}}}'.encode()
    proxy.plan(TOKENS, *[Said(200, body, "application/json")] * 2)
    fake.tokens.revoke_all()
    for _ in range(2):
        await catalog.list_namespaces()


async def test_scope_audience_and_resource_are_asked_for_at_another_endpoint(
    fake: FakeRest,
) -> None:
    async with HttpProxy(fake.url) as issuer:
        properties = {
            "type": "rest",
            "uri": fake.url,
            "credential": "robot:s3cr3t",
            "oauth2-server-uri": f"{issuer.url}/v1/oauth/tokens",
            "scope": "PRINCIPAL_ROLE:ALL",
            "audience": "lake",
            "resource": "https://lake.example.com",
        }
        storage = MemoryStorage(world=RealWorld())
        named = CatalogProperties("prod", properties)
        found = await open_catalog(named, storage, RealWorld(), create=False)
        await found.close()
        assert issuer.requests == ["POST /v1/oauth/tokens"]
    assert fake.tokens.requests == [
        {
            "grant_type": "client_credentials",
            "client_id": "robot",
            "client_secret": "s3cr3t",
            "scope": "PRINCIPAL_ROLE:ALL",
            "audience": "lake",
            "resource": "https://lake.example.com",
        }
    ]


async def test_the_proxy_of_the_usual_variables_is_used(
    fake: FakeRest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://user:hush@127.0.0.1:1")
    for bypassed in ("", "127.0.0.1"):
        monkeypatch.setenv("no_proxy", bypassed)
        opening = RestCatalog.open(
            options=RestOptions(uri=fake.url),
            auth=OAuth2Options(credential="robot:s3cr3t"),
            storage=fake.tables.storage,
            world=RealWorld(),
        )
        if bypassed:
            await (await opening).close()
            continue
        with pytest.raises(CatalogUnavailableError, match="no connection") as error:
            await opening
        assert "hush" not in str(error.value)
        assert fake.headers == []
