"""Adds, chooses and removes schemas, partition specs and sort orders of a table.

A part of `MetadataBuilder`. Source: docs/reference/iceberg-notes.md 2.2, 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.metadata_check import (
    check_new_spec,
    check_partition_name,
    check_schema,
    check_sort_order,
    check_spec,
)
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.schema.partition_field_ids import with_field_ids, with_field_ids_by_position
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED, SortOrder


class LayoutBuilder:
    """Mutable; lives as long as one change set."""

    def __init__(self, base: TableMetadata) -> None:
        self.format_version = base.format_version
        self.schemas, self.current_schema_id = base.schemas, base.current_schema_id
        self.specs, self.default_spec_id = base.partition_specs, base.default_spec_id
        self.orders, self.default_order_id = base.sort_orders, base.default_sort_order_id
        self.last_column_id, self.last_partition_id = base.last_column_id, base.last_partition_id
        self._base = base
        self._added_schema_id: int | None = None
        self._added_spec_id: int | None = None
        self._added_order_id: int | None = None

    def applied(self, metadata: TableMetadata) -> TableMetadata:
        """Return the metadata with this layout.

        Errors: default spec or order do not fit the schema, or the names of any spec do not.
        """
        changed = replace(
            metadata,
            schemas=self.schemas,
            current_schema_id=self.current_schema_id,
            last_column_id=self.last_column_id,
            partition_specs=self.specs,
            default_spec_id=self.default_spec_id,
            last_partition_id=self.last_partition_id,
            sort_orders=self.orders,
            default_sort_order_id=self.default_order_id,
        )
        check_spec(changed.default_spec, changed.current_schema)
        for field in (field for spec in self.specs for field in spec.fields):
            check_partition_name(field, changed.current_schema)
        check_sort_order(changed.default_sort_order, changed.current_schema)
        return changed

    @property
    def _current_schema(self) -> Schema:
        found = (each for each in self.schemas if each.schema_id == self.current_schema_id)
        schema = next(found, None)
        if schema is None:
            raise InvalidMetadataError("expected a current schema before specs and sort orders")
        return schema

    @property
    def is_changed(self) -> bool:
        base = self._base
        return (
            self.schemas is not base.schemas
            or self.specs is not base.partition_specs
            or self.orders is not base.sort_orders
            or self.current_schema_id != base.current_schema_id
            or self.default_spec_id != base.default_spec_id
            or self.default_order_id != base.default_sort_order_id
            or self.last_column_id != base.last_column_id
        )

    # --- Schemas ---------------------------------------------------------------------------------

    def add_schema(self, schema: Schema, last_column_id: int | None) -> None:
        check_schema(schema, self.format_version)
        self.last_column_id = max(self.last_column_id, schema.highest_field_id, last_column_id or 0)
        known = next((each for each in self.schemas if _same_schema(each, schema)), None)
        if known is None:
            known = Schema(
                schema.fields,
                _next_id(each.schema_id for each in self.schemas),
                schema.identifier_field_ids,
            )
            self.schemas = (*self.schemas, known)
        self._added_schema_id = known.schema_id

    def set_current_schema(self, schema_id: int | None) -> None:
        known = {each.schema_id for each in self.schemas}
        self.current_schema_id = _chosen(schema_id, self._added_schema_id, known, "schema")

    def remove_schemas(self, schema_ids: Iterable[int]) -> None:
        removed = set(schema_ids)
        _check_not_in_use(self.current_schema_id, removed, "current schema")
        if any(each.schema_id in removed for each in self.schemas):
            self.schemas = tuple(each for each in self.schemas if each.schema_id not in removed)

    # --- Partition specs -------------------------------------------------------------------------

    def add_spec(self, spec: PartitionSpec) -> None:
        known = next((each for each in self.specs if _equivalent(each, spec)), None)
        if known is None:
            check_new_spec(spec, self._current_schema)
            next_id = _next_id(each.spec_id for each in self.specs)
            known = replace(self._numbered(spec), spec_id=next_id)
            self.specs = (*self.specs, known)
            self.last_partition_id = max(self.last_partition_id, known.highest_field_id)
        self._added_spec_id = known.spec_id

    def _numbered(self, spec: PartitionSpec) -> PartitionSpec:
        if self.format_version == 1:
            return with_field_ids_by_position(spec)
        return with_field_ids(spec, self.specs, self.last_partition_id)

    def set_default_spec(self, spec_id: int | None) -> None:
        known = {each.spec_id for each in self.specs}
        self.default_spec_id = _chosen(spec_id, self._added_spec_id, known, "partition spec")

    def remove_specs(self, spec_ids: Iterable[int]) -> None:
        removed = set(spec_ids)
        _check_not_in_use(self.default_spec_id, removed, "default partition spec")
        if any(each.spec_id in removed for each in self.specs):
            self.specs = tuple(each for each in self.specs if each.spec_id not in removed)

    # --- Sort orders -----------------------------------------------------------------------------

    def add_sort_order(self, order: SortOrder) -> None:
        known = next((each for each in self.orders if each.fields == order.fields), None)
        if known is None:
            check_sort_order(order, self._current_schema)
            next_id = max(1, _next_id(each.order_id for each in self.orders))
            known = replace(order, order_id=next_id) if order.fields else UNSORTED
            self.orders = (*self.orders, known)
        self._added_order_id = known.order_id

    def set_default_sort_order(self, order_id: int | None) -> None:
        known = {each.order_id for each in self.orders}
        self.default_order_id = _chosen(order_id, self._added_order_id, known, "sort order")


def _same_schema(first: Schema, second: Schema) -> bool:
    return first.fields == second.fields and set(first.identifier_field_ids) == set(
        second.identifier_field_ids
    )


def _equivalent(first: PartitionSpec, second: PartitionSpec) -> bool:
    """Return whether sources, transforms, names and order are equal; field ids do not matter."""
    return [(field.source_ids, str(field.transform), field.name) for field in first.fields] == [
        (field.source_ids, str(field.transform), field.name) for field in second.fields
    ]


def _next_id(ids: Iterable[int]) -> int:
    return max(ids, default=-1) + 1


def _chosen(asked: int | None, added: int | None, known: set[int], what: str) -> int:
    """Return the id that is asked for, None for the last added one."""
    chosen = added if asked is None else asked
    if chosen is None:
        raise InvalidMetadataError(f"the last added {what} is asked for, but none was added")
    if chosen not in known:
        raise InvalidMetadataError(f"expected a {what} with id {chosen}, found none")
    return chosen


def _check_not_in_use(used: int, removed: set[int], what: str) -> None:
    if used in removed:
        raise InvalidMetadataError(f"the {what} {used} cannot be removed")
