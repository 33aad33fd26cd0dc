"""Snapshot summaries: counts of a commit and totals of a branch, as Iceberg Java writes them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from committer.iceberg.metadata.summary import commit_summary
from committer.iceberg.metadata.table_metadata import parse_table_metadata
from tests.support.builders.fixtures import expected, read_bytes, table_names

ZEROS = {
    "total-records": "0",
    "total-files-size": "0",
    "total-data-files": "0",
    "total-delete-files": "0",
    "total-position-deletes": "0",
    "total-equality-deletes": "0",
}
FORKS = {1497335330746273786}  # in v2_wap


def summary_of(
    previous: Mapping[str, str] | None,
    *,
    files: int = 2,
    records: int = 30,
    size: int = 400,
    extra: Mapping[str, str] | None = None,
    partitions: int | None = 1,
) -> dict[str, str]:
    counts = {
        "manifests-created": 1,
        "manifests-kept": 3,
        "manifests-replaced": 0,
        "added-data-files": files,
        "added-records": records,
        "added-files-size": size,
        **({} if partitions is None else {"changed-partition-count": partitions}),
    }
    return commit_summary("append", previous, counts, extra=extra)


def test_the_first_commit_of_a_branch_starts_all_totals_at_zero() -> None:
    assert summary_of(None) == {
        "operation": "append",
        "manifests-created": "1",
        "manifests-kept": "3",
        "manifests-replaced": "0",
        "added-data-files": "2",
        "added-records": "30",
        "added-files-size": "400",
        "changed-partition-count": "1",
        **ZEROS,
        "total-records": "30",
        "total-files-size": "400",
        "total-data-files": "2",
    }


def test_operation_is_the_first_key() -> None:
    assert next(iter(summary_of(ZEROS, extra={"a": "1"}))) == "operation"


def test_totals_follow_from_the_summary_before() -> None:
    found = summary_of({**ZEROS, "total-records": "100", "total-delete-files": "7"})
    assert (found["total-records"], found["total-delete-files"]) == ("130", "7")


@pytest.mark.parametrize("text", ["", "many", "1.5", "-1", " 1", "١", "9223372036854775808"])
def test_a_total_that_cannot_be_read_is_left_out(text: str) -> None:
    found = summary_of({**ZEROS, "total-records": text})
    assert "total-records" not in found
    assert found["total-data-files"] == "2"


def test_a_missing_total_stays_away_from_then_on() -> None:
    first = summary_of({"operation": "append", "total-data-files": "5"})
    second = summary_of(first)
    assert second["total-data-files"] == "9"
    assert "total-records" not in second


def test_an_empty_summary_before_is_not_a_missing_head() -> None:
    assert "total-records" not in summary_of({})


def test_counts_of_zero_are_left_out_but_for_partitions_and_manifests() -> None:
    found = summary_of(ZEROS, files=0, records=0, size=0, partitions=0)
    assert not [key for key in found if key.startswith("added-")]
    assert found["changed-partition-count"] == "0"
    assert found["manifests-replaced"] == "0"


def test_the_partition_count_is_left_out_where_nobody_counted() -> None:
    assert "changed-partition-count" not in summary_of(ZEROS, partitions=None)


def test_deletes_are_taken_away_and_no_total_falls_below_zero() -> None:
    before = {**ZEROS, "total-records": "10", "total-data-files": "1"}
    counts = {"deleted-records": 4, "deleted-data-files": 2, "added-delete-files": 1}
    found = commit_summary("overwrite", before, counts)
    assert found["operation"] == "overwrite"
    assert found["total-records"] == "6"
    assert found["total-delete-files"] == "1"
    assert "total-data-files" not in found


def test_a_property_never_replaces_a_computed_key() -> None:
    found = summary_of(ZEROS, extra={"total-records": "7", "operation": "delete", "mine": "1"})
    assert (found["operation"], found["total-records"], found["mine"]) == ("append", "30", "1")


@pytest.mark.parametrize("name", table_names())
def test_totals_are_those_of_iceberg_java(name: str) -> None:
    metadata = parse_table_metadata(read_bytes(expected(name)["metadata_location"]))
    for snapshot in metadata.snapshots:
        parent_id, summary = snapshot.parent_snapshot_id, snapshot.summary
        parent = None if parent_id is None else metadata.snapshot_by_id(parent_id)
        if summary is None or (parent_id is not None and parent is None):
            continue
        if "added-files-size" not in summary and "added-data-files" in summary:
            continue  # whole manifests were appended: their sizes are not counted
        counts = {
            key: int(text)
            for key, text in summary.items()
            if key.startswith(("added-", "deleted-", "removed-"))
        }
        # The first commit of a branch that it creates has main's head as its parent, but totals
        # from zero (docs/reference/iceberg-notes.md 5.2).
        previous = parent.summary if parent and snapshot.snapshot_id not in FORKS else None
        found = commit_summary(snapshot.operation or "", previous, counts)
        totals = {key: text for key, text in summary.items() if key.startswith("total-")}
        assert {key: found.get(key) for key in totals} == totals, snapshot.snapshot_id
