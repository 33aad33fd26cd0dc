"""Literals: how the text of a filter becomes a value of a column's type.

An unbound literal is a plain value: bool, int (64 bits), float (8 bytes), str, Decimal, UUID or
bytes. Numbers become numbers, text becomes any type with a text form; nothing becomes text. Source:
the reference's literal conversions. As there, a float becomes a decimal by rounding half up, and a
timestamp's text loses what is finer than its type.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from enum import Enum
from uuid import UUID

from committer.iceberg.values.calendar import (
    SECOND_MICROS,
    SECOND_NANOS,
    parse_date,
    parse_time,
    parse_timestamp,
)
from committer.iceberg.values.single_value import parse_uuid
from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)


class Limit(Enum):
    """A number that a type cannot hold: it still compares with every value."""

    ABOVE_MAX = "aboveMax"
    BELOW_MIN = "belowMin"


Convert = Callable[[object, IcebergType], object]

_FLOAT = struct.Struct("<f")
_ROUNDING = Context(prec=400, rounding=ROUND_HALF_UP)
# Twice as many as any decimal type has.
_DIGITS_MAX = 76
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
_OFFSET = re.compile(r"(.*?)(?:Z|([+-])(\d{2}):(\d{2}))", re.IGNORECASE)
_HOUR_S_MAX = 18 * 3600


def convert_literal(
    value: object, target: IcebergType, source: IcebergType | None = None
) -> object:
    """Convert the value to a type: a `Limit` beyond its range, None where there is no conversion.

    `source` says which type the value has where Python's does not (an int counts as long, a float
    as double). Errors: `ValueError` for text that is no such value, and for NaN.
    """
    if isinstance(value, float) and math.isnan(value):
        raise ValueError("a literal cannot be NaN: ask with is_nan or not_nan")
    kind = source or _TYPES.get(type(value))
    if kind is None:
        raise ValueError(f"expected a plain value as a literal, found {type(value).__name__}")
    return _CONVERSIONS[type(kind)](value, target)


_TYPES: Mapping[type, IcebergType] = {
    bool: BooleanType(),
    int: LongType(),
    float: DoubleType(),
    str: StringType(),
    Decimal: DecimalType(38, 0),
    UUID: UUIDType(),
    bytes: BinaryType(),
}


# --- Numbers -------------------------------------------------------------------------------------


def _from_int(value: object, target: IcebergType) -> object:
    assert isinstance(value, int)  # noqa: S101  # the dispatch above; tells the type checker
    match target:
        case IntegerType() | DateType():
            return _bounded(value, 31)
        case LongType():
            return _bounded(value, 63)
        case FloatType() | DoubleType():
            return _from_float(float(value), target)
        case DecimalType(_, scale):
            return _rounded(Decimal(value), scale)
    return None


def _from_long(value: object, target: IcebergType) -> object:
    assert isinstance(value, int)  # noqa: S101
    match target:
        case TimeType():
            if not 0 <= value < 86_400 * SECOND_MICROS:
                raise ValueError(f"expected the microseconds of a day, found {value}")
            return value
        case TimestampType() | TimestamptzType():
            return _within_long(value)
        case TimestampNanoType() | TimestamptzNanoType():
            # As for the other timestamps, the number counts microseconds.
            return _within_long(value * 1_000)
    return _from_int(value, target)


def _bounded(value: int, bits: int) -> object:
    if value >= 1 << bits:
        return Limit.ABOVE_MAX
    return Limit.BELOW_MIN if value < -(1 << bits) else value


def _within_long(value: int) -> int:
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError("expected a time that fits into 64 bits")
    return value


def _from_float(value: object, target: IcebergType) -> object:
    assert isinstance(value, float)  # noqa: S101
    match target:
        case FloatType():
            return _narrowed(value)
        case DoubleType():
            return value
        case DecimalType(_, scale):
            if math.isinf(value):
                raise ValueError("an infinite number is no decimal")
            return _rounded(Decimal(repr(value)), scale)
    return None


def _narrowed(value: float) -> object:
    """Round to the nearest float of 4 bytes. (The largest prints as a little more than it is.)"""
    try:
        if math.isfinite(value):
            return _FLOAT.unpack(_FLOAT.pack(value))[0]
    except OverflowError:
        pass
    return Limit.ABOVE_MAX if value > 0 else Limit.BELOW_MIN


def _rounded(value: Decimal, scale: int) -> Decimal | Limit:
    return _computable(value.quantize(Decimal(1).scaleb(-scale), context=_ROUNDING))


def _computable(value: Decimal) -> Decimal | Limit:
    """Bound a decimal: beyond its type as in Iceberg Java, but not beyond all reckoning."""
    if len(value.as_tuple().digits) <= _DIGITS_MAX:
        return value
    return Limit.ABOVE_MAX if value > 0 else Limit.BELOW_MIN


def _from_decimal(value: object, target: IcebergType) -> object:
    assert isinstance(value, Decimal)  # noqa: S101
    if not isinstance(target, DecimalType):
        return None
    if value.as_tuple().exponent != -target.scale:
        raise ValueError(f"expected a decimal with {target.scale} digits behind the point")
    return _computable(value)


# --- Text ----------------------------------------------------------------------------------------


def _from_text(value: object, target: IcebergType) -> object:
    assert isinstance(value, str)  # noqa: S101
    match target:
        case StringType():
            value.encode()  # half of a surrogate pair is no text
            return value
        case DecimalType():
            return _from_decimal(_decimal(value), target)
        case FixedType() | BinaryType():
            return _from_bytes(bytes.fromhex(value), target) if _HEX.fullmatch(value) else None
        case FloatType() | DoubleType():
            return _INFINITIES.get(value)
    parse = _FROM_TEXT.get(type(target))
    return None if parse is None else parse(value)


# How the JSON form spells what JSON has no numbers for.
_INFINITIES = {"Infinity": math.inf, "-Infinity": -math.inf}


def _decimal(text: str) -> Decimal:
    # Python also takes blanks, underscores and what is no number.
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"expected a decimal, found `{text[:100]}`")
    try:
        return Decimal(text)
    except ArithmeticError as error:
        raise ValueError(f"expected a decimal, found `{text[:100]}`") from error


def _local_nanos(text: str) -> int:
    return parse_timestamp(text, SECOND_NANOS, with_zone=False)


def _utc_nanos(text: str) -> int:
    """Parse a timestamp with any offset: the moment is what counts."""
    match = _OFFSET.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a timestamp with an offset from UTC, found `{text[:100]}`")
    offset_s = int(match[3] or 0) * 3600 + int(match[4] or 0) * 60
    if offset_s > _HOUR_S_MAX:
        raise ValueError(f"no such offset from UTC: `{text[:100]}`")
    ahead = -1 if match[2] == "-" else 1
    return _local_nanos(match[1]) - ahead * offset_s * SECOND_NANOS


_FROM_TEXT: Mapping[type[IcebergType], Callable[[str], object]] = {
    DateType: parse_date,
    TimeType: lambda text: parse_time(text, SECOND_NANOS) // 1_000,
    TimestampType: lambda text: _within_long(_local_nanos(text) // 1_000),
    TimestamptzType: lambda text: _within_long(_utc_nanos(text) // 1_000),
    TimestampNanoType: lambda text: _within_long(_local_nanos(text)),
    TimestamptzNanoType: lambda text: _within_long(_utc_nanos(text)),
    UUIDType: parse_uuid,
}


# --- What stays what it is -----------------------------------------------------------------------


def _from_bytes(value: object, target: IcebergType) -> object:
    assert isinstance(value, bytes)  # noqa: S101
    match target:
        case BinaryType():
            return value
        case FixedType(length):
            return value if len(value) == length else None
    return None


def _same(kind: type[IcebergType]) -> Convert:
    return lambda value, target: value if isinstance(target, kind) else None


_CONVERSIONS: Mapping[type[IcebergType], Convert] = {
    BooleanType: _same(BooleanType),
    IntegerType: _from_int,
    LongType: _from_long,
    FloatType: _from_float,
    DoubleType: _from_float,
    DecimalType: _from_decimal,
    StringType: _from_text,
    UUIDType: _same(UUIDType),
    FixedType: _from_bytes,
    BinaryType: _from_bytes,
}
