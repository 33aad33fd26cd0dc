"""Builds a new sort order for a table, key by key.

Source: the specification, "Sorting"; docs/reference/iceberg-notes.md 2.2.
"""

from __future__ import annotations

from typing import Self

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.evolution.schema_changes import existing_column
from committer.iceberg.metadata.metadata_check import check_sort_order
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import NULL_ORDERS, UNSORTED, SortField, SortOrder
from committer.iceberg.values.transforms import IDENTITY, Transform, UnknownTransform


class SortOrderUpdate:
    """A sort order that replaces the table's. Mutable; lives as long as one change set."""

    def __init__(self, schema: Schema, *, case_sensitive: bool = True) -> None:
        self._schema, self._case_sensitive = schema, case_sensitive
        self._fields: list[SortField] = []

    def apply(self) -> SortOrder:
        """Return the order under id 1, or the unsorted one; the table may assign another id.

        Errors: `InvalidMetadataError` for a column that its transform cannot take.
        """
        if not self._fields:
            return UNSORTED
        order = SortOrder(1, tuple(self._fields))
        check_sort_order(order, self._schema)
        return order

    def asc(
        self, source: str, transform: Transform = IDENTITY, *, null_order: str = "nulls-first"
    ) -> Self:
        """Sort by a column from the smallest. Errors as for `apply`, and where it is missing."""
        return self._add(source, transform, "asc", null_order)

    def desc(
        self, source: str, transform: Transform = IDENTITY, *, null_order: str = "nulls-last"
    ) -> Self:
        """Sort by a column from the greatest."""
        return self._add(source, transform, "desc", null_order)

    def _add(self, source: str, transform: Transform, direction: str, null_order: str) -> Self:
        column = existing_column(self._schema, source, case_sensitive=self._case_sensitive)
        if isinstance(transform, UnknownTransform):
            raise UnsupportedError(f"sort order: the transform {transform} is not known")
        if null_order not in NULL_ORDERS:
            raise InvalidMetadataError(
                f"sort order: expected {' or '.join(NULL_ORDERS)}, found `{null_order}`"
            )
        self._fields.append(SortField((column.field_id,), transform, direction, null_order))
        return self
