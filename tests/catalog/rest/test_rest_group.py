"""Each answer of a server to a commit of several tables has one meaning, and it is sent once.

The fake applies all tables or none, which Iceberg's own REST catalog does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from committer.catalog.rest.client.rest_options import RestOptions
from committer.catalog.rest.rest_catalog import RestCatalog
from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    FrazilError,
    SettingsError,
    UnsupportedError,
)
from committer.ports.pointer_swap import (
    Committed,
    GroupCommitted,
    GroupConflict,
    LoadedTable,
    Rejected,
    Swap,
    Unknown,
)
from tests.support.builders.table_builders import build_head_swap, build_table
from tests.support.clock.worlds import WrongWorld
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.servers.fake_rest import FakeRest
from tests.support.servers.fake_rest_features import Planned
from tests.support.servers.http_proxy import Fault, HttpProxy

WAREHOUSE = "memory://warehouse"
COMMITS = "/transactions/commit"


class Case:
    """Two tables of a fake server, and a client behind a proxy."""

    def __init__(self, stack: AsyncExitStack, fake: FakeRest, proxy: HttpProxy) -> None:
        self._stack = stack
        self.fake = fake
        self.proxy = proxy
        self.world = WrongWorld()
        self.tables: list[LoadedTable] = []

    async def client(self, *, atomic: bool = True) -> RestCatalog:
        catalog = await RestCatalog.open(
            options=RestOptions(uri=self.proxy.url),
            storage=self.fake.tables.storage,
            world=self.world,
            atomic_transactions=atomic,
        )
        self._stack.push_async_callback(catalog.close)
        return catalog

    def group(self) -> list[Swap]:
        return [build_head_swap(table) for table in self.tables]

    @property
    def sent(self) -> int:
        return sum(one.path.endswith(COMMITS) for one in self.proxy.received)

    @property
    def moved(self) -> list[bool]:
        current = [self.fake.tables.tables[table.identifier] for table in self.tables]
        pairs = zip(current, self.tables, strict=True)
        return [one.metadata_location != table.metadata_location for one, table in pairs]


@pytest.fixture
async def case() -> AsyncIterator[Case]:
    async with AsyncExitStack() as stack:
        storage = MemoryStorage(world=WrongWorld())
        fake = await stack.enter_async_context(FakeRest(storage, warehouse=WAREHOUSE))
        proxy = await stack.enter_async_context(HttpProxy(fake.url))
        case = Case(stack, fake, proxy)
        catalog = await case.client()
        await catalog.create_namespace(("db",))
        for name in ("db.flights", "db.trains"):
            table = build_table(name, warehouse=WAREHOUSE)
            await catalog.create_table(table)
            case.tables.append(await catalog.load(table.identifier))
        proxy.received.clear()
        yield case


@pytest.fixture
async def catalog(case: Case) -> RestCatalog:
    return await case.client()


def planned(status: int, kind: str = "CommitFailedException", *, applied: bool = False) -> Planned:
    return Planned("POST", COMMITS, status=status, kind=kind, is_applied=applied)


async def test_a_commit_is_one_request_and_each_table_is_loaded_behind_it(
    case: Case, catalog: RestCatalog
) -> None:
    case.fake.counts.clear()
    answer = await catalog.swap_together(case.group())
    assert isinstance(answer, GroupCommitted)
    assert [table.identifier for table in answer.tables] == [t.identifier for t in case.tables]
    assert case.moved == [True, True]
    assert (case.sent, case.fake.tables.commits) == (1, 1)
    assert sum(case.fake.counts.values()) == 3  # the commit, two loads


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("applied", [True, False])
async def test_an_error_of_the_server_tells_nothing(
    case: Case, catalog: RestCatalog, status: int, applied: bool
) -> None:
    case.fake.plan(planned(status, applied=applied))
    answer = await catalog.swap_together(case.group())
    assert isinstance(answer, Unknown)
    assert f"HTTP {status}" in answer.cause
    assert case.moved == [applied, applied]
    assert case.sent == 1


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (403, "ForbiddenException", AccessError),
        (429, "TooManyRequestsException", CatalogUnavailableError),
    ],
)
async def test_an_answer_that_says_that_nothing_was_applied_is_raised(
    case: Case, catalog: RestCatalog, status: int, kind: str, error: type[FrazilError]
) -> None:
    case.fake.plan(planned(status, kind))
    with pytest.raises(error, match=f"HTTP {status}"):
        await catalog.swap_together(case.group())
    assert case.moved == [False, False]


async def test_a_success_behind_which_a_table_lacks_its_snapshot_tells_nothing(
    case: Case, catalog: RestCatalog
) -> None:
    case.fake.plan(Planned("POST", COMMITS, status=204, body=b""))
    assert isinstance(await catalog.swap_together(case.group()), Unknown)


async def test_a_gateway_that_resends_does_not_hide_our_own_success(
    case: Case, catalog: RestCatalog
) -> None:
    case.fake.plan(Planned("POST", COMMITS, is_resent=True))
    assert isinstance(await catalog.swap_together(case.group()), GroupCommitted)
    assert case.fake.tables.commits == 1


async def test_a_conflict_names_the_tables_that_have_moved(
    case: Case, catalog: RestCatalog
) -> None:
    swaps = case.group()
    assert isinstance(await catalog.swap(build_head_swap(case.tables[1])), Committed)
    assert await catalog.swap_together(swaps) == GroupConflict((case.tables[1].identifier,))
    assert case.moved == [False, True]


async def test_a_conflict_on_tables_that_have_not_moved_tells_nothing(
    case: Case, catalog: RestCatalog
) -> None:
    case.fake.plan(planned(409))
    assert isinstance(await catalog.swap_together(case.group()), Unknown)


@pytest.mark.parametrize("status", [409, 400])
async def test_a_server_that_was_called_atomic_and_is_not_leaves_the_outcome_open(
    case: Case, catalog: RestCatalog, status: int
) -> None:
    """One table has what was sent: neither a conflict nor a refusal may be told."""
    swaps = case.group()
    case.fake.plan(planned(status, "ValidationException"))
    first = await catalog.swap(swaps[0])
    assert isinstance(first, Committed)
    answer = await catalog.swap_together(swaps)
    assert isinstance(answer, Unknown)
    assert "some of the tables" in answer.cause


async def test_a_refusal_of_tables_that_have_not_moved_is_rejected_unless_for_our_clock(
    case: Case, catalog: RestCatalog
) -> None:
    case.fake.plan(planned(400, "ValidationException"), planned(400, "ValidationException"))
    answer = await catalog.swap_together(case.group())
    assert isinstance(answer, Rejected)
    assert "ValidationException" in answer.reason
    case.world.ahead_s = 90
    with pytest.raises(CatalogUnavailableError, match=r"clock is [89][0-9] s ahead"):
        await catalog.swap_together(case.group())


async def test_a_lost_answer_is_asked_for_by_its_key_where_the_server_takes_keys(
    case: Case,
) -> None:
    case.fake.features.idempotency_lifetime = "PT30M"
    catalog = await case.client()
    case.proxy.plan(COMMITS.encode(), Fault.CUT_ANSWER)
    assert isinstance(await catalog.swap_together(case.group()), GroupCommitted)
    assert (case.sent, case.fake.tables.commits) == (2, 1)


async def test_a_refusal_of_what_was_sent_again_tells_nothing_of_the_first(case: Case) -> None:
    case.fake.features.idempotency_lifetime = "PT30M"
    catalog = await case.client()
    case.proxy.plan(COMMITS.encode(), Fault.CUT_REQUEST)
    case.fake.plan(planned(409))
    answer = await catalog.swap_together(case.group())
    assert isinstance(answer, Unknown)
    assert "once more" in answer.cause


async def test_eight_swappers_of_overlapping_groups_have_one_winner(
    case: Case, catalog: RestCatalog
) -> None:
    for _ in range(20):
        groups = [case.group() if number % 2 else case.group()[::-1] for number in range(8)]
        answers = await asyncio.gather(*(catalog.swap_together(group) for group in groups))
        (_,) = [one for one in answers if isinstance(one, GroupCommitted)]
        assert sum(isinstance(one, GroupConflict) for one in answers) == 7
        case.tables = [await catalog.load(table.identifier) for table in case.tables]


async def test_a_server_that_nobody_called_atomic_is_not_asked(case: Case) -> None:
    catalog = await case.client(atomic=False)
    assert not catalog.capabilities.has_transactions
    with pytest.raises(UnsupportedError, match=r"REST.*rest\.atomic-transactions"):
        await catalog.swap_together(case.group())
    assert case.sent == 0


async def test_the_probe_asks_the_endpoint_and_refuses_a_server_without_it(case: Case) -> None:
    await (await case.client()).probe()
    assert case.sent == 2
    await (await case.client(atomic=False)).probe()
    assert case.sent == 2
    case.fake.features.endpoints = ("GET /v1/{prefix}/namespaces",)
    with pytest.raises(SettingsError, match=r"rest\.atomic-transactions.*does not list"):
        await (await case.client()).probe()


async def test_the_probe_refuses_a_server_whose_endpoint_ignores_a_requirement(
    case: Case, catalog: RestCatalog
) -> None:
    case.fake.plan(Planned("POST", COMMITS, status=204, body=b""))
    with pytest.raises(SettingsError, match="`assert-ref-snapshot-id` does not hold"):
        await catalog.probe()
