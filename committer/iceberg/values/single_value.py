"""Single values: the binary form (bounds, partition summaries) and the JSON form (defaults).

Source: the specification, Appendix D; docs/reference/iceberg-notes.md 1.5, 1.6. `types.py`
says which Python types hold values in memory.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import lru_cache
from uuid import UUID

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.values.calendar import (
    DAY_MICROS,
    DAY_NANOS,
    SECOND_MICROS,
    SECOND_NANOS,
    parse_date,
    parse_time,
    parse_timestamp,
    print_date,
    print_time,
    print_timestamp,
)
from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

Encoder = Callable[[object], bytes]
Decoder = Callable[[bytes], object]

_INT = struct.Struct("<i")
_LONG = struct.Struct("<q")
_FLOAT = struct.Struct("<f")
_DOUBLE = struct.Struct("<d")
# More than any type allows: nothing is ever rounded, and absurd lengths stop early.
_DECIMAL_BYTES_MAX = 32
_EXACT = Context(prec=100, traps=[Inexact, InvalidOperation])


# --- Decimals ------------------------------------------------------------------------------------


def unscaled(value: Decimal, scale: int) -> int:
    """Return the integer that a decimal is, at a scale.
    Errors: `ValueError` if digits would be lost."""
    try:
        shifted = value.scaleb(scale, _EXACT)
        number = int(shifted)
    except (ArithmeticError, ValueError) as error:
        raise ValueError(f"not a decimal of scale {scale}") from error
    if number != shifted:
        raise ValueError(f"a decimal has more than {scale} digits behind the point")
    return number


def scaled(number: int, scale: int) -> Decimal:
    """Return the decimal of an unscaled integer."""
    return Decimal(number).scaleb(-scale, _EXACT)


def minimal_bytes(number: int) -> bytes:
    """Encode big-endian two's complement in as few bytes as hold the number."""
    magnitude = number if number >= 0 else ~number
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


# --- Binary form ---------------------------------------------------------------------------------


def encode_value(kind: IcebergType, value: object) -> bytes:
    """Encode the binary form of a value. Errors: `UnsupportedError` for a type that has none."""
    return encoder(kind)(value)


def decode_value(kind: IcebergType, encoded: bytes) -> object:
    """Decode a value's binary form, also if it was written before the type was promoted.

    Errors: `InvalidMetadataError` for a wrong length.
    """
    try:
        return decoder(kind)(encoded)
    except (struct.error, ValueError) as error:
        raise InvalidMetadataError(f"not a {kind}: {len(encoded)} bytes") from error


@lru_cache(maxsize=512)
def encoder(kind: IcebergType) -> Encoder:
    """Return the function that encodes values of a type: look it up once, call it often."""
    if isinstance(kind, DecimalType):
        return lambda value: minimal_bytes(unscaled(value, kind.scale))  # type: ignore[arg-type]
    return _binary_form(kind)[0]


@lru_cache(maxsize=512)
def decoder(kind: IcebergType) -> Decoder:
    """Return the function that decodes values of a type."""
    if isinstance(kind, DecimalType):
        return lambda encoded: _decode_decimal(encoded, kind.scale)
    return _binary_form(kind)[1]


def _binary_form(kind: IcebergType) -> tuple[Encoder, Decoder]:
    found = _BINARY_FORMS.get(type(kind))
    if found is None:
        raise UnsupportedError(f"type {kind} has no binary single-value form")
    return found


def _encode_boolean(value: object) -> bytes:
    return b"\x01" if value else b"\x00"


def _encode_string(value: object) -> bytes:
    return value.encode()  # type: ignore[attr-defined, no-any-return]


def _encode_uuid(value: object) -> bytes:
    return value.bytes  # type: ignore[attr-defined, no-any-return]


def _decoder_of(layout: struct.Struct) -> Decoder:
    return lambda encoded: layout.unpack(encoded)[0]


def _decode_long(encoded: bytes) -> object:
    """Decode eight bytes, or four of a column that was an int then."""
    return (_INT if len(encoded) == 4 else _LONG).unpack(encoded)[0]


def _decode_double(encoded: bytes) -> object:
    return (_FLOAT if len(encoded) == 4 else _DOUBLE).unpack(encoded)[0]


def _decode_boolean(encoded: bytes) -> object:
    if len(encoded) != 1:
        raise ValueError
    return encoded != b"\x00"


def _decode_decimal(encoded: bytes, scale: int) -> object:
    if not 1 <= len(encoded) <= _DECIMAL_BYTES_MAX:
        raise ValueError
    return scaled(int.from_bytes(encoded, "big", signed=True), scale)


def _promoted_timestamp(day: int) -> Decoder:
    """Return a decoder to which four bytes are a date of before the column's promotion:
    `day` is its length in units."""

    def decode(encoded: bytes) -> object:
        if len(encoded) == 4:
            return _INT.unpack(encoded)[0] * day
        return _LONG.unpack(encoded)[0]

    return decode


_OF_BYTES: tuple[Encoder, Decoder] = (bytes, bytes)  # type: ignore[assignment]

_BINARY_FORMS: Mapping[type[IcebergType], tuple[Encoder, Decoder]] = {
    BooleanType: (_encode_boolean, _decode_boolean),
    IntegerType: (_INT.pack, _decoder_of(_INT)),
    DateType: (_INT.pack, _decoder_of(_INT)),
    LongType: (_LONG.pack, _decode_long),
    TimeType: (_LONG.pack, _decoder_of(_LONG)),
    TimestampType: (_LONG.pack, _promoted_timestamp(DAY_MICROS)),
    TimestamptzType: (_LONG.pack, _decoder_of(_LONG)),
    TimestampNanoType: (_LONG.pack, _promoted_timestamp(DAY_NANOS)),
    TimestamptzNanoType: (_LONG.pack, _decoder_of(_LONG)),
    FloatType: (_FLOAT.pack, _decoder_of(_FLOAT)),
    DoubleType: (_DOUBLE.pack, _decode_double),
    StringType: (_encode_string, bytes.decode),
    UUIDType: (_encode_uuid, lambda encoded: UUID(bytes=encoded)),
    **dict.fromkeys((FixedType, BinaryType, GeometryType, GeographyType), _OF_BYTES),
}


# --- JSON form -----------------------------------------------------------------------------------

_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*")
_DECIMAL = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,9})?")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def print_json_value(kind: IcebergType, value: object) -> object:
    """Print the JSON form of a value, ready for a JSON printer. None is null in every type."""
    if value is None:
        return None
    match kind, value:
        case StructType(fields), tuple():
            return {
                str(field.field_id): print_json_value(field.field_type, part)
                for field, part in zip(fields, value, strict=True)
                if part is not None
            }
        case ListType(), list() | tuple():
            return [print_json_value(kind.element_type, element) for element in value]
        case MapType(), dict():
            return {
                "keys": [print_json_value(kind.key_type, key) for key in value],
                "values": [print_json_value(kind.value_type, found) for found in value.values()],
            }
        case ((FloatType() | DoubleType()), float()):
            return print_number(kind, value)
        case DecimalType(_, scale), Decimal():
            return format(scaled(unscaled(value, scale), scale), "f")
        case ((FixedType() | BinaryType() | GeometryType() | GeographyType()), bytes()):
            return value.hex().upper()
        case UUIDType(), UUID():
            return str(value)
    printer = _PRINTERS.get(type(kind))
    return value if printer is None else printer(value)


def print_number(kind: IcebergType, value: float) -> object:
    """Return a float as the shortest number that reads back to it;
    text for what JSON cannot hold."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return shortest_float(value) if isinstance(kind, FloatType) else value


def shortest_float(value: float) -> float:
    """Return the double with the fewest digits, but two, that is the same 4-byte float."""
    encoded = _FLOAT.pack(value)
    for digits in range(2, 10):
        short = float(f"{value:.{digits}g}")
        try:
            if _FLOAT.pack(short) == encoded:
                return short
        except OverflowError:
            continue
    return value


_PRINTERS: Mapping[type[IcebergType], Callable[[object], object]] = {
    DateType: lambda value: print_date(value),  # type: ignore[arg-type]
    TimeType: lambda value: print_time(value, SECOND_MICROS),  # type: ignore[arg-type]
    TimestampType: lambda value: print_timestamp(value, SECOND_MICROS),  # type: ignore[arg-type]
    TimestamptzType: lambda value: (
        print_timestamp(value, SECOND_MICROS) + "+00:00"  # type: ignore[arg-type]
    ),
    TimestampNanoType: lambda value: print_timestamp(value, SECOND_NANOS),  # type: ignore[arg-type]
    TimestamptzNanoType: lambda value: (
        print_timestamp(value, SECOND_NANOS) + "+00:00"  # type: ignore[arg-type]
    ),
}


def parse_json_value(kind: IcebergType, json_value: object) -> object:
    """Parse the JSON form of a value. Errors: `ValueError` saying what was expected."""
    if json_value is None:
        return None
    match kind:
        case StructType(fields):
            return _parse_struct(fields, json_value)
        case ListType():
            if not isinstance(json_value, list):
                raise _unexpected(kind, json_value)
            return [parse_json_value(kind.element_type, element) for element in json_value]
        case MapType():
            return _parse_map(kind, json_value)
        case DecimalType():
            return _parse_decimal(kind, json_value)
        case FixedType(length):
            found = _parse_bytes(kind, json_value)
            if len(found) != length:
                raise ValueError(f"expected {length} bytes in hexadecimal, found {len(found)}")
            return found
        case BinaryType() | GeometryType() | GeographyType():
            return _parse_bytes(kind, json_value)
    parser = _PARSERS.get(type(kind))
    if parser is None:
        raise ValueError(f"type {kind} has no JSON single-value form")
    return parser(json_value)


def _unexpected(kind: IcebergType, json_value: object) -> ValueError:
    return ValueError(f"expected a value of type {kind}, found a JSON {type(json_value).__name__}")


def _parse_struct(fields: tuple[object, ...], json_value: object) -> tuple[object, ...]:
    if not isinstance(json_value, dict):
        raise ValueError(f"expected an object keyed by field id, found {type(json_value).__name__}")
    return tuple(
        parse_json_value(field.field_type, json_value.get(str(field.field_id)))  # type: ignore[attr-defined]
        for field in fields
    )


def _parse_map(kind: MapType, json_value: object) -> dict[object, object]:
    if not isinstance(json_value, dict):
        raise _unexpected(kind, json_value)
    keys, values = json_value.get("keys"), json_value.get("values")
    if not isinstance(keys, list) or not isinstance(values, list) or len(keys) != len(values):
        raise ValueError("expected lists `keys` and `values` of one length")
    if None in values or None in keys:
        raise ValueError("expected no null in a map")
    return {
        parse_json_value(kind.key_type, key): parse_json_value(kind.value_type, value)
        for key, value in zip(keys, values, strict=True)
    }


def _parse_decimal(kind: DecimalType, json_value: object) -> Decimal:
    if not isinstance(json_value, str):
        raise _unexpected(kind, json_value)
    if not _DECIMAL.fullmatch(json_value):
        raise ValueError(f"expected a decimal, found `{json_value}`")
    value = Decimal(json_value)
    if value.as_tuple().exponent != -kind.scale:
        raise ValueError(f"expected {kind.scale} digits behind the point, found `{json_value}`")
    return value


def _parse_bytes(kind: IcebergType, json_value: object) -> bytes:
    if not isinstance(json_value, str) or not _HEX.fullmatch(json_value):
        raise ValueError(f"expected bytes of type {kind} in hexadecimal")
    return bytes.fromhex(json_value)


def _parse_boolean(json_value: object) -> object:
    if not isinstance(json_value, bool):
        raise _unexpected(BooleanType(), json_value)
    return json_value


def _integer(kind: IcebergType, bits: int) -> Callable[[object], object]:
    limit = 1 << (bits - 1)

    def parse(json_value: object) -> object:
        if not isinstance(json_value, int) or isinstance(json_value, bool):
            raise _unexpected(kind, json_value)
        if not -limit <= json_value < limit:
            raise ValueError(f"out of range for {kind}: {json_value}")
        return json_value

    return parse


def _number(kind: IcebergType) -> Callable[[object], object]:
    def parse(json_value: object) -> object:
        if not isinstance(json_value, float):
            raise _unexpected(kind, json_value)
        return _of_four_bytes(json_value) if kind == FloatType() else json_value

    return parse


def _of_four_bytes(value: float) -> object:
    try:
        return _FLOAT.unpack(_FLOAT.pack(value))[0]
    except OverflowError as error:
        raise ValueError(f"out of range for float: {value}") from error


def _text(kind: IcebergType, parse: Callable[[str], object]) -> Callable[[object], object]:
    def parse_text(json_value: object) -> object:
        if not isinstance(json_value, str):
            raise _unexpected(kind, json_value)
        return parse(json_value)

    return parse_text


def _counted(
    kind: IcebergType, bits: int, parse: Callable[[str], int]
) -> Callable[[object], object]:
    """Return a parser of text that counts from the epoch, in so many bits."""
    limit = 1 << (bits - 1)

    def parse_counted(text: str) -> object:
        found = parse(text)
        if not -limit <= found < limit:
            raise ValueError(f"out of range for {kind}: {text}")
        return found

    return _text(kind, parse_counted)


def _timestamp(kind: IcebergType, per_second: int, with_zone: bool) -> Callable[[object], object]:
    return _counted(kind, 64, lambda text: parse_timestamp(text, per_second, with_zone=with_zone))


def parse_uuid(text: str) -> UUID:
    """Parse a uuid. Python reads other forms too, and takes hyphens anywhere: errors here."""
    if not _UUID.fullmatch(text):
        raise ValueError(f"expected a uuid, found `{text[:100]}`")
    return UUID(text)


_PARSERS: Mapping[type[IcebergType], Callable[[object], object]] = {
    BooleanType: _parse_boolean,
    IntegerType: _integer(IntegerType(), 32),
    LongType: _integer(LongType(), 64),
    FloatType: _number(FloatType()),
    DoubleType: _number(DoubleType()),
    DateType: _counted(DateType(), 32, parse_date),
    TimeType: _text(TimeType(), lambda text: parse_time(text, SECOND_MICROS)),
    TimestampType: _timestamp(TimestampType(), SECOND_MICROS, False),
    TimestamptzType: _timestamp(TimestamptzType(), SECOND_MICROS, True),
    TimestampNanoType: _timestamp(TimestampNanoType(), SECOND_NANOS, False),
    TimestamptzNanoType: _timestamp(TimestamptzNanoType(), SECOND_NANOS, True),
    StringType: _text(StringType(), str),
    UUIDType: _text(UUIDType(), parse_uuid),
}
