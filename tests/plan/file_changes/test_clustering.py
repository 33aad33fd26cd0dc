"""Manifests clustered by partition: the same live files, with all that they had, in order."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from committer.iceberg.entry.data_file import ManifestEntryStatus
from committer.iceberg.updates.metadata_update import SetProperties
from tests.plan.file_changes.branches import Branch, data_file, equality_delete

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
