"""The first metadata of a new table, as Iceberg Java makes it.

Source: docs/reference/iceberg-notes.md 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.metadata_check import (
    RESERVED_PROPERTIES,
    check_format_version,
    check_metadata,
    check_new_spec,
    check_reserved_names,
    check_schema,
)
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.schema.partition_spec import PARTITION_FIELD_ID_START, PartitionSpec
from committer.iceberg.schema.schema import Schema, assign_fresh_ids
from committer.iceberg.schema.sort_order import UNSORTED, SortOrder
from committer.iceberg.values.locations import table_location

# Persisted, because readers that see no codec assume gzip, the default of old.
_PERSISTED_PROPERTIES = {"write.parquet.compression-codec": "zstd"}


def new_table_metadata(
    *,
    table_uuid: UUID,
    location: str,
    schema: Schema,
    partition_spec: PartitionSpec,
    sort_order: SortOrder,
    properties: Mapping[str, str],
    format_version: int,
    now_ms: int,
) -> TableMetadata:
    """Make a table without snapshots. Ids of columns, partition fields and the order are new.

    Reserved properties are not stored. Errors: `InvalidMetadataError` if spec, order and schema do
    not fit each other or the format version; `UnsupportedError` for partitions of `fixed` values.
    """
    check_format_version(format_version)
    fresh_schema = assign_fresh_ids(schema)
    check_schema(fresh_schema, format_version)
    check_reserved_names(fresh_schema)
    spec = _fresh_spec(partition_spec, schema, fresh_schema)
    order = _fresh_order(sort_order, schema, fresh_schema)
    metadata = TableMetadata(
        format_version=format_version,
        table_uuid=table_uuid,
        location=table_location(location),
        last_sequence_number=0,
        last_updated_ms=now_ms,
        last_column_id=fresh_schema.highest_field_id,
        current_schema_id=fresh_schema.schema_id,
        schemas=(fresh_schema,),
        default_spec_id=spec.spec_id,
        partition_specs=(spec,),
        last_partition_id=spec.highest_field_id,
        default_sort_order_id=order.order_id,
        sort_orders=(order,),
        properties=_stored(properties),
        next_row_id=0 if format_version >= 3 else None,
    )
    check_metadata(metadata)
    check_new_spec(spec, fresh_schema)
    return metadata


def _stored(properties: Mapping[str, str]) -> dict[str, str]:
    own = {key: text for key, text in properties.items() if key not in RESERVED_PROPERTIES}
    return {**own, **{key: own.get(key, text) for key, text in _PERSISTED_PROPERTIES.items()}}


def _fresh_spec(spec: PartitionSpec, schema: Schema, fresh_schema: Schema) -> PartitionSpec:
    fields = tuple(
        replace(
            field,
            source_ids=_fresh_sources(
                field.source_ids, schema, fresh_schema, f"partition field `{field.name}`"
            ),
            field_id=PARTITION_FIELD_ID_START + position,
        )
        for position, field in enumerate(spec.fields)
    )
    return PartitionSpec(0, fields)


def _fresh_order(order: SortOrder, schema: Schema, fresh_schema: Schema) -> SortOrder:
    if not order.fields:
        return UNSORTED
    fields = tuple(
        replace(
            field,
            source_ids=_fresh_sources(field.source_ids, schema, fresh_schema, "sort order"),
        )
        for field in order.fields
    )
    return SortOrder(1, fields)


def _fresh_sources(
    source_ids: tuple[int, ...], schema: Schema, fresh_schema: Schema, where: str
) -> tuple[int, ...]:
    return tuple(_fresh_source(source_id, schema, fresh_schema, where) for source_id in source_ids)


def _fresh_source(source_id: int, schema: Schema, fresh_schema: Schema, where: str) -> int:
    name = schema.column_name(source_id)
    field = None if name is None else fresh_schema.find(name)
    if field is None:
        raise InvalidMetadataError(f"{where}: expected a column with id {source_id}, found none")
    return field.field_id
