"""Values at the ends of each type, and the transforms that take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from committer.iceberg.values.single_value import scaled
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import (
    BinaryType,
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
)

_HOUR = 3_600_000_000
_WRAPPED_HOURS = [sign * (2**31 + by) * _HOUR + tick for sign in (-1, 1) for by in (-1, 0, 1)
                  for tick in (-1, 0, 1)]  # fmt: skip


def ends(bits: int, *steps: int) -> list[object]:
    """Return the numbers at and near both ends of an integer type, and near zero."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    near = [number for step in steps for number in (low + step, high - step, step, -step)]
    return list(dict.fromkeys([low, high, 0, *near]))


def decimals(digits: int, scale: int) -> list[object]:
    highest = 10**digits - 1
    numbers = (-highest, -highest + 1, -51, -50, -1, 0, 1, 50, highest - 1, highest)
    return [scaled(number, scale) for number in dict.fromkeys(numbers)]


LAST = "\U0010ffff"
EXTREMES: Mapping[IcebergType, Sequence[object]] = {
    IntegerType(): ends(32, 1, 3, 3_648, 9_999, 1_000_000),
    LongType(): ends(64, 1, 7, 5_807, 5_808, 10_000, 2**31),
    DecimalType(4, 2): decimals(4, 2),
    DecimalType(18, 0): decimals(18, 0),
    DecimalType(38, 10): decimals(38, 10),
    DateType(): ends(32, 1, 31, 365, 366),
    TimestampType(): [*ends(64, 1, _HOUR, 24 * _HOUR, 31 * 24 * _HOUR), *_WRAPPED_HOURS],
    TimestampNanoType(): ends(64, 1_000, 1_000 * _HOUR, 24_000 * _HOUR),
    StringType(): ["", "a", "ab", "abc", LAST, LAST * 2, LAST * 3, "a" + LAST, "a" + LAST + "b",
                   "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U00010000a", "\0", "a\0"],
    BinaryType(): [b"", b"\0", b"\0\0", b"\xff", b"\xff\xff", b"\xff\xff\xff", b"a\xff", b"b"],
}  # fmt: skip
TRANSFORMS = [
    parse_transform(text)
    for text in (
        "identity", "year", "month", "day", "hour", "bucket[4]", "truncate[1]", "truncate[2]",
        "truncate[50]", "truncate[10000]", "truncate[65536]", "truncate[1073741825]",
        "truncate[2147483647]",
    )
]  # fmt: skip
CASES = [
    (kind, transform)
    for kind in EXTREMES
    for transform in TRANSFORMS
    if transform.can_transform(kind)
]
