"""Which groups of a rewrite cannot land, and what it costs to find out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from committer.plan.commit.operation_step import landable
from committer.plan.operations.change import Base, Change, RewriteGroup
from committer.plan.operations.conflict import Conflict
from committer.plan.operations.head import Head, ObjectRange
from committer.plan.validation.validate import lost_groups, validate
from tests.plan.branches import (
    data_file,
    equality_delete,
    path_of,
    position_delete,
)
from tests.plan.worlds import World, empty_world

Beside = Callable[[World], object]


def world_of(groups: int, *, format_version: int = 2) -> World:
    """Build a branch with two files for each group, and one for none."""
    world = empty_world(format_version)
    for number in range(groups):
        carrier = "AA" if number % 2 else "BB"
        world.append(*(data_file(f"a{number}-{each}", carrier, ids=(1, 9)) for each in (0, 1)))
    world.append(data_file("other"))
    return world


def rewrite_of(world: World, base: Base, groups: int, *, rows: int = 20) -> Change:
    """Return a rewrite of the two files of each group by one."""
    named = [
        RewriteGroup(
            frozenset(path_of(f"a{number}-{each}") for each in (0, 1)),
            frozenset({path_of(f"n{number}")}),
        )
        for number in range(groups)
    ]
    added = [
        data_file(f"n{number}", "AA" if number % 2 else "BB", rows=rows + (number == 2))
        for number in range(groups)
    ]
    removed = [f"a{number}-{each}" for number in range(groups) for each in (0, 1)]
    change = world.change("rewrite-files", *added, removed=removed, base=base)
    return replace(change, groups=tuple(named))


@dataclass
class Counting:
    """All objects of a branch; each look at one is counted."""

    world: World
    looks: int = 0

    def find(self, wanted: ObjectRange) -> bytes | None:
        self.looks += 1
        return wanted.of(self.world.objects[wanted.location])


def head_of(world: World) -> Head:
    return replace(world.head, objects=Counting(world))


def delete_rows_of(name: str) -> Beside:
    return lambda world: world.land(
        world.change("row-delta", *world.vectors(f"v-{name}", **{name: [1]}))
        if world.metadata.format_version > 2
        else world.change("row-delta", position_delete(f"p-{name}", "BB", of=name))
    )


def remove(name: str) -> Beside:
    return lambda world: world.land(world.change("delete", removed=[name]))


def delete_anywhere_in(carrier: str) -> Beside:
    return lambda world: world.land(
        world.change("row-delta", position_delete(f"wide-{carrier}", carrier))
    )


def delete_equal_in(carrier: str) -> Beside:
    return lambda world: world.land(
        world.change("row-delta", equality_delete(f"eq-{carrier}", carrier, ids=(3, 4)))
    )


def expire_history(world: World) -> None:
    world.append(data_file("later"))
    world.expire()


@pytest.mark.parametrize("number", [None, 2])
@pytest.mark.parametrize(
    ("format_version", "beside", "lost"),
    [
        # Group 2 adds a row more than it removes.
        (2, (), [2]),
        (2, (delete_rows_of("a0-1"),), [0, 2]),
        (3, (delete_rows_of("a0-1"), delete_rows_of("other")), [0, 2]),
        (3, (remove("a1-0"), remove("a4-1")), [1, 2, 4]),
        (2, (delete_anywhere_in("AA"),), [1, 2, 3]),
        (2, (delete_equal_in("BB"), remove("a3-0")), None),
        (3, (expire_history, delete_rows_of("a4-0")), [2, 4]),
    ],
)
def test_a_group_is_lost_if_it_could_not_land_alone(
    number: int | None, format_version: int, beside: tuple[Beside, ...], lost: list[int] | None
) -> None:
    world = world_of(5, format_version=format_version)
    base = world.base
    for change in beside:
        change(world)
    rewrite = replace(rewrite_of(world, base, 5), data_sequence_number=number)
    if lost is None:
        # Equality deletes go on to apply to files of an older number.
        lost = [0, 2, 3, 4] if number is None else [2, 3]
    if number is not None:
        # The files of the later groups are newer than this number.
        lost = sorted({*lost, 2, 3, 4})

    found = lost_groups(rewrite, head_of(world))

    assert found == [rewrite.groups[one] for one in lost]
    alone = [one for one in rewrite.groups if validate(rewrite.only(one), head_of(world))]
    assert found == alone


def test_all_groups_are_lost_with_a_base_that_is_no_ancestor() -> None:
    world = world_of(3)
    rewrite = rewrite_of(world, Base(sequence_number=99), 3)
    assert lost_groups(rewrite, head_of(world)) == list(rewrite.groups)
    assert isinstance(landable(rewrite, head_of(world)), Conflict)


def test_what_lands_are_the_other_groups_with_their_files() -> None:
    world = world_of(4)
    base = world.base
    remove("a1-0")(world)
    rewrite = rewrite_of(world, base, 4)

    found = landable(rewrite, head_of(world))

    assert isinstance(found, Change)
    assert found.groups == (rewrite.groups[0], rewrite.groups[3])
    world.land(found)
    assert world.names() == {"a1-1", "a2-0", "a2-1", "n0", "n3", "other"}


def test_vectors_of_data_that_the_groups_add_are_lost_with_their_group_alone() -> None:
    world = world_of(4, format_version=3)
    base = world.base
    remove("a1-0")(world)
    rewrite = rewrite_of(world, base, 4, rows=19)
    vectors = world.added(*world.vectors("v", n1=[1], n3=[2]))
    named = frozenset(map(path_of, ("n1", "n3")))
    rewrite = replace(rewrite, added=(*rewrite.added, *vectors), referenced_data_files=named)

    found = landable(rewrite, head_of(world))

    assert isinstance(found, Change)
    assert found.groups == (rewrite.groups[0], rewrite.groups[2], rewrite.groups[3])
    world.land(found)
    assert world.names() == {"n0", "a1-1", "n2", "n3", "v@n3", "other"}


def test_a_hundred_groups_cost_no_more_looks_at_the_branch_than_ten() -> None:
    """A rewrite whose every group looked through the branch again held its batch for minutes."""

    def looks(groups: int) -> int:
        world = world_of(100)
        base = world.base
        remove("a1-0")(world)
        counting = Counting(world)
        head = replace(world.head, objects=counting)
        assert isinstance(landable(rewrite_of(world, base, groups), head), Change)
        return counting.looks

    assert looks(100) == looks(10)
