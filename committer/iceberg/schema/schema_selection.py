"""The part of a schema that a reader asks for by columns' names.

Source: as the engines select columns; a struct that is named comes whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from committer.errors import InvalidFilterError
from committer.iceberg.schema.metadata_columns import (
    METADATA_COLUMNS,
    PARTITION_NAME,
    RESERVED_NAMES,
    partition_column,
)
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import IcebergType, ListType, MapType, NestedField, StructType


def select_columns(schema: Schema, names: Iterable[str], *, case_sensitive: bool = True) -> Schema:
    """Select the columns of these (dotted) names in the schema's order, with what they lie in.

    Errors: `InvalidFilterError` for a name that the schema does not have.
    """
    return select_fields(schema, {_field_id(schema, name, case_sensitive) for name in names})


def select_fields(schema: Schema, ids: Collection[int]) -> Schema:
    """Select the fields of these ids in the schema's order, with what they lie in."""
    return Schema(
        _selected_fields(schema.fields, ids),
        schema_id=schema.schema_id,
        identifier_field_ids=tuple(one for one in schema.identifier_field_ids if one in ids),
    )


def wanted_columns(
    schema: Schema,
    names: Sequence[str] | None,
    partition: StructType,
    *,
    case_sensitive: bool = True,
) -> tuple[NestedField, ...]:
    """Return the table's columns of these (dotted) names in the schema's order; behind them the
    metadata columns of the names that the schema does not have, in the order asked.

    All columns of the table without names. `partition`: the table's partition type. Errors:
    `InvalidFilterError` for a name that is neither.
    """
    if names is None:
        return schema.fields
    known = {
        name: partition_column(partition) if name == PARTITION_NAME else METADATA_COLUMNS[name]
        for name in RESERVED_NAMES
    }
    beside = [
        name
        for name in dict.fromkeys(names)
        if name in known and schema.find(name, case_sensitive=case_sensitive) is None
    ]
    own = [name for name in names if name not in beside]
    selected = select_columns(schema, own, case_sensitive=case_sensitive).fields
    return (*selected, *(known[name] for name in beside))


def _field_id(schema: Schema, name: str, case_sensitive: bool) -> int:
    found = schema.find(name, case_sensitive=case_sensitive)
    if found is None:
        columns = ", ".join(f"`{field.name}`" for field in schema.fields)
        raise InvalidFilterError(f"there is no column `{name}`: expected some of {columns}")
    return found.field_id


def _selected_fields(
    fields: tuple[NestedField, ...], ids: Collection[int]
) -> tuple[NestedField, ...]:
    found = ((field, _selected(field.field_id, field.field_type, ids)) for field in fields)
    return tuple(replace(field, field_type=kind) for field, kind in found if kind is not None)


def _selected(field_id: int, kind: IcebergType, ids: Collection[int]) -> IcebergType | None:
    """Return the selected part of a field's type: all if it is named, None if nothing in it is."""
    if field_id in ids:
        return kind
    match kind:
        case StructType(fields):
            selected = _selected_fields(fields, ids)
            return StructType(selected) if selected else None
        case ListType(element_id, element_type, _):
            element = _selected(element_id, element_type, ids)
            return None if element is None else replace(kind, element_type=element)
        case MapType(key_id, _, value_id, value_type, _):
            value = _selected(value_id, value_type, ids)
            if value is not None:
                return replace(kind, value_type=value)
            return kind if key_id in ids else None
    return None
