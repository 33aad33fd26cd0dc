"""The owners of shards, and how a member gets there in bounded steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from committer.plan.scheduling.shards import MOVES_MAX, next_step, ranked
from committer.ports.leases import Assignment, Lease, Member
from committer.ports.queue import ALL_SHARDS, SHARDS

THREE = ("a", "b", "c")
GOLDEN = [["c", "a", "b"], ["c", "a", "b"], ["b", "c", "a"]]


def seen(
    members: Sequence[str], owners: Mapping[int, str], *, leaving: Sequence[str] = ()
) -> Assignment:
    return Assignment(
        tuple(Member(name, name in leaving, 30.0) for name in members),
        {shard: Lease(owner, 1) for shard, owner in owners.items()},
        "1",
    )


def first(members: Sequence[str]) -> dict[int, str]:
    return {shard: ranked(members, shard)[0] for shard in ALL_SHARDS}


def test_all_who_know_the_same_members_rank_them_alike() -> None:
    assert first("abc") == first("cab")
    assert ranked("abc", 5) == ranked("bca", 5)


def test_the_ranking_is_the_same_in_every_release() -> None:
    """Two releases that run at once would take shards from each other for ever."""
    assert [ranked(THREE, shard) for shard in (0, 1, 63)] == GOLDEN


def test_each_member_gets_a_fair_share() -> None:
    shares = Counter(first([f"frazil-{number}" for number in range(4)]).values())
    assert all(SHARDS / 8 < share < SHARDS / 2 for share in shares.values()), shares


def test_who_comes_or_goes_moves_its_own_share_and_nothing_else() -> None:
    two, three = first("ab"), first("abc")
    moved = {shard for shard in ALL_SHARDS if two[shard] != three[shard]}
    assert moved == {shard for shard in ALL_SHARDS if three[shard] == "c"}


def test_a_lone_member_claims_everything() -> None:
    step = next_step(seen("a", {}), "a")
    assert step.claim == frozenset(ALL_SHARDS)
    assert step.owned == step.give_up == frozenset()


def test_everybody_together_claims_each_shard_once() -> None:
    claims = [next_step(seen("abc", {}), name).claim for name in THREE]
    assert sorted(shard for claim in claims for shard in claim) == list(ALL_SHARDS)


def test_what_another_owns_is_not_claimed() -> None:
    owners = dict.fromkeys(ALL_SHARDS[1:], "a")
    assert next_step(seen("a", owners), "a").claim == {0}
    assert next_step(seen(("a", "b"), dict.fromkeys(ALL_SHARDS, "a")), "b").claim == frozenset()


def test_what_a_newcomer_should_have_is_given_up_a_few_at_a_time() -> None:
    owners, given = dict.fromkeys(ALL_SHARDS, "a"), 0
    wanted = {shard for shard, name in first("ab").items() if name == "b"}
    while give_up := next_step(seen("ab", owners), "a").give_up:
        assert len(give_up) <= MOVES_MAX
        assert give_up <= wanted
        owners |= dict.fromkeys(give_up, "b")
        given += len(give_up)
    assert given == len(wanted)


def test_what_is_being_handed_over_is_neither_owned_nor_given_up_again_nor_claimed() -> None:
    owners = dict.fromkeys(ALL_SHARDS, "a")
    first_step = next_step(seen("ab", owners), "a")
    busy = first_step.give_up
    step = next_step(seen("ab", owners), "a", busy=busy)
    assert not step.owned & busy
    assert step.give_up == frozenset(), "no more at a time"
    assert next_step(seen("a", {}), "a", busy=busy).claim == set(ALL_SHARDS) - busy


def test_who_leaves_gives_everything_up_at_once_and_claims_nothing() -> None:
    owners = dict.fromkeys(ALL_SHARDS[:40], "a")
    step = next_step(seen("ab", owners, leaving="a"), "a")
    assert step.give_up == set(ALL_SHARDS[:40])
    assert step.claim == frozenset()
    alone = next_step(seen("a", owners, leaving="a"), "a")
    assert alone.give_up == set(ALL_SHARDS[:40])
    assert alone.claim == frozenset()


def test_nobody_hands_a_shard_to_who_leaves() -> None:
    owners = dict.fromkeys(ALL_SHARDS, "a")
    assert next_step(seen("ab", owners, leaving="b"), "a").give_up == frozenset()


def test_while_others_may_come_back_only_what_one_had_is_claimed() -> None:
    assert next_step(seen("a", {}), "a", only=frozenset({3, 4})).claim == {3, 4}


def test_who_lost_its_name_owns_nothing() -> None:
    displaced = Assignment((Member("a", False, 30.0),), {1: Lease("a", 7)}, "1", "displaced")
    step = next_step(displaced, "a")
    assert (step.owned, step.claim, step.give_up) == (frozenset(),) * 3


def cut_off(members: Sequence[str], owners: Mapping[int, str], silent: Sequence[str]) -> Assignment:
    before = seen(members, owners)
    shown = tuple(
        Member(one.name, is_leaving=False, left_s=30.0, is_cut_off=one.name in silent)
        for one in before.members
    )
    return Assignment(shown, before.leases, "1")


def test_member_that_is_cut_off_for_long_gives_everything_up_at_once() -> None:
    owners = first("ab")
    mine = frozenset(shard for shard, name in owners.items() if name == "a")
    short = next_step(cut_off("ab", owners, "a"), "a")
    assert short.owned == mine
    assert short.give_up == short.claim == frozenset()
    long = next_step(cut_off("ab", owners, "a"), "a", must_give_up=True)
    assert long.give_up == mine
    assert long.claim == frozenset()


def test_others_claim_what_a_member_that_is_cut_off_should_have() -> None:
    owners = {shard: name for shard, name in first("ab").items() if name == "b"}
    assert len(next_step(cut_off("ab", owners, "a"), "b").claim) == SHARDS - len(owners)


def test_where_all_are_cut_off_nothing_moves_and_what_is_free_is_claimed_once() -> None:
    owners = dict.fromkeys(ALL_SHARDS, "a")
    for name in "ab":
        step = next_step(cut_off("ab", owners, "ab"), name, must_give_up=True)
        assert (step.give_up, step.claim) == (frozenset(), frozenset())
    claims = [next_step(cut_off("ab", {}, "ab"), name, must_give_up=True).claim for name in "ab"]
    assert sorted(shard for claim in claims for shard in claim) == list(ALL_SHARDS)


def test_member_that_works_again_gets_its_share_a_few_at_a_time() -> None:
    owners = dict.fromkeys(ALL_SHARDS, "b")
    assert next_step(cut_off("ab", owners, "a"), "b").give_up == frozenset()
    assert 0 < len(next_step(cut_off("ab", owners, ""), "b").give_up) <= MOVES_MAX


def test_leaving_member_gives_everything_up_though_the_others_are_cut_off() -> None:
    owners = dict.fromkeys(ALL_SHARDS, "a")
    members = (Member("a", True, 30.0), Member("b", False, 30.0, is_cut_off=True))
    leases = {shard: Lease(owner, 1) for shard, owner in owners.items()}
    step = next_step(Assignment(members, leases, "1"), "a")
    assert step.give_up == set(ALL_SHARDS)
