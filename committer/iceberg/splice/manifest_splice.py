"""Joins checked manifests to one without decoding their entries.

An added entry with null ids is final where it is written (docs/reference/iceberg-notes.md 6.9), so
a block of them can be moved as it stands; only the sync marker behind it belongs to the file.
Checking entries is `manifest_walk.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from committer.errors import InvariantError
from committer.iceberg.avro.binary import LONGS
from committer.iceberg.avro.codecs import decompress
from committer.iceberg.avro.container import encode_container
from committer.iceberg.avro.decoder import decode_record, record_decoder
from committer.iceberg.avro.shapes import entry_shape, schema_shape
from committer.iceberg.entry.data_file import ManifestEntry, with_order
from committer.iceberg.entry.entry_decoder import entry_from_record
from committer.iceberg.entry.entry_encoder import entry_encoder
from committer.iceberg.manifest.block_pool import BlockPool, EncodedBlock
from committer.iceberg.manifest.manifest_writer import (
    EncodedManifest,
    ManifestContext,
    manifest_header,
)
from committer.iceberg.manifest.partition_summary import summarize_partitions
from committer.iceberg.schema.partition_spec import partition_type
from committer.iceberg.splice.manifest_walk import SMALL_BLOCK, WalkedBlock, WalkedManifest

# status ADDED and a null snapshot id: how an entry of version 1 starts
_V1_HEAD = b"\x02\0"
# sort order 0, not null
_UNSORTED = b"\x02\0"


@dataclass(frozen=True, slots=True)
class ManifestPart:
    """The bytes of a manifest of additions, and what the check of it found."""

    content: bytes | memoryview
    walked: WalkedManifest


def join_manifests(
    parts: Sequence[ManifestPart],
    context: ManifestContext,
    *,
    sync: bytes,
    codec: str = "deflate",
    snapshot_id: int | None = None,
) -> EncodedManifest:
    """Join the entries of all parts to one manifest.

    Blocks of `SMALL_BLOCK` entries or more are moved as they are, if the part has Frazil's layout
    and the same codec; smaller ones are compressed anew, together. Version 1 does not inherit
    snapshot ids: there `snapshot_id` is written into each entry. Errors: `InvariantError` for
    version 1 without a snapshot id.
    """
    if context.format_version == 1 and snapshot_id is None:
        raise InvariantError("entries of format version 1 need their snapshot id")
    pool = BlockPool(codec)
    blocks: list[EncodedBlock] = []
    kind = partition_type(context.spec, context.schema)
    shape = entry_shape(context.format_version, kind)
    for part in parts:
        # Entries of an older format version, or from before a promotion, are laid out otherwise.
        written = schema_shape(part.walked.header.metadata["avro.schema"])
        fits = part.walked.is_ours and shape == written
        if context.format_version == 1:
            blocks += pool.add_all(_with_snapshot_id(part, context, snapshot_id, fits))
        elif fits:
            blocks += _moved(part, codec, pool, context)
        else:
            blocks += pool.add_all(_encoded_anew(part, part.walked.blocks, context, None))
    blocks += pool.flush()
    return _joined(parts, context, blocks, sync=sync, codec=codec)


def _joined(
    parts: Sequence[ManifestPart],
    context: ManifestContext,
    blocks: Iterable[EncodedBlock],
    *,
    sync: bytes,
    codec: str,
) -> EncodedManifest:
    walked = [part.walked for part in parts]
    kind = partition_type(context.spec, context.schema)
    partitions = {
        repr(partition): partition for manifest in walked for partition in manifest.partitions
    }
    content = encode_container(manifest_header(context, codec, sync), blocks, sync)
    return EncodedManifest(
        content=content,
        manifest_length=len(content),
        added_files_count=sum(manifest.added_files_count for manifest in walked),
        added_rows_count=sum(manifest.added_rows_count for manifest in walked),
        partitions=summarize_partitions(kind, partitions.values()),
    )


def _moved(
    part: ManifestPart, codec: str, pool: BlockPool, context: ManifestContext
) -> Iterator[EncodedBlock]:
    content, same_codec = memoryview(part.content), part.walked.header.codec == codec
    for block in part.walked.blocks:
        if block.null_orders is None:
            yield from pool.add_all(_encoded_anew(part, (block,), context, None))
        elif block.null_orders:
            yield from pool.add(block.count, _with_orders(_raw(part, block), block.null_orders))
        elif same_codec and block.count >= SMALL_BLOCK:
            yield block.count, content[block.start : block.stop]
        elif block.count:
            yield from pool.add(block.count, _raw(part, block))


def _with_orders(raw: bytes, nulls: tuple[int, ...]) -> bytes:
    """Put the unsorted order in the place of each null, as `with_order` gives it to files."""
    pieces: list[bytes] = []
    start = 0
    for place in nulls:
        pieces += (raw[start:place], _UNSORTED)
        start = place + 1
    return b"".join((*pieces, raw[start:]))


def _raw(part: ManifestPart, block: WalkedBlock) -> bytes:
    if block.raw is not None:
        return block.raw
    return decompress(part.walked.header.codec, memoryview(part.content)[block.start : block.stop])


def _with_snapshot_id(
    part: ManifestPart, context: ManifestContext, snapshot_id: int | None, fits: bool
) -> Iterator[bytes]:
    if not fits or snapshot_id is None:
        yield from _encoded_anew(part, part.walked.blocks, context, snapshot_id)
        return
    head = _V1_HEAD[:1] + b"\x02" + LONGS[snapshot_id]
    for block in part.walked.blocks:
        if block.null_orders != ():
            yield from _encoded_anew(part, (block,), context, snapshot_id)
            continue
        raw, start = _raw(part, block), 0
        for stop in block.ends:
            yield head + raw[start + len(_V1_HEAD) : stop]
            start = stop


def _encoded_anew(
    part: ManifestPart,
    blocks: Iterable[WalkedBlock],
    context: ManifestContext,
    snapshot_id: int | None,
) -> Iterator[bytes]:
    """Encode entries of another writer schema anew:
    their bytes mean something else under this header."""
    encode = entry_encoder(context.format_version, partition_type(context.spec, context.schema))
    decoder = record_decoder(part.walked.header.metadata["avro.schema"])
    field_ids = tuple(field.field_id for field in context.spec.fields)
    for block in blocks:
        raw, position = _raw(part, block), 0
        for _ in range(block.count):
            record, position = decode_record(decoder, raw, position)
            entry = entry_from_record(record, field_ids, context.spec.spec_id)
            file = with_order(entry.data_file)
            yield encode(ManifestEntry(entry.status, snapshot_id, None, None, file))
