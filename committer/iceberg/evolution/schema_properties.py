"""Changes table properties that name columns as a schema evolves.

The name mapping learns new names; settings of single columns go with them.
Source: Iceberg Java, `SchemaUpdate`.
"""

from __future__ import annotations

from collections.abc import Mapping

from committer.errors import InvalidMetadataError
from committer.iceberg.schema.name_mapping import (
    NAME_MAPPING_PROPERTY,
    parse_name_mapping,
    print_name_mapping,
    update_name_mapping,
)
from committer.iceberg.schema.schema import Schema

# A column's full name follows.
_COLUMN_PREFIXES = (
    "write.metadata.metrics.column.",
    "write.parquet.bloom-filter-enabled.column.",
    "write.parquet.stats-enabled.column.",
)


def evolved_properties(
    properties: Mapping[str, str], before: Schema, after: Schema
) -> dict[str, str]:
    """Return the properties that belong to an evolved schema.

    Settings of a deleted column are removed, those of a renamed one follow it, also if an enclosing
    struct was renamed. A property that names no column stays.
    """
    renamed = ((_evolved_key(key, before, after), text) for key, text in properties.items())
    evolved = {key: text for key, text in renamed if key is not None}
    mapping = evolved.get(NAME_MAPPING_PROPERTY)
    if mapping is not None:
        evolved[NAME_MAPPING_PROPERTY] = _evolved_mapping(mapping, before, after)
    return evolved


def _evolved_key(key: str, before: Schema, after: Schema) -> str | None:
    """Return the new name of a property, None for one of a deleted column."""
    prefix = next((each for each in _COLUMN_PREFIXES if key.startswith(each)), None)
    if prefix is None:
        return key
    column = before.find(key.removeprefix(prefix))
    if column is None:
        return key
    name = after.column_name(column.field_id)
    return None if name is None else prefix + name


def _evolved_mapping(text: str, before: Schema, after: Schema) -> str:
    try:
        mapping = parse_name_mapping(text)
    except InvalidMetadataError:
        # A mapping that cannot be read must be mended by hand; it does not stop a schema change.
        return text
    updated = update_name_mapping(mapping, before, after)
    return text if updated == mapping else print_name_mapping(updated)
