"""The facts about a table that decide whether a file fits it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.avro_names import safe_name
from committer.iceberg.schema.metrics_config import MetricsMode, metrics_config
from committer.iceberg.schema.name_mapping import (
    NAME_MAPPING_PROPERTY,
    NameMapping,
    create_name_mapping,
    parse_name_mapping,
)
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import SortOrder
from committer.iceberg.values.locations import data_folder


@dataclass(frozen=True)
class AdoptionTarget:
    """A table that files are added to, by its current schema, default partition spec and
    default sort order.

    `schemas`: the current one and all before it. `allows_extra_columns`: whether a file may have
    columns that the table never had, also in its path; readers do not see them. `older_specs`: the
    table's other specs. `own_folders`: the table's, whose paths say nothing of the rows below.
    """

    schema: Schema
    schemas: tuple[Schema, ...]
    spec: PartitionSpec
    sort_order: SortOrder
    properties: Mapping[str, str]
    allows_extra_columns: bool = False
    older_specs: tuple[PartitionSpec, ...] = ()
    own_folders: tuple[str, ...] = ()

    @classmethod
    def of(cls, metadata: TableMetadata, *, allows_extra_columns: bool = False) -> AdoptionTarget:
        return cls(
            metadata.current_schema,
            metadata.schemas,
            metadata.default_spec,
            metadata.default_sort_order,
            metadata.properties,
            allows_extra_columns,
            tuple(s for s in metadata.partition_specs if s.spec_id != metadata.default_spec_id),
            (metadata.location, data_folder(metadata.location, metadata.properties)),
        )

    @cached_property
    def modes(self) -> Mapping[int, MetricsMode]:
        return metrics_config(self.properties, self.schema, self.sort_order)

    @property
    def has_mapping(self) -> bool:
        return NAME_MAPPING_PROPERTY in self.properties

    @cached_property
    def mapping(self) -> NameMapping:
        """The table's name mapping, or the one that it gets for files without field ids.

        Errors: `InvalidMetadataError` for one that cannot be read.
        """
        text = self.properties.get(NAME_MAPPING_PROPERTY)
        return create_name_mapping(self.schema) if text is None else parse_name_mapping(text)

    @cached_property
    def names(self) -> Mapping[int, frozenset[str]]:
        """The names that each field has had in any schema, also as Parquet writers spell them."""
        found: dict[int, set[str]] = {}
        for schema in self.schemas:
            for _, field in schema.walk():
                found.setdefault(field.field_id, set()).update((field.name, safe_name(field.name)))
        return {field_id: frozenset(names) for field_id, names in found.items()}
