"""Publishes groups that were written anew as one request, and tells which of them landed.

Runs on the driver. What surely did not land is deleted; what may still land never is: a request
without an answer is durable perhaps, and one in quarantine may be replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from committer.errors import NotFoundError
from committer.iceberg.entry.data_file import DataFile, ManifestContent, ManifestEntryStatus
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.scan.snapshot_manifests import snapshot_manifests
from committer.iceberg.scan.time_travel import find_snapshot
from committer.request.needs import Needs, RewriteGroup
from committer.request.receipt_model import Receipt
from workers.branches.attempt_identity import AttemptIdentity
from workers.compaction.group_job import WHAT
from workers.compaction.publication.part_run import Lost, Published, discard, nothing_landed
from workers.compaction.publication.rewrite_request import NotLanded, send_rewrite
from workers.compaction.rewrite_groups import FileGroup
from workers.compaction.rewritten_table import RewrittenTable


@dataclass(frozen=True, slots=True)
class WrittenGroup:
    """A group, and the files that hold its rows now."""

    group: FileGroup
    files: tuple[DataFile, ...]


def publish_groups(
    table: RewrittenTable,
    identity: AttemptIdentity,
    written: Sequence[WrittenGroup],
    *,
    land_alone: bool,
) -> Published[FileGroup, WrittenGroup]:
    """Publish the groups, and wait for the answer. `land_alone`: each may land without the others;
    else all or none do."""
    named = [_named(each.group.paths, each.files) for each in written]
    if not land_alone:
        named = [
            _named(
                [path for each in named for path in each.removed_data_files],
                [file for each in written for file in each.files],
            )
        ]
    files = [file for each in written for file in each.files]
    needs = _needs(table, named)
    timeout_s = table.options.wait_timeout_s
    return ended(table, send_rewrite(table.state, identity, needs, files, timeout_s), written)


def _named(paths: Iterable[str], files: Iterable[DataFile]) -> RewriteGroup:
    return RewriteGroup(
        removed_data_files=tuple(paths),
        added_data_files=tuple(file.file_path for file in files),
    )


def _needs(table: RewrittenTable, groups: Sequence[RewriteGroup]) -> Needs:
    """Return the needs. New files keep the number of the state that was read, so that deletes by
    value that came since apply to them as to the old ones."""
    base = table.state.require_snapshot()
    is_numbered = table.state.metadata.format_version > 1 and not table.options.numbers_anew
    return Needs(
        base_snapshot_id=base.snapshot_id,
        base_sequence_number=base.sequence_number,
        data_sequence_number=base.sequence_number if is_numbered else None,
        removed_data_files=tuple(path for one in groups for path in one.removed_data_files),
        groups=tuple(groups),
        on_conflict="fail",
    )


# --- Afterwards ----------------------------------------------------------------------------------


def ended(
    table: RewrittenTable, answer: Receipt | NotLanded, written: Sequence[WrittenGroup]
) -> Published[FileGroup, WrittenGroup]:
    """Tell what an answer means for each group, and delete the files of those that it says are
    lost. Errors: those of reading the table."""
    if isinstance(answer, NotLanded):
        return nothing_landed(table.state, WHAT, written, answer)
    removed = _removed_by(table, answer)
    if removed is None:
        return Published(tuple(written), (), answer.snapshot_id)
    landed = [each for each in written if each.group.paths[0] in removed]
    others = [each for each in written if each.group.paths[0] not in removed]
    discard(table.state, WHAT, others)
    why = "conflict: rows of its files were deleted, or the files removed, since it began"
    return Published(
        tuple(landed), tuple(Lost(each.group, why) for each in others), answer.snapshot_id
    )


def _removed_by(table: RewrittenTable, receipt: Receipt) -> frozenset[str] | None:
    """Return the data files that the snapshot of a request has removed: of each group all or none.
    None where the snapshot has expired, which tells nothing."""
    metadata = table.state.reload_metadata()
    try:
        snapshot = find_snapshot(metadata, snapshot_id=receipt.snapshot_id)
    except NotFoundError:
        return None
    read = table.state.reader.read
    rows = [
        row
        for row in snapshot_manifests(snapshot, read)
        if row.content == ManifestContent.DATA and row.added_snapshot_id == receipt.snapshot_id
    ]
    return frozenset(
        entry.data_file.file_path
        for row in rows
        for entry in decode_manifest(read(row.manifest_path), manifest_file=row).entries
        if entry.status == ManifestEntryStatus.DELETED and entry.snapshot_id == receipt.snapshot_id
    )
