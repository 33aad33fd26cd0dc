"""The requests of a snapshot, from its manifest list's Avro header.

Written for audits. Read if an epoch arrives once more after its request has left the inbox and the
ledger has forgotten its details.

    frazil.requests = [[producer, epoch, attempt, fingerprint kind, fingerprint value], …]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from uuid import UUID

import orjson

from committer.iceberg.avro.container import read_header
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.ledger_entry import Landed, short_fingerprint
from committer.plan.ledger.ledger import history_of
from committer.request.commit_request import CommitRequest

EVIDENCE_KEY = "frazil.requests"
# In the snapshot's summary: its number of requests, which also marks it as Frazil's.
COUNT_KEY = "frazil.requests-count"
TRANSACTION_KEY = "frazil.transaction"
"""The id of the transaction that a snapshot is part of."""
# How far back proofs are searched: far more snapshots than a crash can leave.
SNAPSHOTS_MAX = 100

EpochEvidence = dict[tuple[str, int], Landed]


def print_evidence(requests: Sequence[CommitRequest]) -> str:
    """Print the header's value for the requests of a batch."""
    rows = [
        [
            request.producer.id,
            request.epoch,
            str(request.attempt),
            request.fingerprint.kind,
            request.fingerprint.value,
        ]
        for request in requests
    ]
    return orjson.dumps(rows).decode()


def read_evidence(manifest_list: bytes, snapshot: Snapshot) -> EpochEvidence:
    """Return the epochs that a manifest list proves landed. Without Frazil's header it proves none.

    Errors: `InvalidMetadataError` for bytes that are no manifest list.
    """
    text = read_header(manifest_list).metadata.get(EVIDENCE_KEY, b"[]")
    found: EpochEvidence = {}
    try:
        for producer, epoch, attempt, kind, value in orjson.loads(text):
            found[str(producer), int(epoch)] = Landed(
                int(epoch),
                str(kind),
                short_fingerprint(str(value)),
                UUID(attempt),
                snapshot.snapshot_id,
                snapshot.sequence_number,
            )
    except (ValueError, TypeError):
        return {}  # a foreign header of this name proves nothing either
    return found


def is_ours(snapshot: Snapshot) -> bool:
    """Return whether Frazil made a snapshot."""
    return COUNT_KEY in (snapshot.summary or {})


def lands_nothing(snapshot: Snapshot) -> bool:
    """Return whether Frazil made a snapshot for its head alone, without requests."""
    return (snapshot.summary or {}).get(COUNT_KEY) == "0"


def has_evidence(snapshot: Snapshot) -> bool:
    """Return whether a snapshot's manifest list may prove what landed in it."""
    return is_ours(snapshot) and bool(snapshot.manifest_list)


def snapshots_with_evidence(metadata: TableMetadata, branch: str) -> Iterator[Snapshot]:
    """Yield Frazil's snapshots behind a branch head, newest first,
    as far back as proofs are searched.
    """
    return filter(has_evidence, islice(metadata.branch_history(branch), SNAPSHOTS_MAX))


def staged_with_evidence(metadata: TableMetadata, branch: str) -> Iterator[Snapshot]:
    """Yield Frazil's snapshots that may have been staged for a branch, newest first, as far back as
    proofs are searched: those outside of its history. For requests that stage only: a snapshot that
    a rollback has removed is outside, too, and its rows are not in the table.
    """
    history = {one.snapshot_id for one in metadata.branch_history(branch)}
    outside = (one for one in reversed(metadata.snapshots) if one.snapshot_id not in history)
    return filter(has_evidence, islice(outside, SNAPSHOTS_MAX))


def may_lack_snapshot(request: CommitRequest) -> bool:
    """Return whether a request may have landed, and no snapshot of its branch's history says so: a
    change of the table makes none, a staged one is outside of the history and may expire, published
    or not, and a cherry-pick may move the branch to a snapshot of another request.
    """
    return request.operation in ("alter", "cherry-pick") or request.stage_only


def holds_without_snapshot(request: CommitRequest, landed: Landed, metadata: TableMetadata) -> bool:
    """Return whether an earlier metadata file that names an epoch proves that it counts today. A
    rollback takes nothing away from a change or a staged snapshot. A cherry-pick counts while the
    snapshot that it moved its branch to is in the history.
    """
    if request.operation != "cherry-pick":
        return True
    return landed.snapshot_id in history_of(metadata, request.branch).snapshot_ids
