"""The contract of `Catalog.swap_together`, one test an obligation, on every adapter."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from random import Random

import pytest

from committer.errors import CatalogUnavailableError, InvariantError, UnsupportedError
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    GroupAnswer,
    GroupCommitted,
    GroupConflict,
    LoadedTable,
    Rejected,
    Swap,
    Unknown,
)
from tests.support.builders.table_builders import build_head_swap as build_swap
from tests.support.builders.table_builders import build_table
from tests.support.catalogs.catalogs import (
    FENCED,
    JUDGING,
    NOT_TOGETHER,
    RESENDING,
    TOGETHER,
    TOGETHER_IN_RACES,
    CatalogHarness,
    open_harness,
)
from tests.support.faults.faulty_catalog import Fault

NAMES = ("flights", "ships", "trains")


@pytest.fixture(params=TOGETHER)
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CatalogHarness]:
    harness = await open_harness(request.param, tmp_path, request.getfixturevalue)
    yield harness
    await harness.close()


async def create(harness: CatalogHarness, *names: str) -> list[LoadedTable]:
    """Create tables of these names, else of `NAMES`."""
    await harness.catalog.create_namespace(("db",))
    tables = []
    for name in names or NAMES:
        table = build_table(f"db.{name}", warehouse=harness.warehouse)
        await harness.catalog.create_table(table)
        tables.append(await harness.catalog.load(table.identifier))
    return tables


def build_group(tables: Sequence[LoadedTable], **properties: str) -> list[Swap]:
    return [build_swap(table, properties=properties) for table in tables]


async def send(
    harness: CatalogHarness, swaps: Sequence[Swap], *, by: Catalog | None = None
) -> GroupAnswer:
    """Swap as a committer does: what must be durable first, then the swaps."""
    catalog = by or harness.catalog
    for swap in swaps:
        await harness.storage.create(catalog.objects_before(swap))
    return await catalog.swap_together(swaps)


async def locations(harness: CatalogHarness, swaps: Sequence[Swap]) -> list[str]:
    return [await harness.catalog.current_location(one.base.identifier) for one in swaps]


async def are_untouched(harness: CatalogHarness, swaps: Sequence[Swap]) -> bool:
    return await locations(harness, swaps) == [one.base.metadata_location for one in swaps]


async def have_landed(harness: CatalogHarness, swaps: Sequence[Swap]) -> bool:
    for swap in swaps:
        loaded = await harness.catalog.load(swap.base.identifier)
        if loaded.metadata.current_snapshot_id != swap.metadata.current_snapshot_id:
            return False
        if loaded.metadata.properties != swap.metadata.properties:
            return False
    return True


async def test_group_whose_bases_are_current_is_committed_as_a_whole_in_its_order(
    harness: CatalogHarness,
) -> None:
    flights, ships, trains = await create(harness)
    swaps = build_group([trains, flights], color="blue")
    assert harness.catalog.capabilities.has_transactions
    answer = await send(harness, swaps)
    assert isinstance(answer, GroupCommitted)
    assert [table.identifier.name for table in answer.tables] == ["trains", "flights"]
    for table in answer.tables:
        assert table == await harness.catalog.load(table.identifier)
    assert await have_landed(harness, swaps)
    assert await harness.catalog.load(ships.identifier) == ships
    again = await send(harness, build_group(answer.tables, color="red"))
    assert isinstance(again, GroupCommitted)


@pytest.mark.parametrize("place", range(3))
async def test_one_stale_base_is_a_conflict_that_names_its_table_and_leaves_all_others_untouched(
    harness: CatalogHarness, place: int
) -> None:
    tables = await create(harness)
    swaps = build_group(tables)
    rival = build_swap(tables[place], properties={"by": "another"})
    await harness.storage.create(harness.catalog.objects_before(rival))
    answer = await harness.catalog.swap(rival)
    assert isinstance(answer, Committed)
    assert await send(harness, swaps) == GroupConflict((tables[place].identifier,))
    expected = [table.metadata_location for table in tables]
    expected[place] = answer.table.metadata_location
    assert await locations(harness, swaps) == expected


async def test_table_that_is_gone_is_a_conflict_and_leaves_all_others_untouched(
    harness: CatalogHarness,
) -> None:
    flights, _, trains = await create(harness)
    swaps = build_group([flights, trains])
    await harness.catalog.drop_table(trains.identifier)
    assert await send(harness, swaps) == GroupConflict((trains.identifier,))
    assert await are_untouched(harness, swaps[:1])


async def test_group_that_was_applied_but_whose_answer_was_lost_has_landed_and_is_not_refused(
    harness: CatalogHarness,
) -> None:
    """A back end that knows a group by a token may say what became of it."""
    tables = await create(harness)
    swaps = build_group(tables)
    with harness.befall(Fault.LOST_REPLY):
        assert isinstance(await send(harness, swaps), GroupCommitted | Unknown)
    assert await have_landed(harness, swaps)
    assert isinstance(await send(harness, build_group(tables)), GroupConflict)
    assert await have_landed(harness, swaps)


async def test_group_whose_request_was_lost_has_landed_nowhere_or_everywhere(
    harness: CatalogHarness,
) -> None:
    tables = await create(harness)
    swaps = build_group(tables)
    with harness.befall(Fault.REQUEST_LOST):
        answer = await send(harness, swaps)
    if isinstance(answer, GroupCommitted):
        assert await have_landed(harness, swaps)
        return
    assert isinstance(answer, Unknown)
    assert await are_untouched(harness, swaps)
    assert isinstance(await send(harness, build_group(tables)), GroupCommitted)


async def test_late_group_lands_as_a_whole_while_its_bases_are_current(
    harness: CatalogHarness,
) -> None:
    tables = await create(harness)
    late = build_group(tables, attempt="1")
    with harness.befall(Fault.LANDS_LATE):
        assert isinstance(await send(harness, late), GroupCommitted | Unknown)
    await harness.land_late()
    assert await have_landed(harness, late)
    assert isinstance(await send(harness, build_group(tables, attempt="2")), GroupConflict)
    assert await have_landed(harness, late)


@pytest.mark.parametrize("harness", [one for one in TOGETHER if one in FENCED], indirect=True)
async def test_late_group_cannot_land_in_part_once_one_of_its_tables_has_moved(
    harness: CatalogHarness,
) -> None:
    tables = await create(harness)
    late = build_group(tables, attempt="1")
    with harness.befall(Fault.LANDS_LATE):
        answer = await send(harness, late)
    lone = build_swap(tables[1], properties={"attempt": "2"})
    await harness.storage.create(harness.catalog.objects_before(lone))
    won = isinstance(await harness.catalog.swap(lone), Committed)
    assert won is isinstance(answer, Unknown)
    await harness.land_late()
    if won:
        assert await are_untouched(harness, [late[0], late[2]])
        assert await have_landed(harness, [lone])
    else:
        assert await have_landed(harness, late)


@pytest.mark.parametrize("harness", [one for one in TOGETHER if one in RESENDING], indirect=True)
async def test_group_that_a_layer_below_sends_twice_is_no_conflict_and_has_landed(
    harness: CatalogHarness,
) -> None:
    """A conflict would say that this attempt never lands."""
    swaps = build_group(await create(harness))
    with harness.befall(Fault.RESENT):
        assert isinstance(await send(harness, swaps), GroupCommitted | Unknown)
    assert await have_landed(harness, swaps)


@pytest.mark.parametrize("harness", JUDGING, indirect=True)
async def test_group_that_the_back_end_refuses_is_rejected_and_changes_nothing(
    harness: CatalogHarness,
) -> None:
    tables = await create(harness)
    swaps = build_group(tables)
    with harness.befall(Fault.REJECTED):
        answer = await send(harness, swaps)
    assert isinstance(answer, Rejected)
    assert "refused by the test" in answer.reason
    assert await are_untouched(harness, swaps)
    assert isinstance(await send(harness, build_group(tables)), GroupCommitted)


async def test_group_on_an_unavailable_back_end_raises_and_nothing_was_applied(
    harness: CatalogHarness,
) -> None:
    tables = await create(harness)
    swaps = build_group(tables)
    with harness.befall(Fault.UNAVAILABLE), pytest.raises(CatalogUnavailableError):
        await send(harness, swaps)
    await harness.land_late()
    assert await are_untouched(harness, swaps)
    assert isinstance(await send(harness, build_group(tables)), GroupCommitted)


async def test_group_that_names_a_table_twice_is_a_bug_and_is_not_sent(
    harness: CatalogHarness,
) -> None:
    tables = await create(harness)
    swaps = build_group([*tables, tables[0]])
    with pytest.raises(InvariantError, match=r"twice.*db\.flights"):
        await send(harness, swaps)
    assert await are_untouched(harness, swaps)


@pytest.mark.parametrize("harness", TOGETHER_IN_RACES, indirect=True)
async def test_of_eight_swappers_of_overlapping_pairs_no_two_win_and_no_pair_is_torn(
    harness: CatalogHarness,
) -> None:
    """Pairs of one table or both shared, sent in either order, beside swaps of one table."""
    random = Random(7)
    tables = {table.identifier: table for table in await create(harness)}
    rivals = [harness.catalog, *[await harness.another() for _ in range(7)]]
    for _ in range(10):
        groups = [build_group(random.sample(list(tables.values()), 2)) for _ in rivals[1:]]
        lone = build_swap(random.choice(list(tables.values())))
        for swap in (lone, *(swap for group in groups for swap in group)):
            await harness.storage.create(harness.catalog.objects_before(swap))
        answers = await asyncio.gather(
            rivals[0].swap(lone),
            *(
                swap_or_unavailable(rival, group)
                for rival, group in zip(rivals[1:], groups, strict=True)
            ),
        )
        won: list[Swap] = [lone] if isinstance(answers[0], Committed) else []
        assert won or isinstance(answers[0], Conflict)
        for group, answer in zip(groups, answers[1:], strict=True):
            won += group if isinstance(answer, GroupCommitted) else []
        bases = Counter(swap.base.identifier for swap in won)
        assert won and max(bases.values()) == 1
        for swap in won:
            loaded = await harness.catalog.load(swap.base.identifier)
            assert loaded.metadata_location == swap.metadata_location
            tables[swap.base.identifier] = loaded
        for identifier in tables.keys() - bases.keys():
            assert await harness.catalog.load(identifier) == tables[identifier]


async def swap_or_unavailable(catalog: Catalog, swaps: Sequence[Swap]) -> GroupAnswer | None:
    """Swap; None where others are in the way for as long as the adapter tries."""
    try:
        answer = await catalog.swap_together(swaps)
    except CatalogUnavailableError:
        return None
    assert isinstance(answer, GroupCommitted | GroupConflict)
    return answer


@pytest.mark.parametrize("harness", NOT_TOGETHER, indirect=True)
async def test_catalog_without_transactions_refuses_a_group_with_a_remedy_and_sends_nothing(
    harness: CatalogHarness,
) -> None:
    tables = await create(harness)
    swaps = build_group(tables)
    assert not harness.catalog.capabilities.has_transactions
    kind = harness.catalog.capabilities.kind
    with pytest.raises(UnsupportedError, match=rf"{kind}.*db\.flights.*SQL database, DynamoDB"):
        await harness.catalog.swap_together(swaps)
    assert await are_untouched(harness, swaps)
