"""Values as people read them: what stands in partition paths before escaping.

The forms are those of the reference implementation, which engines use in paths.
"""

from __future__ import annotations

import math
from base64 import b64encode
from decimal import Decimal
from typing import cast

from committer.iceberg.values.calendar import SECOND_MICROS, print_time
from committer.iceberg.values.single_value import print_json_value, shortest_float
from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    TimeType,
)


def human_value(kind: IcebergType, value: object) -> str:
    """Print a value of a type as text; null is `null`."""
    if value is None:
        return "null"
    match kind:
        case BooleanType():
            return "true" if value else "false"
        case FloatType():
            return _number(shortest_float(cast(float, value)))
        case DoubleType():
            return _number(cast(float, value))
        case DecimalType():
            return _decimal(cast(Decimal, value))
        case TimeType():
            return _time(cast(int, value))
        case FixedType() | BinaryType():
            return b64encode(cast(bytes, value)).decode()
        case _:
            return str(print_json_value(kind, value))


def _number(value: float) -> str:
    """Print plain from 0.001 up to 10 million, else with an exponent; always with a point.

    The fewest digits that tell the value from its neighbors, but two: 4.9E-324 rather than 5E-324.
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = format(Decimal(repr(value)), "f")
        return text if "." in text else text + ".0"
    two_digits = f"{value:.2g}"
    shortest = two_digits if float(two_digits) == value else repr(value)
    sign, digits, exponent = Decimal(shortest).as_tuple()
    significant = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) - 1 + cast(int, exponent)
    return f"{'-' if sign else ''}{significant[0]}.{significant[1:] or '0'}E{power}"


def _decimal(value: Decimal) -> str:
    """Print a decimal; with an exponent if the point lies over six places ahead of the digits."""
    sign, digits, exponent = value.as_tuple()
    power = len(digits) - 1 + cast(int, exponent)
    if cast(int, exponent) <= 0 and power >= -6:
        return format(value, "f")
    text = "".join(map(str, digits))
    point = f".{text[1:]}" if len(text) > 1 else ""
    return f"{'-' if sign else ''}{text[0]}{point}E{power:+d}"


def _time(value: int) -> str:
    """Print a time without seconds if they are zero; a fraction in groups of three digits."""
    text = print_time(value, SECOND_MICROS)
    if value % (60 * SECOND_MICROS) == 0:
        return text[:5]
    whole, _, fraction = text.partition(".")
    if not fraction:
        return whole
    digits = 3 if len(fraction) <= 3 else 6
    return f"{whole}.{fraction.ljust(digits, '0')}"
