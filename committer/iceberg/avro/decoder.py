"""Decodes Avro records of any writer schema into plain values, fields found by their field id.

The schema is compiled once into nested functions. Nothing here knows manifests. The bytes may be
hostile: every length is checked, nesting is bounded, and only `InvalidMetadataError` comes out.
Source: the Avro specification, "Binary Encoding"; docs/reference/iceberg-notes.md 6.3.

In-memory values: date, time and timestamps stay integers in the unit of the writer schema, a fixed
or bytes with the logical type decimal is a `Decimal`, one with uuid a `UUID`, an array of key and
value records a dict, a record a dict by field id.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import lru_cache, partial
from typing import Any
from uuid import UUID

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.binary import TruncatedAvroError, read_bytes, read_long
from committer.iceberg.avro.map_reader import read_bounds_pairs, read_long_pairs
from committer.iceberg.avro.schema_check import check_schema, field_id_of

Decoder = Callable[[bytes, int], tuple[object, int]]
Record = dict[int, object]
_DEPTH_MAX = 32
# For decimals: scaling by a power of ten must not round in any context of the caller.
EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


class RepeatedKeyError(InvalidMetadataError):
    """A map has a key twice, and readers differ in which value counts."""


@lru_cache(maxsize=64)
def record_decoder(schema_text: bytes, *, is_strict: bool = False) -> Decoder:
    """Compile a decoder of records of this writer schema. Errors: `InvalidMetadataError`.

    A strict one takes no map that has a key twice (`RepeatedKeyError`). Otherwise the last counts.
    """
    try:
        schema = json.loads(schema_text)
        check_schema(schema)
        return Compiler(is_strict=is_strict).compile(schema, 0)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidMetadataError(f"Avro: the schema is not understood ({error!r})") from None


def decode_record(decoder: Decoder, raw: bytes, position: int) -> tuple[Record, int]:
    """Decode one record. Errors: `InvalidMetadataError`, `TruncatedAvroError` included."""
    value, stop = decoder(raw, position)
    if not isinstance(value, dict):
        raise InvalidMetadataError("Avro: expected a schema of records")
    if stop == position and raw:
        raise InvalidMetadataError("Avro: a record that takes no bytes")
    return value, stop


class Compiler:
    """Remembers the named types of one schema, since a later use only repeats the name."""

    def __init__(self, *, is_strict: bool) -> None:
        self._named: dict[str, Decoder] = {}
        self._is_strict = is_strict

    def compile(self, schema: object, depth: int) -> Decoder:
        if depth > _DEPTH_MAX:
            raise InvalidMetadataError(f"Avro: a schema nested deeper than {_DEPTH_MAX}")
        if isinstance(schema, list):
            return _union([self.compile(branch, depth + 1) for branch in schema])
        if isinstance(schema, dict):
            return self._complex(schema, depth)
        if isinstance(schema, str) and schema in _PRIMITIVES:
            return _PRIMITIVES[schema]
        if isinstance(schema, str) and schema in self._named:
            return self._named[schema]
        raise InvalidMetadataError("Avro: the schema names an unknown type")

    def _complex(self, schema: Mapping[str, object], depth: int) -> Decoder:
        kind = schema["type"]
        if kind == "record":
            decoder = self._record(schema, depth)
        elif kind == "fixed":
            decoder = _fixed(schema)
        elif kind == "array":
            return self._array(schema, depth)
        elif kind == "map":
            value = self.compile(schema["values"], depth + 1)
            return _map(_read_string, value, is_strict=self._is_strict)
        elif kind == "bytes" and schema.get("logicalType") == "decimal":
            return _converted(read_bytes, _decimal(schema))
        else:
            return self.compile(kind, depth + 1)
        # Registered only once complete: a type cannot contain itself in this format.
        self._named[str(schema["name"])] = decoder
        return decoder

    def _record(self, schema: Mapping[str, object], depth: int) -> Decoder:
        fields = schema["fields"]
        if not isinstance(fields, list):
            raise InvalidMetadataError("Avro: a record without a list of fields")
        return self.record_of(
            tuple((field_id_of(f), self.compile(f["type"], depth + 1)) for f in fields)
        )

    def record_of(self, fields: tuple[tuple[int | None, Decoder], ...]) -> Decoder:
        """Join the decoders of a record's fields."""
        return _record(fields)

    def _array(self, schema: Mapping[str, object], depth: int) -> Decoder:
        items = schema["items"]
        pair = isinstance(items, dict) and items.get("type") == "record"
        if pair and schema.get("logicalType") == "map":
            return self._map(items, depth)
        return _array(self.compile(items, depth + 1))

    def _map(self, pair: object, depth: int) -> Decoder:
        if not isinstance(pair, dict) or [f["name"] for f in pair["fields"]] != ["key", "value"]:
            raise InvalidMetadataError("Avro: a map whose pairs are not a key and a value")
        key, value = (self.compile(f["type"], depth + 1) for f in pair["fields"])
        self._named[str(pair["name"])] = _record(((-1, key), (-2, value)))
        if key is _read_int and value is read_long:
            return partial(read_long_map, is_strict=True) if self._is_strict else read_long_map
        if key is _read_int and value is read_bytes:
            return partial(read_bytes_map, is_strict=True) if self._is_strict else read_bytes_map
        return _map(key, value, is_strict=self._is_strict)


# --- Decoders of one type ------------------------------------------------------------------------


def _record(fields: tuple[tuple[int | None, Decoder], ...]) -> Decoder:
    def decode(buf: bytes, position: int) -> tuple[object, int]:
        record: dict[int | None, object] = {}
        for field_id, decoder in fields:
            record[field_id], position = decoder(buf, position)
        record.pop(None, None)
        return record, position

    return decode


def _union(branches: list[Decoder]) -> Decoder:
    def decode(buf: bytes, position: int) -> tuple[object, int]:
        index, position = read_long(buf, position)
        if not 0 <= index < len(branches):
            raise InvalidMetadataError("Avro: a union has no such branch")
        return branches[index](buf, position)

    return decode


def _block(buf: bytes, position: int, stop: int | None) -> tuple[int, int, int | None]:
    """Start a block of an array: number of items, position, and where it stops if it says so.

    `stop` is what the block before it said: a false size is an error, because a reader may skip by
    it.
    """
    if stop is not None and position != stop:
        raise InvalidMetadataError("Avro: a block of items does not have the size it says")
    count, position = read_long(buf, position)
    stop = None
    if count < 0:
        count = -count
        size, position = read_long(buf, position)
        stop = position + size
    if count > len(buf) - position:
        raise TruncatedAvroError(f"Avro: {count} items announced, fewer bytes are left")
    return count, position, stop


def _array(item: Decoder) -> Decoder:
    def decode(buf: bytes, position: int) -> tuple[object, int]:
        values: list[object] = []
        stop = None
        while True:
            count, position, stop = _block(buf, position, stop)
            if not count:
                return tuple(values), position
            # Items without bytes would make a block endless.
            if len(values) + count > len(buf):
                raise InvalidMetadataError("Avro: an array with more items than bytes")
            for _ in range(count):
                value, position = item(buf, position)
                values.append(value)

    return decode


def _map(key: Decoder, value: Decoder, *, is_strict: bool) -> Decoder:
    def decode(buf: bytes, position: int) -> tuple[object, int]:
        pairs: dict[object, object] = {}
        stop, total = None, 0
        while True:
            count, position, stop = _block(buf, position, stop)
            if not count:
                return _checked(pairs, total, is_strict=is_strict), position
            total += count
            for _ in range(count):
                name, position = key(buf, position)
                pairs[name], position = value(buf, position)

    return decode


def _checked(pairs: Mapping[Any, object], total: int, *, is_strict: bool) -> object:
    """Return the pairs of a map. Errors, if strict: `RepeatedKeyError` if not `total` pairs."""
    if is_strict and len(pairs) != total:
        raise RepeatedKeyError("Avro: a map has a key twice")
    return pairs


def _read_known(
    buf: bytes,
    position: int,
    read: Callable[[bytes, int], Mapping[int, object] | None],
    *,
    is_strict: bool,
) -> tuple[object, int] | None:
    """Read a map of one sized block; None if no earlier map had its pairs laid out so."""
    if not buf[position : position + 1] or not buf[position] & 1:
        return None
    count, position = read_long(buf, position)
    size, start = read_long(buf, position)
    stop = start + size
    if size < 0 or stop >= len(buf) or buf[stop]:
        return None
    pairs = read(buf[start:stop], -count)
    return None if pairs is None else (_checked(pairs, -count, is_strict=is_strict), stop + 1)


def read_long_map(buf: bytes, position: int, *, is_strict: bool = False) -> tuple[object, int]:
    """Read as `_map(_read_int, read_long)`, without its calls: counts are half of a manifest."""
    known = _read_known(buf, position, read_long_pairs, is_strict=is_strict)
    if known is not None:
        return known
    pairs: dict[int, int] = {}
    stop, total = None, 0
    while True:
        count, position, stop = _block(buf, position, stop)
        if not count:
            return _checked(pairs, total, is_strict=is_strict), position
        total += count
        try:
            for _ in range(count):
                key = buf[position]
                if key < 0x80:
                    key = (key >> 1) ^ -(key & 1)
                    position += 1
                else:
                    key, position = _read_int(buf, position)
                low = buf[position]
                if low < 0x80:
                    pairs[key] = (low >> 1) ^ -(low & 1)
                    position += 1
                else:
                    pairs[key], position = read_long(buf, position)
        except IndexError:
            raise TruncatedAvroError("Avro: the bytes end inside a map") from None


def read_bytes_map(buf: bytes, position: int, *, is_strict: bool = False) -> tuple[object, int]:
    """Read as `_map(_read_int, read_bytes)`, without its calls: bounds are the other half."""
    known = _read_known(buf, position, read_bounds_pairs, is_strict=is_strict)
    if known is not None:
        return known
    pairs: dict[int, bytes] = {}
    stop, total = None, 0
    while True:
        count, position, stop = _block(buf, position, stop)
        if not count:
            return _checked(pairs, total, is_strict=is_strict), position
        total += count
        try:
            for _ in range(count):
                key = buf[position]
                if key < 0x80:
                    key = (key >> 1) ^ -(key & 1)
                    position += 1
                else:
                    key, position = _read_int(buf, position)
                length = buf[position]
                if length < 0x80 and not length & 1:
                    start = position + 1
                    position = start + (length >> 1)
                    pairs[key] = buf[start:position]
                else:
                    pairs[key], position = read_bytes(buf, position)
        except IndexError:
            raise TruncatedAvroError("Avro: the bytes end inside a map") from None
        if position > len(buf):
            raise TruncatedAvroError("Avro: the bytes end inside a map")


def _fixed(schema: Mapping[str, object]) -> Decoder:
    size = schema["size"]
    if not isinstance(size, int) or size < 0:
        raise InvalidMetadataError("Avro: a fixed type without a size")

    def decode(buf: bytes, position: int) -> tuple[object, int]:
        stop = position + size
        if stop > len(buf):
            raise TruncatedAvroError("Avro: the bytes end inside a fixed value")
        return buf[position:stop], stop

    logical = schema.get("logicalType")
    if logical == "decimal":
        return _converted(decode, _decimal(schema))
    if logical == "uuid" and size == 16:
        return _converted(decode, lambda content: UUID(bytes=content))
    return decode


def _decimal(schema: Mapping[str, object]) -> Callable[[bytes], object]:
    scale = schema.get("scale", 0)
    if not isinstance(scale, int) or not 0 <= scale <= 38:
        raise InvalidMetadataError("Avro: a decimal scale outside 0 to 38")

    def convert(content: bytes) -> object:
        unscaled = int.from_bytes(content, "big", signed=True)
        return EXACT.scaleb(Decimal(unscaled), -scale)

    return convert


def _converted(decoder: Decoder, convert: Callable[[bytes], object]) -> Decoder:
    def decode(buf: bytes, position: int) -> tuple[object, int]:
        content, position = decoder(buf, position)
        if not isinstance(content, bytes):
            raise InvalidMetadataError("Avro: a logical type on a type that is not bytes")
        return convert(content), position

    return decode


def _read_null(_buf: bytes, position: int) -> tuple[object, int]:
    return None, position


def _read_boolean(buf: bytes, position: int) -> tuple[object, int]:
    if position >= len(buf):
        raise TruncatedAvroError("Avro: the bytes end before a boolean")
    if buf[position] > 1:
        raise InvalidMetadataError("Avro: a boolean that is neither 0 nor 1")
    return buf[position] == 1, position + 1


def _read_int(buf: bytes, position: int) -> tuple[int, int]:
    value, position = read_long(buf, position)
    if not -(2**31) <= value < 2**31:
        raise InvalidMetadataError("Avro: an int of more than 32 bits")
    return value, position


def _read_string(buf: bytes, position: int) -> tuple[object, int]:
    content, position = read_bytes(buf, position)
    try:
        return content.decode(), position
    except UnicodeDecodeError:
        raise InvalidMetadataError("Avro: a string that is not UTF-8") from None


def _floating(layout: str) -> Decoder:
    packed = struct.Struct(layout)

    def decode(buf: bytes, position: int) -> tuple[object, int]:
        try:
            return packed.unpack_from(buf, position)[0], position + packed.size
        except struct.error:
            raise TruncatedAvroError("Avro: the bytes end inside a float") from None

    return decode


_PRIMITIVES: dict[str, Decoder] = {
    "null": _read_null,
    "boolean": _read_boolean,
    "int": _read_int,
    "long": read_long,
    "float": _floating("<f"),
    "double": _floating("<d"),
    "bytes": read_bytes,
    "string": _read_string,
}
