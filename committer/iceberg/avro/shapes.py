"""The shape of a writer schema (bytes and field ids), so that two schemas can be compared.

Names, docs and defaults mean nothing here. Nothing is decoded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.manifest_schemas import manifest_entry_type, schema_headers
from committer.iceberg.avro.schema_check import check_schema, field_id_of
from committer.iceberg.values.types import StructType


@dataclass(frozen=True, slots=True)
class RecordShape:
    """Field ids (None where a writer gave none) and shapes of a record, in the order of bytes."""

    fields: tuple[tuple[int | None, Shape], ...]

    def get(self, field_id: int) -> Shape | None:
        return next((shape for found, shape in self.fields if found == field_id), None)


@dataclass(frozen=True, slots=True)
class UnionShape:
    """The branches in order: which one a value has is written as its index."""

    branches: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """An array; `is_map` if its items are pairs of a map."""

    items: Shape
    is_map: bool


# A primitive is its name; a fixed one `fixed` and its size; decimals and uuids say so behind it.
Shape = RecordShape | UnionShape | ArrayShape | str


@lru_cache(maxsize=64)
def schema_shape(schema_text: bytes) -> RecordShape:
    """Return the shape of a file's schema: equal shapes, equal encoding.

    Errors: `InvalidMetadataError`, also for a schema that is not a record.
    """
    try:
        schema = json.loads(schema_text)
        check_schema(schema)
        shape = _shape(schema, {})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidMetadataError("Avro: the schema is not understood") from None
    if not isinstance(shape, RecordShape):
        raise InvalidMetadataError("Avro: expected a schema of records")
    return shape


def entry_shape(format_version: int, partition_type: StructType) -> RecordShape:
    """Return the shape of manifest entries as Frazil writes them."""
    entry = manifest_entry_type(format_version, partition_type)
    return schema_shape(schema_headers(entry, "manifest_entry")[0])


def _shape(schema: object, named: dict[str, Shape]) -> Shape:
    if isinstance(schema, list):
        return UnionShape(tuple(_shape(branch, named) for branch in schema))
    if isinstance(schema, dict):
        return _complex(schema, named)
    if not isinstance(schema, str):
        raise TypeError("a schema is text, a list or an object")
    return named.get(schema, schema)


def _complex(schema: Mapping[str, object], named: dict[str, Shape]) -> Shape:
    kind = schema["type"]
    if kind == "array":
        is_map = schema.get("logicalType") == "map"
        return ArrayShape(_shape(schema["items"], named), is_map)
    if kind == "record":
        shape: Shape = _record(schema["fields"], named)
    elif kind == "fixed":
        shape = f"fixed{schema['size']}{_logical(schema)}"
    else:
        shape = _shape(kind, named)
        return f"{shape}{_logical(schema)}" if isinstance(shape, str) else shape
    named[str(schema["name"])] = shape
    return shape


def _record(fields: object, named: dict[str, Shape]) -> RecordShape:
    if not isinstance(fields, list):
        raise TypeError("the fields of a record are a list")
    return RecordShape(
        tuple((field_id_of(field), _shape(field["type"], named)) for field in fields)
    )


def _logical(schema: Mapping[str, object]) -> str:
    """Name the logical type of a decimal or uuid: dates and times are read as integers."""
    if schema.get("logicalType") == "decimal":
        return f"<decimal {schema.get('precision')} {schema.get('scale', 0)}>"
    return "<uuid>" if schema.get("logicalType") == "uuid" else ""
