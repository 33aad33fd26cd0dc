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
from tests.workers.compaction.branch_states import branch_state
from workers.branches.attempt_identity import AttemptIdentity
from workers.compaction.publication.part_run import (
    PartRun,
    Published,
    all_lost,
    failed_groups,
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
    """Writes every group but `bad`, and answers each request alike."""

    answer: NotLanded | None = None
    published: list[str] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)

    def write(self, group: OneGroup, attempt: str) -> OneWritten:
        if group == BAD:
            raise ValueError("no such column")
        return OneWritten(group, attempt)

    def publish(
        self, identity: AttemptIdentity, written: Sequence[OneWritten]
    ) -> Published[OneGroup, OneWritten]:
        self.published += (each.group.name for each in written)
        if self.answer is not None:
            return Published(lost=all_lost((each.group for each in written), self.answer))
        return Published(tuple(written), (), 7)

    def discard(self, written: Sequence[OneWritten]) -> None:
        self.discarded += (each.group.name for each in written)

    def run(
        self, folder: Path, *groups: OneGroup, lands_whole: bool
    ) -> Published[OneGroup, OneWritten]:
        with branch_state(folder) as state, ThreadPoolExecutor(2) as threads:
            run = PartRun(
                "compaction",
                "files",
                state,
                "nightly",
                lands_whole,
                self.write,
                self.publish,
                self.discard,
            )
            return run.run(groups, threads)


def test_a_group_that_fails_costs_itself_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = Jobs()
    with caplog.at_level(logging.WARNING, "frazil.workers"):
        told = jobs.run(tmp_path, GOOD, BAD, lands_whole=False)
    assert [each.group for each in told.landed] == [GOOD]
    assert (jobs.published, jobs.discarded) == (["good"], [])
    assert failed_groups([told]) == (FailedGroup(3, 100, "ValueError: no such column"),)
    assert snapshots_of([told, Published()]) == (7,)
    assert caplog.messages == [
        "table `db.t`: a group of 3 files was not rewritten: ValueError: no such column"
    ]


def test_nothing_is_published_where_all_groups_fail(tmp_path: Path) -> None:
    jobs = Jobs()
    told = jobs.run(tmp_path, BAD, lands_whole=False)
    assert (told.landed, jobs.published, len(told.lost)) == ((), [], 1)


def test_a_part_that_lands_whole_is_given_up_with_one_group(tmp_path: Path) -> None:
    jobs = Jobs()
    with pytest.raises(PublishError, match=r"did not land, nothing was changed: ValueError"):
        jobs.run(tmp_path, GOOD, BAD, lands_whole=True)
    assert (jobs.published, jobs.discarded) == ([], ["good"])


@pytest.mark.parametrize(
    ("in_doubt", "told"), [(True, "has no answer: late"), (False, "did not land, nothing was")]
)
def test_a_part_that_lands_whole_tells_doubt_from_loss(
    tmp_path: Path, in_doubt: bool, told: str
) -> None:
    with pytest.raises(PublishError, match=told):
        Jobs(NotLanded("late", in_doubt)).run(tmp_path, GOOD, lands_whole=True)


def test_a_request_that_did_not_land_is_told_of_each_group(tmp_path: Path) -> None:
    told = Jobs(NotLanded("late", in_doubt=True)).run(tmp_path, GOOD, BAD, lands_whole=False)
    assert {(each.group.name, each.in_doubt) for each in told.lost} == {
        ("good", True),
        ("bad", False),
    }
