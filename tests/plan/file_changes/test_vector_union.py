"""A data file has one deletion vector, with the positions that anybody has deleted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.iceberg.entry.data_file import DataFile
from committer.plan.operations.change import Base, Change
from committer.plan.operations.conflict import Conflict, ConflictCode
from tests.plan.branches import (
    Branch,
    data_file,
    path_of,
    position_delete,
)


def branch_of(*names: str) -> Branch:
    branch = Branch.build(3)
    branch.append(*map(data_file, names))
    return branch


def delta(branch: Branch, name: str, base: Base, **positions: list[int]) -> Change:
    """Build a row delta of vectors, whose client has read `base`. It names no vector to remove."""
    return branch.change("row-delta", *branch.vectors(name, **positions), base=base)


def conflict_of(branch: Branch, *changes: Change) -> Conflict:
    found = branch.plan(*changes)
    assert isinstance(found, Conflict)
    return found


def test_the_first_vector_of_a_file_is_listed_as_it_is_and_not_read() -> None:
    branch = branch_of("a1", "a2")

    produced = branch.land(delta(branch, "v1", branch.base, a1=[1, 2]))

    assert branch.names() == {"a1", "a2", "v1@a1"}
    assert produced.label == "delete"
    assert [one.location for one in produced.objects if "puffin" in one.location] == []
    assert branch.reads == []
    assert branch.summary["added-dvs"] == "1"
    assert branch.summary["added-position-deletes"] == "2"
    assert "added-position-delete-files" not in branch.summary


def test_a_vector_that_replaces_the_one_its_client_read_is_taken_as_it_is() -> None:
    branch = branch_of("a1")
    branch.land(delta(branch, "v1", branch.base, a1=[1]))
    change = delta(branch, "v2", branch.base, a1=[1, 2])
    change = replace(change, removed_delete_files=frozenset({branch.identity("v1@a1")}))

    branch.land(change)

    assert branch.names() == {"a1", "v2@a1"}
    assert branch.positions("a1") == [1, 2]
    assert all(one.length is None for one in branch.reads)  # no vector
    assert branch.summary["removed-dvs"] == "1"
    assert branch.summary["removed-position-deletes"] == "1"
    assert branch.summary["total-position-deletes"] == "2"


def test_vectors_of_disjoint_rows_are_united() -> None:
    """Iceberg Java refuses the second one."""
    branch = branch_of("a1", "a2")
    base = branch.base
    branch.land(delta(branch, "v1", base, a1=[1], a2=[7]))

    branch.land(delta(branch, "v2", base, a1=[5]))

    assert branch.positions("a1") == [1, 5]
    assert branch.positions("a2") == [7]
    assert branch.names() == {"a1", "a2", "v1@a2"} | {
        name for name in branch.names() if name.endswith("@a1")
    }
    number = branch.snapshot.sequence_number
    assert {n for name, n in branch.numbers().items() if name.endswith("@a1")} == {number}
    assert branch.summary["added-dvs"] == branch.summary["removed-dvs"] == "1"
    assert branch.summary["added-position-deletes"] == "2"


def test_the_removal_of_a_vector_that_was_replaced_meanwhile_is_pointed_to_the_new_one() -> None:
    branch = branch_of("a1")
    branch.land(delta(branch, "v1", branch.base, a1=[1]))
    base, read = branch.base, frozenset({branch.identity("v1@a1")})
    ours = replace(delta(branch, "v3", base, a1=[1, 3]), removed_delete_files=read)
    theirs = replace(delta(branch, "v2", base, a1=[1, 2]), removed_delete_files=read)
    branch.land(theirs)

    branch.land(ours)

    assert branch.positions("a1") == [1, 2, 3]


def test_a_vector_whose_removed_one_was_of_another_file_is_missing() -> None:
    """The entry that says it was removed also says of which data file it was."""
    branch = branch_of("a1", "a2")
    branch.land(delta(branch, "v1", branch.base, a2=[1]))
    base, of_a2 = branch.base, branch.identity("v1@a2")
    branch.land(
        replace(
            delta(branch, "v2", base, a1=[4], a2=[1, 2]), removed_delete_files=frozenset({of_a2})
        )
    )
    change = replace(delta(branch, "v3", base, a1=[5]), removed_delete_files=frozenset({of_a2}))

    conflict = conflict_of(branch, change)

    assert conflict.code is ConflictCode.MISSING
    assert conflict.paths == (of_a2.file_path,)


def test_a_removed_vector_is_not_read_and_may_be_gone_where_only_rows_are_deleted() -> None:
    branch = branch_of("a1")
    branch.land(delta(branch, "v1", branch.base, a1=[1]))
    base, read = branch.base, frozenset({branch.identity("v1@a1")})
    branch.land(replace(delta(branch, "v2", base, a1=[1, 2]), removed_delete_files=read))
    (gone,) = {one.file_path for one in read}
    del branch.objects[gone]

    branch.land(replace(delta(branch, "v3", base, a1=[1, 3]), removed_delete_files=read))

    assert branch.positions("a1") == [1, 2, 3]


def test_an_update_beside_a_vector_that_is_gone_conflicts() -> None:
    branch = branch_of("a1")
    branch.land(delta(branch, "v1", branch.base, a1=[1]))
    base, read = branch.base, frozenset({branch.identity("v1@a1")})
    branch.land(replace(delta(branch, "v2", base, a1=[1, 2]), removed_delete_files=read))
    (gone,) = {one.file_path for one in read}
    branch.objects[gone] = b""  # as the planner answers

    change = updates(branch, "v3", base, data_file("n1"), a1=[1, 3])

    conflict = conflict_of(branch, replace(change, removed_delete_files=read))
    assert conflict.code is ConflictCode.SECOND_VECTOR


def test_a_vector_that_is_none_conflicts_alone() -> None:
    """Whether its client has damaged it or another writer: other requests land."""
    branch = branch_of("a1", "a2")
    branch.land(delta(branch, "v1", Base(), a1=[1]))
    damaged = delta(branch, "v2", branch.base, a1=[2])
    (path,) = (one for one in branch.objects if one.endswith("v2.puffin"))
    branch.objects[path] = branch.objects[path][:8] + b"not a vector at all: these are no bitmaps"

    assert conflict_of(branch, damaged).code is ConflictCode.SECOND_VECTOR
    branch.land(delta(branch, "v3", branch.base, a1=[3], a2=[4]))


def test_a_vector_that_claims_to_be_large_is_not_read() -> None:
    branch = branch_of("a1")
    branch.land(delta(branch, "v1", Base(), a1=[1]))
    (vector,) = branch.vectors("v2", a1=[2])
    size = 65 * 1024 * 1024
    vector = replace(vector, content_size_in_bytes=size, file_size_in_bytes=2 * size)

    conflict = conflict_of(branch, branch.change("row-delta", vector))

    assert conflict.code is ConflictCode.SECOND_VECTOR
    assert not any(one.location.endswith(".puffin") for one in branch.reads)


def test_a_vector_that_lacks_the_older_one_is_united_with_it_at_any_base() -> None:
    """In Iceberg Java, a start later than the old vector lets a second one land (unreadable)."""
    branch = branch_of("a1")
    branch.land(delta(branch, "v1", branch.base, a1=[1]))

    branch.land(delta(branch, "v2", branch.base, a1=[2]))

    assert branch.positions("a1") == [1, 2]


def test_a_vector_without_a_base_is_united_with_the_one_that_is_there() -> None:
    branch = branch_of("a1")
    branch.land(delta(branch, "v1", Base(), a1=[1]))

    branch.land(delta(branch, "v2", Base(), a1=[1, 2]))

    assert branch.names() == {"a1", "v2@a1"}  # it has all positions: no new file is written
    assert branch.positions("a1") == [1, 2]


# --- Changes that disagree -----------------------------------------------------------------------


def updates(branch: Branch, name: str, base: Base, new: DataFile, **positions: list[int]) -> Change:
    """Build an update: the deleted rows come again in a new file."""
    return branch.change(
        "row-delta", new, *branch.vectors(name, **positions), base=base, updates_rows=True
    )


def test_two_deletes_of_one_row_are_united() -> None:
    branch = branch_of("a1")
    base = branch.base
    branch.land(delta(branch, "v1", base, a1=[1, 2]))

    branch.land(delta(branch, "v2", base, a1=[2, 3]))

    assert branch.positions("a1") == [1, 2, 3]


def test_an_update_of_a_row_that_was_deleted_meanwhile_conflicts() -> None:
    branch = branch_of("a1")
    base = branch.base
    branch.land(delta(branch, "v1", base, a1=[1, 2]))

    conflict = conflict_of(branch, updates(branch, "v2", base, data_file("n1"), a1=[2]))

    assert conflict.code is ConflictCode.SECOND_VECTOR
    assert conflict.paths == (path_of("a1"),)
    assert conflict.snapshot_id == branch.snapshot.snapshot_id


def test_a_delete_of_a_row_that_was_updated_meanwhile_conflicts() -> None:
    branch = branch_of("a1")
    base = branch.base
    branch.land(updates(branch, "v1", base, data_file("n1"), a1=[2]))
    branch.append(data_file("n2"))

    assert conflict_of(branch, delta(branch, "v2", base, a1=[2])).code is (
        ConflictCode.SECOND_VECTOR
    )
    branch.land(delta(branch, "v3", base, a1=[3]))
    assert branch.positions("a1") == [2, 3]


def test_updates_of_disjoint_rows_are_united_also_behind_a_vector_that_both_have_read() -> None:
    branch = branch_of("a1")
    branch.land(delta(branch, "v1", branch.base, a1=[1]))
    base, read = branch.base, frozenset({branch.identity("v1@a1")})
    theirs = updates(branch, "v2", base, data_file("n1"), a1=[1, 2])
    ours = updates(branch, "v3", base, data_file("n2"), a1=[1, 3])
    branch.land(replace(theirs, removed_delete_files=read))

    branch.land(replace(ours, removed_delete_files=read))

    assert branch.positions("a1") == [1, 2, 3]
    assert {"n1", "n2"} <= branch.names()


def test_an_update_is_compared_with_what_has_happened_since_its_base_only() -> None:
    branch = branch_of("a1")
    branch.land(delta(branch, "v1", branch.base, a1=[1]))

    branch.land(updates(branch, "v2", branch.base, data_file("n1"), a1=[1, 2]))

    assert branch.positions("a1") == [1, 2]


# --- One step of several changes -----------------------------------------------------------------


def test_the_vectors_of_several_changes_of_a_step_are_one_for_each_file() -> None:
    branch = branch_of("a1", "a2", "a3")
    base = branch.base
    branch.land(delta(branch, "v0", base, a1=[9]))

    produced = branch.land(
        delta(branch, "v1", base, a1=[1], a2=[1]),
        delta(branch, "v2", base, a1=[2], a2=[2]),
        delta(branch, "v3", base, a3=[3]),
    )

    assert branch.positions("a1") == [1, 2, 9]
    assert branch.positions("a2") == [1, 2]
    assert branch.positions("a3") == [3]
    written = [one for one in produced.objects if one.location.endswith(".puffin")]
    assert len(written) == 1
    assert branch.summary["added-dvs"] == "3"


# --- Position delete files of a table that was upgraded ------------------------------------------


def upgraded() -> tuple[Branch, Base]:
    """Build a table of version 3 with position deletes; return the base before them."""
    branch = Branch.build(2)
    branch.append(data_file("a1"), data_file("a2"))
    base = branch.base
    branch.land(
        branch.change("row-delta", position_delete("p1", of="a1"), position_delete("shared"))
    )
    branch.upgrade()
    return branch, base


def test_a_vector_takes_the_place_of_the_position_deletes_that_its_client_has_read() -> None:
    branch, _ = upgraded()

    branch.land(delta(branch, "v1", branch.base, a1=[0, 1]))

    assert branch.names() == {"a1", "a2", "v1@a1", "shared"}


def test_a_vector_that_may_lack_position_deletes_conflicts() -> None:
    branch, base = upgraded()

    conflict = conflict_of(branch, delta(branch, "v1", base, a1=[0, 1]))
    assert conflict.code is ConflictCode.SECOND_VECTOR
    conflict = conflict_of(branch, delta(branch, "v1", base, a2=[0, 1]))
    assert conflict.code is ConflictCode.SECOND_VECTOR
    conflict = conflict_of(branch, delta(branch, "v1", Base(), a2=[0, 1]))
    assert conflict.code is ConflictCode.SECOND_VECTOR


def test_a_vector_of_a_file_of_its_own_change_lacks_nothing() -> None:
    branch, _ = upgraded()
    vectors = branch.vectors("v1", n1=[0])

    branch.land(branch.change("row-delta", data_file("n1"), *vectors, base=Base()))

    assert branch.positions("n1") == [0]


def test_position_deletes_rewritten_as_vectors_meet_a_vector_that_was_added_meanwhile() -> None:
    """In Iceberg Java the rewrite lands beside it, and scans fail."""
    branch, _ = upgraded()
    base, p1 = branch.base, branch.identity("p1")
    branch.land(delta(branch, "v1", base, a1=[0, 5]))
    rewrite = branch.change(
        "rewrite-files", *branch.vectors("v2", a1=[0]), base=base, removed_delete_files={p1}
    )

    branch.land(rewrite)

    assert branch.positions("a1") == [0, 5]
    assert "p1" not in branch.names()


@pytest.mark.parametrize("names_it", [True, False])
def test_a_rewrite_of_a_vector_is_united_with_one_that_was_added_meanwhile(names_it: bool) -> None:
    branch = branch_of("a1", "a2")
    branch.land(delta(branch, "v1", branch.base, a1=[0]))
    base, v1 = branch.base, branch.identity("v1@a1")
    removed = frozenset({v1} if names_it else ())
    branch.land(replace(delta(branch, "v2", base, a1=[0, 5]), removed_delete_files=frozenset({v1})))
    rewrite = branch.change("rewrite-files", *branch.vectors("v3", a1=[0]), base=base)

    branch.land(replace(rewrite, removed_delete_files=removed))

    assert branch.positions("a1") == [0, 5]
