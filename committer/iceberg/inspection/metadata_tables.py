"""The metadata tables by their names, and how the rows of each are found.

Names and meaning are those of the engines' metadata tables; keys of rows are the specification's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.inspection.file_rows import entries, entry_row, file_row, live_entries
from committer.iceberg.inspection.manifest_files import all_manifest_rows, manifest_rows
from committer.iceberg.inspection.partitions import partition_rows
from committer.iceberg.inspection.snapshot_rows import (
    history_rows,
    metadata_log_rows,
    ref_rows,
    snapshot_rows,
)
from committer.iceberg.inspection.values import Row
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.scan.snapshot_manifests import Read, all_manifests, snapshot_manifests


@dataclass(frozen=True, slots=True)
class TableSource:
    """A version of a table, and how to read what it names: locations as the metadata has them."""

    metadata: TableMetadata
    metadata_location: str
    read: Read


def inspect_table(kind: str, source: TableSource) -> Iterator[Row]:
    """Yield the rows of a metadata table about the whole table: one of `TABLE_KINDS`.

    All values are ready for a JSON printer. Errors: `KeyError` for another kind;
    `InvalidMetadataError`, `UnsupportedError`, and what reading raises.
    """
    return _OF_TABLE[kind](source)


def inspect_snapshot(kind: str, source: TableSource, snapshot: Snapshot | None) -> Iterator[Row]:
    """Yield the rows of a metadata table about one snapshot: one of `SNAPSHOT_KINDS`.

    Files and entries follow the manifests; `file_order` sorts files. Without a snapshot there are
    no rows. Errors: as above.
    """
    return _OF_MANIFESTS[kind](source, snapshot_manifests(snapshot, source.read))


# --- One function for each -----------------------------------------------------------------------


OfManifests = Callable[[TableSource, Iterator[ManifestFile]], Iterator[Row]]


def _partitions(source: TableSource, manifests: Iterator[ManifestFile]) -> Iterator[Row]:
    schema = source.metadata.current_schema
    return partition_rows(source.metadata, live_entries(manifests, source.read, schema))


def _entries(source: TableSource, manifests: Iterator[ManifestFile]) -> Iterator[Row]:
    return map(entry_row, entries(manifests, source.read, source.metadata.current_schema))


def _files(content: ManifestContent | None = None) -> OfManifests:
    def rows(source: TableSource, manifests: Iterator[ManifestFile]) -> Iterator[Row]:
        schema = source.metadata.current_schema
        return map(file_row, live_entries(manifests, source.read, schema, content))

    return rows


def _of_all(rows: OfManifests) -> Callable[[TableSource], Iterator[Row]]:
    return lambda source: rows(source, all_manifests(source.metadata, source.read))


_OF_MANIFESTS: Mapping[str, OfManifests] = {
    "manifests": lambda source, manifests: manifest_rows(source.metadata, manifests),
    "files": _files(),
    "data_files": _files(ManifestContent.DATA),
    "delete_files": _files(ManifestContent.DELETES),
    "entries": _entries,
    "partitions": _partitions,
}
_OF_TABLE: Mapping[str, Callable[[TableSource], Iterator[Row]]] = {
    "snapshots": lambda source: snapshot_rows(source.metadata),
    "history": lambda source: history_rows(source.metadata),
    "refs": lambda source: ref_rows(source.metadata),
    "metadata_log_entries": lambda source: metadata_log_rows(
        source.metadata, source.metadata_location
    ),
    "all_manifests": lambda source: all_manifest_rows(source.metadata, source.read),
    "all_files": _of_all(_files()),
    "all_data_files": _of_all(_files(ManifestContent.DATA)),
    "all_delete_files": _of_all(_files(ManifestContent.DELETES)),
    "all_entries": _of_all(_entries),
}
SNAPSHOT_KINDS = tuple(_OF_MANIFESTS)
TABLE_KINDS = tuple(_OF_TABLE)
