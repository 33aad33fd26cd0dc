"""The columns of a table as Glue shows them to people and to engines without Iceberg. Pure.

Iceberg's own clients read the metadata file and never these. Columns of the current schema come
first, then those of earlier schemas, as Iceberg Java writes them. A column that Glue cannot carry
is left out: no commit fails for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from committer.catalog.hive_type_names import GLUE
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.values.types import NestedField

if TYPE_CHECKING:
    from types_aiobotocore_glue.type_defs import ColumnOutputTypeDef, ColumnTypeDef

_NAME_CHARS_MAX = 255
_COMMENT_CHARS_MAX = 255
_TYPE_CHARS_MAX = 131_072
_NOT_IN_TEXTS = re.compile(r"[^\t\u0020-\uFFFD\U00010000-\U0010FFFF]")


def print_columns(
    metadata: TableMetadata, standing: Iterable[ColumnOutputTypeDef]
) -> list[ColumnTypeDef]:
    """Print the columns of all schemas. What others have added to a `standing` column stays."""
    known = {column["Name"]: column for column in standing}
    return [
        _column(field, is_current, known.get(field.name))
        for field, is_current in _fields(metadata)
        if _fits(field)
    ]


def _fields(metadata: TableMetadata) -> Iterator[tuple[NestedField, bool]]:
    """Yield one field for each name, the current one first."""
    current = metadata.current_schema
    earlier = (schema for schema in metadata.schemas if schema.schema_id != current.schema_id)
    seen: set[str] = set()
    for schema in (current, *earlier):
        for field in schema.columns:
            if field.name not in seen:
                seen.add(field.name)
                yield field, schema is current


def _fits(field: NestedField) -> bool:
    is_name = 0 < len(field.name) <= _NAME_CHARS_MAX and not _NOT_IN_TEXTS.search(field.name)
    text = GLUE.name(field.field_type)
    return is_name and len(text) <= _TYPE_CHARS_MAX and not _NOT_IN_TEXTS.search(text)


def _column(
    field: NestedField, is_current: bool, known: ColumnOutputTypeDef | None
) -> ColumnTypeDef:
    standing: Mapping[str, Any] = known or {}
    column: ColumnTypeDef = {
        "Name": field.name,
        "Type": GLUE.name(field.field_type),
        "Parameters": {
            **standing.get("Parameters", {}),
            "iceberg.field.id": str(field.field_id),
            "iceberg.field.optional": str(not field.required).lower(),
            "iceberg.field.current": str(is_current).lower(),
        },
    }
    comment = field.doc or standing.get("Comment", "")
    if comment:
        column["Comment"] = _NOT_IN_TEXTS.sub(" ", comment)[:_COMMENT_CHARS_MAX]
    return column
