"""A rewrite of delete files: groups planned, written by Spark, published in parts, told of.

Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from committer.request.needs import FILES_NAMED_MAX
from workers.branches.application_name import application_name
from workers.branches.attempt_identity import AttemptIdentity
from workers.compaction.deletes.delete_groups import DeletesGroup
from workers.compaction.deletes.delete_job import WHAT, DeletesJob
from workers.compaction.deletes.deletes_options import DeletesOptions
from workers.compaction.deletes.deletes_table import DeletesTable, open_deletes_table
from workers.compaction.deletes.live_deletes import DeleteKey, delete_key, stored_bytes
from workers.compaction.deletes.publish_deletes import WrittenDeletes, publish_deletes
from workers.compaction.publication.part_run import (
    PartRun,
    Published,
    failed_groups,
    snapshots_of,
)
from workers.compaction.rewrite_result import DeletesResult
from workers.requests.rewrite_parts import REMOVED_FILES_MAX, dealt


def rewrite_deletes(spark: Any, options: DeletesOptions) -> DeletesResult:
    """Rewrite the delete files of a table as it is now.

    Errors: `SettingsError`, those of reading the table; `PublishError` for a rewrite that lands
    whole or not at all, and did not.
    """
    with open_deletes_table(options) as table:
        live = table.live_deletes()
        groups = table.plan(live)
        numbers = {delete_key(one.data_file): one.sequence_number or 0 for one in live.entries}
        run = _part_run(spark, table, numbers)
        with ThreadPoolExecutor(options.groups_at_once, "frazil-deletes") as threads:
            return _result([run.run(part, threads) for part in deal(groups, options.commits_max)])


def deal(groups: Sequence[DeletesGroup], commits_max: int | None) -> Iterator[list[DeletesGroup]]:
    """Deal the groups to requests, of which each lands whole: None to one. One has at least 500
    delete files to remove, if there are as many."""
    files = sum(group.file_count for group in groups)
    within = files if commits_max is None else -(-files // commits_max)
    if commits_max is not None:
        within = max(REMOVED_FILES_MAX, min(within, FILES_NAMED_MAX // 2))
    return dealt(groups, lambda group: group.file_count, within)


def _part_run(
    spark: Any, table: DeletesTable, numbers: Mapping[DeleteKey, int]
) -> PartRun[DeletesGroup, WrittenDeletes]:
    def write(group: DeletesGroup, attempt: str) -> WrittenDeletes:
        return WrittenDeletes(group, tuple(DeletesJob(spark, table, group, attempt).run()))

    def publish(
        identity: AttemptIdentity, written: Sequence[WrittenDeletes]
    ) -> Published[DeletesGroup, WrittenDeletes]:
        return publish_deletes(table, identity, written, numbers)

    return PartRun(
        "rewrite of deletes",
        "delete files",
        WHAT,
        table.state,
        application_name(spark),
        table.options.commits_max is None,
        write,
        publish,
    )


def _result(parts: Sequence[Published[DeletesGroup, WrittenDeletes]]) -> DeletesResult:
    landed = [each for part in parts for each in part.landed]
    removed = [file for each in landed for file in each.removed.values()]
    added = [file for each in landed for file in each.files]
    return DeletesResult(
        len(removed),
        len(added),
        sum(map(stored_bytes, removed)),
        sum(map(stored_bytes, added)),
        failed_groups(parts),
        snapshots_of(parts),
    )
