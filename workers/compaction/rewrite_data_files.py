"""A compaction: groups planned, written by Spark, published in parts, and told what became of them.

Runs on the driver.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from committer.errors import PublishError
from committer.request.needs import FILES_NAMED_MAX
from workers.compaction.deletes.unused_deletes import remove_unused
from workers.compaction.group_job import WHAT, GroupJob, sentence
from workers.compaction.publish_rewrite import (
    Lost,
    PartIdentity,
    Published,
    WrittenGroup,
    application_name,
    publish_groups,
)
from workers.compaction.rewrite_groups import FileGroup
from workers.compaction.rewrite_options import RewriteOptions
from workers.compaction.rewrite_result import FailedGroup, RewriteResult
from workers.compaction.rewritten_table import RewrittenTable, open_rewritten_table
from workers.requests.rewrite_parts import REMOVED_FILES_MAX, rewrite_parts
from workers.spark.discarded_files import delete_files

_log = logging.getLogger("frazil.workers")


def compact(
    spark: Any,
    options: RewriteOptions,
    choose: Callable[[list[FileGroup]], Sequence[FileGroup]] = list,
) -> RewriteResult:
    """Rewrite the files of a table as it is now: the groups that are chosen of those worth it.

    Errors: `SettingsError`, `UnsupportedError`, those of reading the table; `PublishError` for a
    compaction that lands whole or not at all, and did not.
    """
    with open_rewritten_table(options) as table:
        run = _Run(spark, table, application_name(spark))
        parts = list(_parts(choose(table.plan()), options))
        with ThreadPoolExecutor(options.groups_at_once, "frazil-rewrite") as threads:
            result = _result([run.part(part, threads) for part in parts])
    if not options.removes_dangling_deletes:
        return result
    return replace(result, removed_delete_files=remove_unused(run.application, options))


def _parts(groups: Sequence[FileGroup], options: RewriteOptions) -> Iterator[list[FileGroup]]:
    """Deal the groups to requests. Errors: `PublishError` for more files than one request names,
    where all of them are to land by one."""
    if not groups:
        return
    files = sum(len(group.tasks) for group in groups)
    if options.commits_max is None:
        if files > FILES_NAMED_MAX:
            raise PublishError(
                f"the compaction of table `{options.table}` replaces {files} files, a request names"
                f" {FILES_NAMED_MAX} at most: let parts of it land by themselves"
                " (`partial-progress.enabled`), or compact in parts, by `where`"
            )
        yield list(groups)
        return
    by_first = {group.paths[0]: group for group in groups}
    within = max(REMOVED_FILES_MAX, min(-(-files // options.commits_max), FILES_NAMED_MAX))
    for part in rewrite_parts((group.paths for group in groups), removed_files_max=within):
        yield [by_first[paths[0]] for paths in part]


@dataclass(frozen=True, slots=True)
class _Run:
    spark: Any
    table: RewrittenTable
    application: str | None

    def part(self, groups: Sequence[FileGroup], threads: ThreadPoolExecutor) -> Published:
        """Write the groups of one request, several at a time, and publish them."""
        identity, options = PartIdentity(self.application), self.table.options
        attempt, lands_alone = (
            identity.attempt(self.table.metadata, options.branch),
            self._lands_alone,
        )
        jobs = [GroupJob(self.spark, self.table, group, attempt) for group in groups]
        running = [threads.submit(job.run) for job in jobs]
        written, lost = self._written(groups, running)
        if lost and not lands_alone:
            self._discard(written)
            raise PublishError(self._whole(lost))
        if not written:
            return Published(lost=tuple(lost))
        published = publish_groups(self.table, identity, written, land_alone=lands_alone)
        if published.lost and not lands_alone:
            raise PublishError(self._whole(published.lost))
        for each in (*lost, *published.lost):
            self._tell(each)
        return Published(published.landed, (*lost, *published.lost), published.snapshot_id)

    @property
    def _lands_alone(self) -> bool:
        return self.table.options.commits_max is not None

    def _written(
        self, groups: Sequence[FileGroup], running: Sequence[Future[Any]]
    ) -> tuple[list[WrittenGroup], list[Lost]]:
        """Wait for all jobs; a job that failed costs its own group."""
        written, lost = [], []
        for group, job in zip(groups, running, strict=True):
            error = job.exception()
            if error is None:
                written.append(WrittenGroup(group, tuple(job.result())))
            elif isinstance(error, Exception):
                lost.append(Lost(group, sentence(error)))
            else:
                raise error
        return written, lost

    def _discard(self, written: Sequence[WrittenGroup]) -> None:
        files = (file.file_path for each in written for file in each.files)
        delete_files(files, self.table.access, WHAT)

    def _whole(self, lost: Sequence[Lost]) -> str:
        if any(each.in_doubt for each in lost):
            return f"the compaction of table `{self.table.name}` has no answer: {lost[0].why}"
        return (
            f"the compaction of table `{self.table.name}` did not land, nothing was changed:"
            f" {lost[0].why}"
        )

    def _tell(self, lost: Lost) -> None:
        _log.warning(
            "table `%s`: a group of %d files was not rewritten: %s",
            self.table.name,
            len(lost.group.tasks),
            lost.why,
        )


def _result(parts: Sequence[Published]) -> RewriteResult:
    landed = [each for part in parts for each in part.landed]
    added = [file for each in landed for file in each.files]
    return RewriteResult(
        sum(len(each.group.tasks) for each in landed),
        len(added),
        sum(each.group.size_bytes for each in landed),
        sum(file.file_size_in_bytes for file in added),
        tuple(
            FailedGroup(len(each.group.tasks), each.group.size_bytes, each.why, each.in_doubt)
            for part in parts
            for each in part.lost
        ),
        tuple(part.snapshot_id for part in parts if part.snapshot_id is not None),
    )
