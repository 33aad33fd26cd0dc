"""Prints metadata tables for people: the most informative columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from committer.cli.output.printing import age_text, time_text
from committer.cli.output.view import Rows
from committer.iceberg.entry.data_file import DataFileContent, ManifestContent, ManifestEntryStatus
from committer.iceberg.inspection.values import Row

# A header, and the key of a row or what makes the cell from it.
Column = tuple[str, str | Callable[[Row], object]]


def kind_view(kind: str, rows: Iterable[Row]) -> Rows:
    """Show the rows of a metadata table under headers."""
    columns = _COLUMNS[kind]
    cells = [tuple(_cell(row, of) for _, of in columns) for row in rows]
    return Rows(kind, [header for header, _ in columns], cells)


def _cell(row: Row, of: str | Callable[[Row], object]) -> object:
    return row[of] if isinstance(of, str) else of(row)


def _time(key: str) -> Callable[[Row], str]:
    return lambda row: time_text(cast("int | None", row[key]))


def _age(key: str) -> Callable[[Row], str]:
    return lambda row: age_text(cast("int | None", row.get(key)))


def _content(row: Row) -> str:
    return DataFileContent(cast(int, row["content"])).name.lower()


def _of_file(of: str | Callable[[Row], object]) -> Callable[[Row], object]:
    return lambda row: _cell(cast(Row, row["file"]), of)


_FILE: tuple[Column, ...] = (
    ("content", _content),
    ("records", "record_count"),
    ("bytes", "file_size_in_bytes"),
    ("seq", "data_sequence_number"),
    ("partition", "partition_path"),
    ("path", "file_path"),
)
_ENTRY: tuple[Column, ...] = (
    ("status", lambda row: ManifestEntryStatus(cast(int, row["status"])).name.lower()),
    ("snapshot id", "snapshot_id"),
    *((header, _of_file(of)) for header, of in _FILE),
)
_MANIFEST: tuple[Column, ...] = (
    ("content", lambda row: ManifestContent(cast(int, row["content"])).name.lower()),
    ("spec", "partition_spec_id"),
    ("seq", "sequence_number"),
    ("added", "added_files_count"),
    ("existing", "existing_files_count"),
    ("deleted", "deleted_files_count"),
    ("rows added", "added_rows_count"),
    ("bytes", "manifest_length"),
    ("path", "manifest_path"),
)
_COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "history": (
        ("made current", _time("timestamp_ms")),
        ("snapshot id", "snapshot_id"),
        ("parent", "parent_id"),
        ("is ancestor of current", "is_current_ancestor"),
    ),
    "refs": (
        ("name", "name"),
        ("type", "type"),
        ("snapshot id", "snapshot-id"),
        ("snapshots kept", lambda row: row.get("min-snapshots-to-keep")),
        ("age of snapshots kept", _age("max-snapshot-age-ms")),
        ("own age kept", _age("max-ref-age-ms")),
    ),
    "branches or tags": (
        ("name", "name"),
        ("snapshot", "snapshot_id"),
        ("time", _time("timestamp_ms")),
        ("keeps snapshots", "min_snapshots_to_keep"),
        ("for", _age("max_snapshot_age_ms")),
        ("stays", _age("max_ref_age_ms")),
    ),
    "metadata_log_entries": (
        ("written", _time("timestamp_ms")),
        ("snapshot id", "latest_snapshot_id"),
        ("schema", "latest_schema_id"),
        ("seq", "latest_sequence_number"),
        ("file", "metadata_file"),
    ),
    "manifests": _MANIFEST,
    "all_manifests": (("of snapshot", "reference_snapshot_id"), *_MANIFEST),
    **dict.fromkeys(("files", "data_files", "delete_files"), _FILE),
    **dict.fromkeys(("all_files", "all_data_files", "all_delete_files"), _FILE),
    **dict.fromkeys(("entries", "all_entries"), _ENTRY),
    "partitions": (
        ("spec", "spec_id"),
        ("partition", "partition_path"),
        ("records", "record_count"),
        ("files", "file_count"),
        ("bytes", "total_data_file_size_in_bytes"),
        ("position deletes", "position_delete_record_count"),
        ("equality deletes", "equality_delete_record_count"),
        ("last added to", _time("last_updated_ms")),
        ("by snapshot", "last_updated_snapshot_id"),
    ),
}
