"""Column projection: the source of each column of a read in one data file.

Columns are found by field id, never by name or place. A column that a file lacks is, in this order,
the value of an identity partition, a column that the name mapping gives the id, the initial default
or null. Files are read elsewhere: here is which of their columns become what.
Source: the specification, "Column Projection", "Default values" and "Row Lineage";
docs/reference/iceberg-notes.md 1.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from committer.errors import InvalidMetadataError
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.metadata_columns import (
    FILE_PATH,
    IS_DELETED,
    LAST_UPDATED_SEQUENCE_NUMBER,
    PARTITION_ID,
    ROW_ID,
    ROW_POSITION,
    SPEC_ID,
)
from committer.iceberg.schema.name_mapping import NameMapping, has_ids, mapped_fields
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import nested_fields
from committer.iceberg.schema.table_partition import partition_in
from committer.iceberg.values.promotion import is_promotion_allowed
from committer.iceberg.values.transforms import IdentityTransform
from committer.iceberg.values.types import (
    IcebergType,
    NestedField,
    StructType,
    UnknownType,
)

# Files do not say in which format version they were written: any promotion may lie behind them.
_PROMOTION_VERSION = 3


@dataclass(frozen=True, slots=True)
class FileColumn:
    """The column of the file at `position` among the fields of its struct.

    Shape: `parts` are the wanted fields of a struct, the element of a list, key and value of a map,
    nothing of a primitive.
    """

    position: int
    stored: IcebergType
    parts: tuple[ProjectedField, ...] = ()


@dataclass(frozen=True, slots=True)
class Constant:
    """One value for all rows of the file."""

    value: object


@dataclass(frozen=True, slots=True)
class RowNumber:
    """`first` plus the row's position in the file, from 0."""

    first: int


@dataclass(frozen=True, slots=True)
class Inherited:
    """Return the file's column, and where that is null the value that its rows inherit."""

    stored: FileColumn
    inherited: Constant | RowNumber


@dataclass(frozen=True, slots=True)
class Deleted:
    """The column that says if a row is deleted: its values come from the reader that applies delete
    files.
    """


Source = FileColumn | Constant | RowNumber | Inherited | Deleted


@dataclass(frozen=True, slots=True)
class ProjectedField:
    """A wanted field and its source."""

    field: NestedField
    source: Source


@dataclass(frozen=True, slots=True)
class FileContext:
    """Facts about all rows of a file that are known without reading it.

    `constants` by field id: identity partitions, and metadata columns such as `_file`.
    `first_row_id` and `sequence_number` are those after inheritance, None where rows have none.
    """

    constants: Mapping[int, object]
    first_row_id: int | None = None
    sequence_number: int | None = None


def file_context(
    file: DataFile,
    spec: PartitionSpec,
    *,
    sequence_number: int | None = None,
    partition: StructType | None = None,
) -> FileContext:
    """Return the context of a file of a manifest. `spec` is the file's own; `partition` the type of
    `_partition`, by default that of this spec."""
    constants: dict[int, object] = {
        FILE_PATH.field_id: file.file_path,
        SPEC_ID.field_id: file.spec_id,
        PARTITION_ID: (
            file.partition if partition is None else partition_in(partition, spec, file.partition)
        ),
    }
    for field, value in zip(spec.fields, file.partition, strict=True):
        if isinstance(field.transform, IdentityTransform):
            constants[field.source_id] = value
    return FileContext(constants, file.first_row_id, sequence_number)


def project_columns(
    wanted: Sequence[NestedField],
    stored: StructType,
    context: FileContext,
    mapping: NameMapping | None = None,
) -> tuple[ProjectedField, ...]:
    """Return the sources of the wanted fields, in their order.

    `stored` are the file's fields, `NO_ID` those without an id. `mapping` counts only for a file
    that has no ids at all. Errors: `InvalidMetadataError` for a column whose type in the file
    cannot be read as the wanted one, and for a required one that is nowhere.
    """
    if mapping is None or has_ids(stored):
        return _Projection(context, False).fields(wanted, stored.fields, "")
    mapped = mapped_fields(stored.fields, mapping.fields)
    return _Projection(context, True).fields(wanted, mapped, "")


@dataclass(frozen=True, slots=True)
class _Projection:
    context: FileContext
    # Whether a partition's value comes before the file's: for what is found by name only.
    constants_first: bool

    def fields(
        self, wanted: Sequence[NestedField], stored: Sequence[NestedField], prefix: str
    ) -> tuple[ProjectedField, ...]:
        by_id: dict[int, int] = {}
        for position, field in enumerate(stored):
            # Where a mapping gives two columns one id, the first counts.
            by_id.setdefault(field.field_id, position)
        sources = []
        for field in wanted:
            position = by_id.get(field.field_id, -1)
            column = None
            if position >= 0:
                kind = stored[position].field_type
                column = self._column(field.field_type, kind, position, prefix + field.name)
            sources.append(ProjectedField(field, self._source(field, column, prefix + field.name)))
        return tuple(sources)

    def _column(
        self, wanted: IcebergType, stored: IcebergType, position: int, name: str
    ) -> FileColumn | None:
        """Project a column; None where the file has other elements,
        keys or values under the wanted ids."""
        if isinstance(wanted, UnknownType):
            return None
        if wanted.is_primitive:
            if not is_promotion_allowed(stored, wanted, format_version=_PROMOTION_VERSION):
                raise InvalidMetadataError(
                    f"column `{name}`: expected {wanted} or what it was promoted from in the data"
                    f" file, found {stored}"
                )
            return FileColumn(position, stored)
        if type(stored) is not type(wanted):
            raise InvalidMetadataError(
                f"column `{name}`: expected {wanted} in the data file, found {stored}"
            )
        parts, stored_parts = nested_fields(wanted), nested_fields(stored)
        if not isinstance(wanted, StructType) and _ids(parts) != _ids(stored_parts):
            return None
        return FileColumn(position, stored, self.fields(parts, stored_parts, name + "."))

    def _source(self, field: NestedField, column: FileColumn | None, name: str) -> Source:
        if field.field_id in (ROW_ID.field_id, LAST_UPDATED_SEQUENCE_NUMBER.field_id):
            return self._lineage(field, column)
        constants = self.context.constants
        is_constant = field.field_id in constants
        if is_constant and (column is None or self.constants_first):
            return Constant(constants[field.field_id])
        if column is not None:
            return column
        if field.field_id == ROW_POSITION.field_id:
            return RowNumber(0)
        if field.field_id == IS_DELETED.field_id:
            return Deleted()
        value = initial_value(field)
        if value is None and field.required:
            raise InvalidMetadataError(
                f"column `{name}`: required, and neither in the data file nor with a default"
            )
        return Constant(value)

    def _lineage(self, field: NestedField, column: FileColumn | None) -> Source:
        """Return the source of a lineage column:
        row ids in files older than version 3 are not read."""
        first_row_id = self.context.first_row_id
        if first_row_id is None:
            return Constant(None)
        is_id = field.field_id == ROW_ID.field_id
        inherited = RowNumber(first_row_id) if is_id else Constant(self.context.sequence_number)
        return inherited if column is None else Inherited(column, inherited)


def initial_value(field: NestedField) -> object:
    """Return the value of rows older than a field: of a struct, the values of its fields."""
    if field.initial_default is not None and isinstance(field.field_type, StructType):
        return tuple(initial_value(each) for each in field.field_type.fields)
    return field.initial_default


def _ids(fields: Sequence[NestedField]) -> list[int]:
    return [field.field_id for field in fields]
