"""Each answer of a server to a commit has one meaning, and a commit is sent once.

The fake shows what Iceberg's own REST catalog cannot be made to show.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from committer.catalog.rest.client.rest_options import OAuth2Options, RestOptions
from committer.catalog.rest.rest_catalog import RestCatalog
from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    FrazilError,
    InvalidMetadataError,
    NoSuchTableError,
)
from committer.iceberg.metadata.snapshot import SnapshotRef
from committer.iceberg.updates.metadata_update import AddSnapshot, SetSnapshotRef
from committer.plan.commit.swap import plan_swap
from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    LoadedTable,
    Rejected,
    Swap,
    Unknown,
)
from committer.real_world import RealWorld
from tests.support.builders.table_builders import build_head_swap, build_table
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.servers.fake_rest import FakeRest
from tests.support.servers.fake_rest_features import Planned

WAREHOUSE = "memory://warehouse"
COMMITS = "/tables/flights"


class Case:
    """A table of a fake server, and a client behind a proxy."""

    def __init__(self, fake: FakeRest, catalog: RestCatalog, table: LoadedTable) -> None:
        self.fake = fake
        self.catalog = catalog
        self.table = table

    @property
    def commits(self) -> int:
        return self.fake.tables.commits

    async def moves(self) -> bool:
        found = await self.catalog.current_location(self.table.identifier)
        return found != self.table.metadata_location


@pytest.fixture
async def case() -> AsyncIterator[Case]:
    storage = MemoryStorage(world=RealWorld())
    async with AsyncExitStack() as stack:
        fake = await stack.enter_async_context(FakeRest(storage, warehouse=WAREHOUSE))
        fake.tokens.credential = "robot:secret"
        catalog = await RestCatalog.open(
            options=RestOptions(uri=fake.url),
            auth=OAuth2Options(credential="robot:secret"),
            storage=storage,
            world=RealWorld(),
        )
        stack.push_async_callback(catalog.close)
        table = build_table(warehouse=WAREHOUSE)
        await catalog.create_namespace(("db",))
        await catalog.create_table(table)
        fake.counts.clear()
        yield Case(fake, catalog, await catalog.load(table.identifier))


def planned(status: int, kind: str, *, is_applied: bool = False) -> Planned:
    return Planned("POST", COMMITS, status=status, kind=kind, is_applied=is_applied)


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (403, "ForbiddenException", AccessError),
        (429, "TooManyRequestsException", CatalogUnavailableError),
        (408, "RequestTimeout", CatalogUnavailableError),
        (302, "", AccessError),
    ],
)
async def test_an_answer_that_says_that_nothing_was_applied_is_raised(
    case: Case, status: int, kind: str, error: type[FrazilError]
) -> None:
    case.fake.plan(planned(status, kind))
    with pytest.raises(error, match=f"HTTP {status}"):
        await case.catalog.swap(build_head_swap(case.table))
    assert not await case.moves()


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_a_refusal_that_is_not_the_protocols_is_raised(case: Case, status: int) -> None:
    page = Planned("POST", COMMITS, status=status, body=b"<html>a gateway</html>")
    case.fake.plan(page)
    with pytest.raises(AccessError, match="a gateway"):
        await case.catalog.swap(build_head_swap(case.table))


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("is_applied", [True, False])
async def test_an_error_of_the_server_tells_nothing(
    case: Case, status: int, is_applied: bool
) -> None:
    case.fake.plan(planned(status, "CommitStateUnknownException", is_applied=is_applied))
    answer = await case.catalog.swap(build_head_swap(case.table))
    assert isinstance(answer, Unknown)
    assert f"HTTP {status}" in answer.cause
    assert await case.moves() is is_applied


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"metadata-location": "x", "metadata": {"format-version": 9}}']
)
async def test_a_success_that_cannot_be_read_tells_nothing(case: Case, body: bytes) -> None:
    case.fake.plan(Planned("POST", COMMITS, status=200, body=body, is_applied=True))
    assert isinstance(await case.catalog.swap(build_head_swap(case.table)), Unknown)


async def test_a_success_without_our_snapshot_tells_nothing(case: Case) -> None:
    path = case.catalog.client.paths.table(case.table.identifier)
    stale = (await case.catalog.client.read(path)).content
    case.fake.plan(Planned("POST", COMMITS, status=200, body=stale))
    answer = await case.catalog.swap(build_head_swap(case.table))
    assert isinstance(answer, Unknown)
    assert "lacks" in answer.cause


async def test_a_gateway_that_resends_does_not_hide_our_own_success(case: Case) -> None:
    """A conflict would say that this attempt never lands, and that its files are garbage."""
    case.fake.plan(Planned("POST", COMMITS, is_resent=True))
    swap = build_head_swap(case.table)
    answer = await case.catalog.swap(swap)
    assert answer == Committed(await case.catalog.load(case.table.identifier))
    assert await case.moves()
    again = await case.catalog.swap(build_head_swap(case.table))
    assert isinstance(again, Conflict)
    assert again.current is not None


async def test_a_conflict_with_an_earlier_attempt_at_the_same_request_is_one(case: Case) -> None:
    """It has our snapshot's id, and a manifest list of its own."""
    ours = build_head_swap(case.table)
    (added, *others) = ours.updates
    assert isinstance(added, AddSnapshot)
    earlier = replace(added.snapshot, manifest_list=f"{added.snapshot.manifest_list}.earlier")
    world = RealWorld()
    first = plan_swap(
        case.table, (AddSnapshot(earlier), *others), uuid=world.uuid(), now_ms=world.now_ms()
    )
    assert isinstance(await case.catalog.swap(first), Committed)
    assert isinstance(await case.catalog.swap(ours), Conflict)


async def test_a_conflict_on_an_unmoved_table_proves_nothing(case: Case) -> None:
    case.fake.plan(planned(409, "CommitFailedException"))
    assert isinstance(await case.catalog.swap(build_head_swap(case.table)), Unknown)
    case.fake.plan(planned(409, "CommitFailedException"))
    case.fake.plan(Planned("GET", COMMITS, status=503))
    answer = await case.catalog.swap(build_head_swap(case.table))
    assert isinstance(answer, Unknown)
    assert "503" in answer.cause


async def test_a_stale_sequence_number_is_a_conflict_also_where_the_server_says_400(
    case: Case,
) -> None:
    """Another branch got a snapshot: the head that we require has not moved."""
    case.fake.judgment.stale_status = 400
    first = await case.catalog.swap(build_head_swap(case.table))
    assert isinstance(first, Committed)
    # Without a parent no server checks the number.
    ours, other = build_head_swap(first.table), build_head_swap(first.table)
    assert isinstance(await case.catalog.swap(on_branch(other, "audit")), Committed)
    answer = await case.catalog.swap(ours)
    assert isinstance(answer, Conflict)
    assert answer.current is not None
    assert "audit" in answer.current.metadata.refs


async def test_a_refusal_of_an_unmoved_table_is_for_good(case: Case) -> None:
    case.fake.plan(planned(400, "BadRequestException"))
    answer = await case.catalog.swap(build_head_swap(case.table))
    assert isinstance(answer, Rejected)
    assert "BadRequestException" in answer.reason


async def test_a_refusal_proves_nothing_where_the_table_cannot_be_read(case: Case) -> None:
    """The refusal may answer what a gateway sent once more, after our own success."""
    case.fake.plan(planned(400, "BadRequestException", is_applied=True))
    case.fake.plan(Planned("GET", COMMITS, status=503))
    answer = await case.catalog.swap(build_head_swap(case.table))
    assert isinstance(answer, Unknown)
    assert "503" in answer.cause
    assert await case.moves()


async def test_a_refusal_of_a_table_that_is_gone_is_a_conflict(case: Case) -> None:
    case.fake.plan(planned(400, "BadRequestException"))
    await case.catalog.drop_table(case.table.identifier)
    assert isinstance(await case.catalog.swap(build_head_swap(case.table)), Conflict)


async def test_a_commit_whose_token_is_refused_is_sent_once_more_and_applied_once(
    case: Case,
) -> None:
    case.fake.tokens.revoke_all()
    assert isinstance(await case.catalog.swap(build_head_swap(case.table)), Committed)
    assert case.commits == 1
    assert case.fake.tokens.refused == 1


async def test_a_table_whose_metadata_file_is_gone_is_not_said_to_be_absent(case: Case) -> None:
    """A request for an absent table is quarantined; this one's is not to blame."""
    case.fake.plan(Planned("GET", COMMITS, status=404, kind="NotFoundException"))
    with pytest.raises(InvalidMetadataError, match="its metadata file is gone"):
        await case.catalog.load(case.table.identifier)
    case.fake.plan(Planned("GET", COMMITS, status=404, body=b"<html>a gateway</html>"))
    with pytest.raises(AccessError, match="a gateway"):
        await case.catalog.load(case.table.identifier)
    case.fake.plan(Planned("GET", COMMITS, status=404, kind="NoSuchTableException"))
    with pytest.raises(NoSuchTableError):
        await case.catalog.load(case.table.identifier)


@pytest.mark.parametrize("has_etags", [True, False])
@pytest.mark.parametrize("location", [False, "https://127.0.0.1/pages/flights"])
async def test_a_table_without_a_named_metadata_file_moves_when_it_changes(
    case: Case, *, has_etags: bool, location: str | bool
) -> None:
    case.fake.features.shows_metadata_location = location
    case.fake.features.has_etags = has_etags
    before = await case.catalog.load(case.table.identifier)
    assert await case.catalog.current_location(case.table.identifier) == before.metadata_location
    answer = await case.catalog.swap(build_head_swap(before))
    assert isinstance(answer, Committed)
    after = await case.catalog.current_location(case.table.identifier)
    assert after != before.metadata_location
    assert (await case.catalog.load(case.table.identifier)).metadata_location == after


def on_branch(swap: Swap, branch: str) -> Swap:
    """Return the swap's snapshot on another branch, which begins with it."""
    (added,) = [one for one in swap.updates if isinstance(one, AddSnapshot)]
    ref = SetSnapshotRef(branch, SnapshotRef(added.snapshot.snapshot_id, "branch"))
    world = RealWorld()
    return plan_swap(swap.base, (added, ref), uuid=world.uuid(), now_ms=world.now_ms())
