"""The columns of a table as Hive's own type names, as Iceberg Java writes them. Pure.

They are for readers of the metastore; every Iceberg engine reads the metadata file instead.
"""

from __future__ import annotations

from committer.catalog.hive.thrift_values import Field, Struct, structs, text
from committer.catalog.hive_type_names import HIVE
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import IcebergType


def columns(schema: Schema) -> Field:
    """Return the list of Hive's `FieldSchema` for the columns of a schema."""
    return structs(
        _column(field.name, field.field_type, field.doc or "") for field in schema.fields
    )


def _column(name: str, kind: IcebergType, comment: str) -> Struct:
    column = {1: text(name), 2: text(HIVE.name(kind))}
    return column | {3: text(comment)} if comment else column
