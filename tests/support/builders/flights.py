"""A partitioned table for tests of planning and of bad input, and what other engines do to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID, uuid4

from committer.iceberg.metadata.table_metadata import new_table_metadata
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.updates.metadata_update import Update, apply_updates
from committer.iceberg.values.locations import (
    metadata_file_location,
    metadata_folder,
    metadata_version,
)
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import (
    DateType,
    FixedType,
    FloatType,
    LongType,
    NestedField,
    StringType,
)
from committer.ports.pointer_swap import LoadedTable, Swap
from committer.request.table_identifier import TableIdentifier

NOW_MS = 1_800_000_000_000
FIELDS = (
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "carrier", StringType(), required=False),
    NestedField(3, "day", DateType(), required=False),
    NestedField(4, "delay", FloatType(), required=False),
)
BY_CARRIER = (PartitionField((2,), 1000, "carrier", parse_transform("identity")),)
BY_DAY = (PartitionField((3,), 1001, "day", parse_transform("identity")),)


def build_flights(
    name: str = "db.flights",
    *,
    format_version: int = 2,
    fields: tuple[PartitionField, ...] = BY_CARRIER,
    properties: Mapping[str, str] | None = None,
    table_uuid: UUID | None = None,
    warehouse: str = "memory://warehouse",
    schema: Schema = Schema(FIELDS),  # noqa: B008  # a value
) -> LoadedTable:
    """Build a table partitioned by carrier, without snapshots, that no catalog knows yet."""
    identifier = TableIdentifier.parse(name)
    location = "/".join((warehouse, *identifier.namespace, identifier.name))
    metadata = new_table_metadata(
        table_uuid=table_uuid or uuid4(),
        location=location,
        schema=schema,
        partition_spec=PartitionSpec(0, fields),
        sort_order=UNSORTED,
        properties=properties or {},
        format_version=format_version,
        now_ms=NOW_MS - 1_000_000,
    )
    first = metadata_file_location(metadata_folder(location, metadata.properties), 0, uuid4())
    return LoadedTable(identifier, metadata, first)


def build_codes(
    transform: str, name: str = "db.flights", *, warehouse: str = "memory://warehouse"
) -> LoadedTable:
    """Build a table as Iceberg Java has partitioned it by its carriers, which are `fixed`."""
    table = build_flights(name, fields=(), warehouse=warehouse)
    fields = (FIELDS[0], replace(FIELDS[1], field_type=FixedType(2)), *FIELDS[2:])
    carrier = PartitionField((2,), 1000, "carrier", parse_transform(transform))
    metadata = replace(
        table.metadata,
        schemas=(Schema(fields),),
        partition_specs=(PartitionSpec(0, (carrier,)),),
        last_partition_id=1000,
    )
    return replace(table, metadata=metadata)


def foreign_swap(table: LoadedTable, *updates: Update) -> Swap:
    """Return a swap of another engine: any updates, under a metadata location of its own."""
    metadata = apply_updates(
        table.metadata,
        updates,
        base_location=table.metadata_location,
        now_ms=table.metadata.last_updated_ms + 1,
    )
    folder = metadata_folder(metadata.location, metadata.properties)
    version = metadata_version(table.metadata_location) + 1
    location = metadata_file_location(folder, version, uuid4())
    return Swap(table, (), updates, metadata, location)


def changed(table: LoadedTable, *updates: Update) -> LoadedTable:
    """Return the table after a foreign commit."""
    swap = foreign_swap(table, *updates)
    return replace(table, metadata=swap.metadata, metadata_location=swap.metadata_location)
