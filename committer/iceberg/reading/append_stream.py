"""A stream of the rows that are appended to a table: positions in its history, and what lies
between two of them.

Snapshots count along the lineage of one head. Rows come from snapshots that append; those that
replace files by equal ones are passed over, and those that remove rows are errors unless they are
to be skipped. No deletes apply: rows are those that were appended.
Source: Iceberg Java, `SparkMicroBatchStream` and `StreamingOffset`, whose JSON form this is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from committer.errors import InvariantError, NotFoundError, UnsupportedError
from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.scan.incremental import SnapshotRange, added_files, snapshots_between
from committer.iceberg.scan.plan_files import Scan, plan_snapshot
from committer.iceberg.scan.scan_filter import ScanFilter, scan_filter
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.scan.snapshot_manifests import Read

_VERSION = 1
_NO_SNAPSHOT = -1


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """A place in a table's history: behind the first `files` files of a snapshot, or behind all of
    them (`is_complete`). Without a snapshot: before the first one that counts.

    `is_whole`: the files are all that the snapshot has, and not only those that it has added.
    """

    snapshot_id: int | None = None
    files: int = 0
    is_complete: bool = False
    is_whole: bool = False

    def to_json(self) -> dict[str, int | bool]:
        """Return the form that a checkpoint keeps."""
        return {
            "version": _VERSION,
            "snapshot_id": _NO_SNAPSHOT if self.snapshot_id is None else self.snapshot_id,
            "position": self.files,
            "complete": self.is_complete,
            "scan_all_files": self.is_whole,
        }

    @classmethod
    def of_json(cls, document: Mapping[str, object]) -> StreamPosition:
        """Read what `to_json` has made. Errors: `UnsupportedError` for anything else."""
        match document:
            case {
                "version": 1,
                "snapshot_id": int(snapshot_id),
                "position": int(files),
                "complete": bool(is_complete),
                "scan_all_files": bool(is_whole),
            }:
                known = None if snapshot_id == _NO_SNAPSHOT else snapshot_id
                return cls(known, files, is_complete, is_whole)
        raise UnsupportedError(
            f"the checkpoint has the offset {dict(document)}: expected one of this version"
        )


START = StreamPosition()


@dataclass(frozen=True, slots=True)
class StreamStart:
    """The start of a stream: the rows that a snapshot has appended, those of the first snapshot
    from a time (ms) on, or all rows of the oldest snapshot that is retained.
    """

    snapshot_id: int | None = None
    from_ms: int | None = None


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """The most that is read at a time, but at least one file. None: no limit."""

    files_max: int | None = None
    rows_max: int | None = None

    @property
    def are_none(self) -> bool:
        return self.files_max is None and self.rows_max is None


@dataclass(frozen=True, slots=True)
class AppendStream:
    """A stream of one version of a table, up to its `head`. Nothing is kept between calls.

    `read` gives the bytes at a location. Errors of all methods: `NotFoundError` where a snapshot
    that is needed has expired, or is not in the lineage of the head; `UnsupportedError` for a
    snapshot that removes rows; those of `read`.
    """

    metadata: TableMetadata
    head: Snapshot | None
    read: Read
    start: StreamStart = StreamStart()
    skip_deletes: bool = False
    skip_overwrites: bool = False

    def first_position(self) -> StreamPosition:
        """Return where the stream begins: before everything while there is no such snapshot."""
        lineage = [] if self.head is None else [*self.metadata.ancestors(self.head.snapshot_id)]
        if self.start.snapshot_id is not None:
            return self._from_snapshot(self.start.snapshot_id, lineage)
        if not lineage:
            return START
        if self.start.from_ms is None:
            return StreamPosition(lineage[-1].snapshot_id, is_whole=True)
        return _from_time(self.start.from_ms, lineage)

    def _from_snapshot(self, snapshot_id: int, lineage: list[Snapshot]) -> StreamPosition:
        if any(one.snapshot_id == snapshot_id for one in lineage):
            return StreamPosition(snapshot_id)
        raise self._lost(snapshot_id, "the stream begins with")

    def advance(self, position: StreamPosition, limits: StreamLimits) -> StreamPosition:
        """Return how far a reader at a position may read now; itself if there is nothing more."""
        found = self._resolved(position)
        files_left, rows_left = limits.files_max, limits.rows_max
        is_first = True
        for snapshot in self._snapshots_from(found):
            if snapshot.snapshot_id != found.snapshot_id:
                found = StreamPosition(snapshot.snapshot_id)
            if not limits.are_none:
                for task in islice(self._files(snapshot, found, None), found.files, None):
                    rows = task.file.record_count
                    is_full = files_left == 0 or (rows_left is not None and rows > rows_left)
                    if is_full and not is_first:
                        return found
                    is_first = False
                    found = replace(found, files=found.files + 1)
                    files_left = None if files_left is None else files_left - 1
                    rows_left = None if rows_left is None else max(rows_left - rows, 0)
            else:
                self._appends(snapshot, found)
            found = replace(found, is_complete=True)
        return found

    def between(
        self, after: StreamPosition, up_to: StreamPosition, row_filter: ScanFilter
    ) -> Iterator[FileScanTask]:
        """Plan the files from one position to another, the oldest snapshot first, without those
        that no row of the filter is in."""
        first = self._resolved(after)
        if up_to.snapshot_id is None:
            return
        if not _is_behind(up_to, first):
            raise InvariantError(f"the offset {up_to} is not behind {first}")
        for snapshot in self._range(first, up_to.snapshot_id):
            is_first = snapshot.snapshot_id == first.snapshot_id
            is_last = snapshot.snapshot_id == up_to.snapshot_id
            found = first if is_first else StreamPosition(snapshot.snapshot_id)
            end = up_to.files if is_last and not up_to.is_complete else None
            yield from self._some_files(snapshot, found, end, row_filter)

    def _some_files(
        self, snapshot: Snapshot, found: StreamPosition, end: int | None, row_filter: ScanFilter
    ) -> Iterator[FileScanTask]:
        matching = self._files(snapshot, found, row_filter)
        if not found.files and end is None:
            yield from matching
            return
        # Positions count all files of a snapshot, whatever the filter is.
        numbered = islice(self._files(snapshot, found, None), found.files, end)
        wanted = {task.file.file_path for task in numbered}
        yield from (task for task in matching if task.file.file_path in wanted)

    # --- Snapshots -------------------------------------------------------------------------------

    def _resolved(self, position: StreamPosition) -> StreamPosition:
        return self.first_position() if position.snapshot_id is None else position

    def _snapshots_from(self, position: StreamPosition) -> list[Snapshot]:
        if self.head is None or position.snapshot_id is None:
            return []
        return self._range(position, self.head.snapshot_id)

    def _range(self, position: StreamPosition, up_to: int) -> list[Snapshot]:
        """Return the snapshots from a position on, the oldest first."""
        snapshot_id = position.snapshot_id
        if snapshot_id is None:
            raise InvariantError("a position without a snapshot has no range")
        asked = SnapshotRange(snapshot_id, up_to, with_first=not position.is_complete)
        if position.is_complete and snapshot_id == up_to:
            return []
        try:
            return snapshots_between(self.metadata, asked)[::-1]
        except NotFoundError:
            raise self._lost(snapshot_id, "the stream has read") from None

    def _lost(self, snapshot_id: int, what: str) -> NotFoundError:
        head = "nothing" if self.head is None else f"snapshot {self.head.snapshot_id}"
        if self.metadata.snapshot_by_id(snapshot_id) is None:
            return NotFoundError(
                f"{what} snapshot {snapshot_id}, which has expired, or never was: rows may be lost."
                " Start anew, with a new checkpoint; retain snapshots for longer than a stream may"
                " stand still"
            )
        return NotFoundError(
            f"{what} snapshot {snapshot_id}, which is not in the history of {head}, or a snapshot"
            " between them has expired: the table was rolled back. Start anew, with a new"
            " checkpoint"
        )

    def _appends(self, snapshot: Snapshot, position: StreamPosition) -> bool:
        """Return whether rows of a snapshot are read. Errors: `UnsupportedError`."""
        if position.is_whole:
            return True
        match snapshot.operation:
            case "append":
                return True
            case "replace":
                return False
            case "delete" if self.skip_deletes:
                return False
            case "overwrite" if self.skip_overwrites:
                return False
            case "delete" | "overwrite" as operation:
                raise UnsupportedError(
                    f"snapshot {snapshot.snapshot_id} is of operation `{operation}`, which a stream"
                    f' of appended rows cannot show: option("streaming-skip-{operation}-snapshots",'
                    ' "true") passes over such snapshots, and over the rows that they add'
                )
        raise UnsupportedError(
            f"snapshot {snapshot.snapshot_id} is of operation `{snapshot.operation}`: expected"
            " append, replace, overwrite or delete"
        )

    def _files(
        self, snapshot: Snapshot, position: StreamPosition, row_filter: ScanFilter | None
    ) -> Iterator[FileScanTask]:
        if not self._appends(snapshot, position):
            return iter(())
        scan = Scan(self.metadata, row_filter or scan_filter(self.metadata, ALWAYS_TRUE))
        if position.is_whole:
            return plan_snapshot(scan, snapshot, self.read)
        return added_files(scan, [snapshot], self.read)


def _is_behind(position: StreamPosition, other: StreamPosition) -> bool:
    """Return whether a position may come after another: where they are in one snapshot."""
    if position.snapshot_id != other.snapshot_id:
        return True
    if position.is_whole != other.is_whole:
        return False
    return (position.is_complete, position.files) >= (other.is_complete, other.files)


def _from_time(from_ms: int, lineage: list[Snapshot]) -> StreamPosition:
    """Return the position before the first snapshot from a time on. `lineage`: newest first."""
    first = None
    for snapshot in lineage:
        if snapshot.timestamp_ms < from_ms:
            break
        first = snapshot
    if first is None:
        return START
    if first is lineage[-1] and first.parent_snapshot_id is not None:
        raise NotFoundError(
            f"the stream begins with {from_ms} ms, and the oldest snapshot that has not expired,"
            f" {first.snapshot_id}, is of {first.timestamp_ms} ms: rows before it cannot be told"
            " from older ones. Begin with it (`starting-snapshot-id`), or without an option, with"
            " all rows"
        )
    return StreamPosition(first.snapshot_id)
