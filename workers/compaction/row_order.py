"""Orders the rows of a group of a compaction: by sort keys, or along a Z-order of columns.

The driver says it, executors compute the keys. Format only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from committer.errors import SettingsError
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED, SortField, SortOrder
from committer.iceberg.schema.table_text import parse_sort_order
from committer.iceberg.values.transforms import IdentityTransform
from committer.iceberg.values.types import NestedField
from workers.arrow.arrow_schema import arrow_schema
from workers.arrow.partitioning import bind_partitioner
from workers.compaction.zorder import zorder_keys

KEY = "_frazil_key_"


@dataclass(frozen=True, slots=True)
class RowOrder:
    """`terms`: what rows are ordered by, as fields of a spec: columns and their transforms.
    `directions`: of each key, a sort field with its direction and the place of nulls. `sort_order`:
    what files say of their rows, with the id of the table's order that this is, 0 of none.
    """

    terms: PartitionSpec
    directions: tuple[SortField, ...]
    sort_order: SortOrder = UNSORTED
    is_zorder: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the key columns."""
        return tuple(f"{KEY}{at}" for at in range(len(self.directions)))

    def keys(self, batch: pa.RecordBatch, columns: Sequence[NestedField]) -> list[pa.Array]:
        """Compute the keys of rows that have these columns, in their order."""
        schema = Schema(tuple(columns))
        bound = bind_partitioner(self.terms, schema, arrow_schema(schema))
        values = [_plain(field.values(batch)) for field in bound.fields]
        return [zorder_keys(values)] if self.is_zorder else values


def _plain(column: pa.Array) -> pa.Array:
    """Return values of a type that Spark has, and compares as Iceberg does."""
    fixed = pa.types.is_fixed_size_binary(column.type)
    return column.cast(pa.binary()) if fixed else column


def sorted_by(text: str | None, metadata: TableMetadata) -> RowOrder:
    """Return the order that a text says (`region, at desc nulls last`), that of the table without.

    Errors: `SettingsError` for a text that says none, and for a table without an order.
    """
    order = metadata.default_sort_order
    if text is not None:
        order = _parsed(text, metadata.current_schema)
    if not order.fields:
        raise SettingsError(
            "strategy `sort`: the table has no sort order, give one by `sort_order=`, such as"
            ' "region, at desc nulls last"'
        )
    known = (one.order_id for one in metadata.sort_orders if one.fields == order.fields)
    sort_order = SortOrder(next(known, UNSORTED.order_id), order.fields)
    return RowOrder(_terms(order.fields), order.fields, sort_order)


def _parsed(text: str, schema: Schema) -> SortOrder:
    try:
        return parse_sort_order(text, schema)
    except ValueError as error:
        raise SettingsError(f"`sort_order`: {error}") from None


def clustered_by(columns: Sequence[str], metadata: TableMetadata) -> RowOrder:
    """Return the Z-order of these columns. Errors: `SettingsError` for one that is not there."""
    fields = []
    for name in columns:
        column = metadata.current_schema.find(name)
        if column is None:
            raise SettingsError(f"`zorder_columns`: the table has no column `{name}`")
        fields.append(SortField((column.field_id,), IdentityTransform(), "asc", "nulls-first"))
    return RowOrder(_terms(fields), tuple(fields[:1]), is_zorder=True)


def _terms(fields: Sequence[SortField]) -> PartitionSpec:
    return PartitionSpec(
        0,
        tuple(
            PartitionField(field.source_ids, 1000 + at, f"{KEY}{at}", field.transform)
            for at, field in enumerate(fields)
        ),
    )
