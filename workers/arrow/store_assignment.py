"""Values of one type stored in a column of another, as Spark's ANSI store assignment casts them.

Iceberg's own runtime gets its rows behind this cast, so the same DataFrames are taken here, with
the same values. A cast that needs the session's time zone where the rows do not carry it is left
to Spark. Source: Spark's `Cast.canANSIStoreAssign`, `Cast`, `Decimal`.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

Cast = Callable[[pa.Array, pa.DataType], pa.Array]

_NUMBERS = (IntegerType, LongType, FloatType, DoubleType, DecimalType)
_TEXTS = (*_NUMBERS, BooleanType, DateType, TimestampType, TimestamptzType, BinaryType)
_INT64_DIGITS = 19
_DIGITS_MAX = 38
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)
_VALUE_CHARACTERS_MAX = 100


def is_assignable(found: IcebergType, wanted: IcebergType) -> bool:
    """Return whether rows of one type are stored in a column of the other."""
    match found, wanted:
        case (_, StringType()):
            return isinstance(found, _TEXTS)
        case (DateType() | TimestamptzType(), TimestampType()):
            return True
        case (TimestampType() | TimestamptzType(), DateType()):
            return True
    return isinstance(found, _NUMBERS) and isinstance(wanted, _NUMBERS)


def assign(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast the values. Errors: `ValueError` (`ArrowInvalid` is one) for one that does not fit."""
    found = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _texts(array).cast(kind)
    if pa.types.is_decimal(kind):
        return _decimals(array, kind)
    if pa.types.is_decimal(found) and pa.types.is_floating(kind):
        return array.cast(pa.string()).cast(kind)  # the nearest number, as Java's
    if pa.types.is_decimal(found) and pa.types.is_integer(kind):
        options = pc.CastOptions(target_type=kind, allow_decimal_truncate=True)
        return array.cast(options=options)
    if pa.types.is_floating(found) and pa.types.is_integer(kind):
        return _integers(array, kind)
    if pa.types.is_integer(found) and pa.types.is_floating(kind):
        return array.cast(kind, safe=False)
    if pa.types.is_timestamp(found) and getattr(kind, "tz", None) is None:
        return _local_times(array, kind)
    return array.cast(kind)


def first_misfit(array: pa.Array, kind: pa.DataType, cast: Cast) -> str:
    """Print the first value that a cast refuses."""
    start, count = 0, len(array)
    while count > 1:
        half = count // 2
        if _fits(array.slice(start, half), kind, cast):
            start, count = start + half, count - half
        else:
            count = half
    return repr(array[start].as_py())[:_VALUE_CHARACTERS_MAX] if count else "nothing"


def _fits(array: pa.Array, kind: pa.DataType, cast: Cast) -> bool:
    try:
        cast(array, kind)
    except ValueError:
        return False
    return True


def _integers(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cut the fraction off. Errors: `ValueError` for NaN and what is beyond the range."""
    if not pc.all(pc.is_finite(array)).as_py() and array.null_count < len(array):
        raise ValueError("not a number, or infinite")
    return pc.trunc(array).cast(kind)


def _local_times(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert timestamps to local times or dates, in the zone that the rows name."""
    local = array if array.type.tz is None else pc.local_timestamp(array)
    if pa.types.is_date(kind):
        return pc.floor_temporal(local, unit="day").cast(kind)
    return local.cast(kind)


# --- Decimals ------------------------------------------------------------------------------------


def _decimals(array: pa.Array, kind: pa.Decimal128Type) -> pa.Array:
    """Round half up to the scale. Errors: `ValueError` for more digits than there is room for."""
    found = array.type
    if pa.types.is_integer(found):
        array = array.cast(pa.decimal128(_INT64_DIGITS, 0))
    elif pa.types.is_floating(found):
        texts = _floats(array.cast(pa.float64()))
        return pa.array([_rounded(text, kind.scale) for text in texts], kind)
    elif found.scale > kind.scale:
        widest = array.cast(pa.decimal128(_DIGITS_MAX, found.scale))
        array = pc.round(widest, ndigits=kind.scale, round_mode="half_towards_infinity")
    return array.cast(kind)


def _rounded(text: str | None, scale: int) -> Decimal | None:
    """Round the number that Java prints for a double, as Spark does; NaN and the infinite ones
    become null there."""
    number = Decimal(text or "nan")
    if not number.is_finite():
        return None
    return number.quantize(Decimal(1).scaleb(-scale), context=_EXACT)


# --- Texts ---------------------------------------------------------------------------------------


def _texts(array: pa.Array) -> pa.Array:
    found = array.type
    if pa.types.is_floating(found):
        texts = [None if text is None else _java_text(text) for text in _floats(array)]
        return pa.array(texts, pa.string())
    if pa.types.is_decimal(found):
        plain = [None if one is None else f"{one:f}" for one in array.to_pylist()]
        return pa.array(plain, pa.string())
    if pa.types.is_timestamp(found):
        local = array if found.tz is None else pc.local_timestamp(array)
        return pc.replace_substring_regex(local.cast(pa.string()), r"\.?0+$", "")
    return array.cast(pa.string())


def _floats(array: pa.Array) -> list[str | None]:
    """Return the shortest text of each number of its own width."""
    width = np.float32 if pa.types.is_float32(array.type) else np.float64
    return [None if one is None else str(width(one)) for one in array.to_pylist()]


def _java_text(text: str) -> str:
    """Print a number as `Double.toString` does: with an exponent below 1e-3 and from 1e7 on."""
    if text in ("nan", "inf", "-inf"):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[text]
    sign, digits, exponent = Decimal(text).normalize().as_tuple()
    assert isinstance(exponent, int)  # noqa: S101  # finite
    minus = "-" if sign else ""
    shown = "".join(map(str, digits))
    point = len(shown) + exponent
    if shown == "0":
        return f"{minus}0.0"
    if not -3 < point <= 7:
        return f"{minus}{shown[0]}.{shown[1:] or '0'}E{point - 1}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{shown}"
    shown = shown.ljust(point, "0")
    return f"{minus}{shown[:point]}.{shown[point:] or '0'}"
