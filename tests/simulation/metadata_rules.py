"""Rules for table metadata, and for one version that follows another (I4, I5, I8). Pure.

Each rule yields a sentence for everything that breaks it. Written from the specification, without
the code that it judges.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise

from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import Snapshot


def added_snapshots(before: TableMetadata, after: TableMetadata) -> list[Snapshot]:
    """Return the snapshots that a swap has added, in their order."""
    if after.snapshots[: len(before.snapshots)] == before.snapshots:
        return list(after.snapshots[len(before.snapshots) :])
    known = before.snapshots_by_id
    return [each for each in after.snapshots if each.snapshot_id not in known]


def is_set_back(before: TableMetadata, after: TableMetadata) -> bool:
    """Return whether a swap moved a branch to an older snapshot, or removed it."""
    for name, ref in before.refs.items():
        head = after.refs.get(name)
        is_older = head is not None and head.snapshot_id in before.snapshots_by_id
        if ref.type == "branch" and (head is None or (head != ref and is_older)):
            return True
    return False


def linear_history(
    before: TableMetadata, after: TableMetadata, set_back: Collection[str] = ()
) -> Iterator[str]:
    """Check I4 of one swap: a branch's old head is an ancestor of its new one, and every ref stays.

    `set_back`: the refs that a request rolls back or drops, which says so.
    """
    if before.table_uuid != after.table_uuid:
        yield f"the table {before.table_uuid} became {after.table_uuid} in one swap"
    for name, ref in before.refs.items():
        head = after.refs.get(name)
        if name in set_back:
            continue
        if head is None:
            yield f"the {ref.type} `{name}` is gone"
        elif head.snapshot_id != ref.snapshot_id and not after.is_ancestor(
            ref.snapshot_id, of=head.snapshot_id
        ):
            yield f"the head {ref.snapshot_id} of `{name}` is not behind {head.snapshot_id}"
    if after.last_sequence_number < before.last_sequence_number:
        yield f"sequence number {before.last_sequence_number} fell to {after.last_sequence_number}"


def sequence_numbers(before: TableMetadata, after: TableMetadata) -> Iterator[str]:
    """Check I5: each snapshot has the next sequence number (version 1: 0) and row id."""
    number, row_id = before.last_sequence_number, before.next_row_id or 0
    for snapshot in added_snapshots(before, after):
        number = 0 if after.format_version == 1 else number + 1
        if snapshot.sequence_number != number:
            found = snapshot.sequence_number
            yield f"snapshot {snapshot.snapshot_id} has sequence number {found}, not {number}"
            number = found
        if after.format_version < 3:
            continue
        if snapshot.first_row_id != row_id or snapshot.added_rows is None:
            found_row = snapshot.first_row_id
            yield f"snapshot {snapshot.snapshot_id} has first row id {found_row}, not {row_id}"
        row_id = (snapshot.first_row_id or 0) + (snapshot.added_rows or 0)
    if after.last_sequence_number != number:
        yield f"the last sequence number is {after.last_sequence_number}, not {number}"
    if after.format_version >= 3 and after.next_row_id != row_id:
        yield f"the next row id is {after.next_row_id}, not {row_id}"


def timestamps(metadata: TableMetadata) -> Iterator[str]:
    """Check I8: both logs are sorted, and the last update is no older than either."""
    for name, log in (
        ("snapshot log", [entry.timestamp_ms for entry in metadata.snapshot_log]),
        ("metadata log", [entry.timestamp_ms for entry in metadata.metadata_log]),
    ):
        if any(later < earlier for earlier, later in pairwise(log)):
            yield f"the {name} is not sorted"
        if log and log[-1] > metadata.last_updated_ms:
            behind_ms = log[-1] - metadata.last_updated_ms
            yield f"the {name} ends {behind_ms} ms after the last update"
    head = metadata.current_snapshot
    if head is not None and head.timestamp_ms > metadata.last_updated_ms:
        yield f"snapshot {head.snapshot_id} is younger than the last update"


def ages(before: TableMetadata, after: TableMetadata) -> Iterator[str]:
    """Check I8 of one swap: no new snapshot is older than its parent."""
    for snapshot in added_snapshots(before, after):
        parent_id = snapshot.parent_snapshot_id
        parent = None if parent_id is None else before.snapshot_by_id(parent_id)
        if parent is not None and snapshot.timestamp_ms < parent.timestamp_ms:
            older_ms = parent.timestamp_ms - snapshot.timestamp_ms
            yield f"snapshot {snapshot.snapshot_id} is {older_ms} ms older than its parent"


def metadata_log(
    before_location: str, before: TableMetadata, after: TableMetadata
) -> Iterator[str]:
    """Check I4: the base of a swap is the newest entry of its metadata log."""
    if after is before:
        return
    newest = after.metadata_log[-1].metadata_file if after.metadata_log else None
    if newest != before_location:
        yield f"the metadata log ends with {newest}, the base was {before_location}"
