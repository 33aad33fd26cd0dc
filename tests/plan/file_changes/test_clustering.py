"""Manifests clustered by partition: the same live files, with all that they had, in order."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.entry.data_file import ManifestEntryStatus
from committer.iceberg.updates.metadata_update import SetProperties
from committer.plan.file_changes import clustering
from committer.plan.operations.conflict import Conflict
from tests.plan.branches import Branch, data_file, equality_delete

VERSIONS = pytest.mark.parametrize("format_version", [1, 2, 3])


@VERSIONS
def test_manifests_are_written_anew_in_the_order_of_partitions(format_version: int) -> None:
    branch = Branch.build(format_version)
    branch.append(data_file("b1", "BB"), data_file("a1"))
    branch.append(data_file("a2"), data_file("n1", None), data_file("b2", "BB"))
    branch.land(branch.change("delete", removed=["a2"]))
    before = branch.live()
    next_row_id = branch.metadata.next_row_id

    branch.land(branch.change("rewrite-manifests"))

    entries = branch.entries()
    carriers = [entry.data_file.partition[0] for entry in entries]
    assert carriers == [None, "AA", "BB", "BB"]
    assert {entry.status for entry in entries} == {ManifestEntryStatus.EXISTING}
    assert branch.live() == {
        name: replace(entry, status=ManifestEntryStatus.EXISTING) for name, entry in before.items()
    }
    (row,) = (one.row for one in branch.manifests)
    assert (row.existing_files_count, row.existing_rows_count) == (4, 40)
    assert row.min_sequence_number == (0 if format_version == 1 else 1)
    assert branch.metadata.next_row_id == next_row_id
    summary = branch.summary
    assert summary["operation"] == "replace"
    assert summary["entries-processed"] == "4"
    assert summary["manifests-created"] == "1"
    assert summary["manifests-replaced"] == "2"
    assert summary["manifests-kept"] == "0"
    assert summary["changed-partition-count"] == "0"
    assert summary["total-data-files"] == "4"


def test_each_manifest_is_near_the_target_size_and_of_few_partitions() -> None:
    branch = Branch.build(properties={"commit.manifest.target-size-bytes": "4000"})
    carriers = [f"C{number:02}" for number in range(20)]
    for number in range(4):
        branch.append(
            *(
                data_file(f"f{number}-{carrier}-{i}", carrier)
                for carrier in carriers
                for i in range(80)
            )
        )

    branch.land(branch.change("rewrite-manifests"))

    assert len(branch.manifests) > 3
    assert len(branch.names()) == 4 * 20 * 80
    bounds = [(one.row.partitions or ())[0] for one in branch.manifests]
    lowers = [bound.lower_bound for bound in bounds]
    assert lowers == sorted(lowers)  # type: ignore[type-var]
    for before, after in pairwise(bounds):
        assert before.upper_bound <= after.lower_bound  # type: ignore[operator]


def test_manifests_of_deletes_stay_as_they_are() -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1"))
    branch.land(branch.change("row-delta", equality_delete("e1", ids=(1, 2))))
    (deletes,) = (one for one in branch.manifests if one.row.content)

    branch.land(branch.change("rewrite-manifests"))

    assert [one for one in branch.manifests if one.row.content] == [deletes]
    assert branch.numbers() == {"a1": 1, "e1": 2}


def test_files_of_before_an_upgrade_get_their_row_ids_with_the_rewrite() -> None:
    branch = Branch.build(2)
    branch.append(data_file("b1", "BB"), data_file("a1"))
    branch.upgrade()

    branch.land(branch.change("rewrite-manifests"))

    ids = {name: entry.data_file.first_row_id for name, entry in branch.live().items()}
    assert ids == {"a1": 0, "b1": 10}
    assert branch.metadata.next_row_id == 20


def test_the_manifests_of_each_spec_stay_apart() -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1"))
    branch.by_day()
    branch.append(data_file("d1", partition=(17_000,), spec_id=1))
    branch.append(data_file("a2"))

    branch.land(branch.change("rewrite-manifests"))

    rows = [one.row for one in branch.manifests]
    assert [(row.partition_spec_id, row.existing_files_count) for row in rows] == [(0, 2), (1, 1)]


def test_a_rewrite_of_an_empty_branch_lists_nothing() -> None:
    branch = Branch.build(2)

    branch.land(branch.change("rewrite-manifests"))

    assert branch.manifests == ()


def test_an_older_layout_is_read_and_written_in_the_tables() -> None:
    branch = Branch.build(1)
    branch.append(data_file("a1"), data_file("b1", "BB"))
    branch.upgrade(2)
    branch.append(data_file("a2"))
    branch.update(SetProperties({"x": "y"}))

    branch.land(branch.change("rewrite-manifests"))

    assert branch.numbers() == {"a1": 0, "b1": 0, "a2": 1}


# --- Named manifests -----------------------------------------------------------------------------


def paths(branch: Branch) -> list[str]:
    return [one.row.manifest_path for one in branch.manifests]


def test_manifests_with_other_counts_than_their_list_says_are_not_rewritten() -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1"), data_file("a2"))
    (one,) = branch.manifests
    branch.manifests = (replace(one, row=replace(one.row, added_files_count=3)),)
    with pytest.raises(InvalidMetadataError, match=r"it holds 0, 2, 0 .* expected 0, 3, 0"):
        branch.plan(branch.change("rewrite-manifests"))


@VERSIONS
def test_of_named_manifests_the_others_stay_as_they_are(format_version: int) -> None:
    branch = Branch.build(format_version)
    for name in ("a1", "a2", "a3"):
        branch.append(data_file(name))
    before, (newest, *others) = branch.live(), branch.manifests
    named = frozenset(one.row.manifest_path for one in others)

    branch.land(branch.change("rewrite-manifests", rewritten_manifests=named))

    assert [one.location for one in branch.reads] == sorted(named)
    written, kept = branch.manifests
    assert kept == newest
    assert written.row.existing_files_count == 2
    assert branch.names() == set(before)
    assert branch.numbers() == {name: entry.sequence_number for name, entry in before.items()}
    summary = branch.summary
    assert (summary["manifests-created"], summary["manifests-kept"]) == ("1", "1")
    assert (summary["manifests-replaced"], summary["entries-processed"]) == ("2", "2")


@pytest.mark.parametrize("format_version", [2, 3])
def test_named_manifests_of_deletes_are_rewritten_too(format_version: int) -> None:
    branch = Branch.build(format_version)
    branch.append(data_file("a1"), data_file("b1", "BB"))
    for name, carrier in (("e1", "BB"), ("e2", "AA")):
        branch.land(branch.change("row-delta", equality_delete(name, carrier, ids=(1, 2))))
    before = branch.live()
    (data,) = (one for one in branch.manifests if not one.row.content)
    named = frozenset(one.row.manifest_path for one in branch.manifests if one.row.content)
    assert len(named) == 2

    branch.land(branch.change("rewrite-manifests", rewritten_manifests=named))

    first, deletes = branch.manifests
    assert first == data
    assert [entry.data_file.partition for entry in branch.entries_of(deletes)] == [("AA",), ("BB",)]
    after = branch.live()
    assert {name: entry.data_file for name, entry in after.items()} == {
        name: entry.data_file for name, entry in before.items()
    }
    assert branch.numbers() == {"a1": 1, "b1": 1, "e1": 2, "e2": 3}


def test_a_named_manifest_that_the_head_does_not_list_is_missing() -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1"))
    branch.append(data_file("a2"))
    named = frozenset(paths(branch))
    change = branch.change("rewrite-manifests", rewritten_manifests=named)
    branch.land(branch.change("delete", removed=["a1"]))

    found = branch.plan(change)

    assert isinstance(found, Conflict)
    (path,) = found.paths
    assert found.code == "missing"
    assert path in named - set(paths(branch))
    assert branch.reads == []


def test_named_manifests_that_do_not_fit_into_memory_are_refused_unread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1"))
    branch.append(data_file("a2"))
    monkeypatch.setattr(clustering, "_BYTES_MAX", branch.manifests[0].row.manifest_length)
    change = branch.change("rewrite-manifests", rewritten_manifests=frozenset(paths(branch)))

    found = branch.plan(change)

    assert isinstance(found, Conflict)
    assert found.code == "undecided"
    assert "name fewer" in found.message
    assert branch.reads == []


def test_a_named_manifest_without_live_files_is_listed_no_more() -> None:
    branch = Branch.build(2)
    branch.append(data_file("a1"))
    branch.append(data_file("a2"))
    branch.land(branch.change("delete", removed=["a1"]))
    (emptied,) = (one for one in branch.manifests if not one.row.has_live_files)

    branch.land(
        branch.change(
            "rewrite-manifests", rewritten_manifests=frozenset({emptied.row.manifest_path})
        )
    )

    assert branch.names() == {"a2"}
    assert branch.summary["manifests-replaced"] == "0"


def test_manifests_that_no_list_has_counted_are_clustered() -> None:
    branch = Branch.build()
    branch.append(data_file("a1"), data_file("b1", "BB"))
    branch.append(data_file("a2"))
    [newer, older] = branch.manifests
    # As the list of version 2 states counts that the one of version 1 has left out.
    uncounted = replace(
        newer.row,
        added_files_count=1,
        existing_files_count=1,
        deleted_files_count=1,
        added_rows_count=1,
        existing_rows_count=1,
        deleted_rows_count=1,
    )
    branch.manifests = (replace(newer, row=uncounted), older)
    branch.land(branch.change("rewrite-manifests"))
    (row,) = (one.row for one in branch.manifests)
    assert (row.existing_files_count, row.existing_rows_count) == (3, 30)
    assert sorted(branch.live()) == ["a1", "a2", "b1"]
