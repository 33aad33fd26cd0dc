"""The columns of an open data file: their types beside a table's, and those that a read needs.

All formats describe their columns as Parquet does (`workers.adoption.file_columns`); a leaf is a
column of values, numbered depth first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from committer.errors import InvalidMetadataError
from committer.iceberg.scan.column_projection import FileColumn, Inherited, ProjectedField
from committer.iceberg.schema.name_mapping import NO_ID, MappedField, NameMapping, mapped_field
from committer.iceberg.values.types import (
    BinaryType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UnknownType,
    UUIDType,
    VariantType,
)
from workers.adoption.file_columns import FileColumn as StoredColumn
from workers.adoption.file_columns import Shape, Stored

# Bytes whose file does not say what they are.
_AS_BYTES = (StringType, GeometryType, GeographyType, FixedType, UUIDType)
_UUID_BYTES = FixedType(16)


def stored_type(
    columns: Sequence[StoredColumn],
    known: Mapping[int, IcebergType],
    mapping: NameMapping | None,
) -> StructType:
    """Return the columns as Iceberg's fields, `NO_ID` for those without an id.

    A file may say less than the table: where its column may be several types, it is the `known` one
    of the table's field. A mapping finds that field in a file without ids. Errors:
    `InvalidMetadataError` for a column of the table whose stored type Iceberg does not have.
    """
    has_ids = any(column.has_ids for column in columns)
    return StructType(_fields(columns, known, () if mapping is None or has_ids else mapping.fields))


def _fields(
    columns: Sequence[StoredColumn],
    known: Mapping[int, IcebergType],
    mapping: Sequence[MappedField],
) -> tuple[NestedField, ...]:
    return tuple(_field(column, known, mapping) for column in columns)


def _field(
    column: StoredColumn, known: Mapping[int, IcebergType], mapping: Sequence[MappedField]
) -> NestedField:
    mapped = mapped_field(mapping, column.name)
    field_id = column.field_id
    if field_id is None and mapped is not None:
        field_id = mapped.field_id
    table_type = None if field_id is None else known.get(field_id)
    kind = _type(column, table_type, known, () if mapped is None else mapped.fields)
    found = NO_ID if column.field_id is None else column.field_id
    return NestedField(found, column.name, kind, not column.nullable)


def _type(
    column: StoredColumn,
    table_type: IcebergType | None,
    known: Mapping[int, IcebergType],
    mapping: Sequence[MappedField],
) -> IcebergType:
    if column.stored is not None:
        return _value_type(column, column.stored, table_type)
    if isinstance(table_type, VariantType):
        return table_type
    parts = _fields(column.parts, known, mapping)
    match column.shape:
        case Shape.LIST:
            (element,) = parts
            return ListType(element.field_id, element.field_type, element.required)
        case Shape.MAP:
            key, value = parts
            return MapType(
                key.field_id, key.field_type, value.field_id, value.field_type, value.required
            )
    return StructType(parts)


def _value_type(
    column: StoredColumn, stored: Stored, table_type: IcebergType | None
) -> IcebergType:
    if not stored.kinds:
        # A column of nothing but nulls may become anything; one of no table is not read.
        if table_type is None or stored.text.endswith(" Null"):
            return UnknownType()
        raise InvalidMetadataError(
            f"column `{column.name}`: expected {table_type} in the data file, found {stored.text}"
        )
    first = stored.kinds[0]
    if table_type is None or table_type in stored.kinds:
        return table_type or first
    is_uuid = first == _UUID_BYTES and isinstance(table_type, UUIDType)
    if is_uuid or (isinstance(first, BinaryType) and isinstance(table_type, _AS_BYTES)):
        return table_type
    return first


# --- What a read needs ---------------------------------------------------------------------------


def file_column(field: ProjectedField) -> FileColumn | None:
    """Return the column of the file that a field is read from, if any."""
    source = field.source.stored if isinstance(field.source, Inherited) else field.source
    return source if isinstance(source, FileColumn) else None


def needed_leaves(
    fields: Iterable[ProjectedField], columns: Sequence[StoredColumn]
) -> frozenset[int]:
    """Return the leaves that these fields are read from."""
    return frozenset(_needed(fields, columns))


def _needed(fields: Iterable[ProjectedField], columns: Sequence[StoredColumn]) -> Iterator[int]:
    for field in fields:
        source = file_column(field)
        if source is not None:
            yield from _needed_of(source, columns[source.position])


def _needed_of(source: FileColumn, column: StoredColumn) -> Iterator[int]:
    if column.stored is not None or isinstance(source.stored, VariantType):
        yield from column.positions
        return
    yield from _needed(source.parts, column.parts)
    # Nulls and lengths are seen in any leaf; a map needs one of its keys and one of its values.
    parts = column.parts if column.shape is Shape.MAP else (column,)
    yield from (part.positions[0] for part in parts if not _is_read(source, column, part))


def _is_read(source: FileColumn, column: StoredColumn, part: StoredColumn) -> bool:
    """Return whether the wanted fields read a leaf of `part`, the column or one of its parts."""
    read = set(_needed(source.parts, column.parts))
    return not read.isdisjoint(part.positions)


def kept_position(columns: Sequence[StoredColumn], position: int, leaves: Collection[int]) -> int:
    """Return the place of a column among those of its siblings that have one of the leaves."""
    return sum(not set(leaves).isdisjoint(column.positions) for column in columns[:position])
