"""Bounds on what a writer schema may ask of a reader. Nothing is decoded here.

A few hundred bytes of schema can describe 2^60 fields, since a name repeats its whole type; and a
type without bytes can be read endlessly. With these bounds the time to read a file is that of its
bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from committer.errors import InvalidMetadataError

# Manifests of a hundred partition fields have three hundred, and an empty one: the partition of
# tables that have none.
_FIELDS_MAX = 5_000
_EMPTY_MAX = 10
_DEPTH_MAX = 32


@dataclass(frozen=True, slots=True)
class _Cost:
    """Fields with all names written out, those of them of no bytes, whether all are of none."""

    fields: int
    empty: int
    is_empty: bool


_EMPTY = _Cost(1, 1, True)
_VALUE = _Cost(1, 0, False)


def check_schema(schema: object) -> None:
    """Check a schema read from JSON. Errors: `InvalidMetadataError` for a schema that no writer of
    Iceberg makes; `KeyError` and `TypeError` for a document that is no schema.
    """
    _cost(schema, {}, 0)


def field_id_of(field: Mapping[str, object]) -> int | None:
    """Return the id of a record's field; None where a writer gave none."""
    field_id = field.get("field-id")
    return field_id if isinstance(field_id, int) else None


def _cost(schema: object, named: dict[str, _Cost], depth: int) -> _Cost:
    if depth > _DEPTH_MAX:
        raise InvalidMetadataError(f"Avro: a schema nested deeper than {_DEPTH_MAX}")
    if isinstance(schema, list):
        # Null costs nothing here: the byte that chooses it has been read.
        branches = [_cost(branch, named, depth + 1) for branch in schema if branch != "null"]
        return _bounded(branches, is_empty=False)
    if not isinstance(schema, dict):
        return _EMPTY if schema == "null" else named.get(str(schema), _VALUE)
    match schema["type"]:
        case "array":
            items = _cost(schema["items"], named, depth + 1)
            if items.is_empty:
                raise InvalidMetadataError("Avro: an array of items that take no bytes")
            return _bounded([items], is_empty=False)
        case "record":
            fields = [_cost(field["type"], named, depth + 1) for field in schema["fields"]]
            cost = _bounded(fields, is_empty=all(field.is_empty for field in fields))
        case "fixed":
            cost = _VALUE if schema["size"] else _EMPTY
        case kind:
            return _cost(kind, named, depth + 1)
    named[str(schema["name"])] = cost
    return cost


def _bounded(parts: list[_Cost], *, is_empty: bool) -> _Cost:
    fields = 1 + sum(part.fields for part in parts)
    empty = is_empty + sum(part.empty for part in parts)
    if fields > _FIELDS_MAX:
        raise InvalidMetadataError(
            f"Avro: a schema of more than {_FIELDS_MAX} fields, with its names written out"
        )
    if empty > _EMPTY_MAX:
        raise InvalidMetadataError(
            f"Avro: a schema of more than {_EMPTY_MAX} fields that take no bytes"
        )
    return _Cost(fields, empty, is_empty)
