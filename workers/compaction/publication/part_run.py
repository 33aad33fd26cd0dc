"""One part of a rewrite: groups of files that Spark writes anew, and one request publishes.

Runs on the driver.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from committer.errors import PublishError
from committer.iceberg.entry.data_file import DataFile
from workers.branches.attempt_identity import AttemptIdentity
from workers.branches.branch_state import BranchState
from workers.compaction.publication.rewrite_request import NotLanded
from workers.compaction.rewrite_result import FailedGroup
from workers.spark.discarded_files import delete_files
from workers.spark.task_error import task_error

_log = logging.getLogger("frazil.workers")


class Group(Protocol):
    """Files that are written anew together."""

    @property
    def file_count(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...


G_co = TypeVar("G_co", bound=Group, covariant=True)


class Written(Protocol[G_co]):
    """A group, and the files that its tasks wrote."""

    @property
    def group(self) -> G_co: ...

    @property
    def files(self) -> Sequence[DataFile]: ...


G = TypeVar("G", bound=Group)
W = TypeVar("W", bound=Written[Group])


@dataclass(frozen=True, slots=True)
class Lost(Generic[G]):
    """A group that was not rewritten, and why. `in_doubt`: it may have been, or may be yet."""

    group: G
    why: str
    in_doubt: bool = False


@dataclass(frozen=True, slots=True)
class Published(Generic[G, W]):
    """The outcome of a request, by group. `snapshot_id`: of the snapshot that it made."""

    landed: tuple[W, ...] = ()
    lost: tuple[Lost[G], ...] = ()
    snapshot_id: int | None = None


@dataclass(frozen=True, slots=True)
class PartRun(Generic[G, W]):
    """Writes and publishes one part after another.

    `rewrite` and `files`: what the user calls the rewrite, and the files of a group. `what`: whose
    files are deleted, where the log says so. `lands_whole`: all groups of a part land, or none.
    `write`: writes a group for an attempt, as a Spark job.
    """

    rewrite: str
    files: str
    what: str
    state: BranchState
    application: str | None
    lands_whole: bool
    write: Callable[[G, str], W]
    publish: Callable[[AttemptIdentity, Sequence[W]], Published[G, W]]

    def run(self, groups: Sequence[G], threads: ThreadPoolExecutor) -> Published[G, W]:
        """Write the groups of one request, several at a time, and publish them.

        Errors: `PublishError` for a part that lands whole or not at all, and did not.
        """
        identity = AttemptIdentity.one_shot(self.application)
        attempt = identity.attempt(self.state)
        running = [threads.submit(self.write, group, attempt) for group in groups]
        written, lost = _ended(groups, running)
        if lost and self.lands_whole:
            discard(self.state, self.what, written)
            raise PublishError(self._whole(lost))
        if not written:
            return Published(lost=tuple(lost))
        published = self.publish(identity, written)
        if published.lost and self.lands_whole:
            raise PublishError(self._whole(published.lost))
        for each in (*lost, *published.lost):
            self._log_lost(each)
        return replace(published, lost=(*lost, *published.lost))

    def _whole(self, lost: Sequence[Lost[G]]) -> str:
        why = lost[0].why
        if any(each.in_doubt for each in lost):
            return f"the {self.rewrite} of table `{self.state.table}` has no answer: {why}"
        return (
            f"the {self.rewrite} of table `{self.state.table}` did not land, nothing was changed:"
            f" {why}"
        )

    def _log_lost(self, lost: Lost[G]) -> None:
        _log.warning(
            "table `%s`: a group of %d %s was not rewritten: %s",
            self.state.table,
            lost.group.file_count,
            self.files,
            lost.why,
        )


def _ended(groups: Sequence[G], running: Sequence[Future[W]]) -> tuple[list[W], list[Lost[G]]]:
    """Wait for all jobs; a job that failed costs its own group."""
    written, lost = [], []
    for group, job in zip(groups, running, strict=True):
        error = job.exception()
        if error is None:
            written.append(job.result())
        elif isinstance(error, Exception):
            lost.append(Lost(group, task_error(error)))
        else:
            raise error
    return written, lost


def failed_groups(parts: Iterable[Published[G, W]]) -> tuple[FailedGroup, ...]:
    """Tell the caller of the groups that were not rewritten."""
    return tuple(
        FailedGroup(each.group.file_count, each.group.size_bytes, each.why, each.in_doubt)
        for part in parts
        for each in part.lost
    )


def snapshots_of(parts: Iterable[Published[G, W]]) -> tuple[int, ...]:
    """Return the snapshots that the parts made, in their order."""
    return tuple(part.snapshot_id for part in parts if part.snapshot_id is not None)


def nothing_landed(
    state: BranchState, what: str, written: Sequence[Written[G]], answer: NotLanded
) -> Published[G, W]:
    """Return what a request that did not land means for each of its groups, and delete their files
    where no request names them. `what`: as of `PartRun`."""
    if not answer.in_doubt:
        discard(state, what, written)
    return Published(lost=tuple(Lost(each.group, answer.why, answer.in_doubt) for each in written))


def discard(state: BranchState, what: str, written: Iterable[Written[Group]]) -> None:
    """Delete files that no request names, nor ever will."""
    paths = (file.file_path for each in written for file in each.files)
    delete_files(paths, state.access, what)
