"""Which groups have their turn in a round."""

from __future__ import annotations

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.scan.scan_task import FileScanTask
from workers.compaction.partition_turns import Turns
from workers.compaction.rewrite_groups import FileGroup


def group(region: str, files: int, size: int = 10) -> FileGroup:
    tasks = [
        FileScanTask(
            DataFile(file_path=f"{region}{at}", record_count=1, file_size_in_bytes=size),
            (),
            ALWAYS_TRUE,
        )
        for at in range(files)
    ]
    return FileGroup(tuple(tasks), (0, (region,)))


def regions(turns: Turns, *groups: FileGroup) -> str:
    return "".join(one.paths[0][0] for one in turns.choose(groups))


def test_the_partitions_with_the_most_files_come_first() -> None:
    groups = group("a", 5), group("b", 7), group("c", 6)
    assert regions(Turns(1_000), *groups) == "bca"
    assert regions(Turns(130), *groups) == "bc"
    # One has its turn, however large; and none is passed over for a smaller one.
    assert regions(Turns(1), *groups) == "b"
    assert regions(Turns(125), *groups) == "b"
    assert regions(Turns(1)) == ""


def test_a_busy_partition_keeps_no_other_waiting_for_ever() -> None:
    turns = Turns(1)
    groups = group("a", 5), group("b", 50), group("c", 6)
    assert [regions(turns, *groups) for _ in range(7)] == [*"bcabcab"]


def test_a_partition_that_had_nothing_to_do_is_as_new() -> None:
    turns = Turns(1)
    assert [regions(turns, group("a", 5), group("b", 4)) for _ in range(2)] == ["a", "b"]
    assert regions(turns, group("b", 9)) == "b"
    assert regions(turns, group("a", 5), group("b", 9)) == "a"
