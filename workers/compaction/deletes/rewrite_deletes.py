"""A rewrite of delete files: groups planned, written by Spark, published in parts, told of.

Runs on the driver.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from committer.errors import PublishError
from committer.request.needs import FILES_NAMED_MAX
from workers.compaction.deletes.delete_groups import DeletesGroup
from workers.compaction.deletes.delete_job import DeletesJob
from workers.compaction.deletes.deletes_options import DeletesOptions
from workers.compaction.deletes.deletes_table import DeletesTable, open_deletes_table
from workers.compaction.deletes.live_deletes import DeleteKey, delete_key, stored_bytes
from workers.compaction.deletes.publish_deletes import (
    LostDeletes,
    PublishedDeletes,
    WrittenDeletes,
    discard,
    publish_deletes,
)
from workers.compaction.group_job import sentence
from workers.compaction.publish_rewrite import PartIdentity, application_name
from workers.compaction.rewrite_result import DeletesResult, FailedGroup
from workers.requests.rewrite_parts import REMOVED_FILES_MAX

_log = logging.getLogger("frazil.workers")


def rewrite_deletes(spark: Any, options: DeletesOptions) -> DeletesResult:
    """Rewrite the delete files of a table as it is now.

    Errors: `SettingsError`, those of reading the table; `PublishError` for a rewrite that lands
    whole or not at all, and did not.
    """
    with open_deletes_table(options) as table:
        live = table.live_deletes()
        groups = table.plan(live)
        numbers = {delete_key(one.data_file): one.sequence_number or 0 for one in live.entries}
        run = _Run(spark, table, numbers, application_name(spark))
        with ThreadPoolExecutor(options.groups_at_once, "frazil-deletes") as threads:
            return _result([run.part(part, threads) for part in deal(groups, options.commits_max)])


def deal(groups: Sequence[DeletesGroup], commits_max: int | None) -> Iterator[list[DeletesGroup]]:
    """Deal the groups to requests, of which each lands whole: None to one. One has at least 500
    delete files to remove, if there are as many."""
    files = sum(len(group.removed) for group in groups)
    within = files if commits_max is None else -(-files // commits_max)
    if commits_max is not None:
        within = max(REMOVED_FILES_MAX, min(within, FILES_NAMED_MAX // 2))
    part: list[DeletesGroup] = []
    count = 0
    for group in groups:
        if part and count + len(group.removed) > within:
            yield part
            part, count = [], 0
        part.append(group)
        count += len(group.removed)
    if part:
        yield part


@dataclass(frozen=True, slots=True)
class _Run:
    spark: Any
    table: DeletesTable
    numbers: Mapping[DeleteKey, int]
    application: str | None

    def part(self, groups: Sequence[DeletesGroup], threads: ThreadPoolExecutor) -> PublishedDeletes:
        """Write the groups of one request, several at a time, and publish them."""
        identity, options = PartIdentity(self.application), self.table.options
        attempt = identity.attempt(self.table.metadata, options.branch)
        jobs = [DeletesJob(self.spark, self.table, group, attempt) for group in groups]
        running = [threads.submit(job.run) for job in jobs]
        written, lost = self._written(groups, running)
        is_whole = options.commits_max is None
        if lost and is_whole:
            discard(written, self.table)
            raise PublishError(self._whole(lost))
        if not written:
            return PublishedDeletes(lost=tuple(lost))
        published = publish_deletes(self.table, identity, written, self.numbers)
        if published.lost and is_whole:
            raise PublishError(self._whole(published.lost))
        for each in (*lost, *published.lost):
            self._tell(each)
        return PublishedDeletes(published.landed, (*lost, *published.lost), published.snapshot_id)

    def _written(
        self, groups: Sequence[DeletesGroup], running: Sequence[Future[Any]]
    ) -> tuple[list[WrittenDeletes], list[LostDeletes]]:
        """Wait for all jobs; a job that failed costs its own group."""
        written, lost = [], []
        for group, job in zip(groups, running, strict=True):
            error = job.exception()
            if error is None:
                written.append(WrittenDeletes(group, tuple(job.result())))
            elif isinstance(error, Exception):
                lost.append(LostDeletes(group, sentence(error)))
            else:
                raise error
        return written, lost

    def _whole(self, lost: Sequence[LostDeletes]) -> str:
        name = self.table.options.table
        if any(each.in_doubt for each in lost):
            return f"the rewrite of deletes of table `{name}` has no answer: {lost[0].why}"
        return (
            f"the rewrite of deletes of table `{name}` did not land, nothing was changed:"
            f" {lost[0].why}"
        )

    def _tell(self, lost: LostDeletes) -> None:
        _log.warning(
            "table `%s`: a group of %d delete files was not rewritten: %s",
            self.table.options.table,
            len(lost.group.removed),
            lost.why,
        )


def _result(parts: Sequence[PublishedDeletes]) -> DeletesResult:
    landed = [each for part in parts for each in part.landed]
    removed = [file for each in landed for file in each.removed.values()]
    added = [file for each in landed for file in each.files]
    return DeletesResult(
        len(removed),
        len(added),
        sum(map(stored_bytes, removed)),
        sum(map(stored_bytes, added)),
        tuple(
            FailedGroup(len(each.group.removed), each.group.size_bytes, each.why, each.in_doubt)
            for part in parts
            for each in part.lost
        ),
        tuple(part.snapshot_id for part in parts if part.snapshot_id is not None),
    )
