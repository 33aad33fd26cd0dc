"""What each operation makes of a branch: live files, entries, numbers, label and summary."""

from __future__ import annotations

import pytest

from committer.iceberg.entry.data_file import ManifestEntryStatus
from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    EqualTo,
    LessThan,
    Reference,
)
from committer.plan.operations.conflict import Conflict, ConflictCode
from tests.plan.branches import (
    Branch,
    data_file,
    equality_delete,
    name_of,
    path_of,
    position_delete,
)

VERSIONS = pytest.mark.parametrize("format_version", [1, 2, 3])
WITH_DELETES = pytest.mark.parametrize("format_version", [2, 3])
OF_AA = EqualTo(Reference("carrier"), "AA")


def conflict_of(branch: Branch, *changes: object) -> Conflict:
    found = branch.plan(*changes)  # type: ignore[arg-type]
    assert isinstance(found, Conflict)
    return found


def two_appends(format_version: int) -> Branch:
    branch = Branch.build(format_version)
    branch.append(data_file("a1"), data_file("a2"))
    branch.append(data_file("b1", "BB"))
    return branch


# --- Removing data files -------------------------------------------------------------------------


@VERSIONS
def test_a_removed_file_becomes_a_deleted_entry_and_its_neighbors_keep_their_ids(
    format_version: int,
) -> None:
    branch = two_appends(format_version)
    before = branch.live()

    branch.land(branch.change("delete", removed=["a1"]))

    assert branch.names() == {"a2", "b1"}
    deleted, kept = sorted(
        (e for e in branch.entries() if name_of(e.data_file.file_path) != "b1"),
        key=lambda entry: entry.data_file.file_path,
    )
    assert deleted.status is ManifestEntryStatus.DELETED
    assert deleted.snapshot_id == branch.snapshot.snapshot_id
    assert kept.status is ManifestEntryStatus.EXISTING
    for entry, name in ((deleted, "a1"), (kept, "a2")):
        old = before[name]
        assert entry.data_file == old.data_file
        assert entry.sequence_number == old.sequence_number == (0 if format_version == 1 else 1)
        assert entry.file_sequence_number == old.file_sequence_number
    assert kept.snapshot_id == before["a2"].snapshot_id
    row_ids = [entry.data_file.first_row_id for entry in (deleted, kept)]
    assert row_ids == ([0, 10] if format_version == 3 else [None, None])
    if format_version == 3:
        assert branch.snapshot.added_rows == 0  # no id is used up by a rewritten manifest


@VERSIONS
def test_only_the_manifest_of_a_removed_file_is_written_anew(format_version: int) -> None:
    branch = two_appends(format_version)
    rows = {one.row.manifest_path: one.row for one in branch.manifests}

    branch.land(branch.change("delete", row_filter=OF_AA))

    assert [one.location.rsplit("/", 1)[1] for one in branch.reads] == [
        "00000000-0000-0000-0000-0000000003e9-m0.avro"
    ]
    changed = [one.row for one in branch.manifests if one.row.manifest_path not in rows]
    (row,) = changed
    assert row.added_snapshot_id == branch.snapshot.snapshot_id
    assert (row.added_files_count, row.existing_files_count, row.deleted_files_count) == (0, 0, 2)
    assert (row.added_rows_count, row.existing_rows_count, row.deleted_rows_count) == (0, 0, 20)
    assert row.min_sequence_number == row.sequence_number == branch.snapshot.sequence_number


@VERSIONS
def test_a_manifest_of_removed_files_alone_is_listed_by_their_snapshot_only(
    format_version: int,
) -> None:
    branch = two_appends(format_version)
    branch.land(branch.change("delete", row_filter=OF_AA))
    assert len(branch.manifests) == 2

    branch.append(data_file("c1", "CC"))

    assert len(branch.manifests) == 2
    assert branch.names() == {"b1", "c1"}
    assert all(entry.is_live for entry in branch.entries())


@VERSIONS
def test_a_filter_removes_files_by_their_metrics_and_refuses_a_part_of_one(
    format_version: int,
) -> None:
    branch = Branch.build(format_version)
    branch.append(data_file("low", ids=(1, 9)), data_file("high", ids=(10, 19)))
    below_10 = LessThan(Reference("id"), 10)

    branch.land(branch.change("overwrite", data_file("new", ids=(1, 9)), row_filter=below_10))
    assert branch.names() == {"high", "new"}

    conflict = conflict_of(
        branch, branch.change("delete", row_filter=LessThan(Reference("id"), 15))
    )
    assert conflict.code is ConflictCode.PARTIAL_MATCH
    assert conflict.paths == (path_of("high"),)


@VERSIONS
def test_a_named_file_that_is_not_live_conflicts(format_version: int) -> None:
    branch = two_appends(format_version)
    branch.land(branch.change("rewrite-files", data_file("a3"), removed=["a1"]))

    conflict = conflict_of(branch, branch.change("delete", removed=["a1", "a2"]))

    assert conflict.code is ConflictCode.MISSING
    assert conflict.paths == (path_of("a1"),)


def test_a_file_that_is_listed_twice_is_removed_twice_and_counted_once() -> None:
    branch = Branch.build()
    branch.append(data_file("a1"), data_file("a1"))

    branch.land(branch.change("delete", removed=["a1"]))

    assert branch.names() == set()
    assert branch.summary["deleted-data-files"] == "1"
    assert branch.summary["deleted-duplicate-files"] == "1"


# --- Labels and summaries ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "operation", "adds", "needs"),
    [
        ("append", "append", ["x"], {}),
        ("delete", "delete", [], {"removed": ["a1"]}),
        ("delete", "delete", [], {"row_filter": OF_AA}),
        ("delete", "overwrite", [], {"removed": ["a1"]}),
        ("append", "overwrite", ["x"], {}),
        ("append", "overwrite", ["x"], {"row_filter": ALWAYS_FALSE}),
        ("overwrite", "overwrite", ["x"], {"removed": ["a1"]}),
        # A filter counts as removal, though nothing matches.
        ("overwrite", "overwrite", ["x"], {"row_filter": EqualTo(Reference("carrier"), "ZZ")}),
        ("append", "row-delta", ["x"], {}),
        ("delete", "row-delta", ["d"], {}),
        ("delete", "row-delta", ["d"], {"removed": ["a1"]}),
        ("overwrite", "row-delta", ["x", "d"], {}),
        ("overwrite", "row-delta", ["x"], {"removed": ["a1"]}),
        ("replace", "rewrite-files", ["x"], {"removed": ["a1"]}),
        ("overwrite", "replace-partitions", ["x"], {}),
    ],
)
def test_the_label_says_what_was_asked_for(
    label: str, operation: str, adds: list[str], needs: dict[str, object]
) -> None:
    branch = two_appends(2)
    files = [equality_delete(one, ids=(1, 2)) if one == "d" else data_file(one) for one in adds]

    produced = branch.land(branch.change(operation, *files, **needs))

    assert produced.label == label
    assert (branch.summary.get("replace-partitions") == "true") is (
        operation == "replace-partitions"
    )


def test_the_summary_counts_each_kind_of_file() -> None:
    branch = two_appends(2)
    deletes = [
        equality_delete("e1", ids=(1, 3)),
        position_delete("p1", of="a1", rows=2),
        position_delete("p2", rows=5),
    ]

    branch.land(branch.change("row-delta", data_file("n1", rows=7), *deletes))
    assert branch.summary == {
        "operation": "overwrite",
        "added-data-files": "1",
        "added-records": "7",
        "added-files-size": "1300",
        "added-delete-files": "3",
        "added-equality-delete-files": "1",
        "added-equality-deletes": "3",
        "added-position-delete-files": "2",
        "added-position-deletes": "7",
        "changed-partition-count": "1",
        "manifests-created": "2",
        "manifests-kept": "2",
        "manifests-replaced": "0",
        "total-records": "37",
        "total-files-size": "4300",
        "total-data-files": "4",
        "total-delete-files": "3",
        "total-position-deletes": "7",
        "total-equality-deletes": "3",
    }

    branch.land(branch.change("overwrite", data_file("n2"), row_filter=ALWAYS_TRUE))
    assert branch.names() == {"n2"}
    assert branch.summary == {
        "operation": "overwrite",
        "added-data-files": "1",
        "added-records": "10",
        "added-files-size": "1000",
        "deleted-data-files": "4",
        "deleted-records": "37",
        "removed-files-size": "4300",
        "removed-delete-files": "3",
        "removed-equality-delete-files": "1",
        "removed-equality-deletes": "3",
        "removed-position-delete-files": "2",
        "removed-position-deletes": "7",
        "changed-partition-count": "2",
        "manifests-created": "5",
        "manifests-kept": "0",
        "manifests-replaced": "4",
        "total-records": "10",
        "total-files-size": "1000",
        "total-data-files": "1",
        "total-delete-files": "0",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }


def test_the_summary_has_each_partition_where_the_table_asks_for_it() -> None:
    branch = Branch.build(properties={"write.summary.partition-limit": "2"})
    branch.append(data_file("a1"), data_file("b1", "BB"))

    branch.land(branch.change("overwrite", data_file("a2", rows=4), removed=["a1"]))
    assert branch.summary["partition-summaries-included"] == "true"
    assert branch.summary["partitions.carrier=AA"] == (
        "added-data-files=1,deleted-data-files=1,added-records=4,deleted-records=10,"
        "added-files-size=1000,removed-files-size=1000"
    )
    assert "partitions.carrier=BB" not in branch.summary

    files = [data_file(f"f{carrier}", carrier) for carrier in ("CC", "DD", "EE")]
    branch.land(branch.change("overwrite", *files, row_filter=ALWAYS_FALSE))
    assert branch.summary["changed-partition-count"] == "3"
    assert not any(key.startswith("partition") for key in branch.summary)


# --- Adding files --------------------------------------------------------------------------------


@WITH_DELETES
def test_data_manifests_are_listed_before_those_of_deletes(format_version: int) -> None:
    branch = two_appends(format_version)

    branch.land(branch.change("row-delta", data_file("n1"), equality_delete("e1", ids=(1, 2))))
    branch.append(data_file("n2"))

    contents = [one.row.content for one in branch.manifests]
    assert contents == sorted(contents)
    assert branch.names() == {"a1", "a2", "b1", "n1", "n2", "e1"}


@VERSIONS
def test_a_rewrite_gives_its_files_the_number_that_it_names(format_version: int) -> None:
    branch = two_appends(format_version)

    branch.land(
        branch.change("rewrite-files", data_file("a3"), removed=["a1"], data_sequence_number=1)
    )

    entry = branch.live()["a3"]
    assert entry.status is ManifestEntryStatus.ADDED
    if format_version == 1:
        assert (entry.sequence_number, entry.file_sequence_number) == (0, 0)
        return
    assert (entry.sequence_number, entry.file_sequence_number) == (1, 3)
    row = branch.manifests[0].row
    assert (row.sequence_number, row.min_sequence_number) == (3, 1)
