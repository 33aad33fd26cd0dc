"""Which manifests are merged: small ones, enough of them, and no entry again and again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

import pytest

from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.plan.cleanup.merge_selection import (
    MergePolicy,
    is_clustered,
    merge_policy,
    plan_merges,
)
from tests.support.builders.flights import build_flights

_numbers = count(1)
MIB = 1024 * 1024
APART = {"frazil.manifests.cluster": "false"}


def row(entries: int = 1, *, size_bytes: int | None = None, **changes: object) -> ManifestFile:
    built = ManifestFile(
        manifest_path=f"s3://bucket/db/t/metadata/{next(_numbers)}-m0.avro",
        manifest_length=6_000 + 250 * entries if size_bytes is None else size_bytes,
        partition_spec_id=0,
        added_snapshot_id=1,
        added_files_count=entries,
        existing_files_count=0,
        deleted_files_count=0,
        added_rows_count=10 * entries,
        existing_rows_count=0,
        deleted_rows_count=0,
    )
    return replace(built, **changes)  # type: ignore[arg-type]


def rows(number: int, entries: int = 1, **changes: object) -> list[ManifestFile]:
    return [row(entries, **changes) for _ in range(number)]  # type: ignore[arg-type]


def metadata(
    properties: Mapping[str, str] | None = None, *, format_version: int = 2
) -> TableMetadata:
    return build_flights(properties=properties, format_version=format_version).metadata


def few(**properties: str) -> TableMetadata:
    return metadata({"commit.manifest.min-count-to-merge": "3", **properties})


# --- Properties ----------------------------------------------------------------------------------


def test_the_defaults_are_those_of_the_reference() -> None:
    assert merge_policy({}) == MergePolicy(True, 8_388_608, 100)


@pytest.mark.parametrize(
    ("key", "text", "policy"),
    [
        ("commit.manifest-merge.enabled", "FALSE", MergePolicy(is_enabled=False)),
        ("commit.manifest-merge.enabled", "True", MergePolicy()),
        ("commit.manifest.target-size-bytes", "1048576", MergePolicy(target_bytes=MIB)),
        ("commit.manifest.target-size-bytes", "9" * 15, MergePolicy(target_bytes=64 * MIB)),
        ("commit.manifest.target-size-bytes", "-1", MergePolicy()),
        ("commit.manifest.min-count-to-merge", "7", MergePolicy(count_min=7)),
        ("commit.manifest.min-count-to-merge", "1", MergePolicy(count_min=2)),
        ("commit.manifest.min-count-to-merge", "many", MergePolicy()),
        ("commit.manifest.min-count-to-merge", "٣", MergePolicy()),
        ("frazil.manifests.cluster", "False", MergePolicy(clusters=False)),
    ],
)
def test_properties_are_read_and_what_is_unreadable_is_the_default(
    key: str, text: str, policy: MergePolicy
) -> None:
    assert merge_policy({key: text}) == policy


# --- Choice --------------------------------------------------------------------------------------


def test_a_hundred_small_manifests_are_merged_and_not_one_fewer() -> None:
    head = rows(100)
    assert plan_merges(head, metadata()) == (tuple(head),)
    assert plan_merges(head[1:], metadata()) == ()


def test_a_table_that_does_not_want_it_is_left_alone() -> None:
    assert plan_merges(rows(500), metadata({"commit.manifest-merge.enabled": "false"})) == ()


def test_manifests_of_the_target_size_are_left_alone() -> None:
    head = rows(500, 100_000, size_bytes=8 * MIB)
    assert plan_merges(head, metadata()) == ()


def test_large_manifests_stay_until_the_small_ones_are_as_many_entries() -> None:
    small, large = rows(100), rows(5, 5_000)
    assert plan_merges([*small, *large[:1]], metadata()) == (tuple(small),)
    merged = row(100)
    assert plan_merges([*small, merged, large[0]], metadata()) == ((*small, merged),)
    # Five of five thousand are worth being joined, and each is no larger than the rest.
    assert plan_merges([*small, *large], metadata()) == ((*small, *large),)


def test_each_spec_and_content_is_merged_for_itself() -> None:
    first, second = rows(3), rows(3, partition_spec_id=1)
    deletes, alone = rows(3, content=ManifestContent.DELETES), rows(2, partition_spec_id=2)
    mixed = [one for four in zip(first, second, deletes, strict=True) for one in four]
    found = plan_merges([*mixed, *alone], few())
    assert found == (tuple(first), tuple(second), tuple(deletes))


def test_bins_are_filled_from_the_old_end_up_to_the_target() -> None:
    head = rows(25, size_bytes=1000)
    properties = {"commit.manifest.target-size-bytes": "10000", **APART}
    *bins, oldest = plan_merges(head, few(**properties))
    assert oldest == tuple(head[15:])
    assert bins == [tuple(head[:5]), tuple(head[5:15])]


def test_the_bin_of_the_newest_waits_until_enough_are_in_it() -> None:
    head = rows(22, size_bytes=1000)
    properties = {"commit.manifest.target-size-bytes": "10000", **APART}
    assert plan_merges(head, few(**properties)) == (tuple(head[2:12]), tuple(head[12:]))


def test_what_is_encrypted_unreadable_or_without_row_ids_is_left_out() -> None:
    good = rows(3, first_row_id=5)
    encrypted, without_ids = row(key_metadata=b"k", first_row_id=5), row()
    unreadable = row(first_row_id=5)
    properties = {"commit.manifest.min-count-to-merge": "3"}
    found = plan_merges(
        [*good, encrypted, without_ids, unreadable],
        metadata(properties, format_version=3),
        [unreadable.manifest_path],
    )
    assert found == (tuple(good),)


def test_delete_manifests_of_version_3_have_no_row_ids_and_are_merged() -> None:
    head = rows(3, content=ManifestContent.DELETES)
    properties = {"commit.manifest.min-count-to-merge": "3"}
    assert plan_merges(head, metadata(properties, format_version=3)) == (tuple(head),)


def test_rows_of_version_1_without_counts_are_weighed_by_their_length() -> None:
    small = rows(3, size_bytes=500, added_files_count=None)
    large = row(size_bytes=4 * MIB, existing_files_count=None)
    assert plan_merges([*small, large], few()) == (tuple(small),)


# --- Runs of clustered manifests -----------------------------------------------------------------


def run(count: int, entries: int, size_bytes: int, *, snapshot_id: int) -> list[ManifestFile]:
    """Build what one commit lists of a merge."""
    return [
        row(
            0,
            size_bytes=size_bytes,
            existing_files_count=entries,
            added_snapshot_id=snapshot_id,
        )
        for _ in range(count)
    ]


def test_what_takes_several_manifests_is_merged_at_once_where_partitions_tell_them_apart() -> None:
    head = rows(25, size_bytes=1000)
    table = few(**{"commit.manifest.target-size-bytes": "10000"})
    assert plan_merges(head, table) == (tuple(head),)
    assert is_clustered(table, head)
    assert not is_clustered(table, head[:10])
    assert not is_clustered(few(**{"commit.manifest.target-size-bytes": "10000", **APART}), head)
    unpartitioned = replace(table, partition_specs=(PartitionSpec(0),))
    assert not is_clustered(unpartitioned, head)
    assert len(plan_merges(head, unpartitioned)) == 3


def test_a_run_counts_like_one_manifest_that_is_not_full() -> None:
    clustered = run(3, 20, 10_000, snapshot_id=7)
    table = few(**{"commit.manifest.target-size-bytes": "10000"})
    small = rows(30)
    assert plan_merges([*small, *clustered], table) == (tuple(small),)
    more = [*small, *rows(30)]
    assert plan_merges([*more, *clustered], table) == ((*more, *clustered),)


def test_of_a_full_run_only_what_is_below_the_target_is_merged_again() -> None:
    full = run(4, 30_000, 8 * MIB, snapshot_id=7)
    (rest,) = run(1, 10, 10_000, snapshot_id=7)
    small = rows(100, 2_000, size_bytes=50_000)
    assert plan_merges([*small, *full, rest], metadata()) == ((*small, rest),)


def test_a_run_of_other_writers_is_no_run_and_falls_apart() -> None:
    filtered = [replace(one, deleted_files_count=1) for one in run(5, 9, 10_000, snapshot_id=7)]
    table = few(**{"commit.manifest.target-size-bytes": "10000"})
    assert plan_merges(filtered, table) == ()
    below = [replace(one, manifest_length=9_000) for one in filtered]
    assert plan_merges(below, table) == (tuple(below),)


def test_a_run_is_not_larger_than_what_is_held_in_memory() -> None:
    head = rows(100, 2_000, size_bytes=MIB)
    found = plan_merges(head, metadata())
    # The newest four wait until there are more.
    assert [len(group) for group in found] == [32, 32, 32]


# --- Work over time ------------------------------------------------------------------------------


@pytest.mark.parametrize("target_bytes", [8 * MIB, 100_000], ids=["one manifest", "clustered"])
def test_an_entry_is_rewritten_a_few_times_in_ten_thousand_commits_and_the_list_stays_short(
    target_bytes: int,
) -> None:
    head: list[ManifestFile] = []
    table = metadata({"commit.manifest.target-size-bytes": str(target_bytes)})
    rewritten = longest = 0
    for number in range(10_000):
        head.insert(0, row(added_snapshot_id=number))
        for group in plan_merges(head, table):
            entries = sum(
                (one.added_files_count or 0) + (one.existing_files_count or 0) for one in group
            )
            rewritten += entries
            gone = {one.manifest_path for one in group}
            head = [one for one in head if one.manifest_path not in gone]
            per_manifest = (target_bytes - 6_000) // 250
            for start in range(0, entries, per_manifest):
                held = min(per_manifest, entries - start)
                head += run(1, held, 6_000 + 250 * held, snapshot_id=number)
        full = sum(one.manifest_length > 0.9 * target_bytes for one in head)
        longest = max(longest, len(head) - full)
    # Merging everything with every hundredth commit would rewrite half a million.
    assert rewritten <= 10_000 * 8
    assert longest < 100 + 8
    print(f"{rewritten / 10_000} times each, at most {longest} manifests")
