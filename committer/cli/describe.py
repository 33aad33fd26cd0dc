"""Iceberg values as JSON objects that people can read: bounds decoded, metrics by column name.

Names are those of the specification's fields; `readable_metrics` is shaped as engines show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from committer.errors import FrazilError
from committer.iceberg.data_file import DataFile, ManifestEntry
from committer.iceberg.manifest_list import ManifestFile
from committer.iceberg.partition_spec import PartitionSpec, partition_path, partition_type
from committer.iceberg.puffin import BlobMetadata
from committer.iceberg.schema import Schema
from committer.iceberg.single_value import decode_value, print_json_value
from committer.iceberg.table_metadata import TableMetadata

Description = dict[str, object]


def describe_manifest_file(row: ManifestFile) -> Description:
    """Bounds of partitions stay hexadecimal: a manifest list does not know their types."""
    summaries = [
        {
            "contains_null": summary.contains_null,
            "contains_nan": summary.contains_nan,
            "lower_bound": _hex(summary.lower_bound),
            "upper_bound": _hex(summary.upper_bound),
        }
        for summary in row.partitions or ()
    ]
    return {
        "manifest_path": row.manifest_path,
        "manifest_length": row.manifest_length,
        "partition_spec_id": row.partition_spec_id,
        "content": row.content.name.lower(),
        "sequence_number": row.sequence_number,
        "min_sequence_number": row.min_sequence_number,
        "added_snapshot_id": row.added_snapshot_id,
        "added_files_count": row.added_files_count,
        "existing_files_count": row.existing_files_count,
        "deleted_files_count": row.deleted_files_count,
        "added_rows_count": row.added_rows_count,
        "existing_rows_count": row.existing_rows_count,
        "deleted_rows_count": row.deleted_rows_count,
        "partitions": None if row.partitions is None else summaries,
        "first_row_id": row.first_row_id,
    }


def describe_entry(entry: ManifestEntry, schema: Schema, spec: PartitionSpec) -> Description:
    return {
        "status": entry.status.name.lower(),
        "snapshot_id": entry.snapshot_id,
        "sequence_number": entry.sequence_number,
        "file_sequence_number": entry.file_sequence_number,
        "data_file": describe_data_file(entry.data_file, schema, spec),
    }


def describe_data_file(file: DataFile, schema: Schema, spec: PartitionSpec) -> Description:
    kinds = partition_type(spec, schema).fields
    return {
        "content": file.content.name.lower(),
        "file_path": file.file_path,
        "file_format": file.file_format,
        "spec_id": file.spec_id,
        "partition": {
            field.name: print_json_value(field.field_type, value)
            for field, value in zip(kinds, file.partition, strict=True)
        },
        "record_count": file.record_count,
        "file_size_in_bytes": file.file_size_in_bytes,
        "split_offsets": file.split_offsets,
        "equality_ids": file.equality_ids,
        "sort_order_id": file.sort_order_id,
        "first_row_id": file.first_row_id,
        "referenced_data_file": file.referenced_data_file,
        "content_offset": file.content_offset,
        "content_size_in_bytes": file.content_size_in_bytes,
        "key_metadata": _hex(file.key_metadata),
        "readable_metrics": readable_metrics(file, schema),
    }


def readable_metrics(file: DataFile, schema: Schema) -> dict[str, Description]:
    """Metrics by column name; a column that the schema does not have is called by its id."""
    sources: dict[str, Mapping[int, object]] = {
        "column_size": file.column_sizes or {},
        "value_count": file.value_counts or {},
        "null_value_count": file.null_value_counts or {},
        "nan_value_count": file.nan_value_counts or {},
        "lower_bound": _decoded(file.lower_bounds, schema),
        "upper_bound": _decoded(file.upper_bounds, schema),
    }
    field_ids = sorted({field_id for source in sources.values() for field_id in source})
    return {
        schema.column_name(field_id) or f"#{field_id}": {
            name: source[field_id] for name, source in sources.items() if field_id in source
        }
        for field_id in field_ids
    }


def _decoded(bounds: Mapping[int, bytes] | None, schema: Schema) -> dict[int, object]:
    return {field_id: _bound(field_id, bound, schema) for field_id, bound in (bounds or {}).items()}


def _bound(field_id: int, bound: bytes, schema: Schema) -> object:
    """A bound as a value; hexadecimal where its type has no such form or it is broken."""
    field = schema.field(field_id)
    if field is None:
        return _hex(bound)
    try:
        return print_json_value(field.field_type, decode_value(field.field_type, bound))
    except (FrazilError, ValueError, OverflowError):
        return _hex(bound)


def partition_text(file: DataFile, schema: Schema, spec: PartitionSpec) -> str:
    """The partition as it stands in paths."""
    return partition_path(spec, schema, file.partition)


def describe_blob(blob: BlobMetadata) -> Description:
    return {
        "type": blob.type,
        "fields": blob.fields,
        "snapshot_id": blob.snapshot_id,
        "sequence_number": blob.sequence_number,
        "offset": blob.offset,
        "length": blob.length,
        "compression_codec": blob.compression_codec,
        "properties": dict(blob.properties),
    }


def spec_text(spec: PartitionSpec, schema: Schema) -> str:
    """`month(at), bucket[8](name)`; empty if unpartitioned."""
    name = partial(_column, schema=schema)
    return ", ".join(f"{field.transform}({name(field.source_id)})" for field in spec.fields)


def order_text(metadata: TableMetadata) -> str:
    """The default sort order as a list of keys; empty if unsorted."""
    name = partial(_column, schema=metadata.current_schema)
    return ", ".join(
        f"{field.transform}({name(field.source_id)}) {field.direction} {field.null_order}"
        for field in metadata.default_sort_order.fields
    )


def _column(field_id: int, schema: Schema) -> str:
    return schema.column_name(field_id) or f"#{field_id}"


def _hex(content: bytes | None) -> str | None:
    return None if content is None else content.hex().upper()
