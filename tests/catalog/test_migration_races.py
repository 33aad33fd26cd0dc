"""Migration between real catalogs of every kind: under writers, and by a process that dies."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path

import pytest

from committer.errors import (
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from committer.iceberg.manifest.manifest_list import encode_manifest_list
from committer.iceberg.updates.metadata_update import AddSnapshot
from committer.ports.pointer_swap import Committed, Conflict, LoadedTable, Swap, Unknown
from committer.ports.storage import NewObject
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from committer.service.admin.catalog_side import CatalogSide
from committer.service.admin.table_migration import TableMigration
from tests.catalog.migration_sides import KINDS, drop_all, open_sides
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_head_swap, build_table
from tests.support.faults.migration_steps import CrashError, Steps

FLIGHTS = TableIdentifier.parse("db.flights")
WRITERS = 3
SWAPS = 4

pytestmark = [pytest.mark.server, pytest.mark.timeout(180)]

_QUICK = {("sqlite", "dynamodb"), ("dynamodb", "sqlite")}
PAIRS = [
    pytest.param(*pair, marks=() if pair in _QUICK else pytest.mark.heavy)
    for pair in permutations(KINDS, 2)
]
# Each kind once as the old catalog and once as the new one.
RING = [(one, KINDS[(place + 1) % len(KINDS)]) for place, one in enumerate(KINDS)]


def migration(
    source: CatalogSide, target: CatalogSide, steps: Steps | None = None
) -> TableMigration:
    if steps:
        source, target = stepped(source, steps), stepped(target, steps)
    # By the operator's word, where there is no fence: its test stops the writers first.
    is_quiet = not source.catalog.capabilities.has_atomic_rename
    return TableMigration(
        FLIGHTS, source=source, target=target, world=RealWorld(), is_quiet=is_quiet
    )


def stepped(side: CatalogSide, steps: Steps) -> CatalogSide:
    catalog, storage = steps.wrap(side.catalog), steps.wrap(side.storage)
    return CatalogSide(side.name, catalog, storage, storage, side.root)


async def create(side: CatalogSide, folder: Path) -> LoadedTable:
    table = build_table("db.flights", warehouse=f"file://{folder}/warehouse")
    await side.catalog.create_namespace(("db",))
    await side.catalog.create_table(table)
    return await side.catalog.load(FLIGHTS)


async def written(side: CatalogSide, base: LoadedTable, key: str) -> Swap:
    """Build a commit that has a property of its own, with what must be durable before."""
    swap = build_head_swap(base, properties={key: "landed"})
    await side.storage.create((empty_list(swap), *side.catalog.objects_before(swap)))
    return swap


def empty_list(swap: Swap) -> NewObject:
    """Return the manifest list of the new snapshot: it adds nothing, but the next one reads it."""
    (snapshot,) = [one.snapshot for one in swap.updates if isinstance(one, AddSnapshot)]
    assert snapshot.manifest_list
    content = encode_manifest_list(
        (),
        format_version=swap.metadata.format_version,
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=snapshot.parent_snapshot_id,
        sequence_number=snapshot.sequence_number,
        first_row_id=0,
        sync=bytes(16),
        extra_metadata={},
    )
    return NewObject(snapshot.manifest_list, content)


async def names(side: CatalogSide) -> list[TableIdentifier]:
    try:
        return await side.catalog.list_tables(("db",))
    except NoSuchNamespaceError:
        return []


@dataclass(slots=True)
class Commits:
    """The fate of the writers' commits. `busy`: many have landed."""

    landed: set[str] = field(default_factory=set)
    in_doubt: set[str] = field(default_factory=set)
    busy: asyncio.Event = field(default_factory=asyncio.Event)


async def swap_until_gone(side: CatalogSide, writer: int, commits: Commits, swaps: int) -> None:
    """Commit as an engine does until the table is gone, or `swaps` times."""
    number = 0
    while number < swaps:
        try:
            base = await side.catalog.load(FLIGHTS)
        except NoSuchTableError:
            return
        key = f"commit-{side.name}-{writer}-{number}"
        match await side.catalog.swap(await written(side, base, key)):
            case Committed():
                commits.landed.add(key)
                number += 1
                if number >= SWAPS:
                    commits.busy.set()
            case Conflict():
                pass
            # A Hive metastore looks for the table again in the middle of a change.
            case Unknown():
                commits.in_doubt.add(key)
                assert await names(side) != [FLIGHTS]
            case answer:
                raise AssertionError(answer)


@pytest.mark.parametrize(("old", "new"), PAIRS)
async def test_a_table_moves_under_its_writers_and_no_commit_is_lost(
    old: str, new: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with open_sides((old, new), tmp_path, request.getfixturevalue) as (source, target):
        table = await create(source, tmp_path)
        fences = source.catalog.capabilities.has_atomic_rename
        commits = Commits()
        async with asyncio.TaskGroup() as tasks:
            writers = [
                tasks.create_task(
                    swap_until_gone(source, writer, commits, 10**6 if fences else SWAPS)
                )
                for writer in range(WRITERS)
            ]
            await commits.busy.wait()
            if not fences:
                await asyncio.gather(*writers)
            late = await written(source, await source.catalog.load(FLIGHTS), "late")
            await source.inbox.put(build_request(table, epoch=0, catalog=source.name))
            migrated = await migration(source, target).run()
        assert migrated.carried == 1
        found = (await target.catalog.load(FLIGHTS)).metadata
        assert found.table_uuid == table.metadata.table_uuid
        seen = {key for key in found.properties if key.startswith("commit-")}
        assert commits.landed <= seen <= commits.landed | commits.in_doubt
        assert isinstance(await source.catalog.swap(late), Conflict)
        assert await names(source) == []
        after = await written(target, await target.catalog.load(FLIGHTS), "after")
        assert isinstance(await target.catalog.swap(after), Committed)


@pytest.mark.heavy
@pytest.mark.timeout(900)
@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize(("old", "new"), RING)
async def test_a_crash_at_any_call_is_continued_by_running_it_again(
    old: str, new: str, applied: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Before the call, and after it: the answer of an applied call is lost."""
    async with open_sides((old, new), tmp_path, request.getfixturevalue) as (source, target):
        crash_at, is_reached = 1, True
        while is_reached:
            folder = tmp_path / str(crash_at)
            table = await create(source, folder)
            await source.inbox.put(build_request(table, epoch=0, catalog=source.name))
            steps = Steps(crash_at, applied=applied)
            with suppress(CrashError):
                await migration(source, target, steps).run()
            is_reached = steps.count >= crash_at
            await migration(source, target).run()
            uuid = table.metadata.require_uuid()
            moved = await target.catalog.load(FLIGHTS)
            assert moved.metadata.table_uuid == uuid
            assert await names(source) == []
            assert [one async for one in source.inbox.list(uuid)] == []
            assert len([one async for one in target.inbox.list(uuid)]) == 1
            await drop_all(target.catalog)
            crash_at += 1
        assert crash_at > 15


@pytest.mark.heavy
@pytest.mark.parametrize(("old", "new"), RING)
async def test_a_taken_name_is_one_sentence_and_nothing_is_begun(
    old: str, new: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with open_sides((old, new), tmp_path, request.getfixturevalue) as (source, target):
        table = await create(source, tmp_path / "old")
        await create(target, tmp_path / "new")
        for _ in range(2):
            if source.catalog.capabilities.has_atomic_rename:
                with pytest.raises(TableAlreadyExistsError, match="already"):
                    await migration(source, target).run()
            else:
                with pytest.raises(TableAlreadyExistsError, match="not known to continue"):
                    await migration(source, target).run()
            assert await source.catalog.load(FLIGHTS) == table
            assert await source.moves.find(table.metadata.require_uuid()) is None


@pytest.mark.heavy
@pytest.mark.parametrize("new", ["hive", "glue"])
async def test_a_name_that_the_new_catalog_cannot_hold_is_refused_and_the_fence_taken_down(
    new: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    upper = TableIdentifier(("db",), "Flights")
    async with open_sides(("sqlite", new), tmp_path, request.getfixturevalue) as sides:
        source, target = sides
        table = build_table("db.Flights", warehouse=f"file://{tmp_path}/warehouse")
        await source.catalog.create_namespace(("db",))
        await source.catalog.create_table(table)
        for _ in range(2):
            moving = TableMigration(upper, source=source, target=target, world=RealWorld())
            with pytest.raises(UnsupportedError, match="Flights"):
                await moving.run()
            assert await names(source) == [upper]
            assert await source.catalog.load(upper) == table
            assert await names(target) == []


@pytest.mark.heavy
async def test_two_runs_at_once_move_a_table_once(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kinds = ("postgres", "rest")
    async with open_sides(kinds, tmp_path, request.getfixturevalue) as (source, target):
        for number in range(10):
            table = await create(source, tmp_path / str(number))
            await source.inbox.put(build_request(table, epoch=0, catalog=source.name))
            runs = [migration(source, target).run() for _ in range(2)]
            await asyncio.gather(*runs, return_exceptions=True)
            await migration(source, target).run()
            uuid = table.metadata.require_uuid()
            assert (await target.catalog.load(FLIGHTS)).metadata.table_uuid == uuid
            assert await names(source) == []
            assert len([one async for one in target.inbox.list(uuid)]) == 1
            await drop_all(target.catalog)
