"""Which files a compaction rewrites, in which groups, and how many files they become.

Expected groups are worked out by hand from the reference's rules.
"""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.scan.scan_task import FileScanTask
from workers.compaction.rewrite_groups import (
    FileGroup,
    RewriteSizes,
    group_splits,
    output_files,
    plan_groups,
)

SIZES = RewriteSizes(100, 75, 180)
SPEC = 1


def task(
    name: str,
    size: int = 10,
    *,
    partition: tuple[object, ...] = (),
    spec_id: int = SPEC,
    deletes: tuple[DataFile, ...] = (),
    offsets: tuple[int, ...] | None = None,
) -> FileScanTask:
    file = DataFile(
        file_path=name,
        partition=partition,
        record_count=10,
        file_size_in_bytes=size,
        spec_id=spec_id,
        split_offsets=offsets,
    )
    return FileScanTask(file, deletes, ALWAYS_TRUE)


def delete(rows: int, path: str | None) -> DataFile:
    return DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"d{rows}-{path}",
        record_count=rows,
        file_size_in_bytes=5,
        referenced_data_file=path,
    )


def planned(*tasks: FileScanTask, **about: object) -> list[str]:
    """Return the names of each group's files, run together."""
    sizes = replace(SIZES, **about)  # type: ignore[arg-type]
    return ["".join(group.paths) for group in plan_groups(tasks, sizes, SPEC)]


# --- Which files ---------------------------------------------------------------------------------


def test_files_of_about_the_wanted_size_stay() -> None:
    small, large = [task(name) for name in "abcde"], task("L", 181)
    right = [task("r", 75), task("s", 180), task("t", 100)]
    assert planned(*small, *right) == ["abcde"]
    assert planned(large, *right) == ["L"]
    assert planned(*small, *right, rewrites_all=True) == ["abcderst"]


def test_a_file_that_the_table_holds_twice_stays() -> None:
    files = [task(name) for name in "abcdefa"]
    assert planned(*files) == ["bcdef"]
    assert planned(*files, rewrites_all=True) == ["bcdef"]
    assert planned(task("a"), task("a"), rewrites_all=True) == []


def test_few_small_files_stay_unless_they_are_more_than_one_file() -> None:
    assert planned(*(task(name) for name in "abcd")) == []
    assert planned(*(task(name) for name in "abcd"), input_files=4) == ["abcd"]
    assert planned(task("a", 50), task("b", 50)) == []
    assert planned(task("a", 51), task("b", 50)) == ["ab"]
    # Alone, a file is joined with nothing.
    assert planned(task("a"), input_files=1) == []


def test_a_file_with_many_delete_files_is_rewritten() -> None:
    deletes = (delete(1, None), delete(2, None))
    assert planned(task("a", 100, deletes=deletes), delete_files=2) == ["a"]
    assert planned(task("a", 100, deletes=deletes), delete_files=3) == []


def test_a_file_of_which_many_rows_are_deleted_is_rewritten() -> None:
    assert planned(task("a", 100, deletes=(delete(3, "a"),))) == ["a"]
    assert planned(task("a", 100, deletes=(delete(2, "a"),))) == []
    # Together as many as it has rows, and no more.
    assert planned(task("a", 100, deletes=(delete(2, "a"), delete(1, "a")))) == ["a"]
    assert planned(task("a", 100, deletes=(delete(99, "a"),)), delete_ratio=1.0) == ["a"]
    # Deletes of a whole partition may all be of other files.
    assert planned(task("a", 100, deletes=(delete(9, None),))) == []


def test_a_file_without_rows_has_no_deleted_ones() -> None:
    empty = task("a", 100, deletes=(delete(1, "a"),))
    none = replace(empty, file=replace(empty.file, record_count=0))
    assert planned(none) == []


# --- Groups --------------------------------------------------------------------------------------


def test_a_group_has_files_of_one_partition() -> None:
    tasks = [task(f"{region}{n}", partition=(region,)) for n in range(5) for region in "ab"]
    assert planned(*tasks) == ["a0a1a2a3a4", "b0b1b2b3b4"]
    values = [math.nan, math.nan, 0.0, -0.0]
    floats = [task(str(at), partition=(value,)) for at, value in enumerate(values)]
    assert planned(*floats, rewrites_all=True) == ["01", "2", "3"]


def test_files_of_other_specs_are_one_group_whatever_their_partition() -> None:
    old = [task(f"o{n}", partition=(n,), spec_id=0) for n in range(3)]
    older = [task(f"p{n}", partition=(n,), spec_id=2) for n in range(2)]
    own = [task("n", partition=(0,))]
    assert planned(*old, *own, *older, rewrites_all=True) == ["o0o1o2p0p1", "n"]


def test_a_group_ends_before_the_file_that_is_too_much() -> None:
    tasks = [task(name, 40) for name in "abcde"]
    assert planned(*tasks, group_bytes=80, rewrites_all=True) == ["ab", "cd", "e"]
    # What is left is too little to be worth it.
    assert planned(*tasks, group_bytes=80, input_files=2) == ["ab", "cd"]
    assert planned(task("a", 10), task("L", 300), task("b", 10), group_bytes=80) == ["L"]


# --- What they become ----------------------------------------------------------------------------


def test_a_small_rest_is_dealt_to_the_other_files_and_a_large_one_is_a_file() -> None:
    assert [output_files(size, SIZES) for size in (1, 99, 100, 200)] == [1, 1, 1, 2]
    assert output_files(176, SIZES) == 2  # a rest of 76
    assert output_files(110, SIZES) == 1  # one file, 10 % larger
    assert output_files(111, SIZES) == 2  # more than 10 % is too much
    assert output_files(1_075, SIZES) == 10
    assert output_files(1_076, SIZES) == 11
    # A file is never made larger than it is written.
    narrow = RewriteSizes(100, 95, 104)
    assert [output_files(size, narrow) for size in (101, 102)] == [1, 2]


def test_each_split_becomes_one_file() -> None:
    large = RewriteSizes(100 << 20, 75 << 20, 180 << 20)
    tasks = [task(str(n), 10 << 20) for n in range(21)]
    splits = group_splits(FileGroup(tuple(tasks), None), large)
    assert [len(split) for split in splits] == [10, 10, 1]
    # Parts of a large file go apart.
    offsets = tuple(n * (50 << 20) for n in range(8))
    one = FileGroup((task("L", 400 << 20, offsets=offsets),), None)
    assert [split[0].start for split in group_splits(one, large)] == [
        n * (100 << 20) for n in range(4)
    ]


@given(st.lists(st.integers(1, 400), max_size=30), st.integers(1, 500))
def test_every_file_is_in_one_group_and_in_one_split(found: list[int], group_bytes: int) -> None:
    tasks = [task(f"{at},", size) for at, size in enumerate(found)]
    sizes = replace(SIZES, group_bytes=group_bytes, rewrites_all=True)
    groups = plan_groups(tasks, sizes, SPEC)
    assert [one for group in groups for one in group.tasks] == tasks
    for group in groups:
        assert len(group.tasks) == 1 or group.size_bytes <= group_bytes
        parts = [part for split in group_splits(group, sizes) for part in split]
        assert sum(part.length for part in parts) == group.size_bytes
