"""The columns of an Avro data file: its writer schema in Iceberg's types.

Source: the specification, Appendix A, "Avro".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

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
    UnknownType,
    UUIDType,
)
from workers.adoption.file_columns import FileColumn, Shape, Stored

_MILLIS = 1_000
_PLAIN: Mapping[str, IcebergType] = {
    "null": UnknownType(),
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
}
_MICROS = (TimestamptzType(), TimestampType())
_NANOS = (TimestamptzNanoType(), TimestampNanoType())
# Types by logical type, the one with a time zone first, and units of it in one of the file's.
_TIMES: Mapping[str, tuple[tuple[IcebergType, ...], int]] = {
    "date": ((DateType(),), 1),
    "time-millis": ((TimeType(),), _MILLIS),
    "time-micros": ((TimeType(),), 1),
    "timestamp-millis": (_MICROS, _MILLIS),
    "timestamp-micros": (_MICROS, 1),
    "timestamp-nanos": (_NANOS, 1),
    "local-timestamp-millis": (_MICROS[1:], _MILLIS),
    "local-timestamp-micros": (_MICROS[1:], 1),
    "local-timestamp-nanos": (_NANOS[1:], 1),
}


def avro_columns(schema: object) -> tuple[FileColumn, ...]:
    """Return the columns of a writer schema. Errors: `InvalidMetadataError`."""
    reader = _Reader()
    try:
        column = reader.column("", None, schema)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise InvalidMetadataError(f"its Avro schema is not understood ({error!r})") from None
    if column.shape is not Shape.STRUCT:
        raise InvalidMetadataError("expected an Avro file of records")
    return column.parts


class _Reader:
    """Remembers the named types of one schema."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._numbers = count()

    def column(self, name: str, field_id: object, schema: Any) -> FileColumn:
        """Describe a column of this Avro type. Errors: `InvalidMetadataError`, and those of a
        document that is no schema."""
        kind, nullable = _without_null(schema)
        if isinstance(kind, str):
            kind = self._named.get(kind, {"type": kind})
        if "name" in kind:
            self._named[kind["name"]] = kind
        number = field_id if isinstance(field_id, int) else None
        shape, parts = self._nested(kind)
        if shape is Shape.VALUE:
            return FileColumn(name, number, nullable, shape, (), self._stored(kind))
        return FileColumn(name, number, nullable, shape, tuple(parts))

    def _nested(self, kind: Mapping[str, Any]) -> tuple[Shape, Iterator[FileColumn]]:
        """Return how a value is built, and the columns inside of it."""
        match kind["type"]:
            case "record":
                return Shape.STRUCT, self._fields(kind["fields"])
            case "array" if kind.get("logicalType") == "map":
                return Shape.MAP, self._fields(kind["items"]["fields"])
            case "array":
                parts = [("element", kind.get("element-id"), kind["items"])]
                return Shape.LIST, (self.column(*part) for part in parts)
            case "map":
                parts = [
                    ("key", kind.get("key-id"), "string"),
                    ("value", kind.get("value-id"), kind["values"]),
                ]
                return Shape.MAP, (self.column(*part) for part in parts)
        return Shape.VALUE, iter(())

    def _fields(self, fields: Sequence[Mapping[str, Any]]) -> Iterator[FileColumn]:
        return (self.column(one["name"], one.get("field-id"), one["type"]) for one in fields)

    def _stored(self, kind: Mapping[str, Any]) -> Stored:
        kinds, units = _types(kind)
        logical = kind.get("logicalType")
        text = str(kind["type"]) if logical is None else f"{kind['type']} {logical}"
        return Stored(next(self._numbers), kinds, text, units)


def _without_null(schema: Any) -> tuple[Any, bool]:
    """Return a type, and whether it may be null: optional columns are unions with null."""
    if not isinstance(schema, list):
        return schema, schema == "null"
    branches = [one for one in schema if one != "null"]
    if len(branches) > 1:
        raise InvalidMetadataError("expected no Avro union but those with null")
    return branches[0] if branches else "null", len(branches) < len(schema)


def _types(kind: Mapping[str, Any]) -> tuple[tuple[IcebergType, ...], int]:
    """Return the types that values may have, and units of them in one of the file's."""
    base, logical = kind["type"], str(kind.get("logicalType"))
    if isinstance(base, dict):
        return _types(base)
    if logical in _TIMES and base in ("int", "long"):
        kinds, units = _TIMES[logical]
        adjusted = kind.get("adjust-to-utc")
        if len(kinds) > 1 and adjusted is not None:
            return (kinds[0] if adjusted else kinds[1],), units
        return kinds, units
    if logical == "decimal":
        return (DecimalType(kind["precision"], kind.get("scale", 0)),), 1
    if logical == "uuid":
        return (UUIDType(),), 1
    if base == "fixed":
        return (FixedType(kind["size"]),), 1
    return ((_PLAIN[base],) if base in _PLAIN else ()), 1
