"""Publishes groups that were written anew as one request, and tells which of them landed.

Runs on the driver. What surely did not land is deleted; what may still land never is: a request
without an answer is durable perhaps, and one in quarantine may be replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from committer.errors import (
    AccessError,
    InvariantError,
    NotFoundError,
    PublishError,
    TransientError,
)
from committer.iceberg.entry.data_file import DataFile, ManifestContent, ManifestEntryStatus
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.scan.snapshot_manifests import snapshot_manifests
from committer.iceberg.scan.time_travel import find_snapshot
from committer.real_world import RealWorld
from committer.reason import Reason
from committer.request.attempt import attempt_of, timed_nonce
from committer.request.commit_request import Fingerprint, Producer
from committer.request.needs import Needs, RewriteGroup
from committer.request.receipt_model import Receipt, ReceiptState
from committer.request.table_identifier import TableIdentifier
from workers.compaction.group_job import WHAT
from workers.compaction.rewrite_groups import FileGroup
from workers.compaction.rewritten_table import RewrittenTable
from workers.requests.blocking_publisher import borrow_publisher
from workers.requests.publisher import PublishPolicy
from workers.requests.written_epoch import WrittenEpoch
from workers.spark.discarded_files import delete_files


@dataclass(frozen=True, slots=True)
class WrittenGroup:
    """A group, and the files that hold its rows now."""

    group: FileGroup
    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """A group that was not rewritten, and why. `in_doubt`: it may have been, or may be yet."""

    group: FileGroup
    why: str
    in_doubt: bool = False


@dataclass(frozen=True, slots=True)
class Published:
    """What became of the groups of a request. `snapshot_id`: of the snapshot that it made."""

    landed: tuple[WrittenGroup, ...] = ()
    lost: tuple[Lost, ...] = ()
    snapshot_id: int | None = None


def _fresh_nonce() -> UUID:
    world = RealWorld()
    return timed_nonce(world.now_ms(), world.uuid())


@dataclass(frozen=True, slots=True)
class PartIdentity:
    """Who publishes one request: a one-shot producer of its own, so that requests land in any
    order and the ledger keeps none of them for long."""

    application: str | None
    nonce: UUID = field(default_factory=_fresh_nonce)

    @property
    def producer(self) -> Producer:
        return Producer(id=str(self.nonce), name=self.application, one_shot=True)

    def attempt(self, metadata: TableMetadata, branch: str) -> str:
        """Return the attempt, which the names of its files carry."""
        return str(attempt_of(metadata.require_uuid(), branch, self.producer.id, 0, self.nonce))


def application_name(spark: Any) -> str | None:
    """Return what the user calls the application, as far as it can be shown."""
    name = spark.conf.get("spark.app.name", None)
    return "".join(filter(str.isprintable, name or ""))[:100] or None


def publish_groups(
    table: RewrittenTable,
    identity: PartIdentity,
    written: Sequence[WrittenGroup],
    *,
    land_alone: bool,
) -> Published:
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
    epoch = WrittenEpoch(
        identifier=TableIdentifier.parse(table.name),
        table_uuid=table.metadata.require_uuid(),
        schema_id=table.metadata.current_schema.schema_id,
        producer=identity.producer,
        epoch=0,
        nonce=identity.nonce,
        fingerprint=Fingerprint(kind="epoch", value="0"),
        files=[file for each in written for file in each.files],
        operation="rewrite-files",
        needs=_needs(table, named),
        branch=table.options.branch,
    )
    policy = PublishPolicy("continue", "committed", table.options.wait_timeout_s)
    try:
        with borrow_publisher(table.settings) as publisher:
            receipt = publisher.publish(epoch, policy)
    except (PublishError, TransientError, AccessError) as error:
        return Published(lost=tuple(Lost(each.group, str(error), True) for each in written))
    return ended(table, receipt, written)


def _named(paths: Iterable[str], files: Iterable[DataFile]) -> RewriteGroup:
    return RewriteGroup(
        removed_data_files=tuple(paths),
        added_data_files=tuple(file.file_path for file in files),
    )


def _needs(table: RewrittenTable, groups: Sequence[RewriteGroup]) -> Needs:
    """Return the needs. New files keep the number of the state that was read, so that deletes by
    value that came since apply to them as to the old ones."""
    base = _base(table)
    is_numbered = table.metadata.format_version > 1 and not table.options.numbers_anew
    return Needs(
        base_snapshot_id=base.snapshot_id,
        base_sequence_number=base.sequence_number,
        data_sequence_number=base.sequence_number if is_numbered else None,
        removed_data_files=tuple(path for one in groups for path in one.removed_data_files),
        groups=tuple(groups),
        on_conflict="fail",
    )


def _base(table: RewrittenTable) -> Snapshot:
    if table.snapshot is None:
        raise InvariantError("groups of a table without a snapshot")
    return table.snapshot


# --- Afterwards ----------------------------------------------------------------------------------


def ended(table: RewrittenTable, receipt: Receipt, written: Sequence[WrittenGroup]) -> Published:
    """Tell what an answer means for each group, and delete the files of those that it says are
    lost. Errors: those of reading the table."""
    if receipt.state == ReceiptState.QUARANTINED:
        # Only what is told alone is never kept, nor lands later.
        is_told = receipt.reason == Reason.CONFLICT
        if is_told:
            _delete(written, table)
        why = f"{receipt.reason}: {receipt.message}"
        return Published(lost=tuple(Lost(each.group, why, not is_told) for each in written))
    removed = _removed_by(table, receipt)
    if removed is None:
        return Published(tuple(written), (), receipt.snapshot_id)
    landed = [each for each in written if each.group.paths[0] in removed]
    others = [each for each in written if each.group.paths[0] not in removed]
    _delete(others, table)
    why = "conflict: rows of its files were deleted, or the files removed, since it began"
    return Published(
        tuple(landed), tuple(Lost(each.group, why) for each in others), receipt.snapshot_id
    )


def _removed_by(table: RewrittenTable, receipt: Receipt) -> frozenset[str] | None:
    """Return the data files that the snapshot of a request has removed: of each group all or none.
    None where the snapshot has expired, which tells nothing."""
    metadata = table.refreshed()
    try:
        snapshot = find_snapshot(metadata, snapshot_id=receipt.snapshot_id)
    except NotFoundError:
        return None
    read = table.reader.read
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


def _delete(written: Iterable[WrittenGroup], table: RewrittenTable) -> None:
    delete_files((file.file_path for each in written for file in each.files), table.access, WHAT)
