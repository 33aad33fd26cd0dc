"""Finds the files that no snapshot reaches any more after an expiry.

Works on the metadata that is current when files are to be deleted, also if another engine removed
the snapshots. Reads are requested: a generator yields locations and receives the objects' bytes,
None for one that does not exist. Source: docs/reference/iceberg-notes.md 8.

Two ways, as in Iceberg Java. Where all snapshots, expired and remaining, are one chain behind
`main`, a file that the chain has dropped never returns: a manifest that the oldest remaining
snapshot does not list is listed by none, and a data file is dead once an expired snapshot has
deleted it and no later one has added it again. The metadata tells which could have: the committer
gives all that it adds a new name, so only the lists of other engines' snapshots are read for it.
This costs what expires and what others have committed since, not what the table holds. Everywhere
else (tags, branches, staged or rolled back snapshots, cherry-picks) a file is deleted only if no
remaining snapshot names it, and all of them are read for that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from committer.errors import InvalidMetadataError
from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.manifest.manifest_list import ManifestFile, iter_new_rows
from committer.iceberg.manifest.manifest_paths import NamedFile, iter_named_files
from committer.iceberg.metadata.property_values import is_true
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.metadata.table_statistics import StatisticsFile
from committer.iceberg.values.locations import comparable_location
from committer.plan.batch.data_locations import attempt_named
from committer.plan.ledger.evidence import is_ours

_CLEAN_PROPERTY = "write.metadata.delete-after-commit.enabled"
_SOURCE_KEY = "source-snapshot-id"
READS_AT_ONCE = 8

T = TypeVar("T")
Reading = Generator[Sequence[str], Sequence[bytes | None], T]
Rows = dict[str, ManifestFile]


@dataclass(frozen=True, slots=True)
class Gone:
    """Expired snapshots, oldest first, and their statistics files."""

    snapshots: tuple[Snapshot, ...]
    statistics: tuple[StatisticsFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Files to delete, in this order: a file is deleted before the one that names it, so that an
    interrupted clean-up finds the rest again.
    """

    data_files: tuple[str, ...]
    manifests: tuple[str, ...]
    manifest_lists: tuple[str, ...]
    statistics: tuple[str, ...]

    @property
    def in_order(self) -> tuple[str, ...]:
        return (*self.data_files, *self.manifests, *self.statistics, *self.manifest_lists)

    def without(self, attempts: Collection[str]) -> Unreachable:
        """Remove the data files of these attempts, by their names."""
        kept = (path for path in self.data_files if attempt_named(path) not in attempts)
        return replace(self, data_files=tuple(kept))

    def only(self, paths: Collection[str]) -> Unreachable:
        """Keep the data files and the manifests that are among these."""
        return replace(
            self,
            data_files=tuple(path for path in self.data_files if path in paths),
            manifests=tuple(path for path in self.manifests if path in paths),
        )

    def within(self, folders: Iterable[str]) -> Unreachable:
        """Remove the data files outside these folders: others wrote them, and may need them."""
        places = [comparable_location(folder) for folder in folders]
        kept = (
            path
            for path in self.data_files
            if any(comparable_location(path).is_within(place) for place in places)
        )
        return replace(self, data_files=tuple(kept))


def find_unreachable(
    metadata: TableMetadata, gone: Gone, *, named: Collection[str] = ()
) -> Reading[Unreachable]:
    """Find what may be deleted. `named`: paths that waiting requests name; they stay.

    Errors: `InvalidMetadataError` if a snapshot of `gone` still exists, or if a file that a
    remaining snapshot needs cannot be read.
    """
    present = [one for one in gone.snapshots if one.snapshot_id in metadata.snapshots_by_id]
    if present:
        raise InvalidMetadataError(
            f"snapshot {present[0].snapshot_id} has not expired: nothing is deleted"
        )
    rows = yield from rows_of_all(gone.snapshots, missing_is_error=False)
    oldest = _oldest_of_chain(metadata, gone.snapshots)
    if oldest is None:
        manifests, data_files = yield from _by_full_reachability(metadata, gone, rows)
    else:
        manifests, data_files = yield from _by_chain(metadata, oldest, gone, rows)
    lists = [one.manifest_list for one in gone.snapshots if one.manifest_list is not None]
    lists_left = {one.manifest_list for one in metadata.snapshots}
    return Unreachable(
        tuple(sorted(data_files - set(named))),
        tuple(sorted(manifests - set(named))),
        tuple(each for each in dict.fromkeys(lists) if each not in lists_left),
        _unnamed_statistics(metadata, gone.statistics),
    )


def attempts_held(snapshot: Snapshot, attempts: Collection[str]) -> Reading[set[str]]:
    """Return which of these attempts the live files of a snapshot name.

    Errors: `InvalidMetadataError` for what the snapshot needs and cannot be read.
    """
    rows = yield from rows_of_all((snapshot,), missing_is_error=True)
    sought, found = set(attempts), set[str]()

    def take(files: Iterable[NamedFile]) -> None:
        for file in files:
            if file.is_live:
                found.update(sought.intersection((attempt_named(file.path),)))

    for batch in batches(list(rows.values())):
        yield from each_manifest(batch, take, missing_is_error=True)
        sought -= found
        if not sought:
            break
    return found


def fallen_metadata_files(base: TableMetadata, after: TableMetadata) -> tuple[str, ...]:
    """Return the files that a commit has dropped from the metadata log,
    if the table wants them deleted."""
    if not is_true(after.properties, _CLEAN_PROPERTY, default=False):
        return ()
    kept = {entry.metadata_file for entry in after.metadata_log}
    return tuple(
        entry.metadata_file for entry in base.metadata_log if entry.metadata_file not in kept
    )


def _unnamed_statistics(
    metadata: TableMetadata, statistics: Iterable[StatisticsFile]
) -> tuple[str, ...]:
    left = {one.statistics_path for one in metadata.statistics}
    left |= {one.statistics_path for one in metadata.partition_statistics}
    paths = dict.fromkeys(one.statistics_path for one in statistics)
    return tuple(path for path in paths if path not in left)


# --- One chain -----------------------------------------------------------------------------------


def _oldest_of_chain(metadata: TableMetadata, gone: Sequence[Snapshot]) -> Snapshot | None:
    """Return the oldest remaining snapshot if it continues the expired ones, all in one chain
    behind `main`; None if there are snapshots outside that chain.
    """
    if any(_SOURCE_KEY in (one.summary or {}) for one in (*gone, *metadata.snapshots)):
        return None
    chain = tuple(metadata.ancestors(metadata.current_snapshot_id))
    if not chain or len({one.snapshot_id for one in chain}) != len(metadata.snapshots):
        return None
    child = oldest = chain[-1]
    for snapshot in reversed(gone):
        if child.parent_snapshot_id != snapshot.snapshot_id:
            return None
        child = snapshot
    return oldest


def _by_chain(
    metadata: TableMetadata, oldest: Snapshot, gone: Gone, rows: Rows
) -> Reading[tuple[set[str], set[str]]]:
    ends = {one.snapshot_id: one for one in (oldest, metadata.current_snapshot) if one}
    left = yield from rows_of_all(tuple(ends.values()), missing_is_error=True)
    # A file that another engine added again may have been deleted again before the head.
    foreign = [one for one in metadata.snapshots if not is_ours(one) and one is not oldest]
    between = yield from rows_of_all(foreign, missing_is_error=True)
    dead: dict[str, NamedFile] = {}

    def take(files: Iterable[NamedFile]) -> None:
        for file in files:
            if not file.is_live and file.snapshot_id not in metadata.snapshots_by_id:
                dead[file.path] = file

    yield from each_manifest(_deleting(gone, rows | left), take, missing_is_error=False)
    may_hold = _which_may_hold(dead.values(), gone, left | _added_by(foreign, between))
    data_files = yield from _without_live(set(dead), may_hold)
    return rows.keys() - left.keys() - between.keys(), data_files


def _added_by(snapshots: Iterable[Snapshot], rows: Rows) -> Rows:
    """Return the manifests that these snapshots wrote: each added file is in them first."""
    ids = {one.snapshot_id for one in snapshots}
    return {path: row for path, row in rows.items() if row.added_snapshot_id in ids}


def _deleting(gone: Gone, rows: Rows) -> list[ManifestFile]:
    """Return the manifests by which expired snapshots deleted files."""
    expired = {one.snapshot_id for one in gone.snapshots}
    return [
        row
        for row in rows.values()
        if row.added_snapshot_id in expired and row.deleted_files_count != 0
    ]


def _which_may_hold(dead: Iterable[NamedFile], gone: Gone, left: Rows) -> list[ManifestFile]:
    """Return the manifests that may hold a file although it was deleted: one that was added again
    stands in a younger manifest; one Puffin file holds the vectors of many data files, each with
    its own entry.
    """
    first = min((one.sequence_number for one in gone.snapshots), default=0)
    has_shared = any(file.is_shared for file in dead)
    return [
        row
        for row in left.values()
        if row.sequence_number >= first or (has_shared and row.content == ManifestContent.DELETES)
    ]


# --- Everything else -----------------------------------------------------------------------------


def _by_full_reachability(
    metadata: TableMetadata, gone: Gone, rows: Rows
) -> Reading[tuple[set[str], set[str]]]:
    left = yield from rows_of_all(metadata.snapshots, missing_is_error=True)
    unreachable = {path: row for path, row in rows.items() if path not in left}
    candidates: set[str] = set()

    def take(files: Iterable[NamedFile]) -> None:
        candidates.update(file.path for file in files)

    def take_deleted(files: Iterable[NamedFile]) -> None:
        candidates.update(file.path for file in files if not file.is_live)

    yield from each_manifest(list(unreachable.values()), take, missing_is_error=False)
    # A file whose own manifest went before is told by the one that says it was deleted.
    yield from each_manifest(_deleting(gone, left), take_deleted, missing_is_error=False)
    data_files = yield from _without_live(candidates, list(left.values()))
    return set(unreachable), data_files


def _without_live(candidates: set[str], rows: Sequence[ManifestFile]) -> Reading[set[str]]:
    """Return the candidates that are live in none of these manifests."""
    dead = set(candidates)

    def take(files: Iterable[NamedFile]) -> None:
        dead.difference_update(file.path for file in files if file.is_live)

    for batch in batches(rows):
        if not dead:
            break
        yield from each_manifest(batch, take, missing_is_error=True)
    return dead


# --- Reading -------------------------------------------------------------------------------------


def rows_of_all(snapshots: Sequence[Snapshot], *, missing_is_error: bool) -> Reading[Rows]:
    """Return the rows of all lists, by manifest path.

    Errors: `InvalidMetadataError` for a list that is not there, if that is an error.
    """
    rows: Rows = {}
    known: set[bytes] = set()
    locations = [one.manifest_list for one in snapshots if one.manifest_list is not None]
    if missing_is_error and len(locations) != len(snapshots):
        raise InvalidMetadataError("a snapshot that stays has no manifest list")
    for batch in batches(locations):
        contents = yield batch
        for location, content in zip(batch, contents, strict=True):
            if content is not None:
                found = iter_new_rows(content, known)
                rows.update((row.manifest_path, row) for row in found)
            elif missing_is_error:
                raise _missing(location)
    return rows


def each_manifest(
    rows: Sequence[ManifestFile],
    take: Callable[[Iterable[NamedFile]], None],
    *,
    missing_is_error: bool,
) -> Reading[None]:
    for batch in batches(rows):
        contents = yield [row.manifest_path for row in batch]
        for row, content in zip(batch, contents, strict=True):
            if content is not None:
                take(iter_named_files(content, row))
            elif missing_is_error:
                raise _missing(row.manifest_path)


def batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield as many as are read at once, in their order."""
    for start in range(0, len(items), READS_AT_ONCE):
        yield items[start : start + READS_AT_ONCE]


def _missing(location: str) -> InvalidMetadataError:
    return InvalidMetadataError(f"`{location}` does not exist, but a snapshot that stays needs it")
