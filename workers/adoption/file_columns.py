"""The columns of a Parquet file as its footer describes them, in Iceberg's types.

The types are Parquet's own, not those that a writer of Arrow has noted beside them: they are what
Iceberg's readers see.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from committer.errors import InvalidMetadataError
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
from workers.arrow.arrow_types import children, field_id

_MILLIS = 1_000


class Shape(Enum):
    """The structure of a column's values."""

    VALUE = auto()
    STRUCT = auto()
    LIST = auto()
    MAP = auto()


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored form of a Parquet column's values.

    `kinds`: the Iceberg types that it may be, none for what Iceberg does not read. `units`: units
    of that type in one of the file's. `text`: Parquet's own words. `is_ordered`: as in `Leaf`.
    """

    position: int
    kinds: tuple[IcebergType, ...]
    text: str
    units: int = 1
    is_ordered: bool = True


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column of a file, or a part of one. `stored` of values only."""

    name: str
    field_id: int | None
    nullable: bool
    shape: Shape
    parts: tuple[FileColumn, ...] = ()
    stored: Stored | None = None

    def leaves(self) -> Iterator[Stored]:
        """Yield how each value in it is stored."""
        if self.stored is not None:
            yield self.stored
        for part in self.parts:
            yield from part.leaves()

    @property
    def positions(self) -> list[int]:
        """The positions of the values in it."""
        return [stored.position for stored in self.leaves()]

    @property
    def has_ids(self) -> bool:
        return self.field_id is not None or any(part.has_ids for part in self.parts)


def file_columns(footer: pq.FileMetaData) -> tuple[FileColumn, ...]:
    """Return the columns of a file. Errors: `InvalidMetadataError` for a footer without sense."""
    try:
        fields = list(footer.schema.to_arrow_schema())
    except (OSError, pa.ArrowException) as error:
        raise InvalidMetadataError(f"its columns cannot be read: {error}") from error
    is_old = _is_of_old_writer(footer)
    stored = [_stored(footer.schema.column(at), at, is_old) for at in range(footer.num_columns)]
    left = iter(stored)
    columns = tuple(_column(one, left) for one in fields)
    walked = [leaf for column in columns for leaf in column.leaves()]
    if walked != stored:
        raise InvalidMetadataError("its columns are nested in a way that is not known")
    return columns


def _column(found: pa.Field, left: Iterator[Stored]) -> FileColumn:
    inner = children(found.type)
    if not inner:
        stored = next(left, None)
        if stored is None:
            raise InvalidMetadataError("its columns are nested in a way that is not known")
        return FileColumn(found.name, field_id(found), found.nullable, Shape.VALUE, (), stored)
    return FileColumn(
        found.name, field_id(found), found.nullable, shape_of(found.type), _parts(inner, left)
    )


def _parts(inner: Sequence[pa.Field], left: Iterator[Stored]) -> tuple[FileColumn, ...]:
    return tuple(_column(one, left) for one in inner)


def shape_of(kind: pa.DataType) -> Shape:
    """Return how values of a nested Arrow type are built."""
    if pa.types.is_struct(kind):
        return Shape.STRUCT
    return Shape.MAP if pa.types.is_map(kind) else Shape.LIST


# --- Types ---------------------------------------------------------------------------------------

_PLAIN: dict[str, IcebergType] = {
    "BOOLEAN": BooleanType(),
    "INT32": IntegerType(),
    "INT64": LongType(),
    "FLOAT": FloatType(),
    "DOUBLE": DoubleType(),
    "BYTE_ARRAY": BinaryType(),
}
_TIMESTAMPS: dict[tuple[str, bool], tuple[IcebergType, int]] = {
    ("milliseconds", False): (TimestampType(), _MILLIS),
    ("milliseconds", True): (TimestamptzType(), _MILLIS),
    ("microseconds", False): (TimestampType(), 1),
    ("microseconds", True): (TimestamptzType(), 1),
    ("nanoseconds", False): (TimestampNanoType(), 1),
    ("nanoseconds", True): (TimestamptzNanoType(), 1),
}
_TIMES = {"milliseconds": _MILLIS, "microseconds": 1}
_INTEGERS = ("INT32", "INT64")
_PARQUET_MR = re.compile(r"parquet-mr(?: version (\d+)\.(\d+))?", re.ASCII)


def _is_of_old_writer(footer: pq.FileMetaData) -> bool:
    """Return whether a file may be one of parquet-mr before 1.10, or of a writer without a name."""
    try:
        name = footer.created_by
    except UnicodeDecodeError:
        return True
    version = _PARQUET_MR.match(name or "parquet-mr")
    return version is not None and tuple(int(part or 0) for part in version.groups()) < (1, 10)


def _stored(column: pq.ColumnSchema, position: int, is_old: bool) -> Stored:
    logical = orjson.loads(column.logical_type.to_json())
    physical, kind = column.physical_type, logical["Type"]
    text = physical if kind == "None" else f"{physical} {kind}"
    if physical == "INT96":
        # Spark's and Impala's timestamps of old; the file does not say which of both they are.
        return Stored(position, (TimestamptzType(), TimestampType()), text)
    found, units = _logical(physical, logical, column.length)
    # Old writers compared the bytes of decimals one by one, as signed numbers; pyarrow believes
    # them. Source: the Parquet format, `Statistics`.
    is_ordered = not (is_old and kind == "Decimal" and physical not in _INTEGERS)
    return Stored(position, () if found is None else (found,), text, units, is_ordered)


def _logical(
    physical: str, logical: dict[str, object], length: int
) -> tuple[IcebergType | None, int]:
    """Return the type, and units of it in one of the file's; None where Iceberg has no type."""
    match logical:
        case {"Type": "None"} if physical == "FIXED_LEN_BYTE_ARRAY":
            return FixedType(length), 1
        case {"Type": "None"}:
            return _PLAIN.get(physical), 1
        case {"Type": "Int", "bitWidth": int(bits), "isSigned": signed}:
            return _integer(bits, signed is True), 1
        case {"Type": "String" | "Enum" | "JSON"}:
            return StringType(), 1
        case {"Type": "BSON"}:
            return BinaryType(), 1
        case {"Type": "UUID"}:
            return UUIDType(), 1
        case {"Type": "Date"}:
            return DateType(), 1
        case {"Type": "Decimal", "precision": int(precision), "scale": int(scale)}:
            return (DecimalType(precision, scale) if precision <= 38 else None), 1
        case {"Type": "Time", "timeUnit": str(unit)} if unit in _TIMES:
            return TimeType(), _TIMES[unit]
        case {"Type": "Timestamp", "timeUnit": str(unit), "isAdjustedToUTC": zoned}:
            return _TIMESTAMPS.get((unit, zoned is True), (None, 1))
    return None, 1


def _integer(bits: int, signed: bool) -> IcebergType | None:
    """Return the integer of a width. Readers of Iceberg have no unsigned ones."""
    if bits == 64:
        return LongType() if signed else None
    return IntegerType() if signed or bits < 32 else None
