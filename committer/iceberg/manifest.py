"""Manifests: encoded entry by entry into blocks, decoded with what they inherit.

Checking a manifest that somebody hands over is `manifest_walk.py`, joining manifests without
decoding `manifest_splice.py`. Source: the specification, "Manifests"; format.md 8.1, 8.4, 8.6, 8.8.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from committer.errors import InvalidMetadataError, InvariantError
from committer.iceberg.avro_container import (
    Header,
    compress,
    encode_container,
    encode_header,
    iter_raw_blocks,
    read_header,
)
from committer.iceberg.avro_decoder import decode_record, record_decoder
from committer.iceberg.avro_schemas import manifest_entry_type, schema_headers
from committer.iceberg.data_file import ManifestContent, ManifestEntry, ManifestEntryStatus
from committer.iceberg.entry_decoder import entry_from_record
from committer.iceberg.entry_encoder import EntryEncoder, entry_encoder
from committer.iceberg.manifest_list import ManifestFile, PartitionFieldSummary
from committer.iceberg.partition_spec import (
    PartitionSpec,
    parse_partition_spec,
    partition_type,
    print_partition_spec,
)
from committer.iceberg.partition_summary import summarize_partitions
from committer.iceberg.schema import Schema, parse_schema, print_schema
from committer.iceberg.types import StructType

# A reader inflates a block at a time: large enough to compress well, small enough to keep.
BLOCK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class ManifestContext:
    """What all entries of a manifest share, and what its header says."""

    format_version: int
    schema: Schema
    spec: PartitionSpec
    content: ManifestContent = ManifestContent.DATA


@dataclass(frozen=True, slots=True)
class EncodedManifest:
    """A manifest's bytes and what its row in a manifest list needs.

    `min_sequence_number`: the smallest explicit one of its live entries; None if all inherit.
    """

    content: bytes
    added_files_count: int
    existing_files_count: int
    deleted_files_count: int
    added_rows_count: int
    existing_rows_count: int
    deleted_rows_count: int
    partitions: tuple[PartitionFieldSummary, ...]
    min_sequence_number: int | None


@dataclass(frozen=True, slots=True)
class DecodedManifest:
    """A manifest as read; ids are inherited if its row was at hand, else as they stand."""

    format_version: int
    content: ManifestContent
    schema: Schema
    spec: PartitionSpec
    entries: tuple[ManifestEntry, ...]


def manifest_file(
    encoded: EncodedManifest,
    context: ManifestContext,
    *,
    manifest_path: str,
    snapshot_id: int,
    sequence_number: int,
) -> ManifestFile:
    """The row of a manifest that this snapshot adds (sequence number 0 in version 1)."""
    lowest = encoded.min_sequence_number
    return ManifestFile(
        manifest_path=manifest_path,
        manifest_length=len(encoded.content),
        partition_spec_id=context.spec.spec_id,
        content=context.content,
        sequence_number=sequence_number,
        min_sequence_number=sequence_number if lowest is None else lowest,
        added_snapshot_id=snapshot_id,
        added_files_count=encoded.added_files_count,
        existing_files_count=encoded.existing_files_count,
        deleted_files_count=encoded.deleted_files_count,
        added_rows_count=encoded.added_rows_count,
        existing_rows_count=encoded.existing_rows_count,
        deleted_rows_count=encoded.deleted_rows_count,
        partitions=encoded.partitions,
    )


# --- Writing -------------------------------------------------------------------------------------


def encode_manifest(
    entries: Iterable[ManifestEntry],
    context: ManifestContext,
    *,
    codec: str = "deflate",
    sync: bytes,
) -> EncodedManifest:
    """Encode entries block by block. Errors: `InvariantError` for what the version cannot hold."""
    writer = _writer(context, codec)
    tally = _Tally()
    blocks = list(_blocks(entries, context, writer, tally))
    added_files, existing_files, deleted_files = tally.files
    added_rows, existing_rows, deleted_rows = tally.rows
    return EncodedManifest(
        content=encode_container(writer.header + sync, blocks, sync),
        added_files_count=added_files,
        existing_files_count=existing_files,
        deleted_files_count=deleted_files,
        added_rows_count=added_rows,
        existing_rows_count=existing_rows,
        deleted_rows_count=deleted_rows,
        partitions=summarize_partitions(writer.partition_type, tally.partitions.values()),
        min_sequence_number=tally.min_sequence_number,
    )


_PLACE = {
    ManifestEntryStatus.ADDED: 0,
    ManifestEntryStatus.EXISTING: 1,
    ManifestEntryStatus.DELETED: 2,
}


class _Tally:
    """Counts by status in the order of a manifest list's row: added, existing, deleted."""

    def __init__(self) -> None:
        self.files = [0, 0, 0]
        self.rows = [0, 0, 0]
        self.partitions: dict[str, tuple[object, ...]] = {}
        self.min_sequence_number: int | None = None

    def add(self, entry: ManifestEntry) -> None:
        place, file = _PLACE[entry.status], entry.data_file
        self.files[place] += 1
        self.rows[place] += file.record_count
        if file.partition:
            # By their text: as keys themselves -0.0 and 0.0 would be one.
            self.partitions.setdefault(repr(file.partition), file.partition)
        number = entry.sequence_number
        if number is not None and entry.is_live:
            lowest = self.min_sequence_number
            self.min_sequence_number = number if lowest is None else min(number, lowest)


def _blocks(
    entries: Iterable[ManifestEntry], context: ManifestContext, writer: _Writer, tally: _Tally
) -> Iterator[tuple[int, bytes]]:
    pending: list[bytes] = []
    size = 0
    for entry in entries:
        if entry.data_file.manifest_content != context.content:
            raise InvariantError(
                f"{entry.data_file.file_path}: not for a manifest of {context.content.name}"
            )
        tally.add(entry)
        pending.append(writer.encode(entry))
        size += len(pending[-1])
        if size >= BLOCK_BYTES:
            yield len(pending), compress(writer.codec, b"".join(pending))
            pending, size = [], 0
    if pending:
        yield len(pending), compress(writer.codec, b"".join(pending))


@dataclass(frozen=True, slots=True)
class _Writer:
    """All that follows from a context and a codec. `header`: up to the sync marker."""

    codec: str
    header: bytes
    partition_type: StructType
    encode: EntryEncoder


@lru_cache(maxsize=64)
def _writer(context: ManifestContext, codec: str) -> _Writer:
    # A publisher writes a manifest per micro-batch, of one file often: this would be most of it.
    kind = partition_type(context.spec, context.schema)
    header = encode_header(_header_metadata(context, kind, codec), b"")
    return _Writer(codec, header, kind, entry_encoder(context.format_version, kind))


def manifest_header(context: ManifestContext, codec: str, sync: bytes) -> bytes:
    """The header of a manifest: equal to the byte for equal contexts, but for the sync marker."""
    return _writer(context, codec).header + sync


def _header_metadata(context: ManifestContext, kind: StructType, codec: str) -> dict[str, bytes]:
    spec = print_partition_spec(context.spec)
    entry = manifest_entry_type(context.format_version, kind)
    avro, iceberg = schema_headers(entry, "manifest_entry")
    metadata = {
        "schema": _compact(print_schema(context.schema)),
        "schema-id": str(context.schema.schema_id).encode(),
        "partition-spec": _compact(spec["fields"]),
        "partition-spec-id": str(context.spec.spec_id).encode(),
        "format-version": str(context.format_version).encode(),
    }
    if context.format_version > 1:
        metadata["content"] = context.content.name.lower().encode()
    elif context.content != ManifestContent.DATA:
        raise InvariantError("format version 1 has no delete manifests")
    return metadata | {"iceberg.schema": iceberg, "avro.schema": avro, "avro.codec": codec.encode()}


def _compact(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


# --- Reading -------------------------------------------------------------------------------------


def decode_manifest(
    buf: bytes | memoryview, *, manifest_file: ManifestFile | None = None
) -> DecodedManifest:
    """Read a manifest of any version and writer. With its row of the manifest list, entries inherit
    snapshot id, sequence numbers and row ids.

    Errors: `InvalidMetadataError`; `UnsupportedError` for a codec.
    """
    header = read_header(buf)
    version, content = manifest_version(header), manifest_content(header)
    spec = manifest_spec(header)
    if manifest_file is not None and manifest_file.content != content:
        raise InvalidMetadataError(
            f"{manifest_file.manifest_path}: holds {content.name}, but its row in the manifest"
            f" list says {manifest_file.content.name}"
        )
    entries = _entries(buf, header, spec)
    if manifest_file is not None:
        entries = inherit(entries, manifest_file)
    return DecodedManifest(version, content, manifest_schema(header), spec, tuple(entries))


def _entries(
    buf: bytes | memoryview, header: Header, spec: PartitionSpec
) -> Iterator[ManifestEntry]:
    decoder = record_decoder(header.metadata["avro.schema"])
    field_ids = tuple(field.field_id for field in spec.fields)
    for block, raw in iter_raw_blocks(buf, header):
        position = 0
        for _ in range(block.count):
            record, position = decode_record(decoder, raw, position)
            yield entry_from_record(record, field_ids, spec.spec_id)
        if position != len(raw):
            raise InvalidMetadataError("manifest: bytes behind the last entry of a block")


def inherit(entries: Iterable[ManifestEntry], row: ManifestFile) -> Iterator[ManifestEntry]:
    """Fill in what entries leave to their row. Source: format.md 8.6 and 8.8.

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
    """The format version that a manifest was written in; old writers of version 1 leave it out."""
    text = header.metadata.get("format-version", b"1")
    if text not in (b"1", b"2", b"3"):
        raise InvalidMetadataError("manifest: expected `format-version` 1, 2 or 3")
    return int(text)


def manifest_content(header: Header) -> ManifestContent:
    """What the manifest says it holds; data, if it does not say it."""
    text = header.metadata.get("content", b"data")
    if text not in (b"data", b"deletes"):
        raise InvalidMetadataError("manifest: expected `content` data or deletes")
    return ManifestContent.DATA if text == b"data" else ManifestContent.DELETES


def manifest_schema(header: Header) -> Schema:
    """The table schema that the manifest was written with."""
    return _parse_schema(_text(header, "schema"), header.metadata.get("schema-id"))


@lru_cache(maxsize=64)
def _parse_schema(text: bytes, schema_id: bytes | None) -> Schema:
    document = _json_object(text, "schema")
    if "schema-id" not in document and schema_id is not None and schema_id.isdigit():
        document = {**document, "schema-id": int(schema_id)}
    return parse_schema(document)


def manifest_spec(header: Header) -> PartitionSpec:
    """The partition spec that the manifest was written with."""
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


def _json_object(text: bytes, key: str) -> dict[str, object]:
    document = _json(text, key)
    if not isinstance(document, dict):
        raise InvalidMetadataError(f"manifest: `{key}` is not a JSON object")
    return document
