"""Iceberg values as people read them: metrics by column name, specs and orders as text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import cast

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.inspection.values import Row, bound_describers, describe_bounds
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema

Description = dict[str, object]


def readable_metrics(file: DataFile, schema: Schema) -> dict[str, Description]:
    """Return metrics by column name; a column that the schema does not have is called by its id."""
    sources: dict[str, Mapping[int, object]] = {
        "column_size": file.column_sizes or {},
        "value_count": file.value_counts or {},
        "null_value_count": file.null_value_counts or {},
        "nan_value_count": file.nan_value_counts or {},
        "lower_bound": _decoded(file.lower_bounds, schema),
        "upper_bound": _decoded(file.upper_bounds, schema),
    }
    field_ids = sorted({field_id for source in sources.values() for field_id in source})
    return {
        schema.column_name(field_id) or f"#{field_id}": {
            name: source[field_id] for name, source in sources.items() if field_id in source
        }
        for field_id in field_ids
    }


def _decoded(bounds: Mapping[int, bytes] | None, schema: Schema) -> dict[int, object]:
    """Return bounds as text; hexadecimal if their type has no such form or they are broken."""
    described = describe_bounds(bounds, bound_describers(schema)) or {}
    rows = {int(field_id): cast(Row, row) for field_id, row in described.items()}
    return {field_id: row.get("human", row["hex"]) for field_id, row in rows.items()}


def spec_text(spec: PartitionSpec, schema: Schema) -> str:
    """Print a spec: `month(at), bucket[8](name)`; empty if unpartitioned."""
    name = partial(_column, schema=schema)
    return ", ".join(f"{field.transform}({name(field.source_id)})" for field in spec.fields)


def order_text(metadata: TableMetadata) -> str:
    """Print the default sort order as a list of keys; empty if unsorted."""
    name = partial(_column, schema=metadata.current_schema)
    return ", ".join(
        f"{field.transform}({name(field.source_id)}) {field.direction} {field.null_order}"
        for field in metadata.default_sort_order.fields
    )


def _column(field_id: int, schema: Schema) -> str:
    return schema.column_name(field_id) or f"#{field_id}"
