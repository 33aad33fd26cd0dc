"""A snapshot of Frazil's, told in the form of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from committer.iceberg.entry.data_file import ManifestEntry
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_list import ManifestFile, decode_manifest_list
from committer.iceberg.metadata.snapshot import Snapshot

Read = Callable[[str], bytes]
# What Java's summary lacks, or names otherwise.
_OWN_KEYS = ("frazil.", "engine-", "iceberg-")
_LEFT_OUT = ("operation", "source-snapshot-id")


def told(snapshot: Snapshot, names: Mapping[str, str], read: Read) -> dict[str, Any]:
    """Describe a snapshot as `Operations.java` does. `names`: those of the files, by path."""
    summary = snapshot.summary or {}
    found: dict[str, Any] = {
        "operation": summary.get("operation"),
        "sequence-number": snapshot.sequence_number,
        "summary": {
            key: text
            for key, text in sorted(summary.items())
            if not key.startswith(_OWN_KEYS) and key not in _LEFT_OUT
        },
        "manifests": [
            _manifest(row, snapshot.snapshot_id, names, read)
            for row in decode_manifest_list(read(snapshot.manifest_list or "")).rows
        ],
    }
    if snapshot.first_row_id is not None:
        found |= {"first-row-id": snapshot.first_row_id, "added-rows": snapshot.added_rows}
    return found


def _manifest(
    row: ManifestFile, snapshot_id: int, names: Mapping[str, str], read: Read
) -> dict[str, Any]:
    decoded = decode_manifest(read(row.manifest_path), manifest_file=row)
    found: dict[str, Any] = {
        "content": row.content.name.lower(),
        "spec": row.partition_spec_id,
        "own": row.added_snapshot_id == snapshot_id,
        "sequence-number": row.sequence_number,
        "min-sequence-number": row.min_sequence_number,
        "counts": [
            *(row.added_files_count, row.existing_files_count, row.deleted_files_count),
            *(row.added_rows_count, row.existing_rows_count, row.deleted_rows_count),
        ],
        "entries": [_entry(one, snapshot_id, names) for one in decoded.entries],
    }
    return found | ({} if row.first_row_id is None else {"first-row-id": row.first_row_id})


def _entry(entry: ManifestEntry, snapshot_id: int, names: Mapping[str, str]) -> list[Any]:
    file = entry.data_file
    return [
        entry.status.name.lower(),
        # The only files that the committer writes itself.
        names.get(place(file.file_path, file.content_offset), "united"),
        entry.snapshot_id == snapshot_id,
        entry.sequence_number,
        entry.file_sequence_number,
        file.first_row_id,
    ]


def place(path: str, offset: int | None) -> str:
    """Return what tells a file from all others: of a vector, its place in its Puffin too."""
    return path if offset is None else f"{path}#{offset}"
