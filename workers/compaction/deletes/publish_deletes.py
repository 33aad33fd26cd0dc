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

from committer.iceberg.entry.data_file import DataFile, ManifestContent
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.scan.snapshot_manifests import snapshot_manifests
from committer.request.needs import FILES_NAMED_MAX, Needs, RemovedDeleteFile
from committer.request.receipt_model import Receipt
from workers.branches.attempt_identity import AttemptIdentity
from workers.compaction.deletes.delete_groups import DeletesGroup
from workers.compaction.deletes.delete_job import WHAT
from workers.compaction.deletes.delete_task import DeletesWritten
from workers.compaction.deletes.deletes_table import DeletesTable
from workers.compaction.deletes.live_deletes import DeleteKey, delete_key
from workers.compaction.publication.part_run import Published, nothing_landed
from workers.compaction.publication.rewrite_request import NotLanded, send_rewrite
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


def publish_deletes(
    table: DeletesTable,
    identity: AttemptIdentity,
    groups: Sequence[WrittenDeletes],
    numbers: Mapping[DeleteKey, int],
) -> Published[DeletesGroup, WrittenDeletes]:
    """Publish the groups, which land together, and wait for the answer. `numbers`: the data
    sequence numbers of the live delete files."""
    removed = {key: file for each in groups for key, file in each.removed.items()}
    referenced = _referenced(table, groups)
    named = max(len(removed), len(referenced))
    if named > FILES_NAMED_MAX:
        why = f"{named} files, a request names {FILES_NAMED_MAX} at most: rewrite parts, by `where`"
        return nothing_landed(table.state, WHAT, groups, NotLanded(why, in_doubt=False))
    base = table.state.require_snapshot()
    needs = Needs(
        base_snapshot_id=base.snapshot_id,
        base_sequence_number=base.sequence_number,
        data_sequence_number=newest_number(removed, numbers),
        removed_delete_files=tuple(map(RemovedDeleteFile.of, removed.values())),
        referenced_data_files=referenced,
        on_conflict="fail",
    )
    files = [file for each in groups for file in each.files]
    timeout_s = table.options.wait_timeout_s
    answer = send_rewrite(table.state, identity, needs, files, timeout_s)
    if not isinstance(answer, NotLanded):
        if table.form == "vectors":
            _discard_united(table, answer, groups)
        return Published(tuple(groups), (), answer.snapshot_id)
    return nothing_landed(table.state, WHAT, groups, answer)


def newest_number(removed: Iterable[DeleteKey], numbers: Mapping[DeleteKey, int]) -> int:
    """Return the data sequence number of what takes the place of these delete files: see above."""
    return max(numbers[key] for key in removed)


def _referenced(table: DeletesTable, groups: Sequence[WrittenDeletes]) -> tuple[str, ...]:
    """Return the data files that have to be live. Deletes of one data file name it themselves; a
    position delete file that is only written anew deletes no row that was not deleted before."""
    if table.form != "partitions" or table.options.purpose != "convert equality":
        return ()
    return tuple({path: None for g in groups for each in g.written for path in each.referenced})


def _discard_united(
    table: DeletesTable, receipt: Receipt, groups: Iterable[WrittenDeletes]
) -> None:
    """Delete Puffin files whose vectors the commit has all written anew, because others had deleted
    rows of the same data files meanwhile: no snapshot lists them, nor ever will.

    Errors: those of reading the table.
    """
    metadata = table.state.reload_metadata()
    snapshot = metadata.snapshot_by_id(receipt.snapshot_id or 0)
    if snapshot is None:
        return  # it has expired, which tells nothing
    read = table.state.reader.read
    listed = {
        entry.data_file.file_path
        for row in snapshot_manifests(snapshot, read)
        if row.content == ManifestContent.DELETES and row.added_snapshot_id == snapshot.snapshot_id
        for entry in decode_manifest(read(row.manifest_path), manifest_file=row).entries
    }
    paths = {file.file_path for each in groups for file in each.files}
    delete_files(sorted(paths - listed), table.state.access, "vectors that were united with others")
