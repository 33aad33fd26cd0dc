"""Manifests: read with what their entries inherit. Writing is `manifest_writer.py`.

Checking a producer's manifest is `manifest_walk.py`, joining manifests without decoding
`manifest_splice.py`. Source: the specification, "Manifests"; docs/reference/iceberg-notes.md 6.1,
6.4, 6.6, 6.8.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.avro.container import Header, read_header
from committer.iceberg.entry.data_file import ManifestContent, ManifestEntry, ManifestEntryStatus
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.manifest.manifest_reader import read_entries
from committer.iceberg.manifest.manifest_row import RowCheck, checked_entries
from committer.iceberg.schema.partition_spec import PartitionSpec, parse_partition_spec
from committer.iceberg.schema.schema import Schema, parse_schema


@dataclass(frozen=True, slots=True)
class DecodedManifest:
    """A manifest as read; ids are inherited if its row was at hand, else as they stand."""

    format_version: int
    content: ManifestContent
    schema: Schema
    spec: PartitionSpec
    entries: tuple[ManifestEntry, ...]


def decode_manifest(
    buf: bytes | memoryview, *, manifest_file: ManifestFile | None = None
) -> DecodedManifest:
    """Read a manifest of any version and writer. With its row of the manifest list, entries inherit
    snapshot id, sequence numbers and row ids.

    Errors: `InvalidMetadataError`, also where it does not hold what its row says;
    `UnsupportedError` for a codec. With its row they name the manifest.
    """
    with naming(manifest_file):
        header = read_header(buf)
        entries = tuple(_iter_entries(buf, header, manifest_file))
        return DecodedManifest(
            manifest_version(header),
            manifest_content(header),
            manifest_schema(header),
            manifest_spec(header),
            entries,
        )


def iter_entries(
    buf: bytes | memoryview, *, manifest_file: ManifestFile | None = None
) -> Iterator[ManifestEntry]:
    """Yield the entries of a manifest as `decode_manifest`, one by one: one block is inflated at a
    time. Errors: those of `decode_manifest`, when reading reaches their place."""
    with naming(manifest_file):
        yield from _iter_entries(buf, read_header(buf), manifest_file)


@contextmanager
def naming(manifest_file: ManifestFile | None) -> Iterator[None]:
    """Put the path of a manifest, if its row is at hand, in front of errors about its bytes."""
    try:
        yield
    except (InvalidMetadataError, UnsupportedError) as error:
        if manifest_file is None:
            raise
        raise type(error)(f"{manifest_file.manifest_path}: {error}") from error


def _iter_entries(
    buf: bytes | memoryview, header: Header, manifest_file: ManifestFile | None
) -> Iterator[ManifestEntry]:
    content, spec = manifest_content(header), manifest_spec(header)
    entries = read_entries(buf, header, spec)
    if manifest_file is None:
        return entries
    if manifest_file.content != content:
        raise InvalidMetadataError(
            f"it holds {content.name}, but its row in the manifest list says"
            f" {manifest_file.content.name}"
        )
    check = RowCheck(manifest_file, spec, manifest_schema(header))
    return inherit(checked_entries(entries, check), manifest_file)


def inherit(entries: Iterable[ManifestEntry], row: ManifestFile) -> Iterator[ManifestEntry]:
    """Fill in the ids that entries inherit: docs/reference/iceberg-notes.md 6.6, 6.8.

    Sequence numbers: of ADDED entries, and of all where the manifest is from version 1 (number 0).
    Row ids: those of live files without one run on from the manifest's, by their record counts.
    """
    next_row_id = row.first_row_id
    for entry in entries:
        file, numbers = entry.data_file, (entry.sequence_number, entry.file_sequence_number)
        if entry.status == ManifestEntryStatus.ADDED or row.sequence_number == 0:
            numbers = (_or(numbers[0], row.sequence_number), _or(numbers[1], row.sequence_number))
        first_row_id = file.first_row_id
        if row.first_row_id is None:
            first_row_id = None
        elif first_row_id is None and entry.is_live and next_row_id is not None:
            first_row_id, next_row_id = next_row_id, next_row_id + file.record_count
        if first_row_id != file.first_row_id:
            file = replace(file, first_row_id=first_row_id)
        snapshot_id = _or(entry.snapshot_id, row.added_snapshot_id)
        yield ManifestEntry(entry.status, snapshot_id, *numbers, file)


def _or(value: int | None, inherited: int) -> int:
    return inherited if value is None else value


# --- Header keys ---------------------------------------------------------------------------------


def manifest_version(header: Header) -> int:
    """Return the format version that a manifest was written in: 1 if an old writer omits it."""
    text = header.metadata.get("format-version", b"1")
    if text not in (b"1", b"2", b"3"):
        raise InvalidMetadataError("manifest: expected `format-version` 1, 2 or 3")
    return int(text)


def manifest_content(header: Header) -> ManifestContent:
    """Return the content that the header names; data, if it names none."""
    text = header.metadata.get("content", b"data")
    if text not in (b"data", b"deletes"):
        raise InvalidMetadataError("manifest: expected `content` data or deletes")
    return ManifestContent.DATA if text == b"data" else ManifestContent.DELETES


def manifest_schema(header: Header) -> Schema:
    """Return the table schema that the manifest was written with."""
    return _parse_schema(_text(header, "schema"), header.metadata.get("schema-id"))


@lru_cache(maxsize=64)
def _parse_schema(text: bytes, schema_id: bytes | None) -> Schema:
    document = _json(text, "schema")
    if not isinstance(document, dict):
        raise InvalidMetadataError("manifest: `schema` is not a JSON object")
    if "schema-id" not in document and schema_id is not None and schema_id.isdigit():
        document = {**document, "schema-id": int(schema_id)}
    return parse_schema(document)


def manifest_spec(header: Header) -> PartitionSpec:
    """Return the partition spec that the manifest was written with."""
    return _parse_spec(
        _text(header, "partition-spec"), header.metadata.get("partition-spec-id", b"0")
    )


@lru_cache(maxsize=64)
def _parse_spec(text: bytes, spec_id: bytes) -> PartitionSpec:
    if not spec_id.isdigit() or len(spec_id) > 10:
        raise InvalidMetadataError("manifest: `partition-spec-id` is not a number")
    return parse_partition_spec({"spec-id": int(spec_id), "fields": _json(text, "partition-spec")})


def _text(header: Header, key: str) -> bytes:
    text = header.metadata.get(key)
    if text is None:
        raise InvalidMetadataError(f"manifest: the header has no `{key}`")
    return text


def _json(text: bytes, key: str) -> object:
    try:
        document: object = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidMetadataError(f"manifest: `{key}` is not JSON") from None
    return document
