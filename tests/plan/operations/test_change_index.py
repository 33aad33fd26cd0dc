"""What is known of recent snapshots answers for them, also once they have expired."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from committer.iceberg.entry.data_file import ManifestEntryStatus
from committer.iceberg.metadata.snapshot import Snapshot
from committer.plan.operations.change import Base
from committer.plan.operations.change_index import ChangeIndex, SnapshotChanges, changes_after
from committer.plan.operations.head import MissingObjectsError
from committer.plan.validation.history import added_by, removed_since
from committer.plan.validation.since import Since, since_base
from tests.plan.branches import Branch, data_file, name_of
from tests.plan.worlds import World


def landed(world: Branch, index: ChangeIndex, *names: str, removed: tuple[str, ...] = ()) -> None:
    """Land a change, and note it as a commit does."""
    operation = "overwrite" if removed else "append"
    produced = world.land(world.change(operation, *map(data_file, names), removed=removed))
    snapshot = world.snapshot
    gone = tuple(
        replace(one, status=ManifestEntryStatus.DELETED, snapshot_id=snapshot.snapshot_id)
        for one in produced.removed
    )
    created = tuple(
        one.row for one in world.manifests if one.row.added_snapshot_id == snapshot.snapshot_id
    )
    changes = SnapshotChanges(snapshot.parent_snapshot_id, snapshot.sequence_number, created, gone)
    index.note({snapshot.snapshot_id: changes})


def history() -> tuple[Branch, ChangeIndex, Base]:
    world, index = World.build(), ChangeIndex()
    landed(world, index, "a", "b")
    base = world.base
    landed(world, index, "c", removed=("a",))
    landed(world, index, "d", removed=("c",))
    landed(world, index, "e")
    return world, index, base


def names(world: Branch, index: ChangeIndex, base: Base) -> list[str] | None:
    head = replace(world.head, changes=index)
    since = since_base(base, head)
    assert isinstance(since, Since)
    removed = removed_since(head, since)
    assert removed is None or all(not one.is_live for one in removed)
    return None if removed is None else sorted(name_of(one.data_file.file_path) for one in removed)


def test_nothing_is_read_of_snapshots_that_are_known() -> None:
    world, index, base = history()
    assert names(world, index, base) == ["a", "c"]
    head = replace(world.head, changes=index)
    since = since_base(base, head)
    assert isinstance(since, Since)
    (entry,) = [one for one in removed_since(head, since) or () if one.snapshot_id == 102]
    assert (entry.sequence_number, entry.file_sequence_number) == (1, 1)


def test_what_has_expired_is_known_as_far_as_the_chain_reaches() -> None:
    world, index, base = history()
    assert isinstance(world, World)
    world.expire()
    assert names(world, ChangeIndex(), base) is None
    assert names(world, index, base) == ["a", "c"]
    gap = ChangeIndex()
    gap.note({key: one for key, one in index.items() if key != 103})
    assert names(world, gap, base) is None


def test_added_files_are_read_from_the_manifests_that_are_known() -> None:
    world, index, base = history()
    head = replace(world.head, changes=index)
    since = since_base(base, head)
    assert isinstance(since, Since)
    with pytest.raises(MissingObjectsError) as caught:
        added_by(head, since.later)
    created = (row for one in since.later for row in index[one.snapshot_id].created)
    expected = {row.manifest_path for row in created if row.added_files_count}
    assert {one.location for one in caught.value.needs} == expected


def test_the_index_is_bounded_by_snapshots_and_by_files() -> None:
    index = ChangeIndex(snapshots_max=3, entries_max=4)
    for number in range(5):
        index.note({number: SnapshotChanges(number - 1, number)})
    assert list(index) == [2, 3, 4]
    _, known, _ = history()
    many = [one for one in known.values() if one.removed]
    for number, one in enumerate(many * 3, 10):
        index.note({number: one})
    assert sum(len(one.created) + len(one.removed) for one in index.values()) <= 4
    assert len(index) >= 1


class _NotWalked(ChangeIndex):
    def __iter__(self) -> Iterator[int]:
        raise AssertionError("the index was walked")


def test_a_step_is_known_beside_the_index_which_is_not_copied() -> None:
    _, known, _ = history()
    index = _NotWalked()
    index.note(known)
    first, second = SnapshotChanges(104, 5), SnapshotChanges(900, 6)
    after = changes_after(changes_after(index, 900, first), 901, second)
    assert (after[900], after[901], after[102]) == (first, second, known[102])
    assert after.get(902) is None
    assert index.get(900) is None
    assert list(changes_after(known, 900, first)) == [*known, 900]
    assert len(after) == len(known) + 2


class _Counted(dict[int, Snapshot]):
    asked = 0

    def get(self, key: int, default: Any = None) -> Any:
        self.asked += 1
        return super().get(key, default)


@pytest.mark.parametrize("has_id", [True, False])
def test_the_history_is_walked_no_farther_than_to_the_base(has_id: bool) -> None:
    world = World.build()
    for number in range(20):
        world.append(data_file(f"old{number}"))
    base = world.base if has_id else replace(world.base, snapshot_id=None)
    for name in ("new1", "new2"):
        world.append(data_file(name))
    index = _Counted(world.metadata.snapshots_by_id)
    since = since_base(
        base, replace(world.head, metadata=replace(world.metadata).with_index(index))
    )
    assert isinstance(since, Since)
    assert (len(since.later), since.is_whole) == (2, True)
    assert 3 <= index.asked <= 5
