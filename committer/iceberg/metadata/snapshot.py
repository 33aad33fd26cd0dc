"""Snapshots, references to them, and the entries of a table's two logs, with their JSON forms.

Source: the specification, "Snapshots" and Appendix C; docs/reference/iceberg-notes.md 4.1, 5.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from committer.errors import InvalidMetadataError
from committer.iceberg.values.fragments import PrintedOnce
from committer.iceberg.values.json_reader import Reader

MAIN = "main"
# The entry of a summary by which a staged snapshot is published.
WAP_ID = "wap.id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(PrintedOnce):
    """A state of the table. `summary` holds `operation` too; None if there is none (old v1).

    `manifests` are the paths of an old v1 snapshot without a manifest list. `extra` are keys that
    this version does not know.
    """

    snapshot_id: int
    parent_snapshot_id: int | None = None
    sequence_number: int = 0
    timestamp_ms: int
    manifest_list: str | None = None
    manifests: tuple[str, ...] | None = None
    summary: Mapping[str, str] | None = None
    schema_id: int | None = None
    first_row_id: int | None = None
    added_rows: int | None = None
    key_id: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    @property
    def operation(self) -> str | None:
        return None if self.summary is None else self.summary.get("operation")

    def _to_json(self) -> dict[str, object]:
        return print_snapshot(self)


@dataclass(frozen=True, slots=True)
class SnapshotRef:
    """A branch or tag. Ages in ms; None: the table's default."""

    snapshot_id: int
    type: Literal["branch", "tag"] = "branch"
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SnapshotLogEntry(PrintedOnce):
    """The time at which a snapshot became current."""

    timestamp_ms: int
    snapshot_id: int
    extra: Mapping[str, object] = field(default_factory=dict)

    def _to_json(self) -> dict[str, object]:
        return {"timestamp-ms": self.timestamp_ms, "snapshot-id": self.snapshot_id, **self.extra}


@dataclass(frozen=True, slots=True)
class MetadataLogEntry(PrintedOnce):
    """A metadata file that was current before."""

    timestamp_ms: int
    metadata_file: str
    extra: Mapping[str, object] = field(default_factory=dict)

    def _to_json(self) -> dict[str, object]:
        file = self.metadata_file
        return {"timestamp-ms": self.timestamp_ms, "metadata-file": file, **self.extra}


# --- JSON form -----------------------------------------------------------------------------------


def parse_snapshot(json_value: object, *, where: str = "snapshot") -> Snapshot:
    """Read a snapshot. Errors: `InvalidMetadataError` naming key and place."""
    reader = Reader(json_value, where)
    summary = reader.optional_text_map("summary")
    if summary and "operation" not in summary:
        # The reference reads such a summary (of very old writers) as an overwrite.
        summary = {"operation": "overwrite", **summary}
    manifests = reader.texts("manifests") if "manifests" in reader.rest else None
    return Snapshot(
        snapshot_id=reader.integer("snapshot-id"),
        parent_snapshot_id=reader.optional_integer("parent-snapshot-id"),
        sequence_number=reader.optional_integer("sequence-number") or 0,
        timestamp_ms=reader.integer("timestamp-ms"),
        manifest_list=reader.optional_text("manifest-list"),
        manifests=manifests,
        summary=summary or None,
        schema_id=reader.optional_integer("schema-id", 32),
        first_row_id=reader.optional_integer("first-row-id"),
        added_rows=reader.optional_integer("added-rows"),
        key_id=reader.optional_text("key-id"),
        extra=reader.unknown(),
    )


def print_snapshot(snapshot: Snapshot) -> dict[str, object]:
    """Print the JSON form, keys in the reference's order."""
    printed: dict[str, object] = {
        "sequence-number": snapshot.sequence_number or None,
        "snapshot-id": snapshot.snapshot_id,
        "parent-snapshot-id": snapshot.parent_snapshot_id,
        "timestamp-ms": snapshot.timestamp_ms,
        "summary": snapshot.summary,
        "manifest-list": snapshot.manifest_list,
        "manifests": snapshot.manifests,
        "schema-id": snapshot.schema_id,
        "first-row-id": snapshot.first_row_id,
        "added-rows": snapshot.added_rows,
        "key-id": snapshot.key_id,
    }
    return {**{key: value for key, value in printed.items() if value is not None}, **snapshot.extra}


def parse_snapshot_log_entry(json_value: object, *, where: str) -> SnapshotLogEntry:
    """Read an entry. Errors: `InvalidMetadataError` naming key and place."""
    reader = Reader(json_value, where)
    timestamp_ms, snapshot_id = reader.integer("timestamp-ms"), reader.integer("snapshot-id")
    return SnapshotLogEntry(timestamp_ms, snapshot_id, reader.unknown())


def parse_metadata_log_entry(json_value: object, *, where: str) -> MetadataLogEntry:
    """Read an entry. Errors: `InvalidMetadataError` naming key and place."""
    reader = Reader(json_value, where)
    timestamp_ms, metadata_file = reader.integer("timestamp-ms"), reader.text("metadata-file")
    return MetadataLogEntry(timestamp_ms, metadata_file, reader.unknown())


_KEEP, _AGE, _REF_AGE = "min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms"


def parse_snapshot_ref(json_value: object, *, where: str = "ref") -> SnapshotRef:
    """Read a ref. Errors: `InvalidMetadataError` naming key and place."""
    reader = Reader(json_value, where)
    ref = SnapshotRef(
        snapshot_id=reader.integer("snapshot-id"),
        type=_ref_type(reader),
        min_snapshots_to_keep=reader.optional_integer(_KEEP, 32),
        max_snapshot_age_ms=reader.optional_integer(_AGE),
        max_ref_age_ms=reader.optional_integer(_REF_AGE),
        extra=reader.unknown(),
    )
    check_snapshot_ref(ref, where=where)
    return ref


def check_snapshot_ref(ref: SnapshotRef, *, where: str) -> None:
    """Refuse a retention that is not positive, or that a tag cannot have."""
    retention = (
        (_KEEP, ref.min_snapshots_to_keep),
        (_AGE, ref.max_snapshot_age_ms),
        (_REF_AGE, ref.max_ref_age_ms),
    )
    for key, found in retention:
        if found is not None and found <= 0:
            raise InvalidMetadataError(f"{where}: `{key}`: expected more than 0, found {found}")
    if ref.type == "tag" and (ref.min_snapshots_to_keep or ref.max_snapshot_age_ms):
        raise InvalidMetadataError(f"{where}: expected no `{_KEEP}` and no `{_AGE}` in a tag")


def _ref_type(reader: Reader) -> Literal["branch", "tag"]:
    match reader.text("type").lower():
        case "branch":
            return "branch"
        case "tag":
            return "tag"
        case other:
            raise InvalidMetadataError(
                f"{reader.where}: `type`: expected branch or tag, found `{other[:100]}`"
            )


def print_snapshot_ref(ref: SnapshotRef) -> dict[str, object]:
    """Print the JSON form, keys in the reference's order."""
    printed: dict[str, object] = {
        "snapshot-id": ref.snapshot_id,
        "type": ref.type,
        _KEEP: ref.min_snapshots_to_keep,
        _AGE: ref.max_snapshot_age_ms,
        _REF_AGE: ref.max_ref_age_ms,
    }
    return {**{key: value for key, value in printed.items() if value is not None}, **ref.extra}
