"""Union by name: a schema takes over the columns, wider types, docs and defaults of another.

Fields are matched by name, level by level. Nested fields are handled first, so that new fields get
their ids from the inside to the outside, as Iceberg Java gives them.
"""

from __future__ import annotations

from committer.errors import InvalidMetadataError
from committer.iceberg.evolution.schema_evolution import SchemaUpdate
from committer.iceberg.schema.schema import Schema, nested_fields
from committer.iceberg.values.promotion import is_promotion_allowed
from committer.iceberg.values.types import IcebergType, ListType, MapType, NestedField, StructType


def union_by_name(
    update: SchemaUpdate, new: Schema, *, relaxes: bool = True, describes: bool = True
) -> SchemaUpdate:
    """Record in `update` the changes of a union with `new`, and return it.

    New columns are optional even if `new` requires them. Columns that `new` lacks stay, and
    optional columns that it requires stay optional. `relaxes`: required columns that are optional
    in `new` become so. `describes`: known columns take its docs and write defaults.
    Errors: `InvalidMetadataError` if two columns of one name have incompatible types.
    """
    _Union(update, relaxes, describes).structs(new.as_struct, update.schema.as_struct, None)
    return update


class _Partners:
    """The fields of a struct by name; in any case, the first counts."""

    def __init__(self, known: StructType, *, case_sensitive: bool) -> None:
        self._exact = {field.name: field for field in known.fields}
        fields = () if case_sensitive else reversed(known.fields)
        self._lowered = {field.name.lower(): field for field in fields}

    def of(self, field: NestedField) -> NestedField | None:
        exact = self._exact.get(field.name)
        return self._lowered.get(field.name.lower()) if exact is None else exact


class _Union:
    def __init__(self, update: SchemaUpdate, relaxes: bool, describes: bool) -> None:
        self._update = update
        self._relaxes = relaxes
        self._describes = describes

    def structs(self, new: StructType, known: StructType, parent: str | None) -> None:
        partners = _Partners(known, case_sensitive=self._update.case_sensitive)
        pairs = [(field, partners.of(field)) for field in new.fields]
        for field, partner in pairs:
            if partner is not None:
                self._nested(field.field_type, partner)
        for field, partner in pairs:
            if partner is None:
                self._add(field, parent)
            else:
                self._change(field, partner)

    def _nested(self, new: IcebergType, known: NestedField) -> None:
        if isinstance(new, StructType) and isinstance(known.field_type, StructType):
            self.structs(new, known.field_type, self._name(known))
        elif type(new) is type(known.field_type) and isinstance(new, ListType | MapType):
            parts = list(zip(nested_fields(new), nested_fields(known.field_type), strict=True))
            for part, known_part in parts:
                self._nested(part.field_type, known_part)
            for part, known_part in parts:
                self._change(part, known_part)

    def _add(self, field: NestedField, parent: str | None) -> None:
        self._update.add_column(
            field.name,
            field.field_type,
            parent=parent,
            doc=field.doc,
            default=field.initial_default,
        )
        if field.write_default != field.initial_default:
            full_name = field.name if parent is None else f"{parent}.{field.name}"
            self._update.update_column_default(full_name, field.write_default)

    def _change(self, field: NestedField, known: NestedField) -> None:
        name, update = self._name(known), self._update
        if self._relaxes and known.required and not field.required:
            update.make_column_optional(name)
        self._widen(name, known.field_type, field.field_type)
        if not self._describes:
            return
        if field.doc is not None and field.doc != known.doc:
            update.update_column_doc(name, field.doc)
        if field.write_default is not None and field.write_default != known.write_default:
            update.update_column_default(name, field.write_default)

    def _widen(self, name: str, known: IcebergType, new: IcebergType) -> None:
        """Widen a column; a narrower type of the other schema changes nothing."""
        if not new.is_primitive and type(new) is type(known):
            return
        if is_promotion_allowed(new, known, format_version=self._update.format_version):
            return
        self._update.update_column(name, new)

    def _name(self, known: NestedField) -> str:
        name = self._update.schema.column_name(known.field_id)
        if name is None:
            raise InvalidMetadataError(f"expected a column with id {known.field_id}, found none")
        return name
