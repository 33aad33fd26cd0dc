"""Equality deletes that are turned into deletes by position, beside compactions of the same files.

A compaction that has not seen an equality delete counts on it: its files keep an older sequence
number. So either of the two is in conflict, or no row depends on the other.
"""

from __future__ import annotations

import pytest

from committer.iceberg.entry.data_file import DataFile
from committer.plan.operations.change import Base, Change, removed_delete
from tests.plan.branches import data_file, path_of
from tests.plan.worlds import World, bare_equality_delete, build_world, positions


def deleted_by_value(world: World, name: str) -> DataFile:
    delete = bare_equality_delete(name)
    world.land(world.change("row-delta", delete))
    return delete


def conversion(world: World, base: Base, *removed: DataFile, number: int, of: str = "a1") -> Change:
    """Put a position of a1 in the place of these deletes, as `convert_equality_deletes` does."""
    return world.change(
        "rewrite-files",
        positions(world, f"converted-{number}", of),
        base=base,
        removed_delete_files=frozenset(map(removed_delete, removed)),
        referenced_data_files=frozenset({path_of(of)}),
        data_sequence_number=number,
    )


def compaction(world: World, base: Base) -> Change:
    number = base.sequence_number
    return world.change(
        "rewrite-files", data_file("c"), removed=("a1",), base=base, data_sequence_number=number
    )


@pytest.mark.parametrize("version", [2, 3])
def test_a_conversion_of_rows_that_a_compaction_has_moved_conflicts(version: int) -> None:
    world = build_world(version)
    before = world.base
    delete = deleted_by_value(world, "e")
    number = world.base.sequence_number
    assert number is not None
    change = conversion(world, world.base, delete, number=number)
    assert world.code(change) is None
    world.land(compaction(world, before))
    found = world.validate(change)
    assert found is not None
    assert (found.code, found.paths) == ("exist", (path_of("a1"),))


@pytest.mark.parametrize("version", [2, 3])
def test_only_a_compaction_that_has_not_seen_the_deletes_conflicts_with_their_conversion(
    version: int,
) -> None:
    world = build_world(version)
    before = world.base
    delete = deleted_by_value(world, "e")
    after = world.base
    assert after.sequence_number is not None
    world.land(conversion(world, after, delete, number=after.sequence_number))
    assert world.code(compaction(world, before)) == "filepos"
    assert world.code(compaction(world, after)) is None


def test_a_conversion_has_the_number_of_the_newest_delete_that_it_replaces() -> None:
    """Else a compaction that has not seen this one would bring its rows back."""
    world = build_world(3)
    delete = deleted_by_value(world, "e")
    before = world.base
    vector = positions(world, "v", "a1")
    world.land(world.change("row-delta", vector))
    after = world.base
    assert after.sequence_number is not None
    change = conversion(world, after, delete, vector, number=after.sequence_number)
    world.land(change)
    assert world.code(compaction(world, before)) == "filepos"
    assert world.code(compaction(world, after)) is None
