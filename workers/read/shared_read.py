"""Everything that all tasks of one scan share: made by the driver, pickled into each task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

import pyarrow as pa

from committer.errors import InvalidMetadataError
from committer.iceberg.deletes.equality_deletes import compared_fields
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.schema.name_mapping import (
    NAME_MAPPING_PROPERTY,
    NameMapping,
    parse_name_mapping,
)
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.schema_selection import wanted_columns
from committer.iceberg.schema.table_partition import table_partition_type
from committer.iceberg.values.types import IcebergType, NestedField
from workers.read.read_types import read_schema


@dataclass(frozen=True)
class TableRead:
    """The settings of a read of a table's rows. A task's own filter is its residual.

    `schema` is the one that filters name columns of; `columns` are the wanted ones, in the order of
    the batches. `schemas` and `specs` are all of the table: deletes may compare columns that were
    dropped since, and each file has a spec of its own.
    """

    table_uuid: UUID | None
    schema: Schema
    columns: tuple[NestedField, ...]
    schemas: tuple[Schema, ...]
    specs: tuple[PartitionSpec, ...]
    name_mapping: NameMapping | None = None
    case_sensitive: bool = True

    @classmethod
    def of(
        cls,
        metadata: TableMetadata,
        *,
        schema: Schema | None = None,
        names: Sequence[str] | None = None,
        case_sensitive: bool = True,
    ) -> TableRead:
        """Prepare a read of these columns, of all columns without names.

        `schema`: that of the snapshot (`scan_schema`), the current one by default. `names` as
        `wanted_columns` takes them. Errors: `InvalidFilterError` for a column that is not there;
        `InvalidMetadataError` for a name mapping that cannot be read.
        """
        schema = schema or metadata.current_schema
        partition = table_partition_type(metadata.partition_specs, metadata.current_schema)
        mapping = metadata.properties.get(NAME_MAPPING_PROPERTY)
        return cls(
            metadata.table_uuid,
            schema,
            wanted_columns(schema, names, partition, case_sensitive=case_sensitive),
            tuple(metadata.schemas),
            tuple(metadata.partition_specs),
            None if mapping is None else parse_name_mapping(mapping),
            case_sensitive,
        )

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the batches."""
        return read_schema(self.columns)

    @cached_property
    def known_types(self) -> Mapping[int, IcebergType]:
        """The type of each field of each schema, as the last one says."""
        fields = compared_fields(self.schemas)
        return {field_id: field.field_type for field_id, field in fields.items()}

    def spec_of(self, file: DataFile) -> PartitionSpec:
        """Return a file's partition spec. Errors: `InvalidMetadataError` if there is none."""
        for spec in self.specs:
            if spec.spec_id == file.spec_id:
                return spec
        raise InvalidMetadataError(
            f"{file.file_path}: partition spec {file.spec_id} is not in the table metadata"
        )
