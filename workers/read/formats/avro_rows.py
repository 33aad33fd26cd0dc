"""The rows of an Avro file: a block at a time. Every column is decoded, wanted or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast
from uuid import UUID

import pyarrow as pa

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.binary import TruncatedAvroError, read_long
from committer.iceberg.avro.codecs import decompress
from committer.iceberg.avro.container import SYNC_BYTES, Header, read_header
from committer.iceberg.avro.row_decoder import row_decoder
from committer.iceberg.avro.schema_check import check_schema
from committer.iceberg.scan.task_part import TaskPart
from committer.iceberg.values.types import IcebergType, NestedField, UUIDType
from workers.adoption.file_columns import FileColumn, Shape, Stored
from workers.arrow.footer_metrics import ColumnFacts
from workers.read.formats.avro_columns import avro_columns
from workers.read.formats.stored_columns import stored_type
from workers.read.formats.stored_rows import RowGroupTest, RowRange, batch_without_columns
from workers.read.read_types import read_array, read_schema

_CHUNK_BYTES = 1024 * 1024
_BATCH_ROWS = 8 * 1024
# A row is a block at least, and may hold a large text or binary.
_BLOCK_BYTES_MAX = 1 << 30
# Two numbers in front of a block: how many rows, how many bytes.
_BLOCK_START_BYTES = 20

_Convert = Callable[[Any], Any]


class AvroRows:
    """An open Avro file. `StoredRows`."""

    def __init__(self, source: pa.NativeFile) -> None:
        """Read the header. Errors: `InvalidMetadataError`; `OSError`."""
        self._source = source
        self._header = _read_header(source)
        self.columns = avro_columns(self._header.schema_json)
        check_schema(self._header.schema_json)
        self._decoder = row_decoder(self._header.schema_json)

    def readable(self, leaves: frozenset[int]) -> frozenset[int]:
        """Return all leaves of the columns that have one."""
        wanted = (column.positions for column in self.columns)
        return frozenset(chain.from_iterable(o for o in wanted if not leaves.isdisjoint(o)))

    def ranges(
        self,
        leaves: frozenset[int],
        part: TaskPart | None = None,
        may_match: RowGroupTest | None = None,
    ) -> Iterator[RowRange]:
        if part is not None and not part.has(0):
            return
        columns = _Columns.of(self.columns, leaves)
        first, waiting = 0, list[tuple[object, ...]]()
        for count, raw in self._blocks():
            waiting.extend(self._rows(count, raw))
            if len(waiting) >= _BATCH_ROWS:
                yield RowRange(first, columns.batch(waiting))
                first, waiting = first + len(waiting), []
        if waiting:
            yield RowRange(first, columns.batch(waiting))

    def facts(self, number: int, leaf: Stored, kind: IcebergType) -> ColumnFacts | None:
        return None

    def _rows(self, count: int, raw: bytes) -> Iterator[tuple[object, ...]]:
        position = 0
        for _ in range(count):
            row, position = self._decoder(raw, position)
            yield cast("tuple[object, ...]", row)

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yield each block: how many rows, and their bytes."""
        self._source.seek(self._header.end_offset)
        ahead = _ReadAhead(self._source)
        while start := ahead.peek(_BLOCK_START_BYTES):
            count, position = read_long(start, 0)
            size, position = read_long(start, position)
            if count < 0 or size < 0:
                raise InvalidMetadataError("Avro: a block has a negative size or count")
            end = position + size + SYNC_BYTES
            block = ahead.take(end)
            if len(block) < end:
                raise TruncatedAvroError("Avro: the file ends inside a block")
            if block[-SYNC_BYTES:] != self._header.sync:
                raise InvalidMetadataError("Avro: a block does not end with the file's sync marker")
            content = block[position:-SYNC_BYTES]
            yield count, decompress(self._header.codec, content, _BLOCK_BYTES_MAX)


class _ReadAhead:
    """The bytes of a file from where it stands."""

    def __init__(self, source: pa.NativeFile) -> None:
        self._source = source
        self._chunk, self._at = b"", 0

    def peek(self, size: int) -> bytes:
        """Return so many of the next bytes; fewer at the end of the file."""
        missing = size - (len(self._chunk) - self._at)
        if missing > 0:
            more = self._source.read(max(_CHUNK_BYTES, missing))
            self._chunk, self._at = self._chunk[self._at :] + more, 0
        return self._chunk[self._at : self._at + size]

    def take(self, size: int) -> bytes:
        """Return so many of the next bytes, and go on behind them."""
        found = self.peek(size)
        self._at += len(found)
        return found


def _read_header(source: pa.NativeFile) -> Header:
    size = _BLOCK_START_BYTES
    while True:
        size *= 64
        source.seek(0)
        start = bytes(source.read(size))
        try:
            return read_header(start)
        except TruncatedAvroError:
            if len(start) < size:
                raise


# --- Rows as columns -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns that are kept of each row: their places, types and conversions."""

    fields: tuple[tuple[int, NestedField, _Convert | None], ...]

    @classmethod
    def of(cls, columns: Sequence[FileColumn], leaves: frozenset[int]) -> _Columns:
        fields = stored_type(columns, {}, None).fields
        return cls(
            tuple(
                (at, fields[at], _converter(column))
                for at, column in enumerate(columns)
                if not leaves.isdisjoint(column.positions)
            )
        )

    def batch(self, rows: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
        if not self.fields:
            return batch_without_columns(len(rows))
        arrays = []
        for at, field, convert in self.fields:
            values = [row[at] for row in rows]
            if convert is not None:
                values = [None if value is None else convert(value) for value in values]
            arrays.append(read_array(values, field.field_type))
        return pa.RecordBatch.from_arrays(
            arrays, schema=read_schema(field for _, field, _ in self.fields)
        )


def _converter(column: FileColumn) -> _Convert | None:
    """Return the function from decoded values that are not null to in-memory values; None where
    they are equal."""
    if column.stored is not None:
        return _value_converter(column.stored)
    parts = [_converter(part) for part in column.parts]
    if all(part is None for part in parts):
        return None
    each = [_or_null(part) for part in parts]
    match column.shape:
        case Shape.STRUCT:
            return lambda row: tuple(part(value) for part, value in zip(each, row, strict=True))
        case Shape.LIST:
            return lambda values: list(map(each[0], values))
    return lambda pairs: {each[0](key): each[1](value) for key, value in pairs.items()}


def _value_converter(stored: Stored) -> _Convert | None:
    if stored.units != 1:
        return lambda value: value * stored.units
    if stored.kinds == (UUIDType(),):
        return lambda value: UUID(value) if isinstance(value, str) else value
    return None


def _or_null(convert: _Convert | None) -> _Convert:
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)
