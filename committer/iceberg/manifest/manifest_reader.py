"""Reads the entries of a manifest, all that they say.

Most entries look alike, so most of their bytes are compared with the entry before; their metrics
are read by `map_layouts.py`. An entry that is not as expected is left to the decoder of whole
entries, which reads it or says what is wrong with it. A scan, which needs less, has its own reader:
`scan/entry_reader.py`. Source: the specification, "Manifests"; docs/reference/iceberg-notes.md 6.4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.binary import read_bytes, read_long
from committer.iceberg.avro.container import Header, iter_raw_blocks
from committer.iceberg.avro.decoder import decode_record
from committer.iceberg.entry.data_file import DataFileContent, ManifestEntry
from committer.iceberg.entry.drafts import Head, new_data_file, new_entry
from committer.iceberg.entry.entry_decoder import entry_from_record
from committer.iceberg.entry.entry_layout import Layout
from committer.iceberg.entry.entry_parts import EntryParts, Unexpected, entry_parts, skip_optional
from committer.iceberg.entry.map_layouts import MapLayouts
from committer.iceberg.manifest.manifest_row import refuse_negative
from committer.iceberg.schema.partition_spec import PartitionSpec

# As varints.
_CONTENTS = {2 * content: content for content in DataFileContent}
# No part of an entry begins with these: no integer has so many bytes.
_NOTHING = b"\xff" * 16
_MIDDLES_MAX = 65_536
# Format and partition.
_Middle = tuple[str, tuple[object, ...]]


def read_entries(
    buf: bytes | memoryview, header: Header, spec: PartitionSpec
) -> Iterator[ManifestEntry]:
    """Yield the entries of a manifest, one by one, as they stand: nothing is inherited.

    Errors: `InvalidMetadataError`; `UnsupportedError` for a codec.
    """
    schema_text = header.metadata["avro.schema"]
    parts = entry_parts(schema_text)
    reader = _Reader(parts, spec, _map_layouts(schema_text))
    for block, raw in iter_raw_blocks(buf, header):
        if parts.layout is None:
            yield from reader.read_whole(raw, block.count)
        else:
            yield from reader.read_block(raw, block.count, parts.layout)


@lru_cache(maxsize=64)
def _map_layouts(_schema_text: bytes) -> MapLayouts:
    """Return layouts that stay over manifests:
    a table's resemble one another, and many are small."""
    return MapLayouts()


class _Reader:
    """Reads the blocks of one manifest."""

    def __init__(self, parts: EntryParts, spec: PartitionSpec, maps: MapLayouts) -> None:
        self._parts, self._maps, self._spec_id = parts, maps, spec.spec_id
        self._partition_ids = tuple(field.field_id for field in spec.fields)
        self._middles: dict[bytes, _Middle] = {}

    def read_whole(self, raw: bytes, count: int) -> Iterator[ManifestEntry]:
        position = 0
        for _ in range(count):
            entry, position = self._decode(raw, position)
            yield entry
        _check_end(position, raw)

    def read_block(self, raw: bytes, count: int, layout: Layout) -> Iterator[ManifestEntry]:
        """Read a block's entries, all written out: a call per field would be half of the time."""
        read_maps, spec_id, has_block_size = self._maps.read, self._spec_id, layout.counts == 3
        middles, middle_bytes = self._middles, 0
        head_bytes = tail_bytes = _NOTHING
        position = 0
        for _ in range(count):
            start = position
            try:
                if raw.startswith(head_bytes, position):
                    position += len(head_bytes)
                else:
                    head, content, position = self._read_head(raw, position)
                    head_bytes = raw[start:position]
                number, more = raw[position], raw[position + 1]
                if number < 128 or more > 127 or number & 1:
                    path, position = read_bytes(raw, position)
                else:
                    before, position = (
                        position + 2,
                        position + 2 + ((number & 127 | more << 7) >> 1),
                    )
                    path = raw[before:position]
                # No format and partition begins with another, so any that is known is found.
                middle = middles.get(raw[position : position + middle_bytes])
                if middle is None:
                    middle, stop = self._read_middle(raw, position, layout)
                    middle_bytes, position = stop - position, stop
                else:
                    position += middle_bytes
                number, more = raw[position], raw[position + 1]
                if number < 128 or more > 127 or number & 1:
                    record_count, position = read_long(raw, position)
                else:
                    record_count, position = (number & 127 | more << 7) >> 1, position + 2
                size, position = read_long(raw, position)
                if record_count < 0 or size < 0:
                    raise Unexpected
                if has_block_size:
                    _, position = read_long(raw, position)
                maps, position = read_maps(raw, position)
                if raw.startswith(tail_bytes, position):
                    position += len(tail_bytes)
                else:
                    before = position
                    tail, position = self._parts.read_tail(raw, before)
                    tail_bytes = raw[before:position]
                if position > len(raw):
                    raise Unexpected
                file_path = path.decode()
            except (Unexpected, IndexError, ValueError, struct.error, InvalidMetadataError):
                head_bytes = tail_bytes = _NOTHING
                entry, position = self._decode(raw, start)
                yield entry
                continue
            file = new_data_file(
                content, file_path, *middle, record_count, size, maps, tail, spec_id
            )
            yield new_entry(head, file)
        _check_end(position, raw)

    # --- The parts of an entry. Errors: any that `read_block` catches mean that the decoder is to
    # decide. ---

    def _read_head(self, raw: bytes, position: int) -> tuple[Head, DataFileContent, int]:
        """Read status and ids, and what the file holds."""
        head, position = self._parts.read_head(raw, position)
        content: DataFileContent | None = DataFileContent.DATA
        if self._parts.before_path:
            content = _CONTENTS.get(raw[position])
            position += 1
        if content is None:
            raise Unexpected
        return head, content, position

    def _read_middle(self, raw: bytes, position: int, layout: Layout) -> tuple[_Middle, int]:
        """Read format and partition, and where they end."""
        file_format, start = read_bytes(raw, position)
        stop = skip_optional(raw, start, layout.partition)
        known, encoded = self._middles, raw[position:stop]
        middle = known.get(encoded)
        if middle is None:
            record, size = decode_record(self._parts.partition, raw[start:stop], 0)
            if size != stop - start:
                raise Unexpected
            partition = tuple(record.get(field_id) for field_id in self._partition_ids)
            middle = file_format.decode().upper(), partition
            if len(known) >= _MIDDLES_MAX:
                known.clear()
            known[encoded] = middle
        return middle, stop

    def _decode(self, raw: bytes, position: int) -> tuple[ManifestEntry, int]:
        record, position = decode_record(self._parts.entry, raw, position)
        entry = entry_from_record(record, self._partition_ids, self._spec_id)
        refuse_negative(entry.data_file)
        return entry, position


def _check_end(position: int, raw: bytes) -> None:
    if position != len(raw):
        raise InvalidMetadataError("manifest: bytes behind the last entry of a block")
