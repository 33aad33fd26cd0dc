"""Publishes groups of rewritten delete files as one request, and tells whether it landed.

Runs on the driver. The request is a rewrite of files: no row comes or goes. It rests on the state
that was read, and is in conflict where a data file that its new deletes are for has gone meanwhile:
a compaction that had not seen an equality delete has moved the row, and counts on it.

All new files get one data sequence number, that of the newest delete file which they replace.

* It is not below that of the data files that they are for: each delete file that goes applies to
  them, and an equality delete only to older data. Deletes by position name rows of these files
  alone, so rows that are newer have nothing to fear whatever the number is.
* A compaction of these data files that began at an older number has not seen all of the deletes: it
  finds a newer one, and is in conflict. One that began later has seen all of them, and lands: these
  deletes are no news to it. With a lower number the first would bring rows back; with the commit's
  own number, the second would need the history that proves that nothing has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from committer.errors import AccessError, InvariantError, PublishError, TransientError
from committer.iceberg.entry.data_file import DataFile, ManifestContent
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.scan.snapshot_manifests import snapshot_manifests
from committer.reason import Reason
from committer.request.commit_request import Fingerprint
from committer.request.needs import FILES_NAMED_MAX, Needs, RemovedDeleteFile
from committer.request.receipt_model import Receipt, ReceiptState
from committer.request.table_identifier import TableIdentifier
from workers.compaction.deletes.delete_groups import DeletesGroup
from workers.compaction.deletes.delete_job import WHAT
from workers.compaction.deletes.delete_task import DeletesWritten
from workers.compaction.deletes.deletes_table import DeletesTable
from workers.compaction.deletes.live_deletes import DeleteKey, delete_key
from workers.compaction.publish_rewrite import PartIdentity
from workers.requests.blocking_publisher import borrow_publisher
from workers.requests.publisher import PublishPolicy
from workers.requests.written_epoch import WrittenEpoch
from workers.spark.discarded_files import delete_files


@dataclass(frozen=True, slots=True)
class WrittenDeletes:
    """A group, and what its tasks wrote."""

    group: DeletesGroup
    written: tuple[DeletesWritten, ...] = ()

    @property
    def files(self) -> list[DataFile]:
        return [file for each in self.written for file in each.files]

    @property
    def removed(self) -> dict[DeleteKey, DataFile]:
        """The delete files that go: those of the group, and those that new ones replace."""
        files = [entry.data_file for entry in self.group.removed]
        files += (file for each in self.written for file in each.replaced)
        return {delete_key(file): file for file in files}


@dataclass(frozen=True, slots=True)
class LostDeletes:
    """A group that was not rewritten, and why. `in_doubt`: it may have been, or may be yet."""

    group: DeletesGroup
    why: str
    in_doubt: bool = False


@dataclass(frozen=True, slots=True)
class PublishedDeletes:
    """What became of the groups of a request. `snapshot_id`: of the snapshot that it made."""

    landed: tuple[WrittenDeletes, ...] = ()
    lost: tuple[LostDeletes, ...] = ()
    snapshot_id: int | None = None


def publish_deletes(
    table: DeletesTable,
    identity: PartIdentity,
    groups: Sequence[WrittenDeletes],
    numbers: Mapping[DeleteKey, int],
) -> PublishedDeletes:
    """Publish the groups, which land together, and wait for the answer. `numbers`: the data
    sequence numbers of the live delete files."""
    removed = {key: file for each in groups for key, file in each.removed.items()}
    referenced = _referenced(table, groups)
    named = max(len(removed), len(referenced))
    if named > FILES_NAMED_MAX:
        discard(groups, table)
        why = f"{named} files, a request names {FILES_NAMED_MAX} at most: rewrite parts, by `where`"
        return PublishedDeletes(lost=tuple(LostDeletes(each.group, why) for each in groups))
    base = base_of(table)
    needs = Needs(
        base_snapshot_id=base.snapshot_id,
        base_sequence_number=base.sequence_number,
        data_sequence_number=newest_number(removed, numbers),
        removed_delete_files=tuple(map(named_delete, removed.values())),
        referenced_data_files=referenced,
        on_conflict="fail",
    )
    files = [file for each in groups for file in each.files]
    receipt = send(table, identity, needs, files)
    if isinstance(receipt, str):
        return PublishedDeletes(
            lost=tuple(LostDeletes(each.group, receipt, True) for each in groups)
        )
    return _ended(table, receipt, groups)


def newest_number(removed: Iterable[DeleteKey], numbers: Mapping[DeleteKey, int]) -> int:
    """Return the data sequence number of what takes the place of these delete files: see above."""
    return max(numbers[key] for key in removed)


def _referenced(table: DeletesTable, groups: Sequence[WrittenDeletes]) -> tuple[str, ...]:
    """Return the data files that have to be live. Deletes of one data file name it themselves; a
    position delete file that is only written anew deletes no row that was not deleted before."""
    if table.form != "partitions" or table.options.purpose != "convert equality":
        return ()
    return tuple({path: None for g in groups for each in g.written for path in each.referenced})


def base_of(table: DeletesTable) -> Snapshot:
    if table.snapshot is None:
        raise InvariantError("groups of a table without a snapshot")
    return table.snapshot


def named_delete(file: DataFile) -> RemovedDeleteFile:
    """Name a delete file to remove: a deletion vector with its place."""
    if not file.is_deletion_vector:
        return RemovedDeleteFile(file_path=file.file_path)
    return RemovedDeleteFile(
        file_path=file.file_path,
        content_offset=file.content_offset,
        content_size_in_bytes=file.content_size_in_bytes,
    )


def send(
    table: DeletesTable, identity: PartIdentity, needs: Needs, files: Sequence[DataFile]
) -> Receipt | str:
    """Publish a rewrite and wait for its answer; return why there is none otherwise."""
    epoch = WrittenEpoch(
        identifier=TableIdentifier.parse(table.options.table),
        table_uuid=table.metadata.require_uuid(),
        schema_id=table.metadata.current_schema.schema_id,
        producer=identity.producer,
        epoch=0,
        nonce=identity.nonce,
        fingerprint=Fingerprint(kind="epoch", value="0"),
        files=files,
        operation="rewrite-files",
        needs=needs,
        branch=table.options.branch,
    )
    policy = PublishPolicy("continue", "committed", table.options.wait_timeout_s)
    try:
        with borrow_publisher(table.settings) as publisher:
            return publisher.publish(epoch, policy)
    except (PublishError, TransientError, AccessError) as error:
        return str(error)


def _ended(
    table: DeletesTable, receipt: Receipt, groups: Sequence[WrittenDeletes]
) -> PublishedDeletes:
    """Tell what an answer means, and delete the files that it says are lost."""
    if receipt.state != ReceiptState.QUARANTINED:
        if table.form == "vectors":
            _discard_united(table, receipt, groups)
        return PublishedDeletes(tuple(groups), (), receipt.snapshot_id)
    # Only what is told alone is never kept, nor lands later.
    is_told = receipt.reason == Reason.CONFLICT
    if is_told:
        discard(groups, table)
    why = f"{receipt.reason}: {receipt.message}"
    return PublishedDeletes(
        lost=tuple(LostDeletes(each.group, why, not is_told) for each in groups)
    )


def discard(groups: Iterable[WrittenDeletes], table: DeletesTable) -> None:
    """Delete files that no request names, nor ever will."""
    delete_files((file.file_path for each in groups for file in each.files), table.access, WHAT)


def _discard_united(
    table: DeletesTable, receipt: Receipt, groups: Iterable[WrittenDeletes]
) -> None:
    """Delete Puffin files whose vectors the commit has all written anew, because others had deleted
    rows of the same data files meanwhile: no snapshot lists them, nor ever will.

    Errors: those of reading the table.
    """
    metadata = table.reader.load(TableIdentifier.parse(table.options.table)).metadata
    snapshot = metadata.snapshot_by_id(receipt.snapshot_id or 0)
    if snapshot is None:
        return  # it has expired, which tells nothing
    read = table.reader.read
    listed = {
        entry.data_file.file_path
        for row in snapshot_manifests(snapshot, read)
        if row.content == ManifestContent.DELETES and row.added_snapshot_id == snapshot.snapshot_id
        for entry in decode_manifest(read(row.manifest_path), manifest_file=row).entries
    }
    paths = {file.file_path for each in groups for file in each.files}
    delete_files(sorted(paths - listed), table.access, "vectors that were united with others")
