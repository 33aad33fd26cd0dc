"""A compaction: groups planned, written by Spark, published in parts, and told what became of them.

Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from committer.errors import PublishError
from committer.request.needs import FILES_NAMED_MAX
from workers.branches.application_name import application_name
from workers.branches.attempt_identity import AttemptIdentity
from workers.compaction.deletes.unused_deletes import remove_unused
from workers.compaction.group_job import WHAT, GroupJob
from workers.compaction.publication.part_run import (
    PartRun,
    Published,
    failed_groups,
    snapshots_of,
)
from workers.compaction.publish_groups import WrittenGroup, publish_groups
from workers.compaction.rewrite_groups import FileGroup
from workers.compaction.rewrite_options import RewriteOptions
from workers.compaction.rewrite_result import RewriteResult
from workers.compaction.rewritten_table import RewrittenTable, open_rewritten_table
from workers.requests.rewrite_parts import REMOVED_FILES_MAX, rewrite_parts


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
        application = application_name(spark)
        run = _part_run(spark, table, application)
        parts = list(_parts(choose(table.plan()), options))
        with ThreadPoolExecutor(options.groups_at_once, "frazil-rewrite") as threads:
            result = _result([run.run(part, threads) for part in parts])
    if not options.removes_dangling_deletes:
        return result
    return replace(result, removed_delete_files=remove_unused(application, options))


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


def _part_run(
    spark: Any, table: RewrittenTable, application: str | None
) -> PartRun[FileGroup, WrittenGroup]:
    lands_whole = table.options.commits_max is None

    def write(group: FileGroup, attempt: str) -> WrittenGroup:
        return WrittenGroup(group, tuple(GroupJob(spark, table, group, attempt).run()))

    def publish(
        identity: AttemptIdentity, written: Sequence[WrittenGroup]
    ) -> Published[FileGroup, WrittenGroup]:
        return publish_groups(table, identity, written, land_alone=not lands_whole)

    return PartRun(
        "compaction",
        "files",
        WHAT,
        table.state,
        application,
        lands_whole,
        write,
        publish,
    )


def _result(parts: Sequence[Published[FileGroup, WrittenGroup]]) -> RewriteResult:
    landed = [each for part in parts for each in part.landed]
    added = [file for each in landed for file in each.files]
    return RewriteResult(
        sum(len(each.group.tasks) for each in landed),
        len(added),
        sum(each.group.size_bytes for each in landed),
        sum(file.file_size_in_bytes for file in added),
        failed_groups(parts),
        snapshots_of(parts),
    )
