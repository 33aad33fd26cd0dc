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
METRIC_HEADERS = ("column", "bytes", "values", "nulls", "NaNs", "lower bound", "upper bound")


def metric_rows(file: DataFile, schema: Schema) -> list[tuple[object, ...]]:
    """Return a row under `METRIC_HEADERS` for each column that has a metric."""
    sources: tuple[Mapping[int, object], ...] = (
        file.column_sizes or {},
        file.value_counts or {},
        file.null_value_counts or {},
        file.nan_value_counts or {},
        _decoded(file.lower_bounds, schema),
        _decoded(file.upper_bounds, schema),
    )
    return [
        (_column(field_id, schema), *(source.get(field_id) for source in sources))
        for field_id in sorted(set().union(*sources))
    ]


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
    """Return the column's name; its id if the schema does not have it."""
    return schema.column_name(field_id) or f"#{field_id}"
