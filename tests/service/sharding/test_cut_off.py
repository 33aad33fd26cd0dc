"""Committers that cannot reach their storage, inbox or catalog, while others may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from committer.service.telemetry.place_watch import GIVE_UP_S, TRUST_S_MIN
from tests.support.builders.request_builders import build_request
from tests.support.faults.cut_off import HANG_S, How, Links
from tests.support.service.replicas import (
    LEASE_S,
    Replica,
    Replicas,
    cancel_others,
    landed,
    settled,
)

VIRTUAL_TIME = True
PLACES = ("storage", "inbox", "catalog")
HOWS: tuple[How, ...] = ("hangs", "is refused")
# The watch looks once a second, and a hand-over takes some exchanges.
SOON_S = 2.0
SHARE_MIN = 10


@pytest.fixture
async def replicas(tmp_path: Path) -> AsyncIterator[Replicas]:
    yield Replicas(tmp_path)
    await cancel_others()


class Pair:
    """Two committers, `a` and `b`, each with links of its own to the places."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        self.links = {name: Links() for name in ("a", "b")}
        self.each = {name: replicas.start(name, links=links) for name, links in self.links.items()}
        self.epoch = 0

    def __getitem__(self, name: str) -> Replica:
        return self.each[name]

    @property
    def owned(self) -> tuple[int, int]:
        return self["a"].owned, self["b"].owned

    @property
    def moves(self) -> float:
        return sum(one.number("frazil_shard_moves_total") for one in self.each.values())

    async def use(self, name: str) -> None:
        """Publish to a table of a committer's, so that it calls all places; land nothing yet."""
        other = "b" if name == "a" else "a"
        table = await self.replicas.table_of(name, other)
        await self.replicas.harness.publish(build_request(table, producer=name, epoch=self.epoch))
        self.epoch += 1


@pytest.fixture
async def pair(replicas: Replicas) -> Pair:
    pair = Pair(replicas)
    await settled(*pair.each.values())
    return pair


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("cut", "other"), [("a", "b"), ("b", "a")])
async def test_committer_that_is_cut_off_gives_its_shards_up_and_gets_them_back(
    pair: Pair, cut: str, other: str, place: str, how: How
) -> None:
    replicas, before = pair.replicas, pair.owned
    table = await replicas.table_of(cut, other)
    link = pair.links[cut].of(place)
    link.cut(how)
    await replicas.harness.publish(build_request(table))
    if place == "inbox":
        await asyncio.sleep(30.0)  # until it lists the inbox, whose requests came by doorbell
    await asyncio.sleep(GIVE_UP_S + SOON_S)
    assert pair[other].owned == 64
    assert await landed(replicas, table) == 1
    assert f"{place} answers" in pair[cut].conditions
    assert f"{place} answers" not in pair[other].conditions
    link.heal()
    await asyncio.sleep(HANG_S + TRUST_S_MIN + 2 * LEASE_S)
    assert pair.owned == before
    assert pair[cut].conditions == {}
    await replicas.harness.publish(build_request(table, epoch=1))
    await asyncio.sleep(1.0)
    assert await landed(replicas, table) == 2
    assert pair[cut].number("frazil_commits_total", table=str(table.identifier)) >= 1


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("used", ["a", "ab"], ids=["one is idle", "both work"])
async def test_where_all_are_cut_off_each_keeps_its_shards(
    pair: Pair, place: str, how: How, used: str
) -> None:
    before, moves = pair.owned, pair.moves
    for links in pair.links.values():
        links.of(place).cut(how)
    for name in used:
        await pair.use(name)
        await asyncio.sleep(3.0)
    await asyncio.sleep(300.0)
    assert (pair.owned, pair.moves) == (before, moves)
    assert all(f"{place} answers" in pair[name].conditions for name in ("a", "b"))
    for links in pair.links.values():
        links.of(place).heal()
    await asyncio.sleep(HANG_S + TRUST_S_MIN + 2 * LEASE_S)
    assert (pair.owned, pair.moves) == (before, moves)
    assert [pair[name].conditions for name in ("a", "b")] == [{}, {}]


async def test_first_that_is_back_gets_everything_and_shares_it_again(pair: Pair) -> None:
    before = pair.owned
    for links in pair.links.values():
        links.storage.cut("hangs")
    for name in ("a", "b"):
        await pair.use(name)
    await asyncio.sleep(60.0)
    pair.links["b"].storage.heal()
    await asyncio.sleep(15.0)
    assert pair.owned == (0, 64)
    pair.links["a"].storage.heal()
    await asyncio.sleep(HANG_S + TRUST_S_MIN + 2 * LEASE_S)
    assert pair.owned == before


async def test_place_that_comes_and_goes_moves_shards_ever_more_rarely(pair: Pair) -> None:
    released = 0
    for _ in range(12):
        before = pair["a"].owned
        pair.links["a"].storage.cut("is refused")
        await pair.use("a")
        await asyncio.sleep(30.0)
        released += before > 0 and pair["a"].owned == 0
        pair.links["a"].storage.heal()
        await asyncio.sleep(40.0)
    assert released == 3, "after 15, 30 and 60 s of trust, the last of which never passes"
    await asyncio.sleep(300.0)
    assert pair["a"].owned >= SHARE_MIN


async def test_lone_committer_that_is_cut_off_keeps_its_shards(replicas: Replicas) -> None:
    links = Links()
    alone = replicas.start("a", links=links)
    await settled(alone)
    links.storage.cut("hangs")
    table = await replicas.harness.create_table()
    await replicas.harness.publish(build_request(table))
    await asyncio.sleep(120.0)
    assert alone.owned == 64
    links.storage.heal()
    await asyncio.sleep(HANG_S)
    assert await landed(replicas, table) == 1
    assert alone.number("frazil_shard_moves_total", move="lost") == 0


async def test_slow_call_of_one_table_is_no_silence(pair: Pair) -> None:
    """One swap takes an hour; the catalog answers all other calls."""
    replicas, before = pair.replicas, pair.owned
    table = await replicas.table_of("a", "b")
    replicas.harness.catalog.swap_s = {str(table.identifier): 3_600.0}
    await replicas.harness.publish(build_request(table))
    await asyncio.sleep(300.0)
    assert pair.owned == before
    assert pair["a"].conditions == {}


async def test_committer_that_ends_while_it_is_cut_off_hands_over(pair: Pair) -> None:
    pair.links["a"].catalog.cut("is refused")
    await pair.use("a")
    await asyncio.sleep(10.0)
    ending = asyncio.ensure_future(pair["a"].end())
    await asyncio.sleep(SOON_S)
    assert pair["b"].owned == 64
    await ending
