"""Manifest lists: their rows as values, written row by row so that encoded rows can be kept.

The manifests themselves are in `manifest.py`.
Source: the specification, "Manifest Lists"; docs/reference/iceberg-notes.md 6.1, 6.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from committer.errors import InvalidMetadataError, InvariantError
from committer.iceberg.avro.binary import LONGS, encode_bytes, read_bytes
from committer.iceberg.avro.codecs import compress, decompress
from committer.iceberg.avro.container import (
    encode_container,
    encode_header,
    iter_blocks,
    iter_raw_blocks,
    read_header,
)
from committer.iceberg.avro.decoder import Decoder, Record, decode_record, record_decoder
from committer.iceberg.avro.manifest_schemas import (
    MANIFEST_FILE_ORDER,
    manifest_file_type,
    schema_headers,
)
from committer.iceberg.avro.shapes import RecordShape, schema_shape
from committer.iceberg.entry.data_file import ManifestContent

# Counts that a list of version 1 leaves out, as version 2 states them: it requires counts, and with
# these readers still look into the manifest. Row ids go by counts: a commit that assigns them reads
# such a manifest first.
COUNTS_UNKNOWN = (1, 1, 1)
# Rows of one block. Blocks are cut from the end of the list, where the old rows are: new rows come
# in front, so the old blocks stay as they are and their compressed form is found again.
_ROWS_PER_BLOCK = 64


@dataclass(frozen=True, slots=True)
class PartitionFieldSummary:
    """The values of a manifest's files in one partition field. Bounds are binary single values,
    None if only null and NaN were seen; `contains_nan` None means unknown."""

    contains_null: bool
    contains_nan: bool | None
    lower_bound: bytes | None
    upper_bound: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """One row of a manifest list. Counts are None only in lists of version 1 (assume some).

    `first_row_id` is None for delete manifests and before version 3.
    """

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    content: ManifestContent = ManifestContent.DATA
    sequence_number: int = 0
    min_sequence_number: int = 0
    added_snapshot_id: int
    added_files_count: int | None
    existing_files_count: int | None
    deleted_files_count: int | None
    added_rows_count: int | None
    existing_rows_count: int | None
    deleted_rows_count: int | None
    partitions: tuple[PartitionFieldSummary, ...] | None = None
    key_metadata: bytes | None = None
    first_row_id: int | None = None

    @property
    def has_live_files(self) -> bool:
        """Whether the manifest may have files that are not deleted (unknown counts: yes)."""
        return self.added_files_count != 0 or self.existing_files_count != 0

    @property
    def live_files_count(self) -> int | None:
        """How many files of the manifest are not deleted; None where the list does not say."""
        added, existing = self.added_files_count, self.existing_files_count
        if (existing, added, self.deleted_files_count) == COUNTS_UNKNOWN:
            return None
        return None if added is None or existing is None else added + existing


def live_manifests(rows: Iterable[ManifestFile], content: ManifestContent) -> list[ManifestFile]:
    """Return the manifests of one content that may list live files, in the order of `rows`."""
    return [row for row in rows if row.content == content and row.has_live_files]


@dataclass(frozen=True, slots=True)
class DecodedManifestList:
    """A manifest list as read. `encoded_rows[i]` is `rows[i]` encoded for `format_version`."""

    header: Mapping[str, str]
    format_version: int
    rows: tuple[ManifestFile, ...]
    encoded_rows: tuple[bytes, ...]


# --- Writing -------------------------------------------------------------------------------------


def encode_manifest_file(row: ManifestFile, format_version: int) -> bytes:
    """Encode one row for a list of this format version.

    Errors: `InvariantError` for what the version cannot hold.
    """
    if format_version == 1 and row.content != ManifestContent.DATA:
        raise InvariantError(f"{row.manifest_path}: format version 1 has no delete manifests")
    encoded = _encoded_fields(row, optional_counts=format_version == 1)
    return b"".join(encoded[field_id] for field_id in MANIFEST_FILE_ORDER[format_version])


def _encoded_fields(row: ManifestFile, *, optional_counts: bool) -> dict[int, bytes]:
    existing_files, added_files, deleted_files = _counts(
        (row.existing_files_count, row.added_files_count, row.deleted_files_count), optional_counts
    )
    existing_rows, added_rows, deleted_rows = _counts(
        (row.existing_rows_count, row.added_rows_count, row.deleted_rows_count), optional_counts
    )
    return {
        500: encode_bytes(row.manifest_path.encode()),
        501: LONGS[row.manifest_length],
        502: LONGS[row.partition_spec_id],
        517: LONGS[row.content],
        515: LONGS[row.sequence_number],
        516: LONGS[row.min_sequence_number],
        503: LONGS[row.added_snapshot_id],
        504: added_files,
        505: existing_files,
        506: deleted_files,
        512: added_rows,
        513: existing_rows,
        514: deleted_rows,
        507: _encode_partitions(row.partitions),
        519: _optional_bytes(row.key_metadata),
        520: _optional_long(row.first_row_id),
    }


def _counts(counts: tuple[int | None, ...], optional: bool) -> tuple[bytes, ...]:
    if optional:
        return tuple(map(_optional_long, counts))
    known = tuple(count for count in counts if count is not None)
    return tuple(map(LONGS.__getitem__, known if len(known) == len(counts) else COUNTS_UNKNOWN))


def _optional_long(value: int | None) -> bytes:
    return b"\0" if value is None else b"\x02" + LONGS[value]


def _optional_bytes(value: bytes | None) -> bytes:
    return b"\0" if value is None else b"\x02" + encode_bytes(value)


def _optional_boolean(value: bool | None) -> bytes:
    return b"\0" if value is None else b"\x02\x01" if value else b"\x02\0"


def _encode_partitions(partitions: tuple[PartitionFieldSummary, ...] | None) -> bytes:
    if partitions is None:
        return b"\0"
    if not partitions:
        return b"\x02\0"
    parts = [b"\x02", LONGS[len(partitions)]]
    for summary in partitions:
        parts += (
            b"\x01" if summary.contains_null else b"\0",
            _optional_boolean(summary.contains_nan),
            _optional_bytes(summary.lower_bound),
            _optional_bytes(summary.upper_bound),
        )
    return b"".join((*parts, b"\0"))


def encode_manifest_list(
    rows: Sequence[bytes],
    *,
    format_version: int,
    snapshot_id: int,
    parent_snapshot_id: int | None,
    sequence_number: int,
    first_row_id: int | None,
    sync: bytes,
    extra_metadata: Mapping[str, str],
) -> bytes:
    """Join encoded rows to a manifest list. `extra_metadata` is written to the Avro header."""
    parent = "null" if parent_snapshot_id is None else str(parent_snapshot_id)
    ours = {"snapshot-id": str(snapshot_id), "parent-snapshot-id": parent}
    if format_version > 1:
        ours["sequence-number"] = str(sequence_number)
    if format_version > 2:
        if first_row_id is None:
            raise InvariantError("a manifest list of version 3 needs the first row id")
        ours["first-row-id"] = str(first_row_id)
    ours["format-version"] = str(format_version)
    texts = {**extra_metadata, **ours}
    avro, iceberg = schema_headers(manifest_file_type(format_version), "manifest_file")
    metadata = {key: value.encode() for key, value in texts.items()}
    metadata |= {"iceberg.schema": iceberg, "avro.schema": avro, "avro.codec": b"deflate"}
    return encode_container(encode_header(metadata, sync), _blocks(rows), sync)


def _blocks(rows: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    start, stop = 0, len(rows) % _ROWS_PER_BLOCK or _ROWS_PER_BLOCK
    while start < len(rows):
        block = rows[start:stop]
        yield len(block), _compressed(b"".join(block))
        start, stop = stop, stop + _ROWS_PER_BLOCK


@lru_cache(maxsize=1024)
def _compressed(raw: bytes) -> bytes:
    # A table's list changes at its front only; without this, each commit would deflate all of it.
    return compress("deflate", raw)


# --- Reading -------------------------------------------------------------------------------------


# Rows as read, and as Frazil encodes them: by the format version of the list, and by their path.
KnownRows = dict[int, dict[bytes, tuple[bytes, ManifestFile]]]


def decode_manifest_list(
    buf: bytes, *, format_version: int | None = None, known: KnownRows | None = None
) -> DecodedManifestList:
    """Read a manifest list of any version and writer; fields are found by their ids.

    `encoded_rows` are for `format_version` (default: the file's own): the very bytes of the file if
    they have Frazil's layout, else encoded anew. Successive lists share most of their rows to the
    byte: with one `known` for all of them each row is decoded once, if it has Frazil's layout.
    Errors: `InvalidMetadataError`; `UnsupportedError` for a codec or version.
    """
    header = read_header(buf)
    schema_text = header.metadata["avro.schema"]
    shape = schema_shape(schema_text)
    version = format_version or _format_version(header.metadata, shape)
    ours = schema_shape(schema_headers(manifest_file_type(version), "manifest_file")[0])
    decoder = record_decoder(schema_text)
    of_version = None if known is None or shape != ours else known.setdefault(version, {})
    rows, encoded = [], []
    for block, raw in iter_raw_blocks(buf, header):
        for row, as_written in _rows_of_block(raw, block.count, decoder, of_version):
            rows.append(row)
            encoded.append(as_written if shape == ours else encode_manifest_file(row, version))
    texts = {key: value.decode(errors="replace") for key, value in header.metadata.items()}
    return DecodedManifestList(texts, version, tuple(rows), tuple(encoded))


_NO_ROW: tuple[bytes, None] = (b"", None)


def iter_new_rows(buf: bytes, known: set[bytes]) -> Iterator[ManifestFile]:
    """Yield the rows of blocks that are not in `known`, and add those blocks to it.

    Lists that follow one another share most of their blocks to the byte: with one `known` for all
    of them each is decoded once. Errors: `InvalidMetadataError`; `UnsupportedError` for a codec.
    """
    header = read_header(buf)
    schema_text = header.metadata["avro.schema"]
    decoder = record_decoder(schema_text)
    for block in iter_blocks(buf, header):
        compressed = buf[block.start : block.stop]
        if compressed in known:
            continue
        known.add(compressed)
        raw = decompress(header.codec, compressed)
        yield from (row for row, _ in _rows_of_block(raw, block.count, decoder))


def _rows_of_block(
    raw: bytes,
    count: int,
    decoder: Decoder,
    known: dict[bytes, tuple[bytes, ManifestFile]] | None = None,
) -> Iterator[tuple[ManifestFile, bytes]]:
    """Yield the rows of a block; with `known`, the path comes first in each row."""
    position = 0
    for _ in range(count):
        start = position
        path = b"" if known is None else read_bytes(raw, start)[0]
        encoded, row = known.get(path, _NO_ROW) if known else _NO_ROW
        # Bytes that begin with all of a row are that row: a schema leaves no choice of its end.
        if row is not None and raw.startswith(encoded, start):
            position += len(encoded)
        else:
            record, position = decode_record(decoder, raw, start)
            encoded, row = raw[start:position], _manifest_file(record)
            if known is not None:
                known[path] = encoded, row
        yield row, encoded
    if position != len(raw):
        raise InvalidMetadataError("manifest list: bytes behind the last row of a block")


def _format_version(metadata: Mapping[str, bytes], shape: RecordShape) -> int:
    """Return the list's format version: old writers of version 1 omit it;
    then its content decides."""
    text = metadata.get("format-version")
    if text is None:
        return 3 if shape.get(520) else 2 if shape.get(515) else 1
    if text not in (b"1", b"2", b"3"):
        raise InvalidMetadataError("manifest list: expected `format-version` 1, 2 or 3")
    return int(text)


def _manifest_file(record: Record) -> ManifestFile:
    content = _long(record, 517, 0)
    if content not in (0, 1):
        raise InvalidMetadataError(f"manifest list: content {content}, expected 0 or 1")
    return ManifestFile(
        manifest_path=_text(record, 500),
        manifest_length=_long(record, 501),
        partition_spec_id=_long(record, 502),
        content=ManifestContent(content),
        sequence_number=_long(record, 515, 0),
        min_sequence_number=_long(record, 516, 0),
        added_snapshot_id=_long(record, 503),
        added_files_count=_not_negative(record, 504),
        existing_files_count=_not_negative(record, 505),
        deleted_files_count=_not_negative(record, 506),
        added_rows_count=_not_negative(record, 512),
        existing_rows_count=_not_negative(record, 513),
        deleted_rows_count=_not_negative(record, 514),
        partitions=_summaries(record.get(507)),
        key_metadata=_bytes_or_none(record, 519),
        first_row_id=_count_or_none(record, 520),
    )


def _summaries(decoded: object) -> tuple[PartitionFieldSummary, ...] | None:
    if decoded is None:
        return None
    if not isinstance(decoded, tuple):
        raise _wrong(507)
    return tuple(_summary(item) for item in decoded)


def _summary(record: object) -> PartitionFieldSummary:
    if not isinstance(record, dict) or not isinstance(record.get(509), bool):
        raise _wrong(509)
    contains_nan = record.get(518)
    if contains_nan is not None and not isinstance(contains_nan, bool):
        raise _wrong(518)
    return PartitionFieldSummary(
        record[509], contains_nan, _bytes_or_none(record, 510), _bytes_or_none(record, 511)
    )


def _long(record: Record, field_id: int, default: int | None = None) -> int:
    value = record.get(field_id, default)
    # An optional field that is null reads as one that is absent.
    value = default if value is None else value
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(field_id)
    return value


def _count_or_none(record: Record, field_id: int) -> int | None:
    return None if record.get(field_id) is None else _long(record, field_id)


def _not_negative(record: Record, field_id: int) -> int | None:
    count = _count_or_none(record, field_id)
    if count is not None and count < 0:
        raise InvalidMetadataError(
            f"manifest list: {_text(record, 500)}: field {field_id} is {count}, expected 0 or more"
        )
    return count


def _text(record: Record, field_id: int) -> str:
    value = record.get(field_id)
    if not isinstance(value, str) or not value:
        raise _wrong(field_id)
    return value


def _bytes_or_none(record: Record, field_id: int) -> bytes | None:
    value = record.get(field_id)
    if value is not None and not isinstance(value, bytes):
        raise _wrong(field_id)
    return value


def _wrong(field_id: int) -> InvalidMetadataError:
    return InvalidMetadataError(f"manifest list: field {field_id} is missing or of a wrong type")
