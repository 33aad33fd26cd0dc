"""The manifests of snapshots, found by the bytes that the caller reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.avro.container import read_header
from committer.iceberg.manifest.manifest import manifest_spec
from committer.iceberg.manifest.manifest_list import ManifestFile, decode_manifest_list
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.metadata.table_metadata import TableMetadata

# Gives the bytes at a location of the metadata, and raises what the storage raises.
Read = Callable[[str], bytes]


def snapshot_manifests(snapshot: Snapshot | None, read: Read) -> Iterator[ManifestFile]:
    """Yield the rows of a snapshot's manifest list, in its order; none without a snapshot.

    An old version 1 snapshot names its manifests itself. Their rows know neither counts nor
    partitions, and the snapshot that added them is taken to be this one, as in the reference.
    """
    if snapshot is None:
        return
    if snapshot.manifest_list is not None:
        content = read(snapshot.manifest_list)
        try:
            rows = decode_manifest_list(content).rows
        except (InvalidMetadataError, UnsupportedError) as error:
            raise type(error)(f"{snapshot.manifest_list}: {error}") from error
        yield from rows
        return
    for path in snapshot.manifests or ():
        content = read(path)
        yield ManifestFile(
            manifest_path=path,
            manifest_length=len(content),
            partition_spec_id=manifest_spec(read_header(content)).spec_id,
            added_snapshot_id=snapshot.snapshot_id,
            added_files_count=None,
            existing_files_count=None,
            deleted_files_count=None,
            added_rows_count=None,
            existing_rows_count=None,
            deleted_rows_count=None,
        )


def all_manifests(metadata: TableMetadata, read: Read) -> Iterator[ManifestFile]:
    """Yield each manifest that any snapshot has, once:
    with its row in the oldest list that names it."""
    seen: set[str] = set()
    for snapshot in metadata.snapshots:
        for row in snapshot_manifests(snapshot, read):
            if row.manifest_path not in seen:
                seen.add(row.manifest_path)
                yield row
