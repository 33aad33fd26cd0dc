"""Prints `TableMetadata` as a metadata file, keys in the reference's order.

What did not change is not printed again: snapshots carry their own text, and the other parts are
remembered in the metadata's cache for as long as they are the same values.
Source: format.md section 6.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import orjson

from committer.iceberg.partition_spec import print_partition_fields, print_partition_spec
from committer.iceberg.schema import print_schema
from committer.iceberg.snapshot import MetadataLogEntry, SnapshotLogEntry, print_snapshot_ref
from committer.iceberg.sort_order import print_sort_order
from committer.iceberg.table_metadata import TableMetadata


def print_table_metadata(metadata: TableMetadata) -> bytes:
    """Compact UTF-8 JSON."""
    members = (b'"%s":%s' % (key.encode(), printed) for key, printed in _members(metadata))
    return b"{" + b",".join(members) + b"}"


def _members(metadata: TableMetadata) -> Iterator[tuple[str, bytes]]:
    version = metadata.format_version
    yield "format-version", b"%d" % version
    if metadata.table_uuid.int:
        yield "table-uuid", orjson.dumps(metadata.table_uuid)
    yield "location", orjson.dumps(metadata.location)
    if version > 1:
        yield "last-sequence-number", b"%d" % metadata.last_sequence_number
    yield "last-updated-ms", b"%d" % metadata.last_updated_ms
    yield "last-column-id", b"%d" % metadata.last_column_id
    yield from _layout(metadata)
    yield "properties", orjson.dumps(metadata.properties)
    yield "current-snapshot-id", _current_snapshot_id(metadata)
    if version >= 3:
        yield "next-row-id", b"%d" % (metadata.next_row_id or 0)
    if metadata.encryption_keys:
        yield "encryption-keys", orjson.dumps(metadata.encryption_keys)
    refs = {name: print_snapshot_ref(ref) for name, ref in metadata.refs.items()}
    yield "refs", orjson.dumps(refs)
    yield "snapshots", _list(snapshot.json_bytes for snapshot in metadata.snapshots)
    yield "statistics", orjson.dumps(metadata.statistics)
    yield "partition-statistics", orjson.dumps(metadata.partition_statistics)
    yield "snapshot-log", _list(map(_snapshot_log_entry, metadata.snapshot_log))
    yield "metadata-log", _list(map(_metadata_log_entry, metadata.metadata_log))
    for key, value in metadata.extra.items():
        yield key, orjson.dumps(value)


def _layout(metadata: TableMetadata) -> Iterator[tuple[str, bytes]]:
    """Schemas, specs and sort orders; version 1 has the old forms too."""
    is_first = metadata.format_version == 1
    if is_first:
        yield "schema", orjson.dumps(print_schema(metadata.current_schema))
    yield "current-schema-id", b"%d" % metadata.current_schema_id
    yield (
        "schemas",
        _remembered(
            metadata, "schemas", metadata.schemas, lambda: [*map(print_schema, metadata.schemas)]
        ),
    )
    if is_first:
        yield "partition-spec", orjson.dumps(print_partition_fields(metadata.default_spec))
    yield "default-spec-id", b"%d" % metadata.default_spec_id
    specs = metadata.partition_specs
    yield (
        "partition-specs",
        _remembered(
            metadata, "partition-specs", specs, lambda: [*map(print_partition_spec, specs)]
        ),
    )
    yield "last-partition-id", b"%d" % metadata.last_partition_id
    yield "default-sort-order-id", b"%d" % metadata.default_sort_order_id
    yield "sort-orders", orjson.dumps([*map(print_sort_order, metadata.sort_orders)])


def _remembered(
    metadata: TableMetadata, key: str, value: object, print_value: Callable[[], object]
) -> bytes:
    known = metadata.cache.get(key)
    if known is None or known[0] is not value:
        known = (value, orjson.dumps(print_value()))
        metadata.cache[key] = known
    return cast(bytes, known[1])


def _current_snapshot_id(metadata: TableMetadata) -> bytes:
    if metadata.current_snapshot_id is None:
        return b"null" if metadata.format_version >= 3 else b"-1"
    return b"%d" % metadata.current_snapshot_id


def _list(elements: Iterator[bytes]) -> bytes:
    return b"[" + b",".join(elements) + b"]"


def _snapshot_log_entry(entry: SnapshotLogEntry) -> bytes:
    if entry.extra:
        fields = {"timestamp-ms": entry.timestamp_ms, "snapshot-id": entry.snapshot_id}
        return orjson.dumps({**fields, **entry.extra})
    return b'{"timestamp-ms":%d,"snapshot-id":%d}' % (entry.timestamp_ms, entry.snapshot_id)


def _metadata_log_entry(entry: MetadataLogEntry) -> bytes:
    fields = {"timestamp-ms": entry.timestamp_ms, "metadata-file": entry.metadata_file}
    return orjson.dumps({**fields, **entry.extra})
