"""Committers that share the shards: who works on what, and how that changes hands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from committer.ports.leases import Assignment, Renewal
from committer.ports.pointer_swap import LoadedTable
from committer.service.process.status_model import MemberStatus, ShardsStatus
from committer.service.sharding.shard_leases import RENEWALS_A_LEASE, ShardLeases
from committer.service.telemetry.health import Health
from committer.service.telemetry.metrics import Metrics
from committer.service.telemetry.place_watch import PlaceWatch
from tests.support.builders.request_builders import build_request
from tests.support.clock.virtual_time import LoopWorld
from tests.support.memory.memory_queue import INSTALLATION, MemoryLeases, MemoryServer
from tests.support.service.replicas import (
    LEASE_S,
    SOON_S,
    Replica,
    Replicas,
    cancel_others,
    landed,
    settled,
)
from tests.support.service.service_harness import INBOX

VIRTUAL_TIME = True


@pytest.fixture
async def replicas(tmp_path: Path) -> AsyncIterator[Replicas]:
    yield Replicas(tmp_path)
    await cancel_others()


# --- One alone -----------------------------------------------------------------------------------


async def test_a_lone_committer_has_everything_at_once(replicas: Replicas) -> None:
    table = await replicas.harness.create_table()
    await replicas.harness.publish(build_request(table))
    alone = replicas.start("alone")
    await asyncio.sleep(0.001)
    assert (await landed(replicas, table), alone.owned) == (1, 64)


async def test_a_lone_committer_exchanges_little_about_leases(replicas: Replicas) -> None:
    """Two exchanges at the start; a renewal and a wait for news three times in a lease; none for a
    commit.
    """
    table = await replicas.harness.create_table()
    alone = replicas.start("alone")
    await asyncio.sleep(0.5)
    assert calls(alone) == {"renew": 2, "wait_for_change": 0}
    for epoch in range(50):
        await replicas.harness.publish(build_request(table, epoch=epoch))
        await asyncio.sleep(0.1)
    assert await landed(replicas, table) == 50
    await asyncio.sleep(LEASE_S * 2 - 5.0)
    assert calls(alone) == {
        "renew": 2 + 2 * RENEWALS_A_LEASE,
        "wait_for_change": 2 * RENEWALS_A_LEASE,
    }


def calls(replica: Replica) -> dict[str, int]:
    name = "frazil_call_duration_seconds_count"
    return {
        call: int(replica.number(name, port="leases", call=call))
        for call in ("renew", "wait_for_change")
    }


async def test_a_committer_that_died_is_replaced_under_its_name_at_once(
    replicas: Replicas,
) -> None:
    table = await replicas.harness.create_table()
    first = replicas.start("alone")
    await settled(first)
    await first.crash()
    await replicas.harness.publish(build_request(table))
    second = replicas.start("alone")
    await settled(second)
    assert await landed(replicas, table) == 1


# --- Several -------------------------------------------------------------------------------------


async def test_three_committers_share_and_each_works_on_its_own(replicas: Replicas) -> None:
    names = ("a", "b", "c")
    started = [replicas.start(name) for name in names]
    await settled(*started)
    assert all(10 < replica.owned < 35 for replica in started)
    for replica in started:
        others = [name for name in names if name != replica.name]
        table = await replicas.table_of(replica.name, *others)
        await replicas.harness.publish(build_request(table, producer=replica.name))
        await asyncio.sleep(SOON_S)
        assert await landed(replicas, table) == 1
        assert replica.number("frazil_commits_total", table=str(table.identifier)) == 1


async def test_what_nobody_announced_is_found_by_its_owner_alone(replicas: Replicas) -> None:
    first, second = replicas.start("a"), replicas.start("b")
    await settled(first, second)
    table = await replicas.table_of("b", "a")
    await replicas.harness.publish(build_request(table), announce=False)
    await asyncio.sleep(61.0)
    assert await landed(replicas, table) == 1
    found = [replica.number("frazil_missed_doorbells_total") for replica in (first, second)]
    assert found == [0, 1]


async def test_only_the_owner_of_a_table_shows_the_lag_of_its_requests(replicas: Replicas) -> None:
    """Its objects may be listed for a while after they have landed, as their deletion fails."""
    first, second = replicas.start("a"), replicas.start("b")
    await settled(first, second)
    table = await replicas.table_of("b", "a")
    name = str(table.identifier)
    replicas.harness.catalog.unavailable = {name}
    await replicas.harness.publish(build_request(table), announce=False)
    await asyncio.sleep(300.0)
    lags = [replica.status_collector.status().unavailable_s for replica in (first, second)]
    waits = [replica.status_collector.status().lag_s for replica in (first, second)]
    assert (lags[0], waits) == (0, [0, 0])
    assert (lags[1] or 0) > 200


async def test_each_names_all_that_share_the_shards_with_their_status_urls(
    replicas: Replicas,
) -> None:
    first, second = replicas.start("a"), replicas.start("b")
    assert first.status_collector.status().shards is None
    await settled(first, second)
    told = [replica.status_collector.status().shards for replica in (first, second)]
    assert told == [
        ShardsStatus(
            member=replica.name,
            owned=replica.owned,
            members=[
                MemberStatus(
                    name=one.name,
                    shards=one.owned,
                    is_leaving=False,
                    status_url="http://127.0.0.1:8181",
                )
                for one in (first, second)
            ],
        )
        for replica in (first, second)
    ]


async def test_a_newcomer_gets_its_share_while_work_goes_on(replicas: Replicas) -> None:
    first = replicas.start("a")
    await settled(first)
    table = await replicas.table_of("b", "a")
    for epoch in range(20):
        await replicas.harness.publish(build_request(table, epoch=epoch))
        await asyncio.sleep(0.01)
        if epoch == 10:
            second = replicas.start("b")
    await settled(first, second)
    await asyncio.sleep(SOON_S)
    assert await landed(replicas, table) == 20
    assert second.number("frazil_commits_total") > 0
    assert first.number("frazil_shard_moves_total", move="lost") == 0
    moved = second.number("frazil_shard_moves_total", move="acquired")
    assert moved == second.owned == first.number("frazil_shard_moves_total", move="released")


async def test_of_a_frozen_table_only_its_owner_says_so(replicas: Replicas) -> None:
    first = replicas.start("a")
    await settled(first)
    table = await replicas.table_of("b", "a")
    await replicas.harness.publish(build_request(table, epoch=0))
    await asyncio.sleep(SOON_S)
    await replicas.harness.catalog.inner.drop_table(table.identifier)
    await replicas.harness.catalog.inner.register_table(table.identifier, table.metadata_location)
    await replicas.harness.publish(build_request(table, epoch=1))
    await asyncio.sleep(SOON_S)
    assert says_frozen(first, table)
    second = replicas.start("b")
    await asyncio.sleep(4 * SOON_S)
    assert (says_frozen(first, table), says_frozen(second, table)) == (False, True)


def says_frozen(replica: Replica, table: LoadedTable) -> bool:
    """Return whether metrics and conditions alike report a frozen table."""
    shown = replica.number("frazil_table_frozen", table=str(table.identifier)) == 1
    assert (f"table {table.identifier}" in replica.conditions) == shown
    return shown


async def test_who_ends_hands_over_within_a_second(replicas: Replicas) -> None:
    first, second = replicas.start("a"), replicas.start("b")
    await settled(first, second)
    table = await replicas.table_of("a", "b")
    for epoch in range(5):
        await replicas.harness.publish(build_request(table, epoch=epoch))
    await first.end()
    await replicas.harness.publish(build_request(table, epoch=5))
    await asyncio.sleep(SOON_S)
    assert second.owned == 64
    assert await landed(replicas, table) == 6
    assert await replicas.harness.outstanding() == []


class SlowLeases(MemoryLeases):
    """Its exchanges take a moment. `exchanging` is set while the last of so many is under way."""

    def __init__(self, exchanges: int) -> None:
        server = MemoryServer(world=LoopWorld())
        super().__init__(server, member="alone", process=UUID(int=1))
        self._left = exchanges
        self.exchanging = asyncio.Event()

    async def renew(self, renewal: Renewal) -> Assignment:
        self._left -= 1
        if not self._left:
            self.exchanging.set()
        await asyncio.sleep(0.1)
        return await super().renew(renewal)


async def nothing_under_way(shards: frozenset[int]) -> None:
    """Do nothing: the hand-over of a committer without tables."""


@pytest.mark.parametrize("exchange", [1, 2, 3])
async def test_who_ends_during_an_exchange_hands_over_within_a_second(exchange: int) -> None:
    world, leases = LoopWorld(), SlowLeases(exchange)
    health = Health(world)
    shards = ShardLeases(
        leases=leases,
        member="alone",
        installation=INSTALLATION,
        world=world,
        health=health,
        metrics=Metrics(),
        lease_s=LEASE_S,
        places=PlaceWatch(world, health),
    )
    running = asyncio.ensure_future(shards.run(nothing_under_way))
    await leases.exchanging.wait()
    shards.leave()
    async with asyncio.timeout(SOON_S):
        await running
    assert not shards.owned


async def test_one_slow_table_holds_up_no_other_shard(replicas: Replicas) -> None:
    first, second = replicas.start("a"), replicas.start("b")
    await settled(first, second)
    table = await replicas.table_of("a", "b")
    other = await replicas.table_of("a", "b")
    replicas.harness.catalog.swap_s = {str(table.identifier): 15.0}
    await replicas.harness.publish(build_request(table))
    await asyncio.sleep(0.1)
    ending = asyncio.ensure_future(first.end())
    await asyncio.sleep(0.1)
    assert second.owned == 63
    await replicas.harness.publish(build_request(other))
    await asyncio.sleep(SOON_S)
    assert (await landed(replicas, other), await landed(replicas, table)) == (1, 0)
    await ending
    await asyncio.sleep(SOON_S)
    assert (await landed(replicas, table), second.owned) == (1, 64)


async def test_what_a_dead_committer_held_is_taken_over_within_its_lease(
    replicas: Replicas,
) -> None:
    first, second = replicas.start("a"), replicas.start("b")
    await settled(first, second)
    table = await replicas.table_of("a", "b")
    replicas.harness.catalog.swap_s = {str(table.identifier): 3_600.0}
    await replicas.harness.publish(build_request(table))
    await asyncio.sleep(0.1)
    first.running.cancel()
    replicas.harness.catalog.swap_s = {}
    await replicas.harness.publish(build_request(table, epoch=1), announce=True)
    await asyncio.sleep(LEASE_S + 0.1)
    assert second.owned == 64
    assert await landed(replicas, table) == 2
    assert (await replicas.harness.publisher_queue.depth()).waiting == 0


async def test_a_lease_ends_between_two_renewals_of_the_others(replicas: Replicas) -> None:
    stalling = Stalling(replicas.harness.server, member="a")
    first, second = replicas.start("a", leases=stalling), replicas.start("b")
    await settled(first, second)
    await asyncio.sleep(7.0)
    stalling.may_renew.clear()
    await asyncio.sleep(6.0)
    stalling.may_renew.set()
    await asyncio.sleep(0.1)
    await first.crash()
    await asyncio.sleep(LEASE_S)
    assert second.owned == 64


# --- Other installations -------------------------------------------------------------------------


async def test_committer_of_another_catalog_is_refused_by_name_and_works_on_nothing(
    replicas: Replicas,
) -> None:
    first = replicas.start("a")
    await settled(first)
    second = replicas.start("b", catalog_name="other")
    await asyncio.sleep(SOON_S)
    assert (first.owned, second.owned) == (64, 0)
    for replica in (first, second):
        (component,) = replica.conditions
        said = replica.conditions[component]
        assert component == "foreign committer"
        assert f"`b` (inbox `{INBOX}`, catalog `other`) is refused" in said
        assert f"gets no shard: `a` (inbox `{INBOX}`, catalog `frazil`) has the same keys" in said
    table = await replicas.table_of("b", "a")
    await replicas.harness.publish(build_request(table))
    await asyncio.sleep(SOON_S)
    assert await landed(replicas, table) == 1
    assert first.number("frazil_commits_total") == 1


async def test_refused_committer_works_on_nothing_without_the_queue_either(
    replicas: Replicas,
) -> None:
    first = replicas.start("a")
    await settled(first)
    second = replicas.start("b", catalog_name="other")
    await asyncio.sleep(SOON_S)
    table = await replicas.table_of("b", "a")
    replicas.harness.server.available = False
    replicas.harness.server.wake()
    await first.crash()
    await replicas.harness.publish(build_request(table), announce=False)
    await asyncio.sleep(LEASE_S * 4)
    assert await landed(replicas, table) == 0
    assert second.number("frazil_commits_total") == 0


async def test_refused_committer_gets_the_shards_once_the_others_have_gone(
    replicas: Replicas,
) -> None:
    first = replicas.start("a")
    await settled(first)
    second = replicas.start("b", catalog_name="other")
    await asyncio.sleep(SOON_S)
    await first.end()
    await settled(second)
    assert second.conditions == {}


# --- The server is away --------------------------------------------------------------------------


async def test_without_the_queue_each_works_on_what_it_had(replicas: Replicas) -> None:
    first, second = replicas.start("a"), replicas.start("b")
    await settled(first, second)
    mine, others = await replicas.table_of("a", "b"), await replicas.table_of("b", "a")
    replicas.harness.server.available = False
    replicas.harness.server.wake()
    await asyncio.sleep(5.0)
    for table in (mine, others):
        await replicas.harness.publish(build_request(table), announce=False)
    await asyncio.sleep(5.0)
    for replica, table in ((first, mine), (second, others)):
        assert await landed(replicas, table) == 1
        commits = "frazil_commits_total"
        assert replica.number(commits, table=str(table.identifier)) == replica.number(commits) == 1


async def test_without_the_queue_the_heir_of_a_dead_committer_waits_a_lease(
    replicas: Replicas,
) -> None:
    first, second = replicas.start("a"), replicas.start("b")
    await settled(first, second)
    table = await replicas.table_of("a", "b")
    replicas.harness.server.available = False
    replicas.harness.server.wake()
    await first.crash()
    await replicas.harness.publish(build_request(table), announce=False)
    await asyncio.sleep(LEASE_S - 1.0)
    assert await landed(replicas, table) == 0
    await asyncio.sleep(3.0)
    assert await landed(replicas, table) == 1
    assert second.owned < 64


async def test_a_start_without_the_queue_works_on_everything(replicas: Replicas) -> None:
    table = await replicas.harness.create_table()
    await replicas.harness.publish(build_request(table), announce=False)
    replicas.harness.server.available = False
    alone = replicas.start("alone")
    await asyncio.sleep(3.0)
    assert await landed(replicas, table) == 1
    assert list(alone.conditions) == ["queue"]
    replicas.harness.server.available = True
    await asyncio.sleep(15.0)
    assert (alone.owned, alone.conditions) == (64, {})


@pytest.mark.parametrize("is_flushed", [True, False], ids=["flushed", "as it was"])
async def test_after_an_outage_each_gets_back_what_it_had(
    replicas: Replicas, is_flushed: bool
) -> None:
    started = [replicas.start(name) for name in ("a", "b", "c")]
    await settled(*started)
    owned = [replica.owned for replica in started]
    moves = [replica.number("frazil_shard_moves_total") for replica in started]
    replicas.harness.server.available = False
    replicas.harness.server.wake()
    await asyncio.sleep(LEASE_S * 2)
    if is_flushed:
        replicas.harness.server.flush()
    replicas.harness.server.available = True
    await asyncio.sleep(LEASE_S * 2)
    assert [replica.owned for replica in started] == owned
    assert [replica.number("frazil_shard_moves_total") for replica in started] == moves


async def test_an_ending_without_the_queue_takes_no_longer(replicas: Replicas) -> None:
    first = replicas.start("a")
    await settled(first)
    replicas.harness.server.available = False
    replicas.harness.server.wake()
    await asyncio.sleep(5.0)
    async with asyncio.timeout(0.5):
        await first.end()


# --- Two owners ----------------------------------------------------------------------------------


class Stalling(MemoryLeases):
    """Does not renew while `is_stalled`: as a process that stands still, but works on."""

    def __init__(self, server: MemoryServer, *, member: str) -> None:
        super().__init__(server, member=member, process=UUID(int=99))
        self.may_renew = asyncio.Event()
        self.may_renew.set()

    async def renew(self, renewal: Renewal) -> Assignment:
        await self.may_renew.wait()
        return await super().renew(renewal)


async def test_two_that_hold_themselves_for_the_owner_commit_everything_once(
    replicas: Replicas,
) -> None:
    harness = replicas.harness
    stalling = Stalling(harness.server, member="a")
    first, second = replicas.start("a", leases=stalling), replicas.start("b")
    await settled(first, second)
    table = await replicas.table_of("a", "b")
    stalling.may_renew.clear()
    await asyncio.sleep(LEASE_S + 1.0)
    assert (first.owned + second.owned > 64, second.owned) == (True, 64)
    for epoch in range(40):
        await harness.publish(build_request(table, epoch=epoch))
        await asyncio.sleep(0.01)
    await asyncio.sleep(SOON_S)
    assert await landed(replicas, table) == 40
    stalling.may_renew.set()
    await asyncio.sleep(SOON_S)
    assert first.number("frazil_shard_moves_total", move="lost") > 0
    await settled(first, second)
    assert await harness.outstanding() == []
    assert await harness.quarantined() == []


async def test_who_lost_a_shard_finishes_the_attempt_in_hand_and_lets_the_rest_go(
    replicas: Replicas,
) -> None:
    harness = replicas.harness
    stalling = Stalling(harness.server, member="a")
    first = replicas.start("a", leases=stalling)
    await settled(first, replicas.start("b"))
    table = await replicas.table_of("a", "b")
    harness.catalog.swap_s = {str(table.identifier): 1_000.0}
    await harness.publish(build_request(table))
    await asyncio.sleep(1.0)
    for epoch in (1, 2):
        await harness.publish(build_request(table, epoch=epoch))
    stalling.may_renew.clear()
    await asyncio.sleep(LEASE_S + 1.0)
    stalling.may_renew.set()
    await asyncio.sleep(1_000.0 - LEASE_S)
    first.status_collector.page()
    assert first.number("frazil_pending_requests") == 0
    assert (await landed(replicas, table), first.number("frazil_commits_total")) == (1, 1)
    harness.catalog.swap_s = {}
    await asyncio.sleep(3_000.0)
    assert await landed(replicas, table) == 3
    assert await harness.outstanding() == []


async def test_who_lost_its_name_works_on_nothing_and_says_so(replicas: Replicas) -> None:
    table = await replicas.harness.create_table()
    first = replicas.start("same")
    await settled(first)
    second = replicas.start("same")
    await asyncio.sleep(SOON_S)
    assert (first.owned, second.owned) == (0, 64)
    assert "queue.consumer" in first.conditions["leases"]
    await replicas.harness.publish(build_request(table))
    await asyncio.sleep(SOON_S)
    assert second.number("frazil_commits_total") == 1
    await second.end()
    await asyncio.sleep(LEASE_S)
    assert (first.owned, first.conditions) == (64, {})
