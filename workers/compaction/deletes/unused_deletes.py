"""Removes delete files that apply to no data file any more, by requests. Runs on the driver.

A compaction takes the deleted rows out of the data, and leaves delete files that readers open in
vain. Iceberg's option `remove-dangling-deletes` asks for their removal.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from committer.iceberg.entry.data_file import DataFile
from committer.reason import Reason
from committer.request.needs import Needs
from committer.request.receipt_model import ReceiptState
from workers.compaction.deletes.deletes_options import DeletesOptions
from workers.compaction.deletes.deletes_table import DeletesTable, open_deletes_table
from workers.compaction.deletes.publish_deletes import base_of, named_delete, send
from workers.compaction.publish_rewrite import PartIdentity
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
        tries = tries - 1 if trouble.is_conflict else 0
        if not tries:
            _log.warning(
                "table `%s`: %d delete files that apply to nothing stay: %s",
                options.table,
                len(files),
                trouble.message,
            )
            return removed


@dataclass(frozen=True, slots=True)
class _Trouble:
    """Why delete files stay. `is_conflict`: looking again may help."""

    message: str
    is_conflict: bool = False


def _remove(
    table: DeletesTable, files: Sequence[DataFile], application: str | None
) -> _Trouble | None:
    if not files:
        return None
    base = base_of(table)
    needs = Needs(
        base_snapshot_id=base.snapshot_id,
        base_sequence_number=base.sequence_number,
        removed_delete_files=tuple(map(named_delete, files)),
        on_conflict="fail",
    )
    answer = send(table, PartIdentity(application), needs, ())
    if isinstance(answer, str):
        return _Trouble(answer)
    if answer.state == ReceiptState.QUARANTINED:
        return _Trouble(f"{answer.reason}: {answer.message}", answer.reason == Reason.CONFLICT)
    return None
