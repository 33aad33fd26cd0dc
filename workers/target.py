"""What a task must know of the table that it writes to. Runs on executors: format only, no I/O.

Read once on the driver and shipped with the pickled writer, so all tasks of a micro-batch agree,
and no executor needs the catalog. Only the schema, the spec and the `write.*` properties travel:
some kilobytes, however long the table's history is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from committer.iceberg.partition_spec import PartitionSpec
from committer.iceberg.schema import Schema
from committer.iceberg.table_metadata import TableMetadata

_WRITE_PREFIX = "write."


@dataclass(frozen=True, slots=True)
class TargetTable:
    """The table as the driver saw it when the write began."""

    name: str
    table_uuid: UUID
    location: str
    schema: Schema
    spec: PartitionSpec
    properties: Mapping[str, str]

    @classmethod
    def of(cls, name: str, metadata: TableMetadata) -> TargetTable:
        properties = {
            key: value
            for key, value in metadata.properties.items()
            if key.startswith(_WRITE_PREFIX)
        }
        return cls(
            name,
            metadata.table_uuid,
            metadata.location,
            metadata.current_schema,
            metadata.default_spec,
            properties,
        )
