"""Partition transforms: how a source value becomes a partition value.

A transform's `function(source type)` is looked up once and called for each value; it maps null to
null. Vectorized forms for Arrow belong to the workers.
Source: the specification, "Partition Transforms" and Appendix B;
docs/reference/iceberg-notes.md 1.7, 1.8.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import cast
from uuid import UUID

import mmh3

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.values.calendar import DAY_MICROS, DAY_NANOS, civil_from_days, print_date
from committer.iceberg.values.display_values import human_value
from committer.iceberg.values.single_value import minimal_bytes, scaled, unscaled
from committer.iceberg.values.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
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
    VariantType,
)

Function = Callable[[object], object]

_LONG = struct.Struct("<q")
_MICRO_TIMESTAMPS = (TimestampType, TimestamptzType)
_NANO_TIMESTAMPS = (TimestampNanoType, TimestamptzNanoType)
_TIMESTAMPS = (*_MICRO_TIMESTAMPS, *_NANO_TIMESTAMPS)
_HASHED = (
    IntegerType,
    LongType,
    DecimalType,
    DateType,
    TimeType,
    *_TIMESTAMPS,
    StringType,
    UUIDType,
    FixedType,
    BinaryType,
)
_TRUNCATED = (IntegerType, LongType, DecimalType, StringType, BinaryType)


class Transform:
    """The interface of all transforms. `str` is the form in metadata."""

    __slots__ = ()
    # Whether a greater source value never has a smaller partition value. As the reference says it,
    # transforms too whose results wrap around at the ends of their type: `wrapped_results`.
    preserves_order = False

    def can_transform(self, kind: IcebergType) -> bool:
        """Return whether the specification allows this source type."""
        raise NotImplementedError

    def result_type(self, kind: IcebergType) -> IcebergType:
        """Return the type of the partition value."""
        return kind

    def function(self, kind: IcebergType) -> Function:
        """Return the function of a source type.
        Errors: `UnsupportedError` where it is not allowed."""
        return _function(self, kind)

    def unwrapped(self, kind: IcebergType) -> Function:
        """Return the function as `function`, with results that may lie beyond their type: they keep
        the order of the source values."""
        return _unwrapped(self, kind)

    def wrapped_results(self, kind: IcebergType) -> tuple[range, ...]:
        """Return the partition values that source values at an end of their type may have because
        the result wraps around: such a value does not tell where its source value lies."""
        return ()

    def apply(self, kind: IcebergType, value: object) -> object:
        """Transform one value; `function` is faster for many."""
        return self.function(kind)(value)

    def human(self, kind: IcebergType, value: object) -> str:
        """Print a partition value as it stands in paths, before escaping.
        `kind`: the source type."""
        return human_value(self.result_type(kind), value)

    def _bound(self, kind: IcebergType) -> Function:
        """Return the function on values that are not null, without wrapping."""
        raise NotImplementedError


@lru_cache(maxsize=1024)
def _unwrapped(transform: Transform, kind: IcebergType) -> Function:
    if not transform.can_transform(kind):
        raise UnsupportedError(f"transform {transform} of a column of type {kind}")
    bound = transform._bound(kind)
    return lambda value: None if value is None else bound(value)


@lru_cache(maxsize=1024)
def _function(transform: Transform, kind: IcebergType) -> Function:
    unwrapped = _unwrapped(transform, kind)
    if not transform.wrapped_results(kind):
        return unwrapped
    half = _half(transform.result_type(kind))

    def wrapped(value: object) -> object:
        found = unwrapped(value)
        return None if found is None else (cast(int, found) + half) % (2 * half) - half

    return wrapped


def _half(kind: IcebergType) -> int:
    """Return how many numbers of an integer type are negative."""
    return 1 << (63 if isinstance(kind, LongType) else 31)


@dataclass(frozen=True, slots=True)
class IdentityTransform(Transform):
    """The value itself."""

    preserves_order = True

    def __str__(self) -> str:
        return "identity"

    def can_transform(self, kind: IcebergType) -> bool:
        return kind.is_primitive and not isinstance(
            kind, GeometryType | GeographyType | VariantType
        )

    def _bound(self, kind: IcebergType) -> Function:
        return lambda value: value


@dataclass(frozen=True, slots=True)
class VoidTransform(Transform):
    """Always null: what a dropped field of a version 1 spec becomes."""

    def __str__(self) -> str:
        return "void"

    def can_transform(self, kind: IcebergType) -> bool:
        return True

    def _bound(self, kind: IcebergType) -> Function:
        return lambda value: None


@dataclass(frozen=True, slots=True)
class BucketTransform(Transform):
    """Hash of the value modulo `buckets`."""

    buckets: int

    def __str__(self) -> str:
        return f"bucket[{self.buckets}]"

    def can_transform(self, kind: IcebergType) -> bool:
        return isinstance(kind, _HASHED)

    def result_type(self, kind: IcebergType) -> IcebergType:
        return IntegerType()

    def _bound(self, kind: IcebergType) -> Function:
        hash_of, buckets = bucket_hash(kind), self.buckets
        return lambda value: (hash_of(value) & 0x7FFFFFFF) % buckets


@dataclass(frozen=True, slots=True)
class TruncateTransform(Transform):
    """Numbers down to a multiple of `width`; text and bytes cut to `width`."""

    width: int
    preserves_order = True

    def __str__(self) -> str:
        return f"truncate[{self.width}]"

    def can_transform(self, kind: IcebergType) -> bool:
        return isinstance(kind, _TRUNCATED)

    def wrapped_results(self, kind: IcebergType) -> tuple[range, ...]:
        """Return what the smallest integers become: as in the specification's arithmetic, the
        multiple of the width below them wraps around. It is no multiple then, so no other value
        becomes it."""
        if not isinstance(kind, IntegerType | LongType):
            return ()
        half = _half(kind)
        if self.width > half // 2:
            # Iceberg Java's arithmetic leaves the type on the way, anywhere.
            return (range(-half, half),)
        wrapped = -half // self.width * self.width + 2 * half
        return (range(wrapped, wrapped + 1),) if wrapped < half else ()

    def _bound(self, kind: IcebergType) -> Function:
        width = self.width
        match kind:
            case IntegerType() | LongType():
                return lambda value: cast(int, value) // width * width
            case DecimalType(_, scale):
                return lambda value: scaled(
                    unscaled(cast(Decimal, value), scale) // width * width, scale
                )
            case _:
                return lambda value: cast(bytes, value)[:width]


_UNITS = ("year", "month", "day", "hour")
_HOUR_MICROS = DAY_MICROS // 24


@dataclass(frozen=True, slots=True)
class TimeTransform(Transform):
    """Years, months, days or hours since 1970; those before it are negative."""

    unit: str
    preserves_order = True

    def __str__(self) -> str:
        return self.unit

    def can_transform(self, kind: IcebergType) -> bool:
        return isinstance(kind, _TIMESTAMPS) or (isinstance(kind, DateType) and self.unit != "hour")

    def result_type(self, kind: IcebergType) -> IcebergType:
        return DateType() if self.unit == "day" else IntegerType()

    def wrapped_results(self, kind: IcebergType) -> tuple[range, ...]:
        """Return what the hours of the first and the last microseconds of 64 bits may become: they
        need 33 bits, of which Iceberg Java takes 32."""
        if self.unit != "hour" or not isinstance(kind, _MICRO_TIMESTAMPS):
            return ()
        first, last = ((sign * 2**63 - (sign > 0)) // _HOUR_MICROS for sign in (-1, 1))
        return range(-(2**31), last - 2**32 + 1), range(first + 2**32, 2**31)

    def human(self, kind: IcebergType, value: object) -> str:
        if value is None:
            return "null"
        number = cast(int, value)
        match self.unit:
            case "year":
                return f"{1970 + number:04d}"
            case "month":
                return f"{1970 + number // 12:04d}-{number % 12 + 1:02d}"
            case "day":
                return print_date(number)
            case _:
                return f"{print_date(number // 24)}-{number % 24:02d}"

    def _bound(self, kind: IcebergType) -> Function:
        if self.unit == "hour":
            per_hour = _per_day(kind) // 24
            return lambda value: cast(int, value) // per_hour
        per_day, from_day = _per_day(kind), _FROM_DAY[self.unit]
        return lambda value: from_day(cast(int, value) // per_day)


def _per_day(kind: IcebergType) -> int:
    if isinstance(kind, DateType):
        return 1
    return DAY_MICROS if isinstance(kind, _MICRO_TIMESTAMPS) else DAY_NANOS


def _year_of(day: int) -> int:
    return civil_from_days(day)[0] - 1970


def _month_of(day: int) -> int:
    year, month, _ = civil_from_days(day)
    return (year - 1970) * 12 + month - 1


_FROM_DAY: dict[str, Callable[[int], int]] = {
    "year": _year_of,
    "month": _month_of,
    "day": lambda day: day,
}


@dataclass(frozen=True, slots=True)
class UnknownTransform(Transform):
    """A transform of a later specification: its values are read and compared, never computed.

    Its source types are not known: a spec that has it can be read over any column. Nothing may be
    written with such a spec: `function` refuses.
    """

    text: str

    def __str__(self) -> str:
        return self.text

    def can_transform(self, kind: IcebergType) -> bool:
        return True

    def result_type(self, kind: IcebergType) -> IcebergType:
        return StringType()

    def _bound(self, kind: IcebergType) -> Function:
        raise UnsupportedError(f"transform {self} is not known")


IDENTITY = IdentityTransform()
VOID = VoidTransform()
YEAR, MONTH, DAY, HOUR = (TimeTransform(unit) for unit in _UNITS)

_BY_NAME: dict[str, Transform] = {
    str(transform): transform for transform in (IDENTITY, VOID, YEAR, MONTH, DAY, HOUR)
}
_WITH_NUMBER = re.compile(r"(bucket|truncate)\[(\d{1,10})\]", re.ASCII)


def parse_transform(text: str, *, where: str = "transform") -> Transform:
    """Parse a transform. An unknown one is kept as `UnknownTransform`.

    Errors: `InvalidMetadataError` naming the place, for a width of zero or beyond an int.
    """
    lowered = text.strip().lower()
    if lowered in _BY_NAME:
        return _BY_NAME[lowered]
    match = _WITH_NUMBER.fullmatch(lowered)
    if match is None:
        return UnknownTransform(text)
    number = int(match[2])
    if not 1 <= number < 2**31:
        raise InvalidMetadataError(
            f"{where}: expected a number from 1 to 2147483647 in `{lowered}`"
        )
    return BucketTransform(number) if match[1] == "bucket" else TruncateTransform(number)


# --- Hashing -------------------------------------------------------------------------------------


def bucket_hash(kind: IcebergType) -> Callable[[object], int]:
    """Return the 32-bit murmur3 hash (signed) of values of a type. spec: Appendix B."""
    match kind:
        case IntegerType() | LongType() | DateType() | TimeType():
            return _hash_long
        case TimestampType() | TimestamptzType():
            return _hash_long
        case TimestampNanoType() | TimestamptzNanoType():
            return lambda value: _hash_long(cast(int, value) // 1_000)
        case DecimalType(_, scale):
            return lambda value: mmh3.hash(minimal_bytes(unscaled(cast(Decimal, value), scale)))
        case UUIDType():
            return lambda value: mmh3.hash(cast(UUID, value).bytes)
        case StringType():
            return lambda value: mmh3.hash(cast(str, value).encode())
        case FixedType() | BinaryType():
            return lambda value: mmh3.hash(cast(bytes, value))
        case _:
            raise UnsupportedError(f"bucket of a column of type {kind}")


def _hash_long(value: object) -> int:
    return mmh3.hash(_LONG.pack(value))
