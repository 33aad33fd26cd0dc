"""The obligations of the port `Leases`, one test each, in memory and on real servers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID

import pytest

from committer.errors import QueueUnavailableError
from committer.ports.installation import Installation
from committer.ports.leases import Assignment, Leases, Renewal
from committer.ports.queue import ALL_SHARDS
from tests.support.servers.queue_servers import OTHER_IDENTITY, QueueHarness

LONG_S = 30.0
EVER_S = 600.0  # never waited for: something wakes the call, or the test takes too long
SHORT_S = 0.02  # waited for, by the server's clock
JOIN = Renewal(LONG_S, is_new=True)
STAY = Renewal(LONG_S)


def claiming(*shards: int, lease_s: float = LONG_S, is_new: bool = False) -> Renewal:
    return Renewal(lease_s, is_new=is_new, claim=frozenset(shards))


def releasing(*shards: int) -> Renewal:
    return Renewal(LONG_S, release=frozenset(shards))


def owners(seen: Assignment) -> Mapping[int, str]:
    return {shard: lease.member for shard, lease in seen.leases.items()}


def names(seen: Assignment) -> list[str]:
    return [member.name for member in seen.members]


# --- Members -------------------------------------------------------------------------------------


async def test_whoever_renews_is_a_member(harness: QueueHarness) -> None:
    one, two = harness.leases("one"), harness.leases("two")
    assert (await one.renew(JOIN)).standing == "new"
    seen = await two.renew(Renewal(60.0, is_new=True, is_leaving=True))
    assert [(member.name, member.is_leaving) for member in seen.members] == [
        ("one", False),
        ("two", True),
    ]
    assert 0 < seen.members[0].left_s <= LONG_S < seen.members[1].left_s <= 60
    assert (await one.renew(STAY)).standing == "renewed"


async def test_each_member_names_its_status_url_until_it_is_gone(harness: QueueHarness) -> None:
    one, two = harness.leases("one"), harness.leases("two")
    await one.renew(Renewal(LONG_S, is_new=True, status_url="http://one:8181"))
    await two.renew(JOIN)
    seen = await harness.leases("three").look()
    assert [(member.name, member.status_url) for member in seen.members] == [
        ("one", "http://one:8181"),
        ("two", None),
    ]
    await one.renew(Renewal(LONG_S, status_url="http://one:9191"))
    assert (await two.renew(STAY)).members[0].status_url == "http://one:9191"
    await one.leave()
    again = await harness.leases("one").renew(JOIN)
    assert [member.status_url for member in again.members] == [None, None]


async def test_member_that_is_cut_off_says_so_until_it_is_not(harness: QueueHarness) -> None:
    one, two = harness.leases("one"), harness.leases("two")
    await two.renew(JOIN)
    seen = await one.renew(Renewal(LONG_S, is_new=True, is_cut_off=True, claim=frozenset({1})))
    assert [member.is_cut_off for member in seen.members] == [True, False]
    assert owners(seen) == {1: "one"}
    await one.renew(STAY)
    assert [member.is_cut_off for member in (await two.look()).members] == [False, False]


async def test_names_of_any_kind_are_kept(harness: QueueHarness) -> None:
    name = "häuschen 1 \n-%d"
    assert names(await harness.leases(name).renew(JOIN)) == [name]


async def test_who_leaves_is_gone_at_once_and_its_shards_are_free(harness: QueueHarness) -> None:
    one, two = harness.leases("one"), harness.leases("two")
    await one.renew(claiming(1, 2, is_new=True))
    await one.leave()
    await one.leave()
    seen = await two.renew(claiming(2, is_new=True))
    assert names(seen) == ["two"]
    assert owners(seen) == {2: "two"}


async def test_who_does_not_renew_in_time_is_gone(harness: QueueHarness) -> None:
    one, two = harness.leases("one"), harness.leases("two")
    await one.renew(claiming(1, is_new=True))
    assert owners(await two.renew(claiming(1, is_new=True))) == {1: "one"}
    await one.renew(Renewal(SHORT_S))
    await harness.lapse(SHORT_S + 0.001)
    assert owners(await two.look()) == {}
    assert names(await two.look()) == ["two"]
    assert owners(await two.renew(claiming(1))) == {1: "two"}
    late = await one.renew(STAY)
    assert (late.standing, owners(late)) == ("new", {1: "two"})


async def test_a_renewal_keeps_all_leases(harness: QueueHarness) -> None:
    one, two = harness.leases("one"), harness.leases("two")
    first = await one.renew(claiming(*ALL_SHARDS, lease_s=SHORT_S, is_new=True))
    await one.renew(STAY)
    await harness.lapse(SHORT_S + 0.001)
    assert (await two.renew(claiming(*ALL_SHARDS, is_new=True))).leases == first.leases


async def test_looking_makes_no_member(harness: QueueHarness) -> None:
    await harness.leases("one").renew(claiming(5, is_new=True))
    onlooker = harness.leases("two")
    seen = await onlooker.look()
    assert (names(seen), owners(seen)) == (["one"], {5: "one"})
    assert (await onlooker.look()).version == seen.version


async def test_an_empty_server_has_nobody(harness: QueueHarness) -> None:
    seen = await harness.leases().look()
    assert (seen.members, seen.leases) == ((), {})


# --- Names ---------------------------------------------------------------------------------------


async def test_a_new_process_of_a_name_takes_its_place_at_once(harness: QueueHarness) -> None:
    former, restarted = harness.leases("one"), harness.leases("one")
    old = await former.renew(claiming(1, 2, is_new=True))
    seen = await restarted.renew(claiming(1, is_new=True))
    assert names(seen) == ["one"]
    assert owners(seen) == {1: "one"}
    assert seen.leases[1].term > old.leases[1].term


async def test_who_lost_its_name_is_displaced_until_the_name_is_free(
    harness: QueueHarness,
) -> None:
    former, namesake = harness.leases("one"), harness.leases("one")
    await former.renew(claiming(1, is_new=True))
    await namesake.renew(claiming(1, is_new=True))
    seen = await former.renew(Renewal(LONG_S, claim=frozenset({2}), release=frozenset({1})))
    assert seen.standing == "displaced"
    assert owners(seen) == {1: "one"}, "neither claimed nor released"
    await former.leave()
    assert (await namesake.renew(STAY)).standing == "renewed"
    await namesake.leave()
    back = await former.renew(claiming(2))
    assert (back.standing, owners(back)) == ("new", {2: "one"})


# --- Installations -------------------------------------------------------------------------------


async def test_two_installations_on_one_server_share_nothing(harness: QueueHarness) -> None:
    mine, others = harness.leases("one"), harness.leases("one", identity=OTHER_IDENTITY)
    await mine.renew(claiming(*ALL_SHARDS, is_new=True))
    seen = await others.renew(claiming(*ALL_SHARDS, is_new=True))
    assert (seen.standing, names(seen), len(owners(seen))) == ("new", ["one"], 64)
    again = await mine.renew(STAY)
    assert (again.standing, len(owners(again))) == ("renewed", 64)


@pytest.mark.parametrize("name", ["one", "two"])
@pytest.mark.parametrize("foreign", [Installation("copy", "frazil"), Installation("inbox", "b")])
async def test_process_of_another_installation_is_refused_and_both_sides_name_it(
    harness: QueueHarness, name: str, foreign: Installation
) -> None:
    own = Installation("inbox", "frazil")
    one = harness.leases("one", installation=own)
    other = harness.leases(name, installation=foreign)
    version = (await one.renew(claiming(1, is_new=True))).version
    seen = await other.renew(claiming(1, 2, is_new=True))
    assert (seen.standing, owners(seen)) == ("foreign", {1: "one"}), "it has claimed nothing"
    assert [(member.name, member.installation) for member in seen.members] == [("one", own)]
    await one.wait_for_change(version, wait_s=EVER_S)
    told = await one.renew(claiming(2))
    assert (told.standing, names(told), owners(told)) == ("renewed", ["one"], {1: "one", 2: "one"})
    assert [(member.name, member.installation) for member in told.refused] == [(name, foreign)]
    assert (await other.renew(STAY)).standing == "foreign", "nor later"
    await other.leave()
    assert (await one.look()).refused == ()


@pytest.mark.parametrize("verb", ["leave", "lapse"])
async def test_refused_process_of_an_installation_joins_once_the_others_have_gone(
    harness: QueueHarness, verb: str
) -> None:
    one = harness.leases("one")
    other = harness.leases("two", installation=Installation("copy", "frazil"))
    await one.renew(claiming(1, is_new=True))
    version = (await other.renew(claiming(1, is_new=True))).version
    if verb == "leave":
        await one.leave()
        await other.wait_for_change(version, wait_s=EVER_S)
    else:
        await one.renew(Renewal(SHORT_S))
        await harness.lapse(SHORT_S + 0.001)
    seen = await other.renew(claiming(1))
    assert (seen.standing, names(seen), owners(seen)) == ("new", ["two"], {1: "two"})
    assert seen.refused == ()
    late = await one.renew(claiming(1))
    assert (late.standing, owners(late)) == ("foreign", {1: "two"})


# --- Shards --------------------------------------------------------------------------------------


async def test_a_shard_has_one_owner(harness: QueueHarness) -> None:
    one, two = harness.leases("one"), harness.leases("two")
    await one.renew(claiming(1, 2, is_new=True))
    seen = await two.renew(claiming(2, 3, is_new=True))
    assert owners(seen) == {1: "one", 2: "one", 3: "two"}


async def test_what_is_released_is_free_and_what_is_anothers_is_not(harness: QueueHarness) -> None:
    one, two = harness.leases("one"), harness.leases("two")
    await one.renew(claiming(1, 2, is_new=True))
    await two.renew(claiming(3, is_new=True))
    assert owners(await one.renew(releasing(1, 3))) == {2: "one", 3: "two"}
    assert owners(await two.renew(claiming(1))) == {1: "two", 2: "one", 3: "two"}


async def test_a_repeated_renewal_changes_nothing(harness: QueueHarness) -> None:
    one = harness.leases("one")
    first = await one.renew(claiming(1, 2, is_new=True))
    again = await one.renew(claiming(1, 2, is_new=True))
    assert (again.leases, again.version) == (first.leases, first.version)
    free = await one.renew(releasing(1))
    assert (await one.renew(releasing(1))).version == free.version


async def test_a_term_rises_with_each_owner_and_stays_while_it_owns(harness: QueueHarness) -> None:
    one, two = harness.leases("one"), harness.leases("two")
    terms = []
    for owner, other in [(one, two), (two, one)] * 3:
        await other.renew(Renewal(LONG_S, release=frozenset({1})))
        taken = (await owner.renew(claiming(1))).leases[1].term
        assert (await owner.renew(STAY)).leases[1].term == taken
        terms.append(taken)
    assert terms == sorted(set(terms))


async def test_terms_rise_after_the_server_has_lost_everything(harness: QueueHarness) -> None:
    one, two = harness.leases("one"), harness.leases("two")
    before = (await one.renew(claiming(1, is_new=True))).leases[1].term
    await harness.flush()
    await harness.lapse(0.002)
    assert (await two.renew(claiming(1, is_new=True))).leases[1].term > before
    seen = await one.renew(STAY)
    assert (seen.standing, owners(seen)) == ("new", {1: "two"})


# --- Waiting -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda other: other.renew(JOIN),
        lambda other: other.renew(claiming(7, is_new=True)),
        lambda other: other.renew(Renewal(LONG_S, is_new=True, is_cut_off=True)),
    ],
    ids=["a member comes", "a shard is claimed", "a member comes that is cut off"],
)
async def test_a_change_ends_the_wait(
    harness: QueueHarness, change: Callable[[Leases], Awaitable[object]]
) -> None:
    one, other = harness.leases("one"), harness.leases("two")
    version = (await one.renew(JOIN)).version
    waiting = asyncio.create_task(one.wait_for_change(version, wait_s=EVER_S))
    await harness.until_waiting(waiting)
    await change(other)
    await waiting


@pytest.mark.parametrize("verb", ["release", "leaving", "cut off", "leave", "lapse"])
async def test_what_an_owner_gives_up_ends_the_wait(harness: QueueHarness, verb: str) -> None:
    one, other, third = (harness.leases(name) for name in ("one", "two", "three"))
    await one.renew(JOIN)
    await third.renew(JOIN)
    # Last, so that no member has seen it lapse before the wait begins, however long that takes.
    claim = claiming(7, lease_s=SHORT_S if verb == "lapse" else LONG_S, is_new=True)
    version = (await other.renew(claim)).version
    waiting = asyncio.create_task(one.wait_for_change(version, wait_s=EVER_S))
    await harness.until_waiting(waiting)
    if verb == "release":
        await other.renew(releasing(7))
    elif verb == "leaving":
        await other.renew(Renewal(LONG_S, is_leaving=True))
    elif verb == "cut off":
        await other.renew(Renewal(LONG_S, is_cut_off=True))
    elif verb == "leave":
        await other.leave()
    else:
        await harness.lapse(SHORT_S + 0.001)
        await third.renew(STAY)
    await waiting


async def test_a_change_before_the_wait_ends_it_too(harness: QueueHarness) -> None:
    one = harness.leases("one")
    version = (await one.renew(JOIN)).version
    await harness.leases("two").renew(JOIN)
    await one.wait_for_change(version, wait_s=EVER_S)


async def test_a_mere_renewal_is_no_change(harness: QueueHarness) -> None:
    one, two = harness.leases("one"), harness.leases("two")
    await two.renew(claiming(1, is_new=True))
    version = (await one.renew(JOIN)).version
    assert (await two.renew(claiming(1))).version == version
    await one.wait_for_change(version, wait_s=0.01)


# --- Faults --------------------------------------------------------------------------------------


async def test_an_unreachable_server_says_so_and_works_again_later(harness: QueueHarness) -> None:
    leases = harness.leases("one")
    version = (await leases.renew(JOIN)).version
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: leases.renew(STAY),
        leases.look,
        lambda: leases.wait_for_change(version, wait_s=1),
        leases.leave,
    ]
    await harness.stop()
    for call in calls:
        with pytest.raises(QueueUnavailableError):
            await call()
    await harness.start()
    assert names(await leases.renew(STAY)) == ["one"]


async def test_a_lost_answer_is_asked_for_again(harness: QueueHarness) -> None:
    """A renewal that took effect though its answer was lost is known after the next exchange."""
    process = UUID(int=77)
    await harness.leases("one", process=process).renew(claiming(1, 2, is_new=True))
    seen = await harness.leases("one", process=process).renew(claiming(1, 2, is_new=True))
    assert owners(seen) == {1: "one", 2: "one"}
    assert seen.standing == "renewed"
