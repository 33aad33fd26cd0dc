"""Moving a table between catalogs: fenced, repeatable after a crash, and no request is lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest

from committer.errors import (
    AccessError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from committer.plan.ledger.former_catalogs import parse_former_catalogs, with_former_catalog
from committer.ports.pointer_swap import Committed, Conflict, LoadedTable
from committer.reason import Reason
from committer.request.request_format import EncodedRequest
from committer.request.table_identifier import TableIdentifier
from committer.service.admin.catalog_side import CatalogSide, fenced_identifier
from committer.service.admin.table_migration import TableMigration
from committer.storage.inbox.moves import Move
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.faults.migration_steps import CrashError, Steps
from tests.support.service.service_harness import INBOX, WAREHOUSE, ServiceHarness

VIRTUAL_TIME = True

FLIGHTS = TableIdentifier.parse("db.flights")
STANDING = fenced_identifier(FLIGHTS, "prod")
OTHER_ROOT = "memory://other-requests"


class Interruption(Steps):
    """Does something else, to its end, before one of the calls."""

    def __init__(self, before: int, other: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self._before = before
        self._other = other

    async def take(self, call: Callable[[], Any]) -> Any:
        if self.count + 1 == self._before:
            self.count += 1
            await self._other()
        else:
            self.count += 1
        return await call()


@dataclass
class Two:
    """Two catalogs on one storage, each with a committer and an inbox of its own."""

    old: ServiceHarness
    new: ServiceHarness

    @classmethod
    async def open(cls, *, one_inbox: bool = False) -> tuple[Two, LoadedTable]:
        old = ServiceHarness()
        root = INBOX if one_inbox else OTHER_ROOT
        new = ServiceHarness(catalog_name="prod", root=root, beside=old)
        return cls(old, new), await old.create_table()

    def migration(self, steps: Steps | None = None, *, back: bool = False) -> TableMigration:
        sides = [_side(one, steps or Steps()) for one in (self.old, self.new)]
        source, target = reversed(sides) if back else sides
        return TableMigration(FLIGHTS, source=source, target=target, world=self.old.world)


def _side(harness: ServiceHarness, steps: Steps) -> CatalogSide:
    catalog, storage = steps.wrap(harness.catalog.inner), steps.wrap(harness.storage.inner)
    return CatalogSide(harness.catalog_name, catalog, storage, storage, harness.root)


def batch(table: LoadedTable, epoch: int, *, catalog: str = "frazil") -> EncodedRequest:
    return build_request(table, epoch=epoch, catalog=catalog)


# --- The table -----------------------------------------------------------------------------------


async def test_a_migrated_table_is_the_same_table_in_the_other_catalog_only() -> None:
    two, created = await Two.open()
    moved = (await two.migration().run()).table
    assert moved.metadata.table_uuid == created.metadata.table_uuid
    assert moved.metadata.location == created.metadata.location
    assert created.metadata_location in {one.metadata_file for one in moved.metadata.metadata_log}
    assert await two.new.catalog.inner.load(FLIGHTS) == moved
    assert await two.old.catalog.inner.list_tables(("db",)) == []


async def test_a_commit_just_before_the_fenced_table_is_dropped_is_named() -> None:
    """A catalog that tells what it removed shows a commit that came behind the last look."""
    two, _ = await Two.open()
    migration, inner = two.migration(), two.old.catalog.inner
    drop = inner.drop_table
    landed: list[str] = []

    async def drop_behind_a_commit(identifier: TableIdentifier) -> str | None:
        answer = await inner.swap(build_swap(await inner.load(identifier)))
        assert isinstance(answer, Committed)
        landed.append(answer.table.metadata_location)
        return await drop(identifier)

    inner.drop_table = drop_behind_a_commit  # type: ignore[method-assign]  # another writer
    with pytest.raises(UnsupportedError, match="just before it was dropped") as error:
        await migration.run()
    assert landed[0] in str(error.value)


async def test_no_late_swap_lands_in_the_old_catalog() -> None:
    two, created = await Two.open()
    late = build_swap(created)
    await two.old.storage.inner.create(two.old.catalog.objects_before(late))
    await two.migration().run()
    assert isinstance(await two.old.catalog.inner.swap(late), Conflict)


async def test_a_commit_before_the_fence_is_carried_along() -> None:
    two, created = await Two.open()
    migration = two.migration()
    await migration.look()
    swap = build_swap(created, properties={"late": "yes"})
    await two.old.storage.inner.create(two.old.catalog.objects_before(swap))
    assert isinstance(await two.old.catalog.inner.swap(swap), Committed)
    moved = (await migration.run()).table
    assert moved.metadata.properties["late"] == "yes"


@pytest.mark.parametrize("one_inbox", [False, True])
async def test_a_table_goes_back_and_its_committer_forgets_the_note(one_inbox: bool) -> None:
    two, created = await Two.open(one_inbox=one_inbox)
    await two.migration().run()
    back = (await two.migration(back=True).run()).table
    assert back.metadata.table_uuid == created.metadata.table_uuid
    assert parse_former_catalogs(back.metadata.properties) == {"frazil", "prod"}
    await two.old.catalog.inner.drop_table(FLIGHTS)
    async with two.old.running():
        await two.old.publish(batch(created, 0))
        await two.old.settle(1.0)
    assert [one.reason for one in await two.old.quarantined()] == [Reason.TABLE_UNKNOWN]


@pytest.mark.thorough
@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("one_inbox", [False, True])
async def test_a_crash_at_any_call_is_continued_by_running_it_again(
    applied: bool, one_inbox: bool
) -> None:
    crash_at, is_reached = 1, True
    while is_reached:
        two, created = await Two.open(one_inbox=one_inbox)
        for epoch in range(2):
            await two.old.publish(batch(created, epoch))
        steps = Steps(crash_at, applied=applied)
        # A crash of a swap is an answer that was lost, which is asked for again.
        with suppress(CrashError):
            await two.migration(steps).run()
        is_reached = steps.count >= crash_at
        await two.migration().run()
        moved = await two.new.catalog.inner.load(FLIGHTS)
        assert moved.metadata.table_uuid == created.metadata.table_uuid
        assert await two.old.catalog.inner.list_tables(("db",)) == []
        assert len(await two.new.outstanding()) == 2
        assert parse_former_catalogs(moved.metadata.properties) == {"frazil"}
        async with two.new.running():
            await two.new.settle(5.0)
        assert len(await two.new.live_files()) == 2
        crash_at += 1
    assert crash_at > 15


# --- Requests ------------------------------------------------------------------------------------


async def test_requests_of_running_writers_land_once_through_the_new_committer() -> None:
    two, created = await Two.open()
    async with AsyncExitStack() as stack:
        for harness in (two.old, two.new):
            await stack.enter_async_context(harness.running(reconcile_interval_s=5.0))
        await two.old.publish(batch(created, 0))
        await two.old.settle(2.0)
        await two.migration().run()
        # A writer that has not been told yet, and one that was restarted with the new catalog.
        await two.old.publish(batch(created, 1))
        await two.new.publish(batch(created, 2, catalog="prod"))
        await two.old.settle(60.0)
        assert len(await two.old.outstanding()) == 1
        assert await two.old.quarantined() == []
        assert (await two.migration().run()).carried == 1
        await two.new.settle(60.0)
        assert await two.old.outstanding() == []
        assert await two.new.outstanding() == []
    assert await two.new.quarantined() == []
    assert len(await two.new.live_files()) == 3


async def test_a_request_that_had_landed_before_is_a_duplicate_to_the_new_committer() -> None:
    two, created = await Two.open()
    first = batch(created, 0)
    async with two.old.running():
        await two.old.publish(first)
        await two.old.settle(5.0)
    await two.old.inbox.put(first)  # its delete was lost
    assert (await two.migration().run()).carried == 1
    async with two.new.running(reconcile_interval_s=1.0):
        await two.new.settle(30.0)
    assert await two.new.outstanding() == []
    assert len(await two.new.live_files()) == 1


async def test_a_committer_keeps_the_requests_of_a_table_that_has_moved() -> None:
    two, created = await Two.open()
    await two.migration().run()
    async with two.old.running():
        await two.old.publish(batch(created, 0))
        await two.old.settle(30.0)
        conditions = two.old.health.conditions.values()
        assert any("has moved to catalog `prod`" in one for one in conditions)
        await two.migration().run()
        await two.old.settle(60.0)
        assert len(two.old.tables.all) == 0
    assert await two.old.quarantined() == []


async def test_one_inbox_is_served_by_the_committer_of_the_new_catalog() -> None:
    two, created = await Two.open(one_inbox=True)
    await two.old.publish(batch(created, 0))
    migrated = await two.migration().run()
    assert (migrated.carried, migrated.waiting) == (0, 1)
    async with two.new.running():
        await two.new.settle(5.0)
    assert len(await two.new.live_files()) == 1


async def test_a_request_of_a_third_catalog_stays_a_mismatch() -> None:
    two, created = await Two.open()
    await two.migration().run()
    async with two.new.running():
        await two.new.publish(batch(created, 0, catalog="third"))
        await two.new.settle(5.0)
    assert [one.reason for one in await two.new.quarantined()] == [Reason.CATALOG_MISMATCH]


# --- Two at once ---------------------------------------------------------------------------------


@pytest.mark.parametrize("one_inbox", [False, True])
async def test_a_second_run_at_any_moment_ends_as_the_first_does(one_inbox: bool) -> None:
    before, is_reached = 1, True
    while is_reached:
        two, created = await Two.open(one_inbox=one_inbox)
        await two.old.publish(batch(created, 0))
        steps = Interruption(before, two.migration().run)
        # It may look at the new catalog when the other has just ended.
        with suppress(TableAlreadyExistsError):
            await two.migration(steps).run()
        is_reached = steps.count >= before
        moved = (await two.migration().run()).table
        assert moved.metadata.table_uuid == created.metadata.table_uuid
        assert await two.old.catalog.inner.list_tables(("db",)) == []
        assert len(await two.new.outstanding()) == 1
        before += 1
    assert before > 15


async def test_of_migrations_to_two_catalogs_one_wins_wherever_they_meet() -> None:
    before, is_reached = 1, True
    while is_reached:
        two, created = await Two.open()
        third = ServiceHarness(catalog_name="third", root="memory://third", beside=two.old)
        there = Two(two.old, third)

        async def go_there(there: Two = there) -> None:
            with suppress(NoSuchTableError, UnsupportedError):
                await there.migration().run()

        steps = Interruption(before, go_there)
        with suppress(NoSuchTableError, UnsupportedError):
            await two.migration(steps).run()
        is_reached = steps.count >= before
        found = [each for each in (two, there) if FLIGHTS in await names(each.new)]
        assert len(found) == 1
        assert await names(two.old) == []
        await two.old.publish(batch(created, 0))
        assert (await found[0].migration().run()).carried == 1
        before += 1
    assert before > 15


async def names(harness: ServiceHarness) -> list[TableIdentifier]:
    try:
        return await harness.catalog.inner.list_tables(("db",))
    except NoSuchNamespaceError:
        return []


async def test_a_table_on_its_way_elsewhere_says_so() -> None:
    two, _ = await Two.open()
    with pytest.raises(CrashError):
        await two.migration(_crash_before_drop()).run()
    third = ServiceHarness(catalog_name="third", root="memory://third", beside=two.old)
    with pytest.raises(UnsupportedError, match="is on its way"):
        await Two(two.old, third).migration().run()


# --- Refusals ------------------------------------------------------------------------------------


async def test_nothing_is_begun_where_the_name_is_taken() -> None:
    two, created = await Two.open()
    await two.new.create_table()
    with pytest.raises(TableAlreadyExistsError, match=r"`prod`.*db\.flights"):
        await two.migration().run()
    assert await two.old.catalog.inner.load(FLIGHTS) == created
    assert await two.old.catalog.inner.list_tables(("db",)) == [FLIGHTS]


async def test_a_catalog_that_cannot_fence_needs_the_operators_word() -> None:
    two, created = await Two.open()
    unfenced = replace(two.old.catalog.inner.capabilities, has_atomic_rename=False)
    two.old.catalog.inner.capabilities = unfenced  # type: ignore[misc]  # this instance's own
    with pytest.raises(UnsupportedError, match="--no-active-writers"):
        await two.migration().run()
    assert await two.old.catalog.inner.load(FLIGHTS) == created
    sides = [_side(one, Steps()) for one in (two.old, two.new)]
    quiet = TableMigration(
        FLIGHTS, source=sides[0], target=sides[1], world=two.old.world, is_quiet=True
    )
    assert (await quiet.run()).table.metadata.table_uuid == created.metadata.table_uuid
    assert await two.old.catalog.inner.list_tables(("db",)) == []


@pytest.mark.parametrize(
    ("ability", "said"),
    [
        ({"drops_pointer_only": False}, "cannot leave it: .*frazil table register"),
        # A file that another catalog has added would be one that no pointer names.
        (
            {"drops_pointer_only": False, "maintains_tables": True},
            "cannot leave it with its files: create the table",
        ),
    ],
)
async def test_a_catalog_whose_files_are_the_pointer_keeps_its_table(
    ability: dict[str, Any], said: str
) -> None:
    two, created = await Two.open()
    files = replace(two.old.catalog.inner.capabilities, **ability)
    two.old.catalog.inner.capabilities = files  # type: ignore[misc]  # this instance's own
    with pytest.raises(UnsupportedError, match=said):
        await two.migration().run()
    assert await two.old.catalog.inner.load(FLIGHTS) == created
    assert await two.new.catalog.inner.list_namespaces() == []


async def test_a_commit_to_the_fenced_name_stops_the_migration() -> None:
    two, _ = await Two.open()
    with pytest.raises(CrashError):
        await two.migration(_crash_before_drop()).run()
    standing = await two.old.catalog.inner.load(STANDING)
    swap = build_swap(standing)
    await two.old.storage.inner.create(two.old.catalog.objects_before(swap))
    assert isinstance(await two.old.catalog.inner.swap(swap), Committed)
    with pytest.raises((TableAlreadyExistsError, UnsupportedError), match=r"db\.flights"):
        await two.migration().run()
    assert (await two.old.catalog.inner.load(STANDING)).metadata == swap.metadata


class Refusal(Steps):
    """The new catalog refuses the table, as one may that lacks a right to its location."""

    async def refuse(self, *_: object) -> LoadedTable:
        raise AccessError("the location is not for this catalog")

    def wrap(self, inner: Any) -> Any:
        found = super().wrap(inner)
        if hasattr(inner, "register_table"):
            found.register_table = self.refuse
        return found


@pytest.mark.parametrize("one_inbox", [False, True])
async def test_what_the_new_catalog_refuses_is_where_and_called_as_it_was(one_inbox: bool) -> None:
    two, created = await Two.open(one_inbox=one_inbox)
    await two.old.publish(batch(created, 0))
    uuid, moves = created.metadata.require_uuid(), _side(two.old, Steps()).moves
    earlier = Move(table="db.flights", came_from="prod", to="frazil", inbox=INBOX)
    await moves.put(uuid, earlier, replaces=None)
    for _ in range(2):
        with pytest.raises(AccessError, match="not for this catalog"):
            await two.migration(Refusal()).run()
        assert await two.old.catalog.inner.load(FLIGHTS) == created
        assert await names(two.old) == [FLIGHTS]
        assert await names(two.new) == []
        assert await moves.find(uuid) == earlier
    async with two.old.running():
        await two.old.settle(5.0)
    assert len(await two.old.live_files()) == 1
    assert (await two.migration().run()).table.metadata.table_uuid == uuid


@pytest.mark.parametrize("crash_at", ["register_table", "drop_table"])
async def test_a_refusal_in_doubt_leaves_the_fence_and_is_continued(crash_at: str) -> None:
    """The register of another run may land yet: the table must not be in two catalogs."""
    two, created = await Two.open()
    with pytest.raises(CrashError):
        await two.migration(_crash_instead_of(crash_at)).run()
    with pytest.raises(AccessError):
        await two.migration(Refusal()).run()
    assert await names(two.old) == [STANDING]
    assert (await two.migration().run()).table.metadata.table_uuid == created.metadata.table_uuid


class Closed:
    """A storage with the credentials of one folder's tables only, or of all but those."""

    def __init__(self, inner: Any, *, opens_tables: bool) -> None:
        self._inner = inner
        self._opens_tables = opens_tables

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)

        def checked(*given: Any, **named: Any) -> Any:
            for each in given[0] if isinstance(given[0], (list, tuple)) else given[:1]:
                location = each if isinstance(each, str) else each.location
                if location.startswith(WAREHOUSE) is not self._opens_tables:
                    raise AccessError(f"no credentials for {location}")
            return found(*given, **named)

        return checked


async def test_credentials_that_a_catalog_vends_never_reach_for_an_inbox() -> None:
    """They open the files of its tables, and the process's own open the inbox: not each other's."""
    two, created = await Two.open()
    await two.old.publish(batch(created, 0))
    sides = [
        CatalogSide(
            one.catalog_name,
            one.catalog.inner,
            Closed(one.storage.inner, opens_tables=True),
            Closed(one.storage.inner, opens_tables=False),
            one.root,
        )
        for one in (two.old, two.new)
    ]
    migration = TableMigration(FLIGHTS, source=sides[0], target=sides[1], world=two.old.world)
    assert (await migration.run()).carried == 1


def _crash_before_drop() -> Steps:
    return _crash_instead_of("drop_table")


def _crash_instead_of(call: str) -> Steps:
    steps = Steps()
    wrap = steps.wrap

    def wrapped(inner: Any) -> Any:
        found = wrap(inner)
        if hasattr(inner, call):

            async def never(*_: object) -> None:
                raise CrashError

            setattr(found, call, never)
        return found

    steps.wrap = wrapped  # type: ignore[method-assign]  # one step is cut off
    return steps


async def test_a_new_table_of_the_name_stops_what_was_begun() -> None:
    two, created = await Two.open()
    with pytest.raises(CrashError):
        await two.migration(_crash_before_drop()).run()
    await two.old.catalog.inner.create_table(build_table(warehouse=WAREHOUSE))
    with pytest.raises(UnsupportedError, match="rename or drop the new one"):
        await two.migration().run()
    await two.old.catalog.inner.drop_table(FLIGHTS)
    moved = (await two.migration().run()).table
    assert moved.metadata.table_uuid == created.metadata.table_uuid


async def test_a_table_that_was_never_here_is_not_found() -> None:
    two, _ = await Two.open()
    await two.old.catalog.inner.drop_table(FLIGHTS)
    with pytest.raises(NoSuchTableError, match="neither"):
        await two.migration().run()
    await two.new.create_table()
    with pytest.raises(NoSuchTableError, match="did not come from there"):
        await two.migration().run()


def test_the_names_of_former_catalogs_are_kept_once_each() -> None:
    first = with_former_catalog({}, "a,b")
    assert first == '["a,b"]'
    both = with_former_catalog({"frazil.former-catalogs": first}, "c")
    assert parse_former_catalogs({"frazil.former-catalogs": both or ""}) == {"a,b", "c"}
    assert with_former_catalog({"frazil.former-catalogs": both or ""}, "c") is None
    for damaged in ("", "{", "{}", "3", "[1]"):
        assert parse_former_catalogs({"frazil.former-catalogs": damaged}) == frozenset()
