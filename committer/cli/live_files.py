"""The files that a snapshot of a table consists of."""

from __future__ import annotations

from collections.abc import AsyncIterator

from committer.cli.describe import partition_text
from committer.errors import NotFoundError
from committer.iceberg.data_file import ManifestEntry
from committer.iceberg.manifest import decode_manifest
from committer.iceberg.manifest_list import ManifestFile, decode_manifest_list
from committer.iceberg.partition_spec import PartitionSpec
from committer.iceberg.schema import Schema
from committer.iceberg.snapshot import Snapshot
from committer.iceberg.table_metadata import TableMetadata
from committer.ports import Storage
from committer.request import TableIdentifier
from committer.service.parts import Parts

LiveFile = tuple[ManifestEntry, Schema, PartitionSpec]


async def live_files(
    parts: Parts, identifier: TableIdentifier, snapshot_id: int | None, ref: str | None
) -> list[LiveFile]:
    """Live entries with the schema and spec of their manifests, in the order of the manifest list.

    Errors: `NotFoundError` if there is no such snapshot or ref.
    """
    table = await parts.catalog.load(identifier)
    snapshot = _choose(table.metadata, snapshot_id, ref)
    if snapshot is None:
        return []
    found: list[LiveFile] = []
    async for path, row in _manifests(parts.storage, snapshot):
        decoded = decode_manifest(await parts.storage.get(path), manifest_file=row)
        found += [(one, decoded.schema, decoded.spec) for one in decoded.entries if one.is_live]
    return found


def _choose(metadata: TableMetadata, snapshot_id: int | None, ref: str | None) -> Snapshot | None:
    """The snapshot that was asked for; None for the current one of a table that has none."""
    if snapshot_id is None and ref is None:
        return metadata.current_snapshot
    if snapshot_id is not None:
        chosen, what = metadata.snapshot_by_id(snapshot_id), f"snapshot {snapshot_id}"
    else:
        chosen, what = metadata.branch_head(ref or ""), f"branch or tag `{ref}`"
    if chosen is None:
        raise NotFoundError(f"the table has no {what}")
    return chosen


async def _manifests(
    storage: Storage, snapshot: Snapshot
) -> AsyncIterator[tuple[str, ManifestFile | None]]:
    """Paths of manifests that have live files, with their rows; old version 1 has no rows."""
    if snapshot.manifest_list is None:
        for path in snapshot.manifests or ():
            yield path, None
        return
    for row in decode_manifest_list(await storage.get(snapshot.manifest_list)).rows:
        if row.has_live_files:
            yield row.manifest_path, row


def file_row(entry: ManifestEntry, schema: Schema, spec: PartitionSpec) -> tuple[object, ...]:
    file = entry.data_file
    return (
        file.content.name.lower(),
        file.record_count,
        file.file_size_in_bytes,
        entry.sequence_number,
        partition_text(file, schema, spec),
        file.file_path,
    )
