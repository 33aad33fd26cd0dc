"""A part of a rewrite whose group fails, or whose request does not land."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from committer.errors import PublishError
from committer.iceberg.entry.data_file import DataFile
from tests.workers.branch_states import branch_state
from workers.branches.attempt_identity import AttemptIdentity
from workers.compaction.publication.part_run import (
    PartRun,
    Published,
    failed_groups,
    nothing_landed,
    snapshots_of,
)
from workers.compaction.publication.rewrite_request import NotLanded
from workers.compaction.rewrite_result import FailedGroup


@dataclass(frozen=True)
class OneGroup:
    name: str
    file_count: int = 3
    size_bytes: int = 100


@dataclass(frozen=True)
class OneWritten:
    group: OneGroup
    attempt: str
    files: Sequence[DataFile] = ()


GOOD, BAD = OneGroup("good"), OneGroup("bad")


@dataclass
class Jobs:
    """Writes a file for every group but `bad`, and answers each request alike."""

    folder: Path
    answer: NotLanded | None = None
    published: list[str] = field(default_factory=list)

    @property
    def files(self) -> set[str]:
        return {path.stem for path in self.folder.glob("*.parquet")}

    def write(self, group: OneGroup, attempt: str) -> OneWritten:
        if group == BAD:
            raise ValueError("no such column")
        path = self.folder / f"{group.name}.parquet"
        path.write_bytes(b"rows")
        file = DataFile(file_path=f"file:{path}", record_count=1, file_size_in_bytes=4)
        return OneWritten(group, attempt, [file])

    def publish(
        self, identity: AttemptIdentity, written: Sequence[OneWritten]
    ) -> Published[OneGroup, OneWritten]:
        self.published += (each.group.name for each in written)
        if self.answer is not None:
            with branch_state(self.folder) as state:
                return nothing_landed(state, "a compaction", written, self.answer)
        return Published(tuple(written), (), 7)

    def run(self, *groups: OneGroup, lands_whole: bool) -> Published[OneGroup, OneWritten]:
        with branch_state(self.folder) as state, ThreadPoolExecutor(2) as threads:
            run = PartRun(
                "compaction",
                "files",
                "a compaction",
                state,
                "nightly",
                lands_whole,
                self.write,
                self.publish,
            )
            return run.run(groups, threads)


def test_a_group_that_fails_costs_itself_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = Jobs(tmp_path)
    with caplog.at_level(logging.WARNING, "frazil.workers"):
        told = jobs.run(GOOD, BAD, lands_whole=False)
    assert [each.group for each in told.landed] == [GOOD]
    assert (jobs.published, jobs.files) == (["good"], {"good"})
    assert failed_groups([told]) == (FailedGroup(3, 100, "ValueError: no such column"),)
    assert snapshots_of([told, Published()]) == (7,)
    assert caplog.messages == [
        "table `db.t`: a group of 3 files was not rewritten: ValueError: no such column"
    ]


def test_nothing_is_published_where_all_groups_fail(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    told = jobs.run(BAD, lands_whole=False)
    assert (told.landed, jobs.published, len(told.lost)) == ((), [], 1)


def test_a_part_that_lands_whole_is_given_up_with_one_group(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    with pytest.raises(PublishError, match=r"did not land, nothing was changed: ValueError"):
        jobs.run(GOOD, BAD, lands_whole=True)
    assert (jobs.published, jobs.files) == ([], set())


@pytest.mark.parametrize(
    ("in_doubt", "told"), [(True, "has no answer: late"), (False, "did not land, nothing was")]
)
def test_a_part_that_lands_whole_tells_doubt_from_loss(
    tmp_path: Path, in_doubt: bool, told: str
) -> None:
    jobs = Jobs(tmp_path, NotLanded("late", in_doubt))
    with pytest.raises(PublishError, match=told):
        jobs.run(GOOD, lands_whole=True)
    assert jobs.files == ({"good"} if in_doubt else set())


def test_a_request_that_did_not_land_is_told_of_each_group(tmp_path: Path) -> None:
    told = Jobs(tmp_path, NotLanded("late", in_doubt=True)).run(GOOD, BAD, lands_whole=False)
    assert {(each.group.name, each.in_doubt) for each in told.lost} == {
        ("good", True),
        ("bad", False),
    }
