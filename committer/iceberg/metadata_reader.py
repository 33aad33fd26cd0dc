"""Reads metadata files: JSON (perhaps gzipped) to `TableMetadata`, with the checks of a load.

Source: the specification, Appendix C; format.md sections 6.1 and 6.3.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import TypeVar, cast
from uuid import UUID

import orjson

from committer.errors import InvalidMetadataError
from committer.iceberg.partition_spec import (
    PARTITION_FIELD_ID_START,
    PartitionSpec,
    parse_partition_fields,
    parse_partition_spec,
)
from committer.iceberg.schema import Schema, parse_schema
from committer.iceberg.snapshot import (
    MAIN,
    MetadataLogEntry,
    Reader,
    SnapshotLogEntry,
    SnapshotRef,
    parse_snapshot,
    parse_snapshot_ref,
)
from committer.iceberg.sort_order import UNSORTED, SortOrder, parse_sort_order
from committer.iceberg.table_metadata import FORMAT_VERSION_MAX, TableMetadata, main_ref
from committer.iceberg.transforms import UnknownTransform, VoidTransform

T = TypeVar("T")

_GZIP_MAGIC = b"\x1f\x8b"
METADATA_BYTES_MAX = 1024 * 1024 * 1024
# Writers' clocks differ: the reference implementation forgives this much disorder in the logs.
CLOCK_TOLERANCE_MS = 60_000
_NO_SNAPSHOT = -1
_WHERE = "table metadata"


def parse_table_metadata(content: bytes) -> TableMetadata:
    """Read and check a metadata file. Errors: `InvalidMetadataError` naming key and expectation."""
    json_value = _parse_json(content)
    reader = Reader(json_value, _WHERE)
    version = reader.integer("format-version")
    if not 1 <= version <= FORMAT_VERSION_MAX:
        raise InvalidMetadataError(
            f"{_WHERE}: format version {version}, this version reads 1 to {FORMAT_VERSION_MAX}"
        )
    try:
        metadata = _read(reader, version)
    except RecursionError:
        raise InvalidMetadataError(f"{_WHERE}: nested too deeply") from None
    check_metadata(metadata)
    return metadata


def _parse_json(content: bytes) -> object:
    if content.startswith(_GZIP_MAGIC):
        content = _inflate(content)
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise InvalidMetadataError(f"{_WHERE}: not JSON: {error}") from None


def _inflate(content: bytes) -> bytes:
    inflater = zlib.decompressobj(wbits=31)
    try:
        inflated = inflater.decompress(content, METADATA_BYTES_MAX)
    except zlib.error as error:
        raise InvalidMetadataError(f"{_WHERE}: broken gzip: {error}") from None
    if not inflater.eof:
        raise InvalidMetadataError(
            f"{_WHERE}: truncated gzip, or more than {METADATA_BYTES_MAX} bytes in it"
        )
    return inflated


def _read(reader: Reader, version: int) -> TableMetadata:
    schemas, current_schema_id = _schemas(reader, version)
    specs, default_spec_id = _specs(reader, version)
    orders = _orders(reader, version)
    current = reader.optional_integer("current-snapshot-id")
    current = None if current == _NO_SNAPSHOT else current
    highest = max((spec.highest_field_id for spec in specs), default=PARTITION_FIELD_ID_START - 1)
    return TableMetadata(
        format_version=version,
        table_uuid=_uuid(reader, version),
        location=reader.text("location").rstrip("/"),
        last_sequence_number=(
            reader.integer("last-sequence-number")
            if version > 1
            else reader.optional_integer("last-sequence-number") or 0
        ),
        last_updated_ms=reader.integer("last-updated-ms"),
        last_column_id=reader.integer("last-column-id"),
        current_schema_id=current_schema_id,
        schemas=schemas,
        default_spec_id=default_spec_id,
        partition_specs=specs,
        last_partition_id=_from_version_2(reader, "last-partition-id", version, highest),
        default_sort_order_id=reader.optional_integer("default-sort-order-id") or 0,
        sort_orders=orders,
        properties=reader.text_map("properties") or {},
        current_snapshot_id=current,
        next_row_id=reader.integer("next-row-id") if version >= 3 else None,
        encryption_keys=_objects(reader, "encryption-keys"),
        refs=_refs(reader, current),
        snapshots=_each(reader, "snapshots", parse_snapshot),
        statistics=_objects(reader, "statistics"),
        partition_statistics=_objects(reader, "partition-statistics"),
        snapshot_log=_each(reader, "snapshot-log", _snapshot_log_entry),
        metadata_log=_each(reader, "metadata-log", _metadata_log_entry),
        extra=reader.rest,
    )


def _uuid(reader: Reader, version: int) -> UUID:
    text = reader.optional_text("table-uuid")
    if text is None:
        if version > 1:
            raise _missing("table-uuid", version)
        return UUID(int=0)
    try:
        return UUID(text)
    except ValueError:
        raise InvalidMetadataError(f"{_WHERE}: `table-uuid`: not a uuid: `{text}`") from None


def _missing(key: str, version: int) -> InvalidMetadataError:
    return InvalidMetadataError(f"{_WHERE}: `{key}` must exist in format v{version}")


def _from_version_2(reader: Reader, key: str, version: int, default: int) -> int:
    found = reader.optional_integer(key)
    if found is None and version > 1:
        raise _missing(key, version)
    return default if found is None else found


def _schemas(reader: Reader, version: int) -> tuple[tuple[Schema, ...], int]:
    listed = reader.optional_list("schemas")
    single = reader.rest.pop("schema", None)
    if listed:
        schemas = tuple(
            parse_schema(found, where=f"{_WHERE}: schema {position}")
            for position, found in enumerate(listed)
        )
        current_id = reader.integer("current-schema-id")
    elif version > 1:
        raise _missing("schemas", version)
    else:
        schemas = (parse_schema(single, where=f"{_WHERE}: schema"),)
        current_id = reader.optional_integer("current-schema-id") or schemas[0].schema_id
    if current_id not in {schema.schema_id for schema in schemas}:
        raise InvalidMetadataError(f"{_WHERE}: `current-schema-id` {current_id} is not in schemas")
    return schemas, current_id


def _specs(reader: Reader, version: int) -> tuple[tuple[PartitionSpec, ...], int]:
    listed = reader.optional_list("partition-specs")
    single = reader.rest.pop("partition-spec", None)
    if listed is not None:
        specs = tuple(
            parse_partition_spec(found, where=f"{_WHERE}: partition spec {position}")
            for position, found in enumerate(listed)
        )
        default_id = reader.integer("default-spec-id")
    elif version > 1:
        raise _missing("partition-specs", version)
    else:
        fields = parse_partition_fields(single or [], where=f"{_WHERE}: partition spec")
        specs, default_id = (PartitionSpec(0, fields),), 0
        reader.optional_integer("default-spec-id")
    if default_id not in {spec.spec_id for spec in specs}:
        raise InvalidMetadataError(
            f"{_WHERE}: `default-spec-id` {default_id} is not in partition-specs"
        )
    return specs, default_id


def _orders(reader: Reader, version: int) -> tuple[SortOrder, ...]:
    listed = reader.optional_list("sort-orders")
    if listed is None:
        if version > 1:
            raise _missing("sort-orders", version)
        return (UNSORTED,)
    return tuple(parse_sort_order(found, where=f"{_WHERE}: sort order") for found in listed)


def _refs(reader: Reader, current: int | None) -> dict[str, SnapshotRef]:
    found = reader.rest.pop("refs", None)
    if found is None:
        return {} if current is None else main_ref(current)
    if not isinstance(found, dict):
        raise InvalidMetadataError(f"{_WHERE}: `refs`: expected an object")
    return {
        name: parse_snapshot_ref(ref, where=f"{_WHERE}: ref `{name}`")
        for name, ref in found.items()
    }


def _objects(reader: Reader, key: str) -> tuple[dict[str, object], ...]:
    found = reader.optional_list(key) or []
    if not all(isinstance(one, dict) for one in found):
        raise InvalidMetadataError(f"{_WHERE}: `{key}`: expected a list of objects")
    return cast(tuple[dict[str, object], ...], tuple(found))


def _each(reader: Reader, key: str, parse: Callable[..., T]) -> tuple[T, ...]:
    return tuple(
        parse(found, where=f"{_WHERE}: {key} {position}")
        for position, found in enumerate(reader.optional_list(key) or [])
    )


def _snapshot_log_entry(json_value: object, *, where: str) -> SnapshotLogEntry:
    reader = Reader(json_value, where)
    return SnapshotLogEntry(
        reader.integer("timestamp-ms"), reader.integer("snapshot-id"), reader.rest
    )


def _metadata_log_entry(json_value: object, *, where: str) -> MetadataLogEntry:
    reader = Reader(json_value, where)
    return MetadataLogEntry(
        reader.integer("timestamp-ms"), reader.text("metadata-file"), reader.rest
    )


# --- Checks --------------------------------------------------------------------------------------


def check_metadata(metadata: TableMetadata) -> None:
    """The consistency that readers rely on. Errors: `InvalidMetadataError`."""
    check_current(metadata)
    _check_snapshots(metadata)
    snapshot_times = [entry.timestamp_ms for entry in metadata.snapshot_log]
    metadata_times = [entry.timestamp_ms for entry in metadata.metadata_log]
    _check_log("snapshot-log", snapshot_times, metadata.last_updated_ms)
    _check_log("metadata-log", metadata_times, metadata.last_updated_ms)


def check_current(metadata: TableMetadata) -> None:
    """The part of the checks that a change can break whatever the length of the history."""
    _check_default_spec(metadata)
    _check_refs(metadata)


def _check_default_spec(metadata: TableMetadata) -> None:
    schema = metadata.current_schema
    for field in metadata.default_spec.fields:
        if isinstance(field.transform, VoidTransform | UnknownTransform):
            continue
        source = schema.field(field.source_id)
        if source is None or not field.transform.can_transform(source.field_type):
            found = "no such column" if source is None else f"a column of type {source.field_type}"
            raise InvalidMetadataError(
                f"{_WHERE}: the default spec's field `{field.name}` is {field.transform} of"
                f" source id {field.source_id}: {found}"
            )


def _check_snapshots(metadata: TableMetadata) -> None:
    last = metadata.last_sequence_number
    for snapshot in metadata.snapshots:
        if snapshot.sequence_number > last:
            raise InvalidMetadataError(
                f"{_WHERE}: snapshot {snapshot.snapshot_id} has sequence number"
                f" {snapshot.sequence_number}, above `last-sequence-number` {last}"
            )
    if metadata.format_version == 1 and last != 0:
        raise InvalidMetadataError(
            f"{_WHERE}: `last-sequence-number` must be 0 in format v1, found {last}"
        )


def _check_refs(metadata: TableMetadata) -> None:
    current = metadata.current_snapshot_id
    if current is not None and metadata.snapshot_by_id(current) is None:
        raise InvalidMetadataError(f"{_WHERE}: `current-snapshot-id` {current} is not in snapshots")
    for name, ref in metadata.refs.items():
        if metadata.snapshot_by_id(ref.snapshot_id) is None:
            raise InvalidMetadataError(
                f"{_WHERE}: ref `{name}` names snapshot {ref.snapshot_id}, not in snapshots"
            )
    main = metadata.refs.get(MAIN)
    if main is not None and main.snapshot_id != current:
        raise InvalidMetadataError(
            f"{_WHERE}: ref main is {main.snapshot_id}, `current-snapshot-id` is {current}"
        )


def _check_log(name: str, times: Sequence[int], last_updated_ms: int) -> None:
    latest = None
    for time in (*times, last_updated_ms):
        if latest is not None and time < latest - CLOCK_TOLERANCE_MS:
            raise InvalidMetadataError(
                f"{_WHERE}: `{name}` is out of order: {time} comes after {latest}"
            )
        latest = time
