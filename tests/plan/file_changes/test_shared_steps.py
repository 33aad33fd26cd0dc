"""Several changes in one step, and rewrites of which some groups are lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.plan.operations.change import Change, RewriteGroup
from committer.plan.operations.conflict import Conflict, ConflictCode
from tests.plan.branches import Branch, data_file, path_of, position_delete


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_disjoint_rewrites_share_a_step_each_with_its_own_number(format_version: int) -> None:
    branch = Branch.build(format_version)
    branch.append(data_file("a1"))
    branch.append(data_file("a2"), data_file("a3"))
    first = branch.change("rewrite-files", data_file("n1"), removed=["a1"])
    second = branch.change("rewrite-files", data_file("n2"), removed=["a2"])

    branch.land(
        replace(first, data_sequence_number=1),
        replace(second, data_sequence_number=2),
        branch.change("rewrite-files", data_file("n3"), removed=["a3"]),
    )

    numbers = (
        {"n1": 1, "n2": 2, "n3": 3} if format_version > 1 else dict.fromkeys(branch.names(), 0)
    )
    assert branch.numbers() == numbers
    assert branch.names() == {"n1", "n2", "n3"}
    assert branch.summary["operation"] == "replace"
    assert branch.summary["deleted-data-files"] == branch.summary["added-data-files"] == "3"


def test_position_deletes_of_several_changes_share_a_step() -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1"), data_file("b1", "BB"))

    branch.land(
        branch.change("row-delta", position_delete("p1", of="a1")),
        branch.change("row-delta", position_delete("p2", "BB", of="b1")),
    )

    assert branch.numbers() == {"a1": 1, "b1": 1, "p1": 2, "p2": 2}
    assert branch.summary["operation"] == "delete"
    assert branch.summary["added-position-delete-files"] == "2"


def test_two_changes_of_a_step_that_remove_one_file_conflict() -> None:
    """Their added files hold the same rows."""
    branch = Branch.build(2)
    branch.append(data_file("a1"))

    found = branch.plan(
        branch.change("rewrite-files", data_file("n1"), removed=["a1"]),
        branch.change("rewrite-files", data_file("n2"), removed=["a1"]),
    )

    assert isinstance(found, Conflict)
    assert found.code is ConflictCode.MISSING
    assert found.paths == (path_of("a1"),)


def test_two_changes_of_a_step_that_rewrite_one_delete_file_conflict() -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1"))
    branch.land(branch.change("row-delta", position_delete("p1", of="a1")))
    named = frozenset({branch.identity("p1")})

    def rewrite(name: str) -> Change:
        change = branch.change("rewrite-files", position_delete(name, of="a1"))
        return replace(change, removed_delete_files=named)

    found = branch.plan(rewrite("p2"), rewrite("p3"))

    assert isinstance(found, Conflict)
    assert found.paths == (path_of("p1"),)


def test_two_changes_of_a_step_may_replace_one_vector() -> None:
    branch = Branch.build(3)
    branch.append(data_file("a1"))
    branch.land(branch.change("row-delta", *branch.vectors("v1", a1=[1])))
    named, base = frozenset({branch.identity("v1@a1")}), branch.base

    def delta(name: str, *positions: int) -> Change:
        change = branch.change("row-delta", *branch.vectors(name, a1=positions), base=base)
        return replace(change, removed_delete_files=named)

    branch.land(delta("v2", 1, 2), delta("v3", 1, 3))

    assert branch.positions("a1") == [1, 2, 3]


def test_an_update_in_a_step_does_not_share_rows_with_another_change() -> None:
    branch = Branch.build(3)
    branch.append(data_file("a1"))
    base = branch.base
    update = branch.change(
        "row-delta",
        data_file("n1"),
        *branch.vectors("v1", a1=[2]),
        base=base,
        updates_rows=True,
    )

    found = branch.plan(
        update, branch.change("row-delta", *branch.vectors("v2", a1=[2]), base=base)
    )

    assert isinstance(found, Conflict)
    assert found.code is ConflictCode.SECOND_VECTOR


@pytest.mark.parametrize("number", [None, 1])
def test_a_rewrite_without_a_lost_group_adds_the_files_of_the_others_only(
    number: int | None,
) -> None:
    branch = Branch.build(3)
    branch.append(data_file("a1"), data_file("a2"), data_file("a3"))
    groups = tuple(
        RewriteGroup(frozenset({path_of(old)}), frozenset({path_of(new)}))
        for old, new in (("a1", "n1"), ("a2", "n2"))
    )
    rewrite = branch.change(
        "rewrite-files", data_file("n1"), data_file("n2"), removed=["a1", "a2"], groups=groups
    )
    rewrite = replace(rewrite, data_sequence_number=number)

    branch.land(rewrite.without_groups(groups[:1]))

    assert branch.names() == {"a1", "n2", "a3"}
    assert branch.summary["added-data-files"] == branch.summary["deleted-data-files"] == "1"


def test_delete_files_of_data_of_a_lost_group_are_left_out_with_it() -> None:
    branch = Branch.build(3)
    branch.append(data_file("a1"), data_file("a2"))
    groups = tuple(
        RewriteGroup(frozenset({path_of(old)}), frozenset({path_of(new)}))
        for old, new in (("a1", "n1"), ("a2", "n2"))
    )
    files = (data_file("n1"), data_file("n2"), *branch.vectors("v", n1=[1], n2=[2]))
    rewrite = branch.change("rewrite-files", *files, removed=["a1", "a2"], groups=groups)

    branch.land(rewrite.without_groups(groups[:1]))

    assert branch.names() == {"a1", "n2", "v@n2"}
    assert branch.summary["added-dvs"] == "1"


def test_a_rewrite_that_has_lost_all_of_its_groups_changes_nothing() -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1"))
    group = RewriteGroup(frozenset({path_of("a1")}), frozenset({path_of("n1")}))
    rewrite = branch.change("rewrite-files", data_file("n1"), removed=["a1"], groups=(group,))

    branch.land(rewrite.without_groups([group]))

    assert branch.names() == {"a1"}
    assert branch.summary["changed-partition-count"] == "0"
