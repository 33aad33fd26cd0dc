"""Splits: what is packed together, and that nothing is lost or read twice.

Expected packings are worked out by hand from the reference's rules.
"""

from __future__ import annotations

from random import Random

from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.reading.pack_splits import Split, SplitSizes, pack_splits
from committer.iceberg.scan.scan_task import FileScanTask

KIB = 1024


def task(
    name: str, size: int, offsets: tuple[int, ...] | None = None, deletes: tuple[DataFile, ...] = ()
) -> FileScanTask:
    file = DataFile(file_path=name, record_count=1, file_size_in_bytes=size, split_offsets=offsets)
    return FileScanTask(file, deletes, ALWAYS_TRUE)


def packed(tasks: list[FileScanTask], **sizes: int) -> list[list[tuple[str, int, int]]]:
    return [described(split) for split in pack_splits(tasks, SplitSizes(**sizes))]


def described(split: Split) -> list[tuple[str, int, int]]:
    return [(part.task.file.file_path, part.start, part.length) for part in split]


def test_small_files_share_a_split_until_it_is_full() -> None:
    tasks = [task(name, 40) for name in "abcde"]
    found = packed(tasks, split_bytes=100, open_file_cost_bytes=1)
    assert found == [
        [("a", 0, 40), ("b", 0, 40)],
        [("c", 0, 40), ("d", 0, 40)],
        [("e", 0, 40)],
    ]


def test_each_file_counts_at_least_what_opening_it_costs() -> None:
    tasks = [task(name, 1) for name in "abc"]
    found = packed(tasks, split_bytes=100, open_file_cost_bytes=50)
    assert found == [[("a", 0, 1), ("b", 0, 1)], [("c", 0, 1)]]


def test_delete_files_count_with_their_bytes_and_the_cost_of_opening_them() -> None:
    position = DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path="p",
        record_count=1,
        file_size_in_bytes=70,
    )
    vector = DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path="v",
        file_format="PUFFIN",
        record_count=1,
        file_size_in_bytes=10_000,
        content_offset=4,
        content_size_in_bytes=10,
    )
    heavy = [task("a", 20, deletes=(position,)), task("b", 20)]
    assert len(packed(heavy, split_bytes=100, open_file_cost_bytes=1)) == 2
    light = [task("a", 20, deletes=(vector,)), task("b", 20)]
    assert len(packed(light, split_bytes=100, open_file_cost_bytes=1)) == 1
    assert len(packed(light, split_bytes=100, open_file_cost_bytes=40)) == 2


def test_row_groups_of_a_large_file_are_split_and_joined_again_in_one_split() -> None:
    one = task("a", 250, offsets=(4, 60, 110, 160, 210))
    assert packed([one], split_bytes=110, open_file_cost_bytes=1) == [
        [("a", 0, 110)],
        [("a", 110, 100)],
        [("a", 210, 40)],
    ]
    whole = [task("a", 50), task("b", 50, offsets=(4, 20, 30))]
    assert packed(whole, split_bytes=100, open_file_cost_bytes=1) == [[("a", 0, 50), ("b", 0, 50)]]


def test_a_part_goes_where_there_is_room_among_the_open_splits() -> None:
    sizes = [60, 70, 80, 40, 30]
    tasks = [task(name, size) for name, size in zip("abcde", sizes, strict=True)]
    found = packed(tasks, split_bytes=100, lookback=3, open_file_cost_bytes=1)
    assert found == [
        [("a", 0, 60), ("d", 0, 40)],
        [("b", 0, 70), ("e", 0, 30)],
        [("c", 0, 80)],
    ]


def test_beyond_the_lookback_the_heaviest_split_is_done() -> None:
    sizes = [60, 70, 80, 40, 30]
    tasks = [task(name, size) for name, size in zip("abcde", sizes, strict=True)]
    found = packed(tasks, split_bytes=100, lookback=1, open_file_cost_bytes=1)
    # Of a and b, b is heavier; of a and c, c.
    assert found == [
        [("b", 0, 70)],
        [("c", 0, 80)],
        [("a", 0, 60), ("d", 0, 40)],
        [("e", 0, 30)],
    ]


def test_every_byte_of_every_file_is_in_one_part() -> None:
    random = Random(7)
    for _ in range(200):
        tasks = []
        for number in range(random.randrange(8)):
            size = random.randrange(1, 500)
            offsets = tuple(sorted({random.randrange(size) for _ in range(random.randrange(6))}))
            tasks.append(task(f"f{number}", size, offsets or None))
        sizes = SplitSizes(
            random.randrange(1, 300), random.randrange(1, 4), random.randrange(1, 50)
        )
        covered = {each.file.file_path: set[int]() for each in tasks}
        for split in pack_splits(tasks, sizes):
            assert split
            for part in split:
                bytes_of = set(range(part.start, part.start + part.length))
                assert not bytes_of & covered[part.task.file.file_path]
                covered[part.task.file.file_path] |= bytes_of
        for each in tasks:
            assert covered[each.file.file_path] == set(range(each.file.file_size_in_bytes))
