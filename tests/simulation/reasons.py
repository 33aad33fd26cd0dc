"""Whether a reason for quarantine is true: what it says of the ledger or the catalog did happen.

Judged in the moment a record is written, from the model of the ledger and not by the ledger's own
code. A reason that says something of the request itself is the tests' of that check.
"""

from __future__ import annotations

from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.ledger_entry import property_key
from committer.plan.operations.conflict import ConflictCode
from committer.reason import Reason
from committer.request.commit_request import CommitRequest
from tests.simulation.ledger_model import LedgerModel, entry_in


def untrue(
    reason: str,
    request: CommitRequest,
    ledger: LedgerModel,
    metadata: TableMetadata,
    *,
    may_freeze: bool,
) -> str | None:
    """Return what is wrong with a reason; None if it is true, or says nothing of the ledger.

    `may_freeze`: whether the table was restored, or an operator has frozen the producer. Removing
    old snapshots freezes no producer.
    """
    landings = ledger.ever_landed(request)
    match reason:
        case Reason.EPOCH_CONTENT_DIFFERS.value:
            if all(landing.stands_for(request) for landing in landings):
                return "nothing else has landed of its epoch"
        case Reason.EPOCH_LANDED_UNPROVEN.value:
            known = _is_claimed(request, metadata) or ledger.may_be_forgotten(request)
            if not landings and not known:
                return "its epoch has never landed"
        case Reason.PRODUCER_FROZEN.value:
            if not may_freeze:
                return "the table was not restored, nor its producer frozen"
        case _:
            pass
    return None


def _is_claimed(request: CommitRequest, metadata: TableMetadata) -> bool:
    """Return whether the entry lists the epoch, as it lists a closed gap, which lost nothing
    durable.
    """
    entry = entry_in(metadata, property_key(request.producer.id, request.branch))
    ranges = entry.epochs.ranges if entry is not None else ()
    return any(low <= request.epoch <= high for low, high in ranges)


def untrue_conflict(
    code: str | None, request: CommitRequest, metadata: TableMetadata, live: set[object]
) -> str | None:
    """Return what is wrong with a conflict; None if there is a cause for it on its branch. `live`:
    of those that it may remove the paths of data files, and the keys of delete files.
    """
    needs = request.needs
    if request.operation in ("alter", "cherry-pick"):
        # They rest on names and on what is staged, not on a base; by now these may be others.
        return None
    if code == ConflictCode.MISSING:
        deletes = (
            (one.file_path, one.content_offset, one.content_size_in_bytes)
            for one in needs.removed_delete_files
        )
        is_live = live.issuperset((*needs.removed_data_files, *deletes))
        return "all files that it removes are live" if is_live else None
    if code == ConflictCode.ALREADY_LIVE and needs.append_only:
        return None if live else "its partitions are empty"
    if code == ConflictCode.PARTIAL_MATCH:
        return None  # of its filter, or of files of another spec: not of what has come
    head = metadata.branch_head(request.branch)
    if head is None or head.snapshot_id == needs.base_snapshot_id:
        return "nothing has come since its base"
    return None
