"""The row groups of a Parquet footer, read from its bytes, with what contradicts itself refused.

pyarrow reads the schema. It is not asked for row groups that others wrote: it ends the process that
looks at encrypted columns, at statistics of another length than their type, and at much else that
it does not expect. `RowGroup`, `Chunk` and `Statistics` have the names of pyarrow's, for
`workers.arrow.footer_metrics`. Source: the Parquet format, `parquet.thrift`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq

from committer.errors import InvalidMetadataError, UnsupportedError

_ENCRYPTED = "its columns are encrypted: expected a file that readers can open"
# A file begins with `PAR1`.
_FIRST_BYTE = 4
_INT96 = "INT96"
_BYTES = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
# `Type` of the format, by number.
_PHYSICAL = ("BOOLEAN", "INT32", "INT64", _INT96, "FLOAT", "DOUBLE", *_BYTES)
_VALUE_BYTES = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, _INT96: 12, "FLOAT": 4, "DOUBLE": 8}


def _unpacked(form: str) -> Callable[[bytes], object]:
    def unpack(content: bytes) -> object:
        [value] = struct.unpack(form, content)
        return value

    return unpack


_DECODE: Mapping[str, Callable[[bytes], object]] = {
    "BOOLEAN": lambda content: content != b"\0",
    "INT32": _unpacked("<i"),
    "INT64": _unpacked("<q"),
    "FLOAT": _unpacked("<f"),
    "DOUBLE": _unpacked("<d"),
    **dict.fromkeys(_BYTES, bytes),
}


@dataclass(frozen=True, slots=True)
class Statistics:
    """The statistics of a column of one row group. `has_min_max`: both bounds are there, by the
    order of the column's type."""

    null_count: int = -1
    has_null_count: bool = False
    min_raw: Any = None
    max_raw: Any = None
    has_min_max: bool = False


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column of one row group."""

    num_values: int
    total_compressed_size: int
    data_page_offset: int
    dictionary_page_offset: int
    statistics: Statistics


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group, with a chunk of each column of the schema."""

    num_rows: int
    chunks: tuple[Chunk, ...]

    @property
    def num_columns(self) -> int:
        return len(self.chunks)

    def column(self, position: int) -> Chunk:
        return self.chunks[position]


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column of the schema. `value_bytes`: the length of a value; None for any."""

    name: str
    physical: str
    value_bytes: int | None
    repeated: bool


@dataclass(slots=True)
class _FoundChunk:
    """A column of one row group, as the footer's bytes describe it."""

    is_elsewhere: bool = False
    is_encrypted: bool = False
    physical: int = -1
    values: int = -1
    size_bytes: int = -1
    data_offset: int = -1
    dictionary_offset: int = 0
    null_count: int | None = None
    bounds: dict[int, bytes] = field(default_factory=dict)

    @property
    def start(self) -> int:
        is_first = 0 < self.dictionary_offset < self.data_offset
        return self.dictionary_offset if is_first else self.data_offset


@dataclass(slots=True)
class _FoundGroup:
    rows: int = -1
    chunks: list[_FoundChunk] = field(default_factory=list)


def read_row_groups(
    content: bytes, footer: pq.FileMetaData, size_bytes: int
) -> tuple[RowGroup, ...]:
    """Read the row groups of a footer, also those without rows. `content`: its bytes; `footer`: the
    same by pyarrow, for its schema and number of rows; `size_bytes`: the file's.

    Errors: `UnsupportedError` for encrypted columns and for rows in other files;
    `InvalidMetadataError`, naming row group and column, for what contradicts itself.
    """
    leaves = _leaves(footer.schema)
    try:
        groups, ordered = _read_file(_Thrift(content))
    except (IndexError, RecursionError) as error:
        raise InvalidMetadataError("its Parquet footer cannot be read as Thrift") from error
    rows = sum(group.rows for group in groups)
    if footer.num_rows != rows:
        raise InvalidMetadataError(
            f"its footer says {footer.num_rows} rows, and its row groups have {rows}"
        )
    return tuple(
        _row_group(group, leaves, ordered, size_bytes, f"row group {at}")
        for at, group in enumerate(groups)
    )


def _leaves(schema: pq.ParquetSchema) -> list[_Leaf]:
    leaves = []
    for at in range(len(schema.names)):
        column = schema.column(at)
        is_fixed = column.physical_type == "FIXED_LEN_BYTE_ARRAY"
        length = column.length if is_fixed else _VALUE_BYTES.get(column.physical_type)
        is_repeated = column.max_repetition_level > 0
        leaves.append(_Leaf(column.path, column.physical_type, length, is_repeated))
    return leaves


def _row_group(
    found: _FoundGroup, leaves: Sequence[_Leaf], ordered: Sequence[bool], size_bytes: int, at: str
) -> RowGroup:
    if found.rows < 0 or len(found.chunks) != len(leaves):
        raise InvalidMetadataError(
            f"{at} of its footer has {found.rows} rows and {len(found.chunks)} columns, expected no"
            f" negative number, and the {len(leaves)} columns of its schema"
        )
    chunks = []
    for position, (leaf, chunk) in enumerate(zip(leaves, found.chunks, strict=True)):
        place = f"{at}, column {leaf.name}"
        _check_chunk(leaf, chunk, place)
        if found.rows:  # of others nothing is read, and writers say anything of their place
            _check_extent(leaf, chunk, found.rows, size_bytes, place)
        chunks.append(
            Chunk(
                chunk.values,
                chunk.size_bytes,
                chunk.data_offset,
                chunk.dictionary_offset,
                _statistics(leaf, chunk, position < len(ordered) and ordered[position]),
            )
        )
    return RowGroup(found.rows, tuple(chunks))


def _check_chunk(leaf: _Leaf, chunk: _FoundChunk, place: str) -> None:
    if chunk.is_encrypted:
        raise UnsupportedError(_ENCRYPTED)
    if chunk.is_elsewhere:
        raise UnsupportedError("its rows are in other files: add those files instead")
    if not 0 <= chunk.physical < len(_PHYSICAL) or _PHYSICAL[chunk.physical] != leaf.physical:
        raise InvalidMetadataError(f"{place}: another physical type than the schema says")
    for bound in chunk.bounds.values():
        if leaf.value_bytes not in (None, len(bound)):
            raise InvalidMetadataError(
                f"{place}: a minimum or maximum of {len(bound)} bytes, expected {leaf.value_bytes}"
            )


def _check_extent(leaf: _Leaf, chunk: _FoundChunk, rows: int, size_bytes: int, place: str) -> None:
    if not leaf.repeated and chunk.values != rows:
        raise InvalidMetadataError(
            f"{place}: {chunk.values} values with the nulls, expected one for each of {rows} rows"
        )
    end = chunk.start + chunk.size_bytes
    if chunk.start < _FIRST_BYTE or chunk.size_bytes < 0 or end > size_bytes:
        raise InvalidMetadataError(
            f"{place}: {chunk.size_bytes} bytes from byte {chunk.start} on, which is not within the"
            f" {size_bytes} bytes of the file"
        )


def _statistics(leaf: _Leaf, chunk: _FoundChunk, is_ordered: bool) -> Statistics:
    """Return the statistics that are believed.

    Without an order of the column there are only `min` and `max`, which writers of old compared as
    signed numbers, byte by byte: not the order of text, nor that of decimals in bytes.
    """
    nulls = -1 if chunk.null_count is None else chunk.null_count
    high, low = (5, 6) if is_ordered else (1, 2)
    is_believed = is_ordered or leaf.physical not in _BYTES
    if leaf.physical == _INT96 or not is_believed or not {high, low} <= chunk.bounds.keys():
        return Statistics(nulls, nulls >= 0)
    decode = _DECODE[leaf.physical]
    return Statistics(
        nulls, nulls >= 0, decode(chunk.bounds[low]), decode(chunk.bounds[high]), True
    )


# --- Thrift --------------------------------------------------------------------------------------

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS = (4, 5, 6)
_UUID = 13
_FIXED_BYTES = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8, _UUID: 16}
_VARINT_BITS = 64


def _read_file(thrift: _Thrift) -> tuple[list[_FoundGroup], list[bool]]:
    """Return the row groups, and of each column whether its values have the order of its type."""
    groups: list[_FoundGroup] = []
    ordered: list[bool] = []
    for number, kind in thrift.fields():
        if number == 8 and kind == _STRUCT:
            raise UnsupportedError(_ENCRYPTED)
        if number == 4 and kind == _LIST:
            groups = [_read_group(thrift) for _ in thrift.structs()]
        elif number == 7 and kind == _LIST:
            ordered = [_read_order(thrift) for _ in thrift.structs()]
        else:
            thrift.skip(kind)
    return groups, ordered


def _read_order(thrift: _Thrift) -> bool:
    numbers = []
    for number, kind in thrift.fields():
        thrift.skip(kind)
        numbers.append(number)
    return numbers == [1]


def _read_group(thrift: _Thrift) -> _FoundGroup:
    group = _FoundGroup()
    for number, kind in thrift.fields():
        if number == 1 and kind == _LIST:
            group.chunks = [_read_chunk(thrift) for _ in thrift.structs()]
        elif number == 3:
            group.rows = thrift.integer_or(kind, -1)
        else:
            thrift.skip(kind)
    return group


def _read_chunk(thrift: _Thrift) -> _FoundChunk:
    chunk = _FoundChunk()
    for number, kind in thrift.fields():
        if number == 3 and kind == _STRUCT:
            _read_metadata(thrift, chunk)
        elif number == 1 and kind == _BINARY:
            chunk.is_elsewhere = bool(thrift.binary())
        else:
            chunk.is_encrypted |= number in (8, 9)
            thrift.skip(kind)
    return chunk


def _read_metadata(thrift: _Thrift, chunk: _FoundChunk) -> None:
    for number, kind in thrift.fields():
        match number:
            case 1:
                chunk.physical = thrift.integer_or(kind, -1)
            case 5:
                chunk.values = thrift.integer_or(kind, -1)
            case 7:
                chunk.size_bytes = thrift.integer_or(kind, -1)
            case 9:
                chunk.data_offset = thrift.integer_or(kind, -1)
            case 11:
                chunk.dictionary_offset = thrift.integer_or(kind, 0)
            case 12 if kind == _STRUCT:
                _read_statistics(thrift, chunk)
            case _:
                thrift.skip(kind)


def _read_statistics(thrift: _Thrift, chunk: _FoundChunk) -> None:
    for number, kind in thrift.fields():
        # `max` and `min` of old, and `max_value` and `min_value`.
        if number in (1, 2, 5, 6) and kind == _BINARY:
            chunk.bounds[number] = thrift.binary()
        elif number == 3:
            chunk.null_count = thrift.integer_or(kind, -1)
        else:
            thrift.skip(kind)


class _Thrift:
    """Walks a struct in the compact protocol. Errors: `IndexError` where its bytes end too early,
    `RecursionError` for structs in structs without end."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and kind of each field; the caller reads or skips the value of each."""
        number = 0
        while head := self._byte():
            delta, kind = head >> 4, head & 15
            number = number + delta if delta else self._integer()
            yield number, kind

    def items(self) -> Iterator[int]:
        """Yield the kind of each element of a list; the caller reads or skips each."""
        head = self._byte()
        count = head >> 4
        for _ in range(self._varint() if count == 15 else count):
            yield head & 15

    def structs(self) -> Iterator[None]:
        """Yield once for each struct of a list; the caller reads each."""
        for kind in self.items():
            if kind != _STRUCT:
                raise IndexError(kind)
            yield

    def integer_or(self, kind: int, other: int) -> int:
        """Read an integer; skip another kind and return `other`, as readers do."""
        if kind in _INTEGERS:
            return self._integer()
        self.skip(kind)
        return other

    def binary(self) -> bytes:
        """Read bytes."""
        length = self._varint()
        self._at += length
        return self._content[self._at - length : self._at]

    def skip(self, kind: int) -> None:
        """Skip the value of a field."""
        if kind in _INTEGERS:
            self._varint()
        elif kind == _BINARY:
            self.binary()
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner)
        elif kind in (_LIST, _SET):
            for inner in self.items():
                self._skip_element(inner)
        elif kind == _MAP:
            self._skip_map()
        elif kind in _FIXED_BYTES:
            self._at += _FIXED_BYTES[kind]
        else:
            raise IndexError(kind)

    def _skip_map(self) -> None:
        count = self._varint()
        kinds = self._byte() if count else 0
        for _ in range(count):
            self._skip_element(kinds >> 4)
            self._skip_element(kinds & 15)

    def _skip_element(self, kind: int) -> None:
        if kind in (_TRUE, _FALSE):
            self._byte()
        else:
            self.skip(kind)
        if self._at > len(self._content):
            raise IndexError(self._at)

    def _byte(self) -> int:
        value = self._content[self._at]
        self._at += 1
        return value

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift >= _VARINT_BITS:
                raise IndexError(shift)
        return value | byte << shift

    def _integer(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)
