"""A request with an idempotency key is sent once more where its answer is lost, and no other is."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from committer.catalog.rest.client.rest_options import OAuth2Options, RestOptions
from committer.catalog.rest.rest_catalog import RestCatalog
from committer.errors import CatalogUnavailableError, NoSuchTableError
from committer.ports.pointer_swap import Committed, Conflict, LoadedTable, Unknown
from committer.real_world import RealWorld
from committer.storage.disk.local import LocalStorage
from tests.support.builders.table_builders import build_head_swap, build_table
from tests.support.catalogs.rest_harness import rest_error
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.servers.fake_rest import FakeRest
from tests.support.servers.http_proxy import Answer as Said
from tests.support.servers.http_proxy import Fault, HttpProxy
from tests.support.servers.rest_server import RestServer

WAREHOUSE = "memory://warehouse"
COMMIT = b'"requirements"'


class Case:
    """A table of a fake server behind a proxy, and a client."""

    def __init__(self, fake: FakeRest, proxy: HttpProxy, catalog: RestCatalog) -> None:
        self.fake = fake
        self.proxy = proxy
        self.catalog = catalog
        self.table: LoadedTable

    @property
    def keys(self) -> list[str | None]:
        """The keys of the commits that were sent."""
        sent = [one for one in self.proxy.received if one.holds(COMMIT)]
        return [one.header("idempotency-key") for one in sent]


@asynccontextmanager
async def opened(lifetime: str, credential: str = "") -> AsyncIterator[Case]:
    storage = MemoryStorage(world=RealWorld())
    async with AsyncExitStack() as stack:
        fake = await stack.enter_async_context(FakeRest(storage, warehouse=WAREHOUSE))
        fake.features.idempotency_lifetime, fake.tokens.credential = lifetime, credential
        proxy = await stack.enter_async_context(HttpProxy(fake.url))
        catalog = await RestCatalog.open(
            options=RestOptions(uri=proxy.url),
            auth=OAuth2Options(credential=credential) if credential else None,
            storage=storage,
            world=RealWorld(),
        )
        stack.push_async_callback(catalog.close)
        case = Case(fake, proxy, catalog)
        table = build_table(warehouse=WAREHOUSE)
        await catalog.create_namespace(("db",))
        await catalog.create_table(table)
        case.table = await catalog.load(table.identifier)
        proxy.received.clear()
        yield case


@pytest.fixture
async def case() -> AsyncIterator[Case]:
    async with opened("PT30M") as found:
        yield found


@pytest.mark.parametrize(
    ("fault", "repeated"),
    [(Fault.CUT_ANSWER, 1), (Fault.CUT_IN_ANSWER, 1), (Fault.CUT_REQUEST, 0), (Said(502), 0)],
)
async def test_a_commit_whose_answer_is_lost_gets_it_by_its_key(
    case: Case, fault: Fault | Said, repeated: int
) -> None:
    case.proxy.plan(COMMIT, fault)
    answer = await case.catalog.swap(build_head_swap(case.table))
    assert isinstance(answer, Committed)
    assert case.fake.tables.commits == 1
    assert case.fake.counts["repeated by key"] == repeated
    first, second = case.keys
    assert first == second
    assert first is not None


async def test_without_announced_keys_nothing_is_sent_again() -> None:
    async with opened("") as case:
        for fault in (Fault.CUT_ANSWER, Said(502)):
            case.proxy.plan(COMMIT, fault)
            answer = await case.catalog.swap(build_head_swap(case.table))
            assert isinstance(answer, Unknown)
        assert case.keys == [None, None]


@pytest.mark.parametrize(
    "second",
    [
        Fault.CUT_ANSWER,
        rest_error(409, "CommitFailedException"),
        rest_error(400, "ValidationException"),
        rest_error(404, "NoSuchTableException"),
        rest_error(403, "ForbiddenException"),
        rest_error(429, "TooManyRequestsException"),
        rest_error(503, "ServiceUnavailableException"),
        Said(200, b"{}", "application/json"),
    ],
)
async def test_a_second_answer_that_is_no_success_tells_nothing_of_the_first(
    case: Case, second: Fault | Said
) -> None:
    """The server, or another node of it, may have forgotten the key: 409 may be our success."""
    case.proxy.plan(COMMIT, Fault.CUT_ANSWER, second)
    answer = await case.catalog.swap(build_head_swap(case.table))
    assert isinstance(answer, Unknown)
    assert len(case.keys) == 2
    assert case.fake.tables.commits == 1


async def test_a_second_send_without_a_token_tells_nothing_of_the_first() -> None:
    """Without one nothing is sent, which alone would mean that nothing was applied."""
    async with opened("PT30M", credential="robot:secret") as case:
        case.proxy.plan(COMMIT, Fault.CUT_ANSWER, rest_error(401, "NotAuthorizedException"))
        case.proxy.plan(b"/oauth/tokens", Said(503))
        answer = await case.catalog.swap(build_head_swap(case.table))
        assert isinstance(answer, Unknown)
        assert "no token" in answer.cause
        assert case.fake.tables.commits == 1


async def test_a_conflict_is_answered_at_once_and_the_next_commit_has_another_key(
    case: Case,
) -> None:
    assert isinstance(await case.catalog.swap(build_head_swap(case.table)), Committed)
    assert isinstance(await case.catalog.swap(build_head_swap(case.table)), Conflict)
    assert isinstance(await case.catalog.swap(build_head_swap(case.table)), Conflict)
    assert len(set(case.keys)) == len(case.keys) == 3


async def test_a_drop_whose_answer_is_lost_is_known_to_be_done(case: Case) -> None:
    case.proxy.plan(b"DELETE", Fault.CUT_ANSWER)
    await case.catalog.drop_table(case.table.identifier)
    with pytest.raises(NoSuchTableError):
        await case.catalog.load(case.table.identifier)


async def test_a_drop_is_in_doubt_where_the_second_answer_is_no_success(case: Case) -> None:
    gone = rest_error(404, "NoSuchTableException")
    case.proxy.plan(b"DELETE", Fault.CUT_ANSWER, gone)
    with pytest.raises(CatalogUnavailableError, match="look before it is repeated"):
        await case.catalog.drop_table(case.table.identifier)


@pytest.mark.server
async def test_icebergs_own_server_knows_a_commit_by_its_key(rest_server: RestServer) -> None:
    """It does not announce keys, though it honors them: the announcement here is the test's."""
    async with HttpProxy(rest_server.url) as proxy:
        options = RestOptions(uri=proxy.url)
        plain = await RestCatalog.open(options=options, storage=LocalStorage(), world=RealWorld())
        told = (await plain.client.read("v1/config")).json()
        announced = json.dumps({**told, "idempotency-key-lifetime": "PT30M"}).encode()
        proxy.plan(b"/v1/config", Said(200, announced, "application/json"))
        catalog = await RestCatalog.open(options=options, storage=LocalStorage(), world=RealWorld())
        try:
            table = build_table("keys.flights", warehouse=rest_server.warehouse)
            await catalog.create_namespace(("keys",))
            await catalog.create_table(table)
            base = await catalog.load(table.identifier)
            for fault in (Fault.CUT_ANSWER, Fault.CUT_REQUEST):
                proxy.plan(COMMIT, fault)
                answer = await catalog.swap(build_head_swap(base))
                assert isinstance(answer, Committed)
                base = answer.table
            assert len((await plain.load(table.identifier)).metadata.snapshots) == 2
            await plain.drop_table(table.identifier)
        finally:
            await catalog.close()
            await plain.close()
