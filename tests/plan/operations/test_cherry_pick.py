"""Picks of staged snapshots: which moves the branch, which is made again, which is refused."""

from __future__ import annotations

import pytest

from committer.iceberg.manifest.manifest import iter_entries
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.updates.metadata_update import RemoveSnapshotRef, RemoveSnapshots
from committer.plan.ledger.state import ListedManifest
from committer.plan.operations.cherry_pick import MoveHead, Pick, plan_pick
from committer.plan.operations.conflict import Conflict, ConflictCode
from committer.plan.operations.head import Head, MissingObjectsError, ObjectRange, Objects
from committer.request.needs import Needs
from tests.plan.histories import History

REPLACEMENT = {"operation": "overwrite", "replace-partitions": "true"}


def head_of(table: History, branch: str = "main") -> Head:
    """Return the head with nothing but its manifest list read."""
    snapshot = table.metadata.branch_head(branch)
    state = table.state
    rows: tuple[ListedManifest, ...] = ()
    if snapshot is not None and snapshot.manifest_list is not None:
        content = table.objects[snapshot.manifest_list]
        rows = state.with_head(snapshot.snapshot_id, content).heads[snapshot.snapshot_id]
    return Head(table.metadata, branch, snapshot, rows, Objects())


def pick(
    table: History,
    source: Snapshot | None = None,
    *,
    wap_id: str | None = None,
    branch: str = "main",
) -> tuple[MoveHead | Pick | Conflict, int]:
    """Return the plan, and in how many rounds it asked for objects."""
    needs = Needs(source_snapshot_id=source.snapshot_id if source else None, wap_id=wap_id)
    at_hand: dict[ObjectRange, bytes] = {}
    rounds = 0
    while True:
        head = head_of(table, branch)
        head = Head(head.metadata, branch, head.snapshot, head.manifests, Objects(at_hand))
        try:
            found = plan_pick(needs, head)
        except MissingObjectsError as missing:
            rounds += 1
            at_hand |= {one: table.objects[one.location] for one in missing.needs}
            continue
        return found, rounds


def conflict(table: History, source: Snapshot | None = None, **named: str) -> Conflict:
    found, _ = pick(table, source, **named)
    assert isinstance(found, Conflict), found
    return found


def added_paths(found: Pick) -> list[str]:
    return [path for manifest in found.change.added for path in manifest.walked.paths]


def test_a_staged_child_of_the_head_becomes_the_head_and_nothing_is_read() -> None:
    table = History.empty()
    table.commit(added=["a"])
    staged = table.commit(added=["b"], branch=None, summary={"wap.id": "w"})
    assert pick(table, staged) == (MoveHead(staged), 0)
    assert pick(table, wap_id="w") == (MoveHead(staged), 0)
    first = History.empty()
    alone = first.commit(added=["a"], branch=None)
    assert pick(first, alone) == (MoveHead(alone), 0)


def test_a_staged_append_is_made_again_on_a_head_that_has_moved() -> None:
    table = History.empty(format_version=3)
    table.commit(added=["a"])
    staged = table.commit(added=["b", "c"], branch=None, summary={"wap.id": "w"})
    table.commit(added=["d"])
    found, rounds = pick(table, wap_id="w")
    assert isinstance(found, Pick)
    assert rounds == 3  # its list, its own manifest alone, then those of the head
    assert added_paths(found) == ["b", "c"]
    assert found.label == "append"
    assert found.change.removed_data_files == frozenset()
    assert found.summary == {
        "source-snapshot-id": str(staged.snapshot_id),
        "published-wap-id": "w",
    }
    entries = [
        entry for manifest in found.change.added for entry in iter_entries(manifest.part.content)
    ]
    # Numbers and row ids are the new snapshot's.
    assert {
        (one.snapshot_id, one.sequence_number, one.data_file.first_row_id) for one in entries
    } == {(None, None, None)}


def test_files_that_a_staged_append_merged_from_its_parent_are_not_added_again() -> None:
    table = History.empty()
    for name in "ab":
        table.commit(added=[name])
    staged = table.commit(added=["s"], branch=None, merged=2)
    table.commit(added=["d"])
    found, _ = pick(table, staged)
    assert isinstance(found, Pick)
    assert added_paths(found) == ["s"]


@pytest.mark.parametrize("label", [{"operation": "append"}, REPLACEMENT])
def test_an_append_that_adds_deletes_is_picked_from_the_head_only(label: dict[str, str]) -> None:
    """Iceberg Java trusts the label: it adds the data files, and the deletes are lost."""
    table = History.empty(format_version=3)
    table.commit(added=["a"])
    staged = table.commit(added=["v"], vectors=True, branch=None, summary=label)
    assert pick(table, staged)[0] == MoveHead(staged)
    table.commit(added=["c"])
    found = conflict(table, staged)
    assert found.code is ConflictCode.INCOMPATIBLE
    assert "it adds or removes delete files" in found.message


def test_an_append_that_removes_deletes_is_picked_from_the_head_only() -> None:
    """Iceberg Java labels a row delta `append` that adds data and removes deletes, and picks its
    data files: the rows that it has brought back stay deleted."""
    table = History.empty(format_version=3)
    table.commit(added=["a"])
    table.commit(added=["v"], vectors=True)
    staged = table.commit(added=["b"], deleted=["v"], branch=None)
    table.commit(added=["c"])
    found = conflict(table, staged)
    assert found.code is ConflictCode.INCOMPATIBLE
    assert "it adds or removes delete files" in found.message


def test_an_append_that_drops_deletes_of_no_data_is_made_again() -> None:
    table = History.empty(format_version=3)
    table.commit(added=["v"], vectors=True)
    table.commit(added=["a"])
    staged = table.commit(added=["b"], deleted=["v"], branch=None)
    table.commit(added=["c"])
    found, _ = pick(table, staged)
    assert isinstance(found, Pick)
    assert added_paths(found) == ["b"]


def test_a_replacement_removes_the_deletes_of_its_data_again() -> None:
    table = History.empty(format_version=3)
    table.commit(added=["a"])
    table.commit(added=["v"], vectors=True)
    staged = table.commit(added=["b"], deleted=["a", "v"], branch=None, summary=REPLACEMENT)
    table.commit(deleted=["v"], summary={"operation": "delete"})
    found, _ = pick(table, staged)
    assert isinstance(found, Pick)
    assert added_paths(found) == ["b"]


def test_a_snapshot_is_picked_once() -> None:
    table = History.empty()
    first = table.commit(added=["a"])
    staged = table.commit(added=["b"], branch=None)
    again = table.commit(added=["b2"], summary={"source-snapshot-id": str(staged.snapshot_id)})
    for source, by in ((first, first), (staged, again)):
        found = conflict(table, source)
        assert (found.code, found.snapshot_id) == (ConflictCode.PICKED, by.snapshot_id)
    assert "was picked before" in conflict(table, staged).message
    assert "is in the history of branch `main`" in conflict(table, first).message


@pytest.mark.parametrize("format_version", [1, 2])
def test_a_snapshot_is_not_picked_where_the_pick_of_before_may_have_expired(
    format_version: int,
) -> None:
    table = History.empty(format_version=format_version)
    table.commit(added=["a"])
    staged = table.commit(added=["b"], branch=None, summary={"wap.id": "w"})
    table.commit(added=["c"])
    again = table.commit(added=["b"], summary={"published-wap-id": "w"})
    assert conflict(table, staged).code is ConflictCode.PICKED
    table.commit(added=["d"])
    table.apply(RemoveSnapshots((again.snapshot_id,)))
    found = conflict(table, staged)
    assert found.code is ConflictCode.HISTORY
    assert "may have published it" in found.message


def test_a_snapshot_is_picked_once_all_that_came_since_it_was_staged_is_known() -> None:
    table = History.empty()
    first = table.commit(added=["a"])
    table.commit(added=["b"])
    staged = table.commit(added=["s"], branch=None)
    table.commit(added=["c"])
    table.commit(added=["d"])
    table.apply(RemoveSnapshots((first.snapshot_id,)))
    found, _ = pick(table, staged)
    assert isinstance(found, Pick)
    alone = History.empty()
    staged = alone.commit(added=["s"], branch=None)
    alone.commit(added=["a"])
    found, _ = pick(alone, staged)
    assert isinstance(found, Pick)


def test_a_file_that_is_live_on_the_branch_is_not_added_again() -> None:
    table = History.empty()
    first = table.commit(added=["a"])
    table.branch("audit", first.snapshot_id)
    table.commit(added=["b", "old"])
    by = table.commit(added=["old"], branch="audit", parent=first.snapshot_id)
    found = conflict(table, by)
    assert (found.code, found.paths) == (ConflictCode.ALREADY_LIVE, ("old",))
    head = table.metadata.current_snapshot
    assert head is not None and found.snapshot_id == head.snapshot_id
    assert f"snapshot {by.snapshot_id} cannot be picked: 1 of its files is live" in found.message
    table.commit(deleted=["old"], summary={"operation": "delete"})
    again, _ = pick(table, by)
    assert isinstance(again, Pick)
    assert added_paths(again) == ["old"]


def test_a_replacement_of_a_file_by_itself_is_made_again() -> None:
    table = History.empty()
    table.commit(added=["a", "b"])
    staged = table.commit(added=["a"], deleted=["a"], branch=None, summary=REPLACEMENT)
    table.commit(deleted=["b"], summary={"operation": "delete"})
    found, _ = pick(table, staged)
    assert isinstance(found, Pick)
    assert added_paths(found) == ["a"]


def made_again(table: History, source: Snapshot, name: str, branch: str = "main") -> Snapshot:
    """Land what the pick of a snapshot plans."""
    found, _ = pick(table, source, branch=branch)
    assert isinstance(found, Pick), found
    return table.commit(added=[name], branch=branch, summary=found.summary)


def test_a_pick_of_a_pick_is_one_of_the_first_snapshot() -> None:
    table = History.empty()
    start = table.commit(added=["a"]).snapshot_id
    for name in ("one", "two"):
        table.branch(name, start)
    table.commit(added=["b"], branch="two")
    first = table.commit(added=["x"], branch="one")
    second = made_again(table, first, "x", "two")
    table.commit(added=["c"])
    third = made_again(table, second, "x")
    # Only its name tells, once a compaction has rewritten its file.
    table.commit(added=["whole"], deleted=["x"], summary={"operation": "replace"})
    found = conflict(table, first)
    assert (found.code, found.snapshot_id) == (ConflictCode.PICKED, third.snapshot_id)
    assert f"snapshot {first.snapshot_id} was picked before, as snapshot" in found.message
    found = conflict(table, second, branch="one")
    assert (found.code, found.snapshot_id) == (ConflictCode.PICKED, first.snapshot_id)
    assert found.message == (
        f"snapshot {first.snapshot_id}, picked as snapshot {second.snapshot_id}, is in the history"
        " of branch `one`"
    )


def test_snapshots_that_name_one_another_as_their_source_end_the_search() -> None:
    table = History.empty()
    table.commit(added=["a"])
    one = table.commit(added=["b"], branch=None, summary={"source-snapshot-id": "3"})
    two = table.commit(added=["c"], branch=None, summary={"source-snapshot-id": "2"})
    assert (one.snapshot_id, two.snapshot_id) == (2, 3)
    table.commit(added=["d"])
    assert isinstance(pick(table, one)[0], Pick)


def test_the_pick_of_what_has_published_a_wap_id_publishes_it() -> None:
    table = History.empty()
    start = table.commit(added=["a"]).snapshot_id
    table.branch("audit", start)
    staged = table.commit(added=["s"], branch=None, summary={"wap.id": "w"})
    table.commit(added=["b"], branch="audit")
    on_branch = made_again(table, staged, "s", "audit")
    table.commit(added=["c"])
    made = made_again(table, on_branch, "s")
    assert made.summary is not None and made.summary["published-wap-id"] == "w"
    table.commit(added=["whole"], deleted=["s"], summary={"operation": "replace"})
    again = table.commit(added=["s2"], branch=None, summary={"wap.id": "w"})
    for source in (staged, again, on_branch):
        found = conflict(table, source)
        assert (found.code, found.snapshot_id) == (ConflictCode.PICKED, made.snapshot_id)
    # Its source has expired.
    table.apply(RemoveSnapshotRef("audit"), RemoveSnapshots((on_branch.snapshot_id,)))
    found = conflict(table, staged)
    assert "`wap.id` `w` was published before" in found.message


def test_a_wap_id_is_published_once_whatever_snapshot_has_it() -> None:
    for key in ("wap.id", "published-wap-id"):
        table = History.empty()
        published = table.commit(added=["a"], summary={key: "w"})
        staged = table.commit(added=["b"], branch=None, summary={"wap.id": "w"})
        found = conflict(table, staged)
        assert (found.code, found.snapshot_id) == (ConflictCode.PICKED, published.snapshot_id)


def test_a_wap_id_of_several_snapshots_is_not_offered_once_one_of_them_is_published() -> None:
    table = History.empty()
    table.commit(added=["a"])
    table.commit(added=["s"], branch=None, summary={"wap.id": "dup"})
    published = table.commit(added=["t"], summary={"wap.id": "dup"})
    found = conflict(table, wap_id="dup")
    assert (found.code, found.snapshot_id) == (ConflictCode.PICKED, published.snapshot_id)
    assert found.message == (
        f"`wap.id` `dup` was published before, in snapshot {published.snapshot_id}"
    )


def test_what_is_not_there_or_not_one_is_refused() -> None:
    table = History.empty()
    table.commit(added=["a"])
    gone = table.commit(added=["b"], branch=None)
    table.commit(added=["c"])
    table.apply(RemoveSnapshots((gone.snapshot_id,)))
    assert "found none: it has expired, or never was" in conflict(table, gone).message
    assert "no snapshot has `wap.id` `w`" in conflict(table, wap_id="w").message
    one = table.commit(added=["d"], branch=None, summary={"wap.id": "w"})
    two = table.commit(added=["e"], branch=None, summary={"wap.id": "w"})
    found = conflict(table, wap_id="w")
    assert found.code is ConflictCode.INCOMPATIBLE
    assert f"pick one of {one.snapshot_id}, {two.snapshot_id}" in found.message


def test_a_staged_delete_or_overwrite_is_picked_from_the_head_only() -> None:
    for operation in ("delete", "overwrite", "replace"):
        table = History.empty()
        table.commit(added=["a"])
        staged = table.commit(deleted=["a"], branch=None, summary={"operation": operation})
        assert pick(table, staged)[0] == MoveHead(staged)
        table.commit(added=["c"])
        found = conflict(table, staged)
        assert found.code is ConflictCode.INCOMPATIBLE
        assert "neither an append nor a replacement of partitions" in found.message


def test_a_staged_replacement_of_partitions_is_made_again_while_nothing_was_added_to_them() -> None:
    table = History.empty()
    table.commit(added=["a", "b"])
    staged = table.commit(added=["s"], deleted=["a"], branch=None, summary=REPLACEMENT)
    moved = table.commit(deleted=["b"])
    found, rounds = pick(table, staged)
    assert isinstance(found, Pick)
    assert rounds == 3  # its list, its manifests, those of the head since its parent
    assert found.label == "overwrite"
    assert added_paths(found) == ["s"]
    assert found.change.removed_data_files == frozenset({"a"})
    added = table.commit(added=["d"], parent=moved.snapshot_id)
    refused = conflict(table, staged)
    assert (refused.code, refused.snapshot_id) == (ConflictCode.ADDED, added.snapshot_id)
    assert refused.paths == ("d",)


def test_a_file_that_was_added_since_and_merged_still_conflicts_with_a_replacement() -> None:
    table = History.empty()
    table.commit(added=["a"])
    staged = table.commit(added=["s"], deleted=["a"], branch=None, summary=REPLACEMENT)
    table.commit(added=["d"])
    table.commit(added=["e"])
    table.commit(merged=3)
    assert set(conflict(table, staged).paths) == {"d", "e"}


def test_a_staged_replacement_whose_parent_is_no_ancestor_is_refused() -> None:
    table = History.empty()
    first = table.commit(added=["a"])
    table.branch("other", first.snapshot_id)
    apart = table.commit(added=["o"], branch="other")
    staged = table.commit(added=["s"], branch=None, parent=apart.snapshot_id, summary=REPLACEMENT)
    table.commit(added=["b"])
    assert conflict(table, staged).code is ConflictCode.NO_ANCESTOR
    assert pick(table, staged, branch="other")[0] == MoveHead(staged)


def test_a_staged_replacement_in_an_empty_table_conflicts_with_all_that_came_since() -> None:
    table = History.empty()
    staged = table.commit(added=["s"], branch=None, summary=REPLACEMENT)
    table.commit(added=["a"])
    assert conflict(table, staged).code is ConflictCode.ADDED


def test_in_format_version_1_what_came_since_is_told_by_its_snapshot() -> None:
    table = History.empty(format_version=1)
    table.commit(added=["a"])
    staged = table.commit(added=["s"], deleted=["a"], branch=None, summary=REPLACEMENT)
    table.commit(added=["d"])
    assert conflict(table, staged).code is ConflictCode.ADDED
