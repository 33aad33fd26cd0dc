"""A rewrite joins equality delete files of one sequence number, and keeps it; deletes by position
get no lower number than those in whose place they are."""

from __future__ import annotations

import pytest

from committer.iceberg.entry.data_file import DataFile
from committer.plan.operations.change import Change
from committer.plan.operations.conflict import Conflict, ConflictCode
from tests.plan.branches import Branch, data_file, equality_delete, path_of, position_delete

WITH_DELETES = pytest.mark.parametrize("format_version", [2, 3])


def upserted(format_version: int) -> Branch:
    """Build a branch: ids 1 and 2 in snapshot 1, which 2 and 3 have each written anew."""
    branch = Branch.build(format_version)
    branch.append(data_file("a1", ids=(1, 2)))
    for number, id in ((2, 1), (3, 2)):
        delete = equality_delete(f"e{number}", ids=(id, id))
        branch.land(branch.change("row-delta", delete, data_file(f"a{number}", ids=(id, id))))
    return branch


def joined(
    branch: Branch, *removed: str, number: int | None, added: DataFile | None = None
) -> Change:
    return branch.change(
        "rewrite-files",
        added or equality_delete("joined", ids=(1, 2)),
        base=branch.base,
        removed_delete_files=frozenset(map(branch.identity, removed)),
        data_sequence_number=number,
    )


@WITH_DELETES
@pytest.mark.parametrize(
    ("removed", "number", "gets"),
    [
        # Under 3 the delete of id 1 would hit the row that snapshot 2 has added.
        (("e2", "e3"), 3, 3),
        (("e2", "e3"), None, 4),
        # Under 2 the delete of id 2 would miss a row that snapshot 2 had added.
        (("e2", "e3"), 2, 2),
        (("e2",), 3, 3),
        (("e2",), None, 4),
        (("e3",), 2, 2),
    ],
)
def test_equality_deletes_that_would_get_another_number_conflict(
    format_version: int, removed: tuple[str, ...], number: int | None, gets: int
) -> None:
    branch = upserted(format_version)
    wrong = sorted(one for one in removed if branch.numbers()[one] != gets)

    found = branch.plan(joined(branch, *removed, number=number))

    assert isinstance(found, Conflict)
    assert (found.code, found.paths) == (
        ConflictCode.OTHER_ROWS,
        tuple(path_of(one) for one in wrong),
    )
    number_of_first = branch.numbers()[wrong[0]]
    assert f"{path_of('joined')} would have the sequence number {gets}" in found.message
    assert f"first {number_of_first} of {path_of(wrong[0])}" in found.message


@WITH_DELETES
def test_equality_deletes_of_one_number_are_joined_under_it(format_version: int) -> None:
    branch = Branch.build(format_version)
    branch.append(data_file("a1", ids=(1, 2)))
    first, second = (equality_delete(f"e{id}", ids=(id, id)) for id in (1, 2))
    branch.land(branch.change("row-delta", first, second))
    branch.append(data_file("a3", ids=(1, 2)))

    branch.land(joined(branch, "e1", "e2", number=2))

    assert branch.names() == {"a1", "a3", "joined"}
    assert branch.numbers()["joined"] == 2


@WITH_DELETES
def test_a_rewrite_that_adds_equality_deletes_and_removes_none_conflicts(
    format_version: int,
) -> None:
    branch = upserted(format_version)
    found = branch.plan(joined(branch, number=3))
    assert isinstance(found, Conflict)
    assert found.code is ConflictCode.OTHER_ROWS
    assert "removes none" in found.message


@WITH_DELETES
def test_equality_deletes_of_any_numbers_become_deletes_by_position(format_version: int) -> None:
    branch = upserted(format_version)
    is_v2 = format_version == 2
    found = position_delete("d", of="a1") if is_v2 else branch.vectors("v", a1=[0, 1])[0]

    branch.land(joined(branch, "e2", "e3", number=3, added=found))

    assert branch.names() == {"a1", "a2", "a3", "d" if is_v2 else "v@a1"}


def test_a_row_delta_adds_equality_deletes_whatever_it_removes() -> None:
    branch = upserted(2)
    delete = equality_delete("e4", ids=(1, 2))
    gone = frozenset({branch.identity("e2")})
    branch.land(branch.change("row-delta", delete, removed_delete_files=gone))
    assert branch.numbers()["e4"] == 4


@WITH_DELETES
@pytest.mark.parametrize(("number", "lands"), [(2, False), (3, False), (4, True), (None, True)])
def test_deletes_by_position_get_no_lower_number_than_those_that_they_replace(
    format_version: int, number: int | None, lands: bool
) -> None:
    """Else a compaction based on a state between the two would bring rows back."""
    branch = Branch.build(format_version)
    branch.append(data_file("a1", ids=(1, 2)))
    branch.land(branch.change("row-delta", equality_delete("e2", ids=(1, 1))))
    branch.append(data_file("a3", ids=(3, 4)))
    is_v2 = format_version == 2
    old, new = (
        position_delete(name, of="a1") if is_v2 else branch.vectors(name, a1=[0])[0]
        for name in ("d4", "d5")
    )
    branch.land(branch.change("row-delta", old))
    name = "d4" if is_v2 else "d4@a1"

    change = joined(branch, "e2", name, number=number, added=new)

    found = branch.plan(change)
    if lands:
        assert not isinstance(found, Conflict)
        return
    assert isinstance(found, Conflict)
    assert (found.code, found.paths) == (ConflictCode.OTHER_ROWS, (old.file_path,))
    assert f"sequence number {number}, below the 4 of {old.file_path}" in found.message


def test_a_vector_gets_no_lower_number_than_position_deletes_that_it_supersedes_unnamed() -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1", ids=(1, 2)))
    branch.land(branch.change("row-delta", equality_delete("e2", ids=(1, 1))))
    branch.land(branch.change("row-delta", position_delete("p3", of="a1")))
    branch.upgrade()
    (vector,) = branch.vectors("v", a1=[0, 1])

    found = branch.plan(joined(branch, "e2", number=2, added=vector))

    assert isinstance(found, Conflict)
    assert (found.code, found.paths) == (ConflictCode.OTHER_ROWS, (path_of("p3"),))
    branch.land(joined(branch, "e2", number=3, added=vector))
    assert branch.names() == {"a1", "v@a1"}
