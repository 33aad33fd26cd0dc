"""Publishes a change as one request, waits for its end, and runs it again where it conflicts.

Runs on the driver. A change that conflicts is told so at once and not kept; as it rests on rows
that others have changed, only reading the table again helps. Iceberg's Spark leaves that to the
caller, and so does this without `retries`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from committer.errors import PublishError
from committer.iceberg.schema.schema import Schema
from committer.reason import Reason
from committer.request.needs import FILES_NAMED_MAX, Needs, Operation
from committer.request.receipt_model import Receipt, ReceiptState
from workers.branches.attempt_identity import AttemptIdentity
from workers.changes.change_options import ChangeOptions
from workers.changes.changed_table import ChangedTable, open_changed_table
from workers.changes.tasks.row_writer import RowsWritten
from workers.changes.what_changed import Changed
from workers.requests.blocking_publisher import borrow_publisher
from workers.requests.publisher import PublishPolicy
from workers.requests.written_epoch import WrittenEpoch
from workers.spark.discarded_files import delete_files

_log = logging.getLogger("frazil.workers")

# Whose files are deleted, where the log says so.
WHAT = "a change that did not land"


@dataclass(frozen=True, slots=True)
class PreparedChange:
    """The request that a change asks for. `needs` without the base; `written`: of its tasks;
    `union`: as of `WrittenEpoch`."""

    operation: Operation
    needs: Mapping[str, object] = field(default_factory=dict)
    written: Sequence[RowsWritten] = ()
    deleted_rows: int | None = 0
    updated_rows: int = 0
    inserted_rows: int = 0
    union: Schema | None = None


Prepare = Callable[[ChangedTable, AttemptIdentity], PreparedChange | None]


def run_change(options: ChangeOptions, application: str | None, prepare: Prepare) -> Changed:
    """Prepare a change on the table as it is, and publish it; again where it conflicts.

    Errors: `PublishError` for a conflict, with what it is; those of `prepare` and `publish`.
    """
    for left in range(options.retries, -1, -1):
        identity = AttemptIdentity.one_shot(application)
        with open_changed_table(options) as table:
            prepared = prepare(table, identity)
            if prepared is None:
                return Changed()
            policy = PublishPolicy("continue", "committed", options.wait_timeout_s)
            receipt = publish_change(table, identity, prepared, policy)
            if receipt.state == ReceiptState.COMMITTED:
                return _changed(prepared, receipt)
            # Only what is told alone is never kept, nor lands later.
            is_conflict = receipt.reason == Reason.CONFLICT
            if is_conflict:
                delete_written(prepared.written, table)
        if not is_conflict or not left:
            raise PublishError(_refused(options, receipt))
        _log.warning("%s; it is run again on the table as it is now", _refused(options, receipt))
    raise AssertionError("the last round returns or raises")


def _refused(options: ChangeOptions, receipt: Receipt) -> str:
    what = "conflicts with what others have changed" if receipt.conflict else "was refused"
    return f"the change of table `{options.table}` {what}, nothing of it landed: {receipt.message}"


def _changed(prepared: PreparedChange, receipt: Receipt) -> Changed:
    return Changed(
        receipt.snapshot_id,
        receipt.sequence_number,
        prepared.deleted_rows,
        prepared.updated_rows,
        prepared.inserted_rows,
    )


def publish_change(
    table: ChangedTable,
    identity: AttemptIdentity,
    prepared: PreparedChange,
    policy: PublishPolicy,
) -> Receipt:
    """Publish one try, and return its receipt. Errors: as `Publisher.publish`, and `PublishError`
    for more files than a request names."""
    for name in ("removed_data_files", "removed_delete_files", "referenced_data_files"):
        named = prepared.needs.get(name, ())
        if isinstance(named, Sequence) and len(named) > FILES_NAMED_MAX:
            delete_written(prepared.written, table)
            raise PublishError(
                f"the change of table `{table.name}` touches {len(named)} files, a request names"
                f" {FILES_NAMED_MAX} at most: change it in parts, by a condition for each"
            )
    with borrow_publisher(table.state.settings) as publisher:
        return publisher.publish(written_epoch(table, identity, prepared), policy)


def written_epoch(
    table: ChangedTable, identity: AttemptIdentity, prepared: PreparedChange
) -> WrittenEpoch:
    """Return what a try asks for, as a publisher takes it."""
    needs = {**table.base(), **prepared.needs, "on_conflict": "fail"}
    files = [file for each in prepared.written for file in each.files]
    asked = Needs.model_validate(needs)
    written = identity.written_epoch(table.state, prepared.operation, asked, files)
    return replace(written, union=prepared.union)


def delete_written(written: Sequence[RowsWritten], table: ChangedTable) -> None:
    """Delete the files of tasks that no request names, nor ever will."""
    locations = (file.file_path for each in written for file in each.files)
    delete_files(locations, table.state.access, WHAT)
