"""Plans the snapshot of one step: its manifest list, numbers, row ids and summary, whatever has
made its manifests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from committer.iceberg.entry.data_file import ManifestContent, ManifestEntryStatus
from committer.iceberg.manifest.manifest import iter_entries
from committer.iceberg.manifest.manifest_list import (
    COUNTS_UNKNOWN,
    ManifestFile,
    encode_manifest_file,
    encode_manifest_list,
)
from committer.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from committer.iceberg.metadata.summary import commit_summary
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.updates.metadata_update import AddSnapshot, SetSnapshotRef, apply_updates
from committer.iceberg.values.locations import manifest_list_location, metadata_folder
from committer.plan.batch.batch import Step, sync_marker
from committer.plan.cleanup.maintenance import MergedManifests, with_merges
from committer.plan.ledger.evidence import (
    COUNT_KEY,
    EVIDENCE_KEY,
    TRANSACTION_KEY,
    print_evidence,
)
from committer.plan.ledger.state import ListedManifest
from committer.plan.operations.change_index import SnapshotChanges, changes_after
from committer.plan.operations.head import Head, ObjectRange, WrittenObjects
from committer.plan.operations.step_output import Produced, StepNames
from committer.ports.storage import NewObject


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to land a batch: its number from 1, the uuid of its metadata file, and the time.

    `engine_version`: the version of Frazil, which its snapshot's summary names; empty: not known.
    """

    number: int
    metadata_uuid: UUID
    now_ms: int
    engine_version: str = ""


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The snapshot of a step, the rows of its list, what has to be written for it, and what it
    changes."""

    snapshot: Snapshot
    listed: tuple[ListedManifest, ...]
    objects: tuple[NewObject, ...]
    changes: SnapshotChanges


def names_of(head: Head, step: Step, number: int, commit_uuid: UUID, attempt: Attempt) -> StepNames:
    """Return what identifies a step on this head. `number`: its place in its batch."""
    metadata = head.metadata
    return StepNames(
        step.snapshot_id,
        0 if metadata.format_version == 1 else metadata.last_sequence_number + 1,
        metadata_folder(metadata.location, metadata.properties),
        commit_uuid,
        attempt.metadata_uuid,
        number,
    )


def plan_step(
    head: Head,
    step: Step,
    names: StepNames,
    produced: Produced,
    merges: tuple[MergedManifests, ...],
    attempt: Attempt,
) -> StepPlan:
    """Plan the snapshot. `merges` are listed with it, instead of what they replace.
    Errors: `MissingObjectsError`; those of reading manifests.
    """
    rows = with_merges(
        produced.manifests,
        merges,
        snapshot_id=names.snapshot_id,
        sequence_number=names.sequence_number,
    )
    listed, added_rows = _with_row_ids(head, rows)
    snapshot = _snapshot(head, step, names, attempt)
    summary = _summary(head, step, produced, merges, attempt.engine_version)
    snapshot = replace(snapshot, summary=summary, added_rows=added_rows)
    manifest_list = NewObject(
        snapshot.manifest_list or "", _manifest_list(head, step, names, snapshot, listed)
    )
    changes = SnapshotChanges(
        snapshot.parent_snapshot_id,
        snapshot.sequence_number,
        tuple(after.row for before, after in zip(rows, listed, strict=True) if not before.encoded),
        tuple(
            replace(entry, status=ManifestEntryStatus.DELETED, snapshot_id=snapshot.snapshot_id)
            for entry in produced.removed
        ),
    )
    return StepPlan(snapshot, listed, (*produced.objects, manifest_list), changes)


def head_after(head: Head, planned: StepPlan) -> Head:
    """Return the branch as the next step of the swap finds it."""
    snapshot = planned.snapshot
    moved = SetSnapshotRef(head.branch, moved_ref(head.metadata, head.branch, snapshot))
    metadata = apply_updates(
        head.metadata,
        (AddSnapshot(snapshot), moved),
        base_location=None,
        now_ms=snapshot.timestamp_ms,
    )
    written = {one.location: one.content for one in planned.objects}
    objects = WrittenObjects(written, head.objects)
    return Head(
        metadata,
        head.branch,
        snapshot,
        planned.listed,
        objects,
        changes_after(head.changes, snapshot.snapshot_id, planned.changes),
    )


def moved_ref(metadata: TableMetadata, branch: str, snapshot: Snapshot) -> SnapshotRef:
    """Return the branch with this head; a new one, if it is not there."""
    ref = metadata.refs.get(branch)
    if ref is None:
        return SnapshotRef(snapshot_id=snapshot.snapshot_id, type="branch")
    return replace(ref, snapshot_id=snapshot.snapshot_id)


def _with_row_ids(
    head: Head, rows: tuple[ListedManifest, ...]
) -> tuple[tuple[ListedManifest, ...], int | None]:
    """Return the rows of the new list, all encoded, and how many row ids they take: None before
    version 3. Errors: as `_counted`."""
    metadata, counted = head.metadata, _counted(head, rows)
    first_row_id = next_row_id = metadata.next_row_id or 0
    listed = list(rows)
    for position, entry in enumerate(rows):
        row = entry.row
        if _needs_row_ids(metadata, row):
            row = replace(counted.get(row.manifest_path, row), first_row_id=next_row_id)
            next_row_id += (row.existing_rows_count or 0) + (row.added_rows_count or 0)
        if row is not entry.row or not entry.encoded:
            encoded = encode_manifest_file(row, metadata.format_version)
            listed[position] = ListedManifest(encoded, row)
    return tuple(listed), next_row_id - first_row_id if metadata.format_version >= 3 else None


def _needs_row_ids(metadata: TableMetadata, row: ManifestFile) -> bool:
    """Return whether a manifest needs row ids:
    data without them in version 3, also one from before an upgrade."""
    is_data = row.content is ManifestContent.DATA
    return metadata.format_version >= 3 and is_data and row.first_row_id is None


def _counted(head: Head, rows: Iterable[ListedManifest]) -> dict[str, ManifestFile]:
    """Return, by path, the manifests that need row ids and that no list has counted, with their
    counts. They are from before an upgrade of version 1, and read whatever their size: row ids go
    by counts, so that no commit lands without them. Errors: `MissingObjectsError`; those of
    `iter_entries`.
    """
    unknown = [
        one.row
        for one in rows
        if one.encoded and _needs_row_ids(head.metadata, one.row) and _is_uncounted(one.row)
    ]
    contents = head.contents([ObjectRange(row.manifest_path) for row in unknown])
    return {
        row.manifest_path: _with_counts(row, content)
        for row, content in zip(unknown, contents, strict=True)
    }


def _is_uncounted(row: ManifestFile) -> bool:
    counts = (row.added_rows_count, row.existing_rows_count, row.deleted_rows_count)
    return None in counts or counts == COUNTS_UNKNOWN


def _with_counts(row: ManifestFile, content: bytes) -> ManifestFile:
    files, rows = Counter[ManifestEntryStatus](), Counter[ManifestEntryStatus]()
    for entry in iter_entries(content, manifest_file=row):
        files[entry.status] += 1
        rows[entry.status] += entry.data_file.record_count
    return replace(
        row,
        added_files_count=files[ManifestEntryStatus.ADDED],
        existing_files_count=files[ManifestEntryStatus.EXISTING],
        deleted_files_count=files[ManifestEntryStatus.DELETED],
        added_rows_count=rows[ManifestEntryStatus.ADDED],
        existing_rows_count=rows[ManifestEntryStatus.EXISTING],
        deleted_rows_count=rows[ManifestEntryStatus.DELETED],
    )


def _snapshot(head: Head, step: Step, names: StepNames, attempt: Attempt) -> Snapshot:
    metadata = head.metadata
    # Readers refuse logs that run backwards; a clock that jumped back must not write one. And they
    # find a snapshot by its time: those of one swap have different ones.
    earliest_ms = metadata.last_updated_ms + (1 if names.number else 0)
    return Snapshot(
        snapshot_id=step.snapshot_id,
        parent_snapshot_id=head.snapshot.snapshot_id if head.snapshot else None,
        sequence_number=names.sequence_number,
        timestamp_ms=max(attempt.now_ms, earliest_ms),
        manifest_list=manifest_list_location(
            names.metadata_folder, step.snapshot_id, attempt.number, names.commit_uuid
        ),
        schema_id=metadata.current_schema_id,
        first_row_id=(metadata.next_row_id or 0) if metadata.format_version >= 3 else None,
    )


def _summary(
    head: Head,
    step: Step,
    produced: Produced,
    merges: tuple[MergedManifests, ...],
    engine_version: str,
) -> dict[str, str]:
    """Return the summary of the snapshot, with its clients' own entries behind ours.
    `engine_version`: this release; empty: not recorded. The commit that lists merged manifests
    creates them.
    """
    counts = dict(produced.counts)
    replaced = sum(len(merged.replaced) for merged in merges)
    counts["manifests-created"] += sum(len(merged.rows) for merged in merges)
    counts["manifests-kept"] -= replaced
    counts["manifests-replaced"] += replaced
    # The engine's name, as Java writes it.
    engine = {"engine-name": "frazil", "engine-version": engine_version}
    extra = {
        COUNT_KEY: str(len(step.requests)),
        **_transaction(step),
        **{key: text for key, text in engine.items() if text},
        **produced.extra,
    }
    for checked in step.requests:
        for key, text in checked.request.summary.items():
            extra.setdefault(key, text)
    # Totals start from zero without a head alone: those of one without a summary are not known.
    previous = (head.snapshot.summary or {}) if head.snapshot else None
    return commit_summary(produced.label, previous, counts, extra=extra)


def _transaction(step: Step) -> dict[str, str]:
    """Return the entry that names the transaction: its request has a batch of its own."""
    named = step.requests[0].request.transaction if step.requests else None
    return {} if named is None else {TRANSACTION_KEY: str(named.id)}


def _manifest_list(
    head: Head,
    step: Step,
    names: StepNames,
    snapshot: Snapshot,
    listed: tuple[ListedManifest, ...],
) -> bytes:
    return encode_manifest_list(
        [manifest.encoded for manifest in listed],
        format_version=head.metadata.format_version,
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=snapshot.parent_snapshot_id,
        sequence_number=snapshot.sequence_number,
        first_row_id=snapshot.first_row_id,
        sync=sync_marker(names.commit_uuid, 2**32 + names.number),
        extra_metadata={
            EVIDENCE_KEY: print_evidence([checked.request for checked in step.requests])
        },
    )
