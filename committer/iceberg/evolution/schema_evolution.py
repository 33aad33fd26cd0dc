"""Schema evolution: add, delete, rename, move and promote columns, with ids as Java gives.

Like `MetadataBuilder` this records first and checks what it can at once; `apply` gives the result.
Source: the specification, "Schema Evolution" and "Default values";
docs/reference/iceberg-notes.md 1.2, 1.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

from committer.errors import InvalidMetadataError
from committer.iceberg.evolution.schema_changes import (
    ROOT,
    Move,
    SchemaChanges,
    check_names_in_any_case,
    existing_column,
)
from committer.iceberg.metadata.metadata_check import (
    check_partition_name,
    check_reserved_names,
    check_schema,
)
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema, fresh_type, nested_fields
from committer.iceberg.values.default_values import checked_default
from committer.iceberg.values.promotion import (
    is_promotion_allowed,
    keeps_partition_values,
    promoted_value,
)
from committer.iceberg.values.types import IcebergType, ListType, MapType, NestedField, StructType


@dataclass(frozen=True, slots=True)
class EvolvedSchema:
    """A new schema and the highest column id that was ever given.

    The schema has the id of its source: the table assigns another.
    """

    schema: Schema
    last_column_id: int


class SchemaUpdate:
    """Changes of one schema. Mutable; lives as long as one change set.

    Names are those before the changes, dotted for nested fields; an added column has the name that
    it was added under. `specs`: all of the table, as no promotion may change their values and no
    column may take the name of a partition field. Errors of every method: `InvalidMetadataError`
    for a change that the rules forbid.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        last_column_id: int,
        format_version: int,
        specs: Iterable[PartitionSpec] = (),
        case_sensitive: bool = True,
    ) -> None:
        self.schema = schema
        self.format_version = format_version
        self.case_sensitive = case_sensitive
        self._specs = tuple(specs)
        self._last_column_id = last_column_id
        self._numbers = self._column_ids()
        self._changes = SchemaChanges()
        self._added: dict[str, int] = {}
        self._added_parents: dict[int, int] = {}
        self._identifier_ids = schema.identifier_field_ids
        # The fields that are changed, and those that they lie in.
        self._touched: set[int] = set()

    def apply(self) -> EvolvedSchema:
        """Return the schema with all changes. May be called again after further ones.

        Errors: `InvalidMetadataError` also for names that collide (in any case, where case does not
        count), for a new name that is reserved, for what the format version does not know, and for
        an identifier field that is deleted or may be null now.
        """
        changed = Schema(
            self._changes.apply(self.schema.fields), self.schema.schema_id, self._identifier_ids
        )
        check_schema(changed, self.format_version)
        check_reserved_names(changed, before=self.schema)
        if not self.case_sensitive:
            check_names_in_any_case(changed)
        for field in (field for spec in self._specs for field in spec.fields):
            check_partition_name(field, changed)
        return EvolvedSchema(changed, self._last_column_id)

    # --- Add, delete, rename ---------------------------------------------------------------------

    def add_column(
        self,
        name: str,
        kind: IcebergType,
        *,
        parent: str | None = None,
        required: bool = False,
        doc: str | None = None,
        default: object = None,
    ) -> Self:
        """Add a column at the end, or a field to a struct (also one in a list or a map's values).

        The ids inside `kind` are given anew. `default` is an in-memory value, the initial and the
        write default. A required column needs one.
        """
        parent_id, full_name = self._place(name, parent)
        if required and default is None:
            raise InvalidMetadataError(
                f"column `{full_name}`: a required column needs a default value"
            )
        field_id = next(self._numbers)
        fresh = fresh_type(kind, self._numbers)
        value = checked_default(fresh, default, full_name)
        self._added[self._cased(full_name)] = field_id
        self._added_parents[field_id] = parent_id
        self._changes.adds.setdefault(parent_id, []).append(field_id)
        return self._keep(NestedField(field_id, name, fresh, required, doc, value, value))

    def _place(self, name: str, parent: str | None) -> tuple[int, str]:
        """Return the id of a new field's struct, and the field's full name."""
        parent_id, full_name = ROOT, name
        if parent is not None:
            struct_field = self._struct_at(parent)
            self._check_changeable(struct_field, parent)
            parent_id = struct_field.field_id
            full_name = f"{self.schema.column_name(parent_id)}.{name}"
        known = self.schema.find(full_name, case_sensitive=self.case_sensitive)
        is_taken = known is not None and known.field_id not in self._changes.deletes
        if not name or is_taken or self._cased(full_name) in self._added:
            raise InvalidMetadataError(f"column `{full_name}`: expected a name that is free")
        return parent_id, full_name

    def _struct_at(self, name: str) -> NestedField:
        field = self._existing(name)
        if isinstance(field.field_type, ListType | MapType):
            field = nested_fields(field.field_type)[-1]
        if not isinstance(field.field_type, StructType):
            raise InvalidMetadataError(
                f"column `{name}`: expected a struct to add to, found {field.field_type}"
            )
        return field

    def delete_column(self, name: str) -> Self:
        """Delete a column with all that is in it; it must have no other change."""
        field = self._existing(name)
        self._check_in_struct(field, name)
        self._check_changeable(field, name)
        if field.field_id in self._touched:
            raise InvalidMetadataError(f"column `{name}` is changed, and cannot be deleted too")
        self._changes.deletes.add(field.field_id)
        return self

    def rename_column(self, name: str, new_name: str) -> Self:
        """Rename a field of a struct. `new_name` is its own name, without those of its structs."""
        field = self._latest(name)
        self._check_in_struct(field, name)
        if not new_name:
            raise InvalidMetadataError(f"column `{name}`: expected a new name")
        return self._keep(replace(field, name=new_name))

    # --- Change a column -------------------------------------------------------------------------

    def update_column(self, name: str, kind: IcebergType) -> Self:
        """Promote the type. Defaults go with it.

        Errors also where a partition field of the table would have other values then.
        """
        field = self._latest(name)
        old = field.field_type
        if old == kind:
            return self
        if not is_promotion_allowed(old, kind, format_version=self.format_version):
            raise InvalidMetadataError(
                f"column `{name}`: {old} cannot become {kind} in format version"
                f" {self.format_version}"
            )
        self._check_partitions(field, kind, name)
        try:
            initial = promoted_value(old, kind, field.initial_default)
            write = promoted_value(old, kind, field.write_default)
        except InvalidMetadataError as error:
            raise InvalidMetadataError(f"column `{name}`: {error}") from error
        promoted = fresh_type(kind, self._numbers)
        return self._keep(
            replace(field, field_type=promoted, initial_default=initial, write_default=write)
        )

    def _check_partitions(self, field: NestedField, kind: IcebergType, name: str) -> None:
        for spec in self._specs:
            for part in spec.fields:
                if field.field_id in part.source_ids and not keeps_partition_values(
                    part.transform, field.field_type, kind
                ):
                    raise InvalidMetadataError(
                        f"column `{name}`: as {kind} it would change the values of partition field"
                        f" `{part.name}` ({part.transform}) of spec {spec.spec_id}"
                    )

    def update_column_doc(self, name: str, doc: str | None) -> Self:
        """Set what is written about a field of a struct."""
        field = self._latest(name)
        self._check_in_struct(field, name)
        return self._keep(replace(field, doc=doc))

    def update_column_default(self, name: str, default: object) -> Self:
        """Set the default of rows to come (an in-memory value, None for none)."""
        field = self._latest(name)
        self._check_in_struct(field, name)
        value = checked_default(field.field_type, default, name)
        return self._keep(replace(field, write_default=value))

    def make_column_optional(self, name: str) -> Self:
        field = self._latest(name)
        return self._keep(replace(field, required=False)) if field.required else self

    # --- Order, identifiers ----------------------------------------------------------------------

    def move_first(self, name: str) -> Self:
        return self._move(name, "first", None)

    def move_before(self, name: str, before: str) -> Self:
        return self._move(name, "before", before)

    def move_after(self, name: str, after: str) -> Self:
        return self._move(name, "after", after)

    def _move(self, name: str, where: str, beside: str | None) -> Self:
        """Note a move, within the field's struct only."""
        field = self._latest(name)
        self._check_in_struct(field, name)
        field_id, parent_id = field.field_id, self._parent_id(field.field_id)
        beside_id = None
        if beside is not None:
            beside_id = self._latest(beside).field_id
            if beside_id == field_id or self._parent_id(beside_id) != parent_id:
                raise InvalidMetadataError(
                    f"column `{name}`: expected another field of the same struct to move it"
                    f" {where}, found `{beside}`"
                )
        self._changes.moves.setdefault(parent_id, []).append(Move(field_id, where, beside_id))
        return self

    def set_identifier_fields(self, *names: str) -> Self:
        """Set the identifier columns, by their names after the changes so far."""
        so_far = Schema(self._changes.apply(self.schema.fields))
        is_cased = self.case_sensitive
        found = (existing_column(so_far, name, case_sensitive=is_cased) for name in names)
        self._identifier_ids = tuple(sorted({field.field_id for field in found}))
        return self

    # --- Look-up ---------------------------------------------------------------------------------

    def _column_ids(self) -> Iterator[int]:
        while True:
            self._last_column_id += 1
            yield self._last_column_id

    def _cased(self, name: str) -> str:
        return name if self.case_sensitive else name.lower()

    def _existing(self, name: str) -> NestedField:
        """Return the column as it was before the changes."""
        return existing_column(self.schema, name, case_sensitive=self.case_sensitive)

    def _latest(self, name: str) -> NestedField:
        """Return the column as the changes so far make it, which may have added it."""
        added_id = self._added.get(self._cased(name))
        if added_id is not None:
            return self._changes.updates[added_id]
        field = self._existing(name)
        self._check_changeable(field, name)
        return self._changes.updates.get(field.field_id, field)

    def _keep(self, field: NestedField) -> Self:
        self._changes.updates[field.field_id] = field
        self._touched.update(self._lies_in(field.field_id))
        return self

    def _parent_id(self, field_id: int) -> int:
        added = self._added_parents.get(field_id)
        if added is not None:
            return added
        parent_id = self.schema.parent_id(field_id)
        return ROOT if parent_id is None else parent_id

    def _lies_in(self, field_id: int) -> Iterator[int]:
        """Return the ids of a field and of its enclosing fields."""
        while field_id != ROOT:
            yield field_id
            field_id = self._parent_id(field_id)

    def _check_changeable(self, field: NestedField, name: str) -> None:
        """Refuse a deleted field, or one in a map's keys, because equal keys could then differ."""
        for field_id in self._lies_in(field.field_id):
            if field_id in self._changes.deletes:
                raise InvalidMetadataError(f"column `{name}` is deleted, and cannot be changed too")
            parent = self.schema.field(self._parent_id(field_id))
            kind = None if parent is None else parent.field_type
            if isinstance(kind, MapType) and kind.key_id == field_id:
                raise InvalidMetadataError(f"column `{name}`: the keys of a map cannot change")

    def _check_in_struct(self, field: NestedField, name: str) -> None:
        parent = self.schema.field(self._parent_id(field.field_id))
        if parent is not None and not isinstance(parent.field_type, StructType):
            raise InvalidMetadataError(
                f"column `{name}`: expected a field of a struct, found a part of a"
                f" {parent.field_type}"
            )
