"""Snapshots, references to them, and the logs of a table's history.

Source: the specification, "Snapshots" and Appendix C; format.md sections 6.1 and 7.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

import orjson

from committer.errors import InvalidMetadataError

MAIN = "main"
_NONE: Mapping[str, object] = {}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state of the table. `summary` holds `operation` too; None if there is none (old version 1).

    `manifests` are paths of an old version 1 snapshot without a manifest list. `extra` are keys
    that this version does not know.
    """

    snapshot_id: int
    parent_snapshot_id: int | None = None
    sequence_number: int = 0
    timestamp_ms: int = 0
    manifest_list: str | None = None
    manifests: tuple[str, ...] | None = None
    summary: Mapping[str, str] | None = None
    schema_id: int | None = None
    first_row_id: int | None = None
    added_rows: int | None = None
    key_id: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict)
    _json: bytes | None = field(default=None, compare=False, repr=False)

    @property
    def operation(self) -> str | None:
        return None if self.summary is None else self.summary.get("operation")

    @property
    def json_bytes(self) -> bytes:
        """The JSON form, printed once for as long as the value lives."""
        if self._json is None:
            object.__setattr__(self, "_json", orjson.dumps(print_snapshot(self)))
        return cast(bytes, self._json)


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
class SnapshotLogEntry:
    """When a snapshot became current."""

    timestamp_ms: int
    snapshot_id: int
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetadataLogEntry:
    """A metadata file that was current before."""

    timestamp_ms: int
    metadata_file: str
    extra: Mapping[str, object] = field(default_factory=dict)


# --- Reading -------------------------------------------------------------------------------------


class Reader:
    """Takes typed values out of a JSON object; what was not taken is `rest`."""

    def __init__(self, json_value: object, where: str) -> None:
        if not isinstance(json_value, dict):
            raise InvalidMetadataError(f"{where}: expected an object")
        self.rest: dict[str, object] = dict(json_value)
        self._where = where

    def integer(self, key: str) -> int:
        found = self.optional_integer(key)
        if found is None:
            raise self._expected(key, "an integer", None)
        return found

    def optional_integer(self, key: str) -> int | None:
        found = self.rest.pop(key, None)
        if found is not None and (not isinstance(found, int) or isinstance(found, bool)):
            raise self._expected(key, "an integer", found)
        return found

    def text(self, key: str) -> str:
        found = self.optional_text(key)
        if found is None:
            raise self._expected(key, "a string", None)
        return found

    def optional_text(self, key: str) -> str | None:
        found = self.rest.pop(key, None)
        if found is not None and not isinstance(found, str):
            raise self._expected(key, "a string", found)
        return found

    def optional_list(self, key: str) -> list[object] | None:
        found = self.rest.pop(key, None)
        if found is not None and not isinstance(found, list):
            raise self._expected(key, "a list", found)
        return found

    def text_map(self, key: str) -> dict[str, str] | None:
        found = self.rest.pop(key, None)
        if found is None:
            return None
        if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
            raise self._expected(key, "an object of strings", found)
        return cast(dict[str, str], found)

    def _expected(self, key: str, expected: str, found: object) -> InvalidMetadataError:
        seen = "nothing" if found is None else f"a JSON {type(found).__name__}"
        return InvalidMetadataError(f"{self._where}: `{key}`: expected {expected}, found {seen}")


def parse_snapshot(json_value: object, *, where: str = "snapshot") -> Snapshot:
    """Read a snapshot. Errors: `InvalidMetadataError` naming key and place."""
    reader = Reader(json_value, where)
    manifests = reader.optional_list("manifests")
    summary = reader.text_map("summary")
    if summary and "operation" not in summary:
        summary = {"operation": "overwrite", **summary}
    return Snapshot(
        sequence_number=reader.optional_integer("sequence-number") or 0,
        snapshot_id=reader.integer("snapshot-id"),
        parent_snapshot_id=reader.optional_integer("parent-snapshot-id"),
        timestamp_ms=reader.integer("timestamp-ms"),
        summary=summary or None,
        manifest_list=reader.optional_text("manifest-list"),
        manifests=None if manifests is None else tuple(map(str, manifests)),
        schema_id=reader.optional_integer("schema-id"),
        first_row_id=reader.optional_integer("first-row-id"),
        added_rows=reader.optional_integer("added-rows"),
        key_id=reader.optional_text("key-id"),
        extra=reader.rest,
    )


def print_snapshot(snapshot: Snapshot) -> dict[str, object]:
    """The JSON form, keys in the reference's order."""
    printed: dict[str, object] = {
        "sequence-number": snapshot.sequence_number or None,
        "snapshot-id": snapshot.snapshot_id,
        "parent-snapshot-id": snapshot.parent_snapshot_id,
        "timestamp-ms": snapshot.timestamp_ms,
        "summary": snapshot.summary,
        "manifest-list": snapshot.manifest_list,
        "manifests": None if snapshot.manifests is None else list(snapshot.manifests),
        "schema-id": snapshot.schema_id,
        "first-row-id": snapshot.first_row_id,
        "added-rows": snapshot.added_rows,
        "key-id": snapshot.key_id,
    }
    return {**{key: value for key, value in printed.items() if value is not None}, **snapshot.extra}


_REF_KEYS = ("min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms")


def parse_snapshot_ref(json_value: object, *, where: str = "ref") -> SnapshotRef:
    """Read a ref. Errors: `InvalidMetadataError` naming key and place."""
    reader = Reader(json_value, where)
    kind = reader.text("type").lower()
    snapshot_id = reader.integer("snapshot-id")
    keep, age, ref_age = (reader.optional_integer(key) for key in _REF_KEYS)
    if kind not in ("branch", "tag"):
        raise InvalidMetadataError(f"{where}: `type`: expected branch or tag, found `{kind}`")
    if kind == "tag" and (keep is not None or age is not None):
        raise InvalidMetadataError(f"{where}: a tag has no {_REF_KEYS[0]} and no {_REF_KEYS[1]}")
    if any(found is not None and found <= 0 for found in (keep, age, ref_age)):
        raise InvalidMetadataError(f"{where}: expected numbers above 0 for {', '.join(_REF_KEYS)}")
    return SnapshotRef(
        snapshot_id, cast(Literal["branch", "tag"], kind), keep, age, ref_age, reader.rest
    )


def print_snapshot_ref(ref: SnapshotRef) -> dict[str, object]:
    """The JSON form, keys in the reference's order."""
    values = (ref.min_snapshots_to_keep, ref.max_snapshot_age_ms, ref.max_ref_age_ms)
    printed: dict[str, object] = {"snapshot-id": ref.snapshot_id, "type": ref.type}
    printed.update(
        (key, value) for key, value in zip(_REF_KEYS, values, strict=True) if value is not None
    )
    return {**printed, **ref.extra}
