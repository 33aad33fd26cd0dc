"""Changes of a table's schema, recorded in an evolution of the schema as it is now."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import assert_never

import orjson

from committer.errors import InvalidMetadataError
from committer.iceberg.evolution.schema_evolution import EvolvedSchema, SchemaUpdate
from committer.iceberg.evolution.schema_properties import evolved_properties
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.schema.name_mapping import (
    NAME_MAPPING_PROPERTY,
    mapped_ids,
    parse_name_mapping,
)
from committer.iceberg.schema.schema import Schema
from committer.iceberg.updates.metadata_update import (
    LAST_ADDED,
    AddSchema,
    RemoveProperties,
    SetCurrentSchema,
    SetProperties,
    Update,
)
from committer.iceberg.values.single_value import parse_json_value, print_json_value
from committer.iceberg.values.transforms import VoidTransform
from committer.iceberg.values.type_json import parse_type
from committer.iceberg.values.types import (
    BooleanType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
)
from committer.plan.batch.needed_columns import record_union
from committer.request import alterations as ask


def alter_columns(change: ask.SchemaChange, metadata: TableMetadata) -> tuple[Update, ...]:
    """Plan one change of the schema. Errors: `InvalidMetadataError` for a change that the schema's
    evolution forbids, `UnsupportedError` for one that is not implemented.
    """
    update = SchemaUpdate(
        metadata.current_schema,
        last_column_id=metadata.last_column_id,
        format_version=metadata.format_version,
        specs=metadata.partition_specs,
        case_sensitive=change.case_sensitive,
    )
    return _updates(metadata, _evolved(update, change))


def _updates(metadata: TableMetadata, evolved: EvolvedSchema) -> tuple[Update, ...]:
    before, after = metadata.current_schema, evolved.schema
    if before.fields == after.fields and set(before.identifier_field_ids) == set(
        after.identifier_field_ids
    ):
        return ()
    _check_layout_columns(metadata, after)
    properties = evolved_properties(metadata.properties, before, after)
    _check_mapped_names(metadata.properties, properties)
    return (
        AddSchema(after, evolved.last_column_id),
        SetCurrentSchema(LAST_ADDED),
        *changed_properties(metadata.properties, properties),
    )


def _check_layout_columns(metadata: TableMetadata, after: Schema) -> None:
    """Refuse to drop a column that new files are partitioned or sorted by."""
    uses = [
        (f"partition field `{field.name}`: drop the partition field", field.source_ids)
        for field in metadata.default_spec.fields
        if not isinstance(field.transform, VoidTransform)
    ]
    uses += [
        ("the sort order: replace the sort order", key.source_ids)
        for key in metadata.default_sort_order.fields
    ]
    for use, source_ids in uses:
        for source_id in source_ids:
            if after.field(source_id) is None:
                name = metadata.current_schema.column_name(source_id)
                raise InvalidMetadataError(f"column `{name}` is used by {use} too")


def _check_mapped_names(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Refuse to give a column a name that another one has in files without ids: they would be read
    as the new one.
    """
    mappings = [properties.get(NAME_MAPPING_PROPERTY) for properties in (before, after)]
    if mappings[0] == mappings[1] or None in mappings:
        return
    known, changed = (mapped_ids(parse_name_mapping(text or "").fields) for text in mappings)
    for name, field_id in known.items():
        if changed.get(name, field_id) != field_id:
            raise InvalidMetadataError(
                f"column `{name}`: files without field ids have field {field_id} under this name,"
                f" by the table's property `{NAME_MAPPING_PROPERTY}`: expected another name, or one"
                " that this property does not have"
            )


def changed_properties(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[SetProperties | RemoveProperties, ...]:
    """Return the updates that make other properties of some."""
    new = {key: text for key, text in after.items() if before.get(key) != text}
    gone = tuple(key for key in before if key not in after)
    return (
        *((SetProperties(new),) if new else ()),
        *((RemoveProperties(gone),) if gone else ()),
    )


def _evolved(update: SchemaUpdate, change: ask.SchemaChange) -> EvolvedSchema:
    match change:
        case ask.AddColumn():
            _add(update, change)
        case ask.DropColumn(name=name, if_exists=if_exists):
            if not (if_exists and _column(update, name) is None):
                update.delete_column(name)
        case ask.RenameColumn(name=name, new_name=new_name):
            _check_free(update, name, new_name)
            update.rename_column(name, new_name)
        case ask.UpdateColumnType(name=name, type=kind):
            update.update_column(name, parse_type(kind))
        case ask.UpdateColumnDoc(name=name, doc=doc):
            update.update_column_doc(name, doc)
        case ask.UpdateColumnDefault(name=name, default=default):
            update.update_column_default(name, _default(update, name, default))
        case ask.MakeColumnOptional(name=name):
            update.make_column_optional(name)
        case ask.MoveColumn():
            _move(update, change)
        case ask.SetIdentifierFields(names=names):
            update.set_identifier_fields(*names)
        case ask.UnionByName():
            return record_union(update, change)
        case _:
            assert_never(change)
    return update.apply()


def _add(update: SchemaUpdate, change: ask.AddColumn) -> None:
    full_name = change.name if change.parent is None else f"{change.parent}.{change.name}"
    kind = parse_type(change.type)
    if change.if_not_exists and (known := _column(update, full_name)) is not None:
        if str(known.field_type) != str(kind):
            raise InvalidMetadataError(
                f"column `{full_name}` exists as {known.field_type}, expected {kind}"
            )
        return
    update.add_column(
        change.name,
        kind,
        parent=change.parent,
        required=change.required,
        doc=change.doc,
        default=_value(kind, change.default, full_name),
    )


def _check_free(update: SchemaUpdate, name: str, new_name: str) -> None:
    parent, dot, _ = name.rpartition(".")
    known = _column(update, f"{parent}{dot}{new_name}")
    if known is not None and known != _column(update, name):
        raise InvalidMetadataError(f"there is a column `{parent}{dot}{known.name}` already")


def _move(update: SchemaUpdate, change: ask.MoveColumn) -> None:
    if change.before is not None:
        update.move_before(change.name, change.before)
    elif change.after is not None:
        update.move_after(change.name, change.after)
    else:
        update.move_first(change.name)


def _column(update: SchemaUpdate, name: str) -> NestedField | None:
    return update.schema.find(name, case_sensitive=update.case_sensitive)


def _default(update: SchemaUpdate, name: str, default: object) -> object:
    # Iceberg Java stores a write default in any version; the specification has it from 3 on.
    if default is not None and update.format_version < 3:
        raise InvalidMetadataError(
            f"column `{name}`: a default needs format version 3, found {update.format_version}"
        )
    known = _column(update, name)
    return None if known is None else _value(known.field_type, default, name)


def _value(kind: IcebergType, json_value: object, name: str) -> object:
    """Read a default; a number may be text. One of a nested type is left to the evolution, which
    refuses it."""
    if json_value is None or not kind.is_primitive:
        return json_value
    try:
        return parse_json_value(kind, _json_form(kind, json_value))
    except ValueError as error:
        raise InvalidMetadataError(f"column `{name}`: `default`: {error}") from error


def _json_form(kind: IcebergType, value: object) -> object:
    """Return the JSON form of a value that may be text of a command line."""
    if not isinstance(value, str):
        return value
    with suppress(ArithmeticError, ValueError):
        match kind:
            case DecimalType():
                return print_json_value(kind, Decimal(value))
            case FloatType() | DoubleType():
                number = orjson.loads(value)
                return float(number) if type(number) is int else number
            case BooleanType() | IntegerType() | LongType():
                return orjson.loads(value.lower())
    return value
