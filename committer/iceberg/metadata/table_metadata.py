"""Table metadata files: read, checked, and printed so that any engine reads them.

The model lives in `metadata_model.py`, checks in `metadata_check.py`; new tables are made in
`new_table.py`.
Source: docs/reference/iceberg-notes.md 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TypeVar
from uuid import UUID

import orjson

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.json_text import load_json
from committer.iceberg.metadata.metadata_check import check_format_version, check_metadata
from committer.iceberg.metadata.metadata_gzip import is_gzip_location, unzip_metadata, zip_metadata
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.new_table import new_table_metadata
from committer.iceberg.metadata.snapshot import (
    MAIN,
    SnapshotRef,
    parse_metadata_log_entry,
    parse_snapshot,
    parse_snapshot_log_entry,
    parse_snapshot_ref,
    print_snapshot_ref,
)
from committer.iceberg.metadata.table_statistics import (
    parse_encrypted_key,
    parse_statistics_file,
    print_encrypted_key,
)
from committer.iceberg.schema.partition_spec import (
    PARTITION_FIELD_ID_START,
    PartitionSpec,
    parse_partition_fields,
    parse_partition_spec,
    print_partition_fields,
    print_partition_spec,
)
from committer.iceberg.schema.schema import Schema, parse_schema, print_schema
from committer.iceberg.schema.sort_order import (
    UNSORTED,
    parse_sort_order,
    print_sort_order,
)
from committer.iceberg.values.fragments import Fragments, json_list
from committer.iceberg.values.json_reader import Reader

__all__ = [
    "TableMetadata",
    "new_table_metadata",
    "parse_table_metadata",
    "parse_table_metadata_json",
    "print_metadata_file",
    "print_table_metadata",
]

_NO_SNAPSHOT = -1
_Value = TypeVar("_Value")


# --- Reading -------------------------------------------------------------------------------------


def parse_table_metadata(content: bytes) -> TableMetadata:
    """Read a metadata file, gzip or not.

    Errors: `InvalidMetadataError`; `UnsupportedError` for a format version above 3.
    """
    try:
        json_value = load_json(unzip_metadata(content))
    except ValueError as error:
        raise InvalidMetadataError(f"expected a metadata file as JSON: {error}") from error
    return parse_table_metadata_json(json_value)


def parse_table_metadata_json(json_value: object) -> TableMetadata:
    """Read metadata from its JSON form (as REST catalogs answer it). Errors: as above."""
    reader = Reader(json_value, "table metadata")
    format_version = reader.integer("format-version")
    check_format_version(format_version)
    _check_required(reader, format_version)
    fragments = Fragments()
    schemas, current_schema_id = _schemas(reader, fragments)
    specs, default_spec_id = _specs(reader, fragments)
    last_partition_id = reader.optional_integer("last-partition-id", 32)
    current_snapshot_id = _current_snapshot_id(reader)
    metadata = TableMetadata(
        format_version=format_version,
        table_uuid=_table_uuid(reader),
        location=reader.text("location"),
        last_sequence_number=reader.optional_integer("last-sequence-number") or 0,
        last_updated_ms=reader.integer("last-updated-ms"),
        last_column_id=reader.integer("last-column-id", 32),
        current_schema_id=current_schema_id,
        schemas=schemas,
        default_spec_id=default_spec_id,
        partition_specs=specs,
        last_partition_id=_highest(specs) if last_partition_id is None else last_partition_id,
        default_sort_order_id=reader.optional_integer("default-sort-order-id", 32) or 0,
        sort_orders=_each(reader, "sort-orders", parse_sort_order, fragments) or (UNSORTED,),
        properties=reader.optional_text_map("properties") or {},
        current_snapshot_id=current_snapshot_id,
        next_row_id=_next_row_id(reader, format_version),
        encryption_keys=_each(reader, "encryption-keys", parse_encrypted_key),
        refs=_refs(reader, current_snapshot_id),
        snapshots=_each(reader, "snapshots", parse_snapshot),
        statistics=_each(reader, "statistics", parse_statistics_file),
        partition_statistics=_each(reader, "partition-statistics", parse_statistics_file),
        snapshot_log=_each(reader, "snapshot-log", parse_snapshot_log_entry),
        metadata_log=_each(reader, "metadata-log", parse_metadata_log_entry),
        extra=reader.unknown(),
        fragments=fragments,
    )
    check_metadata(metadata)
    return metadata


_REQUIRED_FROM_2 = (
    "table-uuid",
    "last-sequence-number",
    "schemas",
    "current-schema-id",
    "partition-specs",
    "default-spec-id",
    "last-partition-id",
    "sort-orders",
    "default-sort-order-id",
)


def _check_required(reader: Reader, format_version: int) -> None:
    for key in _REQUIRED_FROM_2 if format_version >= 2 else ():
        if reader.rest.get(key) is None:
            raise InvalidMetadataError(
                f"table metadata: `{key}` must exist in format version {format_version}"
            )


def _table_uuid(reader: Reader) -> UUID | None:
    text = reader.optional_text("table-uuid")
    try:
        return None if text is None else UUID(text)
    except ValueError as error:
        raise reader.expected("table-uuid", "a uuid", text) from error


def _current_snapshot_id(reader: Reader) -> int | None:
    found = reader.optional_integer("current-snapshot-id")
    return None if found == _NO_SNAPSHOT else found


def _next_row_id(reader: Reader, format_version: int) -> int | None:
    """Read `next-row-id`.
    Below version 3 the key means nothing, and is not kept: an upgrade sets it."""
    if format_version >= 3:
        return reader.integer("next-row-id")
    reader.take("next-row-id")
    return None


def _schemas(reader: Reader, fragments: Fragments) -> tuple[tuple[Schema, ...], int]:
    """Read all schemas and the current one's id;
    the oldest files of version 1 have one schema only."""
    current_id = reader.optional_integer("current-schema-id", 32)
    single = reader.take("schema")
    if reader.rest.get("schemas") is not None:
        return _each(reader, "schemas", _known_schema, fragments), current_id or 0
    reader.take("schemas")
    schema = parse_schema(single, where="table metadata: `schema`")
    fragments.remember_source(schema, single)
    return (schema,), schema.schema_id


def _known_schema(json_value: object, *, where: str) -> Schema:
    """Parse a schema once: it stays while its table's file is replaced again and again."""
    try:
        text = orjson.dumps(json_value)
    except TypeError:  # it knows what is wrong
        return parse_schema(json_value, where=where)
    return _parse_schema(text, where)


@lru_cache(maxsize=64)
def _parse_schema(text: bytes, where: str) -> Schema:
    return parse_schema(orjson.loads(text), where=where)


def _specs(reader: Reader, fragments: Fragments) -> tuple[tuple[PartitionSpec, ...], int]:
    """Read all specs and the default one's id;
    the oldest files of version 1 have bare fields only."""
    default_id = reader.optional_integer("default-spec-id", 32) or 0
    single = reader.take("partition-spec")
    if reader.rest.get("partition-specs") is not None:
        return _each(reader, "partition-specs", parse_partition_spec, fragments), default_id
    reader.take("partition-specs")
    fields = parse_partition_fields(single, where="table metadata: `partition-spec`")
    return (PartitionSpec(0, fields),), 0


def _highest(specs: Iterable[PartitionSpec]) -> int:
    start = PARTITION_FIELD_ID_START - 1
    return max((spec.highest_field_id for spec in specs), default=start)


def _refs(reader: Reader, current_snapshot_id: int | None) -> dict[str, SnapshotRef]:
    found = reader.take("refs") or {}
    if not isinstance(found, dict):
        raise reader.expected("refs", "an object", found)
    refs = {name: parse_snapshot_ref(ref, where=f"ref `{name}`") for name, ref in found.items()}
    if current_snapshot_id is not None and MAIN not in refs:
        # Files from before there were refs.
        refs = {MAIN: SnapshotRef(current_snapshot_id), **refs}
    return refs


def _each(
    reader: Reader,
    key: str,
    parse: Callable[..., _Value],
    fragments: Fragments | None = None,
) -> tuple[_Value, ...]:
    found = reader.items(key)
    values = tuple(parse(each, where=f"`{key}`[{at}]") for at, each in enumerate(found))
    if fragments is not None:
        for value, source in zip(values, found, strict=True):
            fragments.remember_source(value, source)
    return values


# --- Printing ------------------------------------------------------------------------------------


def print_metadata_file(metadata: TableMetadata, location: str) -> bytes:
    """Return the bytes of a metadata file at a location: gzip where its name says so."""
    content = print_table_metadata(metadata)
    return zip_metadata(content) if is_gzip_location(location) else content


def print_table_metadata(metadata: TableMetadata) -> bytes:
    """Print the metadata file: compact UTF-8, keys in Iceberg Java's order, unknown ones last.

    Equal metadata of one history give equal bytes. Snapshots, log entries and schemas that were
    printed before are not printed again.
    """
    first = metadata.format_version == 1
    document: dict[str, object] = {
        "format-version": metadata.format_version,
        **({} if metadata.table_uuid is None else {"table-uuid": str(metadata.table_uuid)}),
        "location": metadata.location,
        **({} if first else {"last-sequence-number": metadata.last_sequence_number}),
        "last-updated-ms": metadata.last_updated_ms,
        "last-column-id": metadata.last_column_id,
        **_layout(metadata, single_forms=first),
        "properties": metadata.properties,
        **_history(metadata),
        **metadata.extra,
    }
    return orjson.dumps(document)


def _layout(metadata: TableMetadata, *, single_forms: bool) -> dict[str, object]:
    """Print schemas, specs and orders.
    Version 1 has the current ones once more, for its old readers."""
    printed = metadata.fragments.print
    schemas = {schema.schema_id: printed(schema, print_schema) for schema in metadata.schemas}
    single_schema = {"schema": orjson.Fragment(schemas[metadata.current_schema_id])}
    single_spec = {"partition-spec": print_partition_fields(metadata.default_spec)}
    return {
        **(single_schema if single_forms else {}),
        "current-schema-id": metadata.current_schema_id,
        "schemas": json_list(schemas.values()),
        **(single_spec if single_forms else {}),
        "default-spec-id": metadata.default_spec_id,
        "partition-specs": json_list(
            printed(spec, print_partition_spec) for spec in metadata.partition_specs
        ),
        "last-partition-id": metadata.last_partition_id,
        "default-sort-order-id": metadata.default_sort_order_id,
        "sort-orders": json_list(
            printed(order, print_sort_order) for order in metadata.sort_orders
        ),
    }


def _history(metadata: TableMetadata) -> Mapping[str, object]:
    lineage = metadata.format_version >= 3
    none = None if lineage else _NO_SNAPSHOT
    current, keys = metadata.current_snapshot_id, metadata.encryption_keys
    print_list = metadata.fragments.print_list
    return {
        "current-snapshot-id": none if current is None else current,
        **({"next-row-id": metadata.next_row_id or 0} if lineage else {}),
        **({"encryption-keys": list(map(print_encrypted_key, keys))} if keys else {}),
        "refs": {name: print_snapshot_ref(ref) for name, ref in metadata.refs.items()},
        "snapshots": print_list("snapshots", metadata.snapshots),
        "statistics": print_list("statistics", metadata.statistics),
        "partition-statistics": print_list("partition-statistics", metadata.partition_statistics),
        "snapshot-log": print_list("snapshot-log", metadata.snapshot_log),
        "metadata-log": json_list(entry.json_bytes for entry in metadata.metadata_log),
    }
