"""The schema of a table that is to take the columns of a DataFrame too: a union by name.

Columns that the table has keep what they are, unless the DataFrame's type is a wider one; Spark
calls nearly every column nullable, so what is required stays required. Values only.
"""

from __future__ import annotations

from pyspark.sql import types as spark

from committer.errors import InvalidMetadataError, PublishError
from committer.iceberg.evolution.schema_evolution import SchemaUpdate
from committer.iceberg.evolution.union_by_name import union_by_name
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.promotion import is_promotion_allowed
from committer.iceberg.values.types import (
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    UnknownType,
)
from workers.creation.spark_types import refuse_untyped, schema_of


def wider_schema(metadata: TableMetadata, source: spark.StructType) -> Schema | None:
    """Return the table's schema with what it lacks of the DataFrame's columns; None if it lacks
    nothing. New columns have the ids that the table gives next.

    Errors: `PublishError` where the union cannot be; `UnsupportedError` for a type of Spark's own.
    """
    current = metadata.current_schema
    wanted = _Merger(metadata.format_version).struct(
        schema_of(source, all_optional=True).as_struct, current.as_struct
    )
    update = SchemaUpdate(
        current,
        last_column_id=metadata.last_column_id,
        format_version=metadata.format_version,
        specs=metadata.partition_specs,
        case_sensitive=False,
    )
    try:
        evolved = union_by_name(update, Schema(wanted.fields)).apply().schema
    except InvalidMetadataError as error:
        raise PublishError(f"the columns cannot be united with the table's: {error}") from None
    return None if evolved.fields == current.fields else evolved


class _Merger:
    """Replaces, in a DataFrame's type, what the table has already by the table's own."""

    def __init__(self, format_version: int) -> None:
        self._format_version = format_version

    def struct(self, new: StructType, known: StructType) -> StructType:
        fields = []
        for field in new.fields:
            partner = _partner(field.name, known)
            if partner is not None:
                fields.append(self._field(field.field_type, partner))
            elif not isinstance(field.field_type, UnknownType):
                refuse_untyped(Schema((field,)), self._format_version)
                fields.append(field)
        return StructType(tuple(fields))

    def _field(self, new: IcebergType, known: NestedField) -> NestedField:
        kind = self._type(new, known.field_type)
        return NestedField(known.field_id, known.name, kind, known.required)

    def _type(self, new: IcebergType, known: IcebergType) -> IcebergType:
        match new, known:
            case StructType(), StructType():
                return self.struct(new, known)
            case ListType(), ListType():
                element = self._type(new.element_type, known.element_type)
                return ListType(known.element_id, element, known.element_required)
            case MapType(), MapType():
                key = self._type(new.key_type, known.key_type)
                value = self._type(new.value_type, known.value_type)
                return MapType(known.key_id, key, known.value_id, value, known.value_required)
        is_wider = is_promotion_allowed(known, new, format_version=self._format_version)
        return new if is_wider else known


def _partner(name: str, known: StructType) -> NestedField | None:
    exact = [field for field in known.fields if field.name == name]
    folded = [field for field in known.fields if field.name.lower() == name.lower()]
    return next(iter((*exact, *folded)), None)
