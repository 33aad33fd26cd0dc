"""Delete files go with what they apply to, and never before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.expressions.expression import EqualTo, LessThan, Reference
from committer.plan.operations.change import Base, RemovedDelete
from committer.plan.operations.conflict import Conflict, ConflictCode
from tests.plan.branches import (
    Branch,
    data_file,
    equality_delete,
    path_of,
    position_delete,
)

WITH_DELETES = pytest.mark.parametrize("format_version", [2, 3])


def deletes(branch: Branch) -> set[str]:
    return {name for name, entry in branch.live().items() if entry.data_file.content}


def test_the_vector_of_a_removed_file_is_removed_and_its_siblings_stay() -> None:
    branch = Branch.build(3)
    branch.append(data_file("a1"), data_file("a2"))
    branch.land(branch.change("row-delta", *branch.vectors("v1", a1=[1], a2=[2])))

    branch.land(branch.change("delete", removed=["a1"]))

    assert branch.names() == {"a2", "v1@a2"}
    assert branch.summary["removed-dvs"] == "1"


def test_a_manifest_of_deletes_that_cannot_hold_its_vector_is_not_read() -> None:
    branch = Branch.build(3)
    branch.append(data_file("a1"), data_file("b1", "BB"))
    of_b1 = [replace(one, partition=("BB",)) for one in branch.vectors("v1", b1=[1])]
    branch.land(branch.change("row-delta", *of_b1))

    branch.land(branch.change("delete", removed=["a1"]))

    manifests = {one.row.manifest_path: one.row.content for one in branch.manifests}
    assert [manifests.get(one.location) for one in branch.reads].count(ManifestContent.DELETES) == 0
    assert branch.names() == {"b1", "v1@b1"}


@WITH_DELETES
def test_deletes_that_are_older_than_all_data_are_removed(format_version: int) -> None:
    branch = Branch.build(format_version)
    branch.append(data_file("a1"))
    branch.land(branch.change("row-delta", equality_delete("e2", ids=(1, 2))))
    branch.append(data_file("b3", "BB"))
    branch.land(branch.change("row-delta", equality_delete("e4", ids=(1, 2))))

    branch.land(branch.change("delete", removed=["a1"]))

    assert branch.names() == {"b3", "e4"}


@WITH_DELETES
def test_deletes_of_a_file_whose_manifest_is_written_anew_are_kept(format_version: int) -> None:
    branch = Branch.build(format_version)
    branch.append(data_file("a1"), data_file("a2"))
    branch.land(branch.change("row-delta", equality_delete("e2", ids=(1, 2))))
    branch.append(data_file("a3"))

    branch.land(branch.change("delete", removed=["a1"]))

    assert branch.names() == {"a2", "a3", "e2"}


@WITH_DELETES
def test_a_rewrite_with_an_older_number_keeps_the_deletes_that_apply_to_it(
    format_version: int,
) -> None:
    """Iceberg Java drops e2: the rows that it deleted from a1 return."""
    branch = Branch.build(format_version)
    branch.append(data_file("a1"))
    base = branch.base
    branch.land(branch.change("row-delta", equality_delete("e2", ids=(1, 2))))
    branch.append(data_file("b3"))

    branch.land(
        branch.change(
            "rewrite-files", data_file("a4"), removed=["a1"], data_sequence_number=1, base=base
        )
    )

    assert branch.names() == {"a4", "b3", "e2"}
    assert branch.numbers() == {"a4": 1, "b3": 3, "e2": 2}


@WITH_DELETES
def test_a_rewrite_at_the_number_of_its_plan_leaves_no_deletes_behind(format_version: int) -> None:
    branch = Branch.build(format_version)
    branch.append(data_file("a1"))
    branch.land(branch.change("row-delta", equality_delete("e2", ids=(1, 2))))
    branch.append(data_file("b3"))

    branch.land(
        branch.change("rewrite-files", data_file("a4"), removed=["a1"], data_sequence_number=3)
    )

    assert branch.names() == {"a4", "b3"}


@WITH_DELETES
def test_an_append_beside_old_deletes_reads_and_removes_nothing(format_version: int) -> None:
    branch = Branch.build(format_version)
    branch.append(data_file("a1"))
    branch.land(branch.change("row-delta", equality_delete("e2", ids=(1, 2))))
    branch.land(branch.change("overwrite", data_file("a3"), removed=["a1"]))
    branch.append(data_file("a4"))
    assert branch.reads == []
    assert branch.names() == {"a3", "a4", "e2"}


# --- By name -------------------------------------------------------------------------------------


@WITH_DELETES
def test_a_delete_file_is_removed_by_name(format_version: int) -> None:
    branch = Branch.build(format_version)
    branch.append(data_file("a1"))
    branch.land(
        branch.change(
            "row-delta", equality_delete("e1", ids=(1, 2)), equality_delete("e2", ids=(3, 4))
        )
    )

    change = branch.change("rewrite-files", equality_delete("e3", ids=(1, 4)))
    named = frozenset({branch.identity("e1"), branch.identity("e2")})
    branch.land(replace(change, removed_delete_files=named, data_sequence_number=2))

    assert branch.numbers() == {"a1": 1, "e3": 2}
    assert branch.summary["operation"] == "replace"
    assert branch.summary["removed-equality-delete-files"] == "2"


def test_a_vector_is_named_with_its_place_and_not_by_its_path_alone() -> None:
    branch = Branch.build(3)
    branch.append(data_file("a1"), data_file("a2"))
    branch.land(branch.change("row-delta", *branch.vectors("v1", a1=[1], a2=[2])))
    of_a1 = branch.identity("v1@a1")
    rewrite = branch.change("rewrite-files", data_file("a3"), removed=["a1"])

    found = branch.plan(
        replace(rewrite, removed_delete_files=frozenset({RemovedDelete(of_a1.file_path)}))
    )
    assert isinstance(found, Conflict)
    assert found.code is ConflictCode.MISSING

    branch.land(replace(rewrite, removed_delete_files=frozenset({of_a1})))
    assert branch.names() == {"a3", "a2", "v1@a2"}


@WITH_DELETES
def test_a_named_delete_file_that_is_not_live_conflicts(format_version: int) -> None:
    branch = Branch.build(format_version)
    branch.append(data_file("a1"))
    change = branch.change("rewrite-files", equality_delete("e3", ids=(1, 4)))
    named = frozenset({RemovedDelete(path_of("e1"))})

    found = branch.plan(replace(change, removed_delete_files=named))

    assert isinstance(found, Conflict)
    assert found.code is ConflictCode.MISSING
    assert found.paths == (path_of("e1"),)


# --- By filter and partition ---------------------------------------------------------------------


def test_deletes_of_rows_that_a_filter_removes_go_with_them() -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1", ids=(1, 9)), data_file("a2", ids=(10, 19)), data_file("b1", "BB"))
    branch.land(
        branch.change(
            "row-delta",
            equality_delete("e_low", ids=(1, 5)),
            equality_delete("e_both", ids=(5, 15)),
            position_delete("p_aa"),
            equality_delete("e_bb", "BB", ids=(1, 5)),
        )
    )

    branch.land(branch.change("delete", row_filter=EqualTo(Reference("carrier"), "AA")))
    assert branch.names() == {"b1", "e_bb"}


def test_deletes_that_may_apply_to_rows_that_stay_are_kept() -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1", ids=(1, 9)), data_file("a2", ids=(10, 19)))
    other_column = replace(equality_delete("e_carrier", ids=(1, 5)), equality_ids=(2,))
    branch.land(
        branch.change(
            "row-delta",
            equality_delete("e_low", ids=(1, 5)),
            equality_delete("e_both", ids=(5, 15)),
            # The ids in it are of no meaning: it deletes by carrier. Iceberg Java drops it.
            other_column,
            position_delete("p_aa"),
        )
    )

    branch.land(branch.change("delete", row_filter=LessThan(Reference("id"), 10)))

    assert branch.names() == {"a2", "e_both", "e_carrier", "p_aa"}


@WITH_DELETES
def test_all_deletes_of_a_replaced_partition_are_removed(format_version: int) -> None:
    branch = Branch.build(format_version)
    branch.append(data_file("a1"), data_file("b1", "BB"))
    branch.land(
        branch.change(
            "row-delta",
            equality_delete("e_aa", ids=(1, 5)),
            equality_delete("e_bb", "BB", ids=(1, 5)),
        )
    )

    branch.land(branch.change("replace-partitions", data_file("a2"), data_file("c1", "CC")))

    assert branch.names() == {"a2", "b1", "c1", "e_bb"}


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_an_unpartitioned_table_is_replaced_whole(format_version: int) -> None:
    branch = Branch.build(format_version, fields=())
    branch.append(data_file("a1", partition=()), data_file("a2", partition=()))
    if format_version > 1:
        branch.land(
            branch.change("row-delta", replace(equality_delete("e1", ids=(1, 5)), partition=()))
        )

    branch.land(branch.change("replace-partitions", data_file("a3", partition=())))

    assert branch.names() == {"a3"}
    assert branch.summary["deleted-data-files"] == "2"


# --- Planned again -------------------------------------------------------------------------------


def test_a_change_is_planned_anew_on_each_head() -> None:
    """In a second attempt Iceberg Java requires what the first one matched by filter, and keeps
    vectors in manifests that have changed since."""
    branch = Branch.build(3)
    branch.append(data_file("a1", ids=(1, 5)), data_file("a3", ids=(20, 25)))
    small = LessThan(Reference("id"), 10)
    change = branch.change("overwrite", data_file("a9"), row_filter=small, base=Base())
    branch.plan(change)

    branch.land(branch.change("rewrite-files", data_file("a2", ids=(1, 5)), removed=["a1"]))
    branch.land(branch.change("row-delta", *branch.vectors("v1", a2=[1])))
    branch.land(change)

    # The vector is younger than a3: nothing but the removal of a2 takes it along.
    assert branch.names() == {"a9", "a3"}


def test_a_vector_of_another_range_is_told_with_those_that_are_live() -> None:
    branch = Branch.build(3)
    branch.append(data_file("a1"), data_file("a2"))
    branch.land(branch.change("row-delta", *branch.vectors("v", a1=[1], a2=[2])))
    first, second = branch.identity("v@a1"), branch.identity("v@a2")
    live = ", ".join(
        f"offset {one.content_offset}, size {one.content_size_in_bytes}" for one in (first, second)
    )
    path = first.file_path

    def message(removed: RemovedDelete) -> str:
        change = branch.change("row-delta", removed_delete_files=frozenset({removed}))
        found = branch.plan(change)
        assert isinstance(found, Conflict)
        assert (found.code, found.paths) == (ConflictCode.MISSING, (path,))
        return found.message

    size = first.content_size_in_bytes
    assert message(RemovedDelete(path, 999, size)) == (
        f"delete files that it removes are not live: {path} (offset 999, size {size});"
        f" live of {path}: {live}, 2 in all"
    )
    assert message(RemovedDelete(path)) == (
        "delete files that it removes are not live:"
        f" {path} (no `content-offset` and `content-size-in-bytes`);"
        f" live of {path}: {live}, 2 in all"
    )
