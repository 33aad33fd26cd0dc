"""Removes delete files that apply to no data file any more, by requests. Runs on the driver.

A compaction takes the deleted rows out of the data, and leaves delete files that readers open in
vain. Iceberg's option `remove-dangling-deletes` asks for their removal.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import islice

from committer.iceberg.entry.data_file import DataFile
from committer.request.needs import Needs, RemovedDeleteFile
from workers.branches.attempt_identity import AttemptIdentity
from workers.compaction.deletes.deletes_options import DeletesOptions
from workers.compaction.deletes.deletes_table import DeletesTable, open_deletes_table
from workers.compaction.publication.rewrite_request import NotLanded, send_rewrite
from workers.compaction.rewrite_options import RewriteOptions

_log = logging.getLogger("frazil.workers")

# A commit reads and writes anew the manifests of what it removes.
FILES_MAX = 5_000
_TRIES = 3


def remove_unused(application: str | None, compaction: RewriteOptions) -> int:
    """Remove the delete files of the compacted branch that apply to nothing; return how many went.

    They stay where data has come meanwhile that one of them may apply to: it is looked again a few
    times, and what is left is logged. Errors: those of reading the table.
    """
    options = DeletesOptions(
        "join positions",
        compaction.table,
        compaction.settings,
        {},
        branch=compaction.branch,
        wait_timeout_s=compaction.wait_timeout_s,
    )
    removed, tries = 0, _TRIES
    while True:
        with open_deletes_table(options) as table:
            files = [entry.data_file for entry in islice(table.live_deletes().unused(), FILES_MAX)]
            trouble = _remove(table, files, application)
        if trouble is None:
            removed += len(files)
            if len(files) < FILES_MAX:
                return removed
            continue
        # Looking again may help where others were faster.
        tries = 0 if trouble.in_doubt else tries - 1
        if not tries:
            _log.warning(
                "table `%s`: %d delete files that apply to nothing stay: %s",
                options.table,
                len(files),
                trouble.why,
            )
            return removed


def _remove(
    table: DeletesTable, files: Sequence[DataFile], application: str | None
) -> NotLanded | None:
    if not files:
        return None
    base = table.state.require_snapshot()
    needs = Needs(
        base_snapshot_id=base.snapshot_id,
        base_sequence_number=base.sequence_number,
        removed_delete_files=tuple(map(RemovedDeleteFile.of, files)),
        on_conflict="fail",
    )
    identity, timeout_s = AttemptIdentity.one_shot(application), table.options.wait_timeout_s
    answer = send_rewrite(table.state, identity, needs, (), timeout_s)
    return answer if isinstance(answer, NotLanded) else None
