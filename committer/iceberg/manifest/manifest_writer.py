"""Writes manifests entry by entry, and yields and counts their bytes block by block.

Source: the specification, "Manifests"; docs/reference/iceberg-notes.md 6.1, 6.4.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import chain

from committer.errors import InvariantError
from committer.iceberg.avro.codecs import DEFLATE_LEVEL_FAST, compress
from committer.iceberg.avro.container import encode_block, encode_header
from committer.iceberg.avro.manifest_schemas import (
    compact_json,
    manifest_entry_type,
    schema_headers,
)
from committer.iceberg.entry.data_file import DataFile, ManifestContent, ManifestEntry
from committer.iceberg.entry.entry_encoder import (
    AdditionEncoder,
    EntryEncoder,
    addition_encoder,
    entry_encoder,
)
from committer.iceberg.entry.partition_encoder import partition_key
from committer.iceberg.manifest.manifest_list import ManifestFile, PartitionFieldSummary
from committer.iceberg.manifest.partition_summary import summarize_partitions
from committer.iceberg.schema.partition_spec import (
    PartitionSpec,
    partition_type,
    print_partition_spec,
)
from committer.iceberg.schema.schema import Schema, print_schema
from committer.iceberg.values.types import StructType

# A reader inflates a block at a time: large enough to compress well, small enough to keep.
BLOCK_BYTES = 64 * 1024
_EXISTING, _ADDED, _DELETED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class ManifestContext:
    """The facts that all entries of a manifest share, and that its header states."""

    format_version: int
    schema: Schema
    spec: PartitionSpec
    content: ManifestContent = ManifestContent.DATA


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenManifest:
    """The facts for a manifest's row in a manifest list. `manifest_length` is in bytes.

    `min_sequence_number`: the smallest explicit one of its live entries; None if all inherit.
    """

    manifest_length: int
    added_files_count: int = 0
    existing_files_count: int = 0
    deleted_files_count: int = 0
    added_rows_count: int = 0
    existing_rows_count: int = 0
    deleted_rows_count: int = 0
    partitions: tuple[PartitionFieldSummary, ...]
    min_sequence_number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedManifest(WrittenManifest):
    """A manifest with its bytes."""

    content: bytes


def manifest_file(
    written: WrittenManifest,
    context: ManifestContext,
    *,
    manifest_path: str,
    snapshot_id: int,
    sequence_number: int,
) -> ManifestFile:
    """Return the row of a manifest that this snapshot adds (sequence number 0 in version 1)."""
    lowest = written.min_sequence_number
    return ManifestFile(
        manifest_path=manifest_path,
        manifest_length=written.manifest_length,
        partition_spec_id=context.spec.spec_id,
        content=context.content,
        sequence_number=sequence_number,
        min_sequence_number=sequence_number if lowest is None else lowest,
        added_snapshot_id=snapshot_id,
        added_files_count=written.added_files_count,
        existing_files_count=written.existing_files_count,
        deleted_files_count=written.deleted_files_count,
        added_rows_count=written.added_rows_count,
        existing_rows_count=written.existing_rows_count,
        deleted_rows_count=written.deleted_rows_count,
        partitions=written.partitions,
    )


class ManifestWriter:
    """Encodes one manifest. Mutable; keeps one block and the distinct partitions, no more.

    `add` and `add_files` yield each block that is complete; all bytes of `start`, those and
    `finish` together are the manifest. `length_bytes`: of the bytes yielded so far. Errors:
    `InvariantError` for what the format version or the manifest's content cannot hold; the writer
    is of no use after an error.
    """

    def __init__(self, context: ManifestContext, *, codec: str = "deflate", sync: bytes) -> None:
        self._parts = _parts(context, codec)
        self._codec, self._sync = codec, sync
        self._is_data = context.content == ManifestContent.DATA
        self._block: list[bytes] = []
        self._block_bytes = 0
        # By status: existing, added, deleted.
        self._files, self._rows = [0, 0, 0], [0, 0, 0]
        self._partitions: dict[Hashable, tuple[object, ...]] = {}
        self._min_sequence_number: int | None = None
        self.length_bytes = 0

    def start(self) -> bytes:
        """Return the bytes of the header."""
        return self._handed_over(self._parts.header + self._sync)

    def add(self, entries: Iterable[ManifestEntry]) -> Iterator[bytes]:
        """Add entries as they are."""
        for entry in entries:
            self._count(entry)
            encoded = self._parts.encode_entry(entry)
            self._block.append(encoded)
            self._block_bytes += len(encoded)
            if self._block_bytes >= BLOCK_BYTES:
                yield self._finish_block()

    def add_files(self, files: Iterable[DataFile]) -> Iterator[bytes]:
        """Add new files: everything that their entries can inherit is null, so they are final."""
        # As `add`, but in one loop: it is most of a publisher's time.
        encode, key_of = self._parts.encode_addition, self._parts.partition_key
        partitions, is_data, block = self._partitions, self._is_data, self._block
        count, rows, size = 0, 0, self._block_bytes
        try:
            for file in files:
                if is_data is not (not file.content):
                    raise self._misplaced(file)
                encoded = encode(file)
                block.append(encoded)
                count += 1
                rows += file.record_count
                key = key_of(file.partition)
                if key not in partitions:
                    partitions[key] = file.partition
                size += len(encoded)
                if size >= BLOCK_BYTES:
                    yield self._finish_block()
                    size = 0
        finally:
            self._files[_ADDED] += count
            self._rows[_ADDED] += rows
            self._block_bytes = size

    def finish(self) -> bytes:
        """Return the last block, if there is one."""
        return self._finish_block() if self._block else b""

    def written(self) -> WrittenManifest:
        """Return the facts for its row, once it is finished."""
        kind = self._parts.partition_type
        return WrittenManifest(
            manifest_length=self.length_bytes,
            added_files_count=self._files[_ADDED],
            existing_files_count=self._files[_EXISTING],
            deleted_files_count=self._files[_DELETED],
            added_rows_count=self._rows[_ADDED],
            existing_rows_count=self._rows[_EXISTING],
            deleted_rows_count=self._rows[_DELETED],
            partitions=summarize_partitions(kind, self._partitions.values()),
            min_sequence_number=self._min_sequence_number,
        )

    def _count(self, entry: ManifestEntry) -> None:
        file, status = entry.data_file, entry.status
        if self._is_data is not (not file.content):
            raise self._misplaced(file)
        self._files[status] += 1
        self._rows[status] += file.record_count
        self._partitions.setdefault(self._parts.partition_key(file.partition), file.partition)
        number = entry.sequence_number
        if number is not None and entry.is_live:
            lowest = self._min_sequence_number
            self._min_sequence_number = number if lowest is None else min(number, lowest)

    def _misplaced(self, file: DataFile) -> InvariantError:
        kind = ManifestContent.DATA if self._is_data else ManifestContent.DELETES
        return InvariantError(f"{file.file_path}: not for a manifest of {kind.name}")

    def _finish_block(self) -> bytes:
        raw = b"".join(self._block)
        compressed = compress(self._codec, raw, level=DEFLATE_LEVEL_FAST)
        encoded = b"".join(encode_block(len(self._block), compressed, self._sync))
        self._block.clear()
        self._block_bytes = 0
        return self._handed_over(encoded)

    def _handed_over(self, content: bytes) -> bytes:
        self.length_bytes += len(content)
        return content


# --- Whole manifests -----------------------------------------------------------------------------


def encode_manifest(
    entries: Iterable[ManifestEntry],
    context: ManifestContext,
    *,
    codec: str = "deflate",
    sync: bytes,
) -> EncodedManifest:
    """Encode entries. Errors: `InvariantError` for what the version cannot hold."""
    writer = ManifestWriter(context, codec=codec, sync=sync)
    return _encoded(writer, writer.add(entries))


def encode_additions(
    files: Iterable[DataFile], context: ManifestContext, *, codec: str = "deflate", sync: bytes
) -> EncodedManifest:
    """Encode the entries of new files, as `encode_manifest`."""
    writer = ManifestWriter(context, codec=codec, sync=sync)
    return _encoded(writer, writer.add_files(files))


def _encoded(writer: ManifestWriter, blocks: Iterable[bytes]) -> EncodedManifest:
    # In this order: each part changes what the writer knows.
    content = b"".join((writer.start(), *blocks, writer.finish()))
    written = writer.written()
    return EncodedManifest(
        content=content, **{one.name: getattr(written, one.name) for one in fields(written)}
    )


def encode_manifests(
    entries: Iterable[ManifestEntry],
    context: ManifestContext,
    *,
    codec: str = "deflate",
    sync: bytes,
    target_bytes: int,
) -> Iterator[EncodedManifest]:
    """Encode entries into as many manifests as keep each near `target_bytes`, one at a time.

    A manifest ends with the block that reaches the target; without entries there is none.
    """
    remaining = iter(entries)
    while (first := next(remaining, None)) is not None:
        writer = ManifestWriter(context, codec=codec, sync=sync)
        blocks = _up_to(target_bytes, writer, writer.add(chain((first,), remaining)))
        yield _encoded(writer, blocks)


def _up_to(target_bytes: int, writer: ManifestWriter, blocks: Iterable[bytes]) -> Iterator[bytes]:
    for block in blocks:
        yield block
        if writer.length_bytes >= target_bytes:
            return


# --- What a context implies ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Parts:
    """All that follows from a context and a codec. `header`: up to the sync marker."""

    header: bytes
    partition_type: StructType
    partition_key: Callable[[tuple[object, ...]], Hashable]
    encode_entry: EntryEncoder
    encode_addition: AdditionEncoder


@lru_cache(maxsize=64)
def _parts(context: ManifestContext, codec: str) -> _Parts:
    # A publisher writes a manifest per micro-batch, of one file often: this would be most of it.
    kind = partition_type(context.spec, context.schema)
    return _Parts(
        encode_header(_header_metadata(context, kind, codec), b""),
        kind,
        partition_key(kind),
        entry_encoder(context.format_version, kind),
        addition_encoder(context.format_version, kind),
    )


def manifest_header(context: ManifestContext, codec: str, sync: bytes) -> bytes:
    """Return the header of a manifest: equal contexts give equal bytes, but for the sync marker."""
    return _parts(context, codec).header + sync


def _header_metadata(context: ManifestContext, kind: StructType, codec: str) -> dict[str, bytes]:
    spec = print_partition_spec(context.spec)
    entry = manifest_entry_type(context.format_version, kind)
    avro, iceberg = schema_headers(entry, "manifest_entry")
    metadata = {
        "schema": compact_json(print_schema(context.schema)),
        "schema-id": str(context.schema.schema_id).encode(),
        "partition-spec": compact_json(spec["fields"]),
        "partition-spec-id": str(context.spec.spec_id).encode(),
        "format-version": str(context.format_version).encode(),
    }
    if context.format_version > 1:
        metadata["content"] = context.content.name.lower().encode()
    elif context.content != ManifestContent.DATA:
        raise InvariantError("format version 1 has no delete manifests")
    return metadata | {"iceberg.schema": iceberg, "avro.schema": avro, "avro.codec": codec.encode()}
