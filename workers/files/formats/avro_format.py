"""Avro: object container files of blocks, as Iceberg's own writer makes them.

Such a file has no metrics but how many rows it has: its readers find none in it, and Iceberg's own
writer records none. Sources: the Avro specification, "Object Container Files"; the Iceberg
specification, Appendix A, "Avro"; docs/reference/iceberg-notes.md 11.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from committer.iceberg.avro.container import SYNC_BYTES, encode_block, encode_header
from committer.iceberg.avro.manifest_schemas import schema_headers
from committer.iceberg.schema.schema import Schema
from workers.arrow.footer_metrics import FileMetrics
from workers.files.formats.avro_encoding import encode_rows
from workers.files.formats.file_struct import file_struct
from workers.files.write_properties import (
    MIB,
    FormatName,
    choice,
    level,
    target_file_bytes,
)

_CODEC = "write.avro.compression-codec"
_LEVEL = "write.avro.compression-level"
# The property's words, and Avro's for them.
_CODECS = {"gzip": "deflate", "zstd": "zstandard", "snappy": "snappy", "uncompressed": "null"}
# Iceberg's own writer takes 9, which needs four times the time for 0.3 percent fewer bytes.
_DEFLATE_LEVEL = 6
_ZSTD_LEVEL = 1
# A block ends when it has as many, before it is compressed. Source: Avro's own writer.
_BLOCK_BYTES = 64_000
# Rows that are encoded together: the fewer, the more of the time is spent between them.
_ROWS_MAX = 1 << 14
_ROWS_BYTES = 4 * MIB
_ROW_GROUP_BYTES = 128 * MIB
_RECORD = "table"


@dataclass(frozen=True, slots=True)
class AvroOptions:
    """Sizes in bytes, on disk. `codec`: by Avro's name."""

    target_file_bytes: int
    codec: str
    level: int | None

    def compress(self, raw: bytes) -> bytes:
        """Compress one block."""
        match self.codec:
            case "deflate":
                found = _DEFLATE_LEVEL if self.level is None else self.level
                deflate = zlib.compressobj(found, zlib.DEFLATED, -zlib.MAX_WBITS)
                return deflate.compress(raw) + deflate.flush()
            case "zstandard":
                codec = pa.Codec("zstd", _ZSTD_LEVEL if self.level is None else self.level)
                return bytes(codec.compress(raw, asbytes=True))
            case "snappy":
                content = bytes(pa.compress(raw, "snappy", asbytes=True))
                return content + zlib.crc32(raw).to_bytes(4, "big")
        return raw


def avro_options(properties: Mapping[str, str]) -> AvroOptions:
    """Read the table's properties. Errors: `UnsupportedError` names the one that is wrong."""
    codec = choice(properties, _CODEC, "gzip", _CODECS)
    return AvroOptions(target_file_bytes(properties), codec, level(properties, _LEVEL))


class AvroFormat:
    """`FileFormat`."""

    name: FormatName = "avro"
    row_group_bytes = _ROW_GROUP_BYTES

    def __init__(self, schema: pa.Schema, table: Schema, options: AvroOptions) -> None:
        self._options = options
        self.target_file_bytes = options.target_file_bytes
        avro, iceberg = schema_headers(file_struct(schema, table), _RECORD)
        codec = options.codec.encode()
        self._header = {"avro.schema": avro, "avro.codec": codec, "iceberg.schema": iceberg}

    def open(self, sink: pa.NativeFile, first_rows: pa.Table) -> _AvroFile:
        sync = os.urandom(SYNC_BYTES)
        sink.write(encode_header(self._header, sync))
        return _AvroFile(sink, self._options, sync)


class _AvroFile:
    """`OpenFile`. Less than a block waits for more rows."""

    def __init__(self, sink: pa.NativeFile, options: AvroOptions, sync: bytes) -> None:
        self._sink, self._options, self._sync = sink, options, sync
        self._waiting: list[memoryview] = []
        self._waiting_rows = self._waiting_bytes = self._rows = 0

    def write(self, rows: pa.Table) -> None:
        self._rows += rows.num_rows
        for batch in rows.to_batches(max_chunksize=_rows_at_once(rows)):
            self._add(encode_rows(batch))

    def _add(self, encoded: pa.BinaryArray) -> None:
        """Cut encoded rows into blocks."""
        ends = encoded.buffers()[1]
        bounds = np.frombuffer(ends, np.int32, len(encoded) + 1).astype(np.int64)
        content = memoryview(encoded.buffers()[2] or b"")
        first = 0
        while first < len(encoded):
            full = bounds[first] + _BLOCK_BYTES - self._waiting_bytes
            last = min(int(np.searchsorted(bounds, full)), len(encoded))
            self._waiting.append(content[bounds[first] : bounds[last]])
            self._waiting_rows += last - first
            self._waiting_bytes += int(bounds[last] - bounds[first])
            if self._waiting_bytes >= _BLOCK_BYTES:
                self._write_block()
            first = last

    def _write_block(self) -> None:
        content = self._options.compress(b"".join(self._waiting))
        for part in encode_block(self._waiting_rows, content, self._sync):
            self._sink.write(part)
        self._waiting.clear()
        self._waiting_rows = self._waiting_bytes = 0

    def close(self) -> FileMetrics:
        if self._waiting_rows:
            self._write_block()
        return FileMetrics(self._rows)

    def abandon(self) -> None:
        self._waiting.clear()


def _rows_at_once(rows: pa.Table) -> int:
    """Return how many rows are encoded together: in few bytes, however wide they are."""
    size_bytes = max(1, int(rows.nbytes))
    return max(1, min(_ROWS_MAX, int(rows.num_rows) * _ROWS_BYTES // size_bytes))
