"""Checks once, where table metadata is read, that any engine can read it.

Errors are `InvalidMetadataError` and name the key, what was found and what was expected.
Source: docs/reference/iceberg-notes.md 2.2, 4.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import MAIN, MetadataLogEntry, SnapshotLogEntry
from committer.iceberg.schema.avro_names import check_safe_names
from committer.iceberg.schema.metadata_columns import RESERVED_NAMES
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec, fixed_field
from committer.iceberg.schema.schema import Schema, validate_schema
from committer.iceberg.schema.sort_order import SortOrder
from committer.iceberg.values.transforms import Transform, VoidTransform
from committer.iceberg.values.types import (
    GeographyType,
    GeometryType,
    StructType,
    TimestampNanoType,
    TimestamptzNanoType,
    UnknownType,
    VariantType,
)

FORMAT_VERSION_MAX = 3
# Never stored as properties: other engines show values of the table itself under these names.
RESERVED_PROPERTIES = frozenset(
    (
        "format-version",
        "uuid",
        "snapshot-count",
        "current-snapshot-summary",
        "current-snapshot-id",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    )
)
_DISORDER_MS_MAX = 60_000
_V3_TYPES = (
    GeographyType,
    GeometryType,
    TimestampNanoType,
    TimestamptzNanoType,
    UnknownType,
    VariantType,
)


def check_metadata(metadata: TableMetadata) -> None:
    """Refuse metadata that Iceberg Java would refuse, or that names things that are not there."""
    check_format_version(metadata.format_version)
    _check_ids(metadata)
    check_spec(metadata.default_spec, metadata.current_schema)
    check_sort_order(metadata.default_sort_order, metadata.current_schema)
    _check_unsorted(metadata.sort_orders)
    _check_sequence_numbers(metadata)
    _check_refs(metadata)
    _check_log("snapshot-log", metadata.snapshot_log, metadata.last_updated_ms)
    _check_log("metadata-log", metadata.metadata_log, metadata.last_updated_ms)


def check_format_version(format_version: int) -> None:
    """Check a format version. Errors: `UnsupportedError` for a later one,
    `InvalidMetadataError` below 1."""
    if format_version > FORMAT_VERSION_MAX:
        raise UnsupportedError(
            f"`format-version`: table format version {format_version} is not supported, expected 1"
            f" to {FORMAT_VERSION_MAX}"
        )
    if format_version < 1:
        raise InvalidMetadataError(f"`format-version`: expected 1 or more, found {format_version}")


def check_spec(spec: PartitionSpec, schema: Schema) -> None:
    """Refuse a spec that cannot be written with under a schema."""
    _check_unique("name", (field.name for field in spec.fields), f"spec {spec.spec_id}")
    for field in spec.fields:
        check_partition_name(field, schema)
        if isinstance(field.transform, VoidTransform):
            continue  # the source of a dropped field may be missing
        where = f"spec {spec.spec_id}: field `{field.name}`"
        _check_sources(field.source_ids, field.transform, schema, where)


def check_new_spec(spec: PartitionSpec, schema: Schema) -> None:
    """Check a spec that no table has yet, as `check_spec`.

    Errors: also for names that are one name in manifests; `UnsupportedError` for values of type
    `fixed`.
    """
    check_spec(spec, schema)
    check_partition_names(spec)
    found = fixed_field(spec, schema)
    if found is not None:
        raise UnsupportedError(
            f"partition field `{found.name}`: {found.transform} of a fixed column is not supported,"
            " as Iceberg Java does not write such values as the specification says; use a bucket"
            " transform, or a column of type binary or string"
        )


def check_new_table(metadata: TableMetadata) -> None:
    """Check a table that becomes one of this catalog: whether engines can read files of its current
    layout. Errors: `InvalidMetadataError` for names that are one name in files, and for reserved
    names of columns."""
    check_partition_names(metadata.default_spec)
    check_column_names(metadata.current_schema)
    check_reserved_names(metadata.current_schema)


def check_partition_names(spec: PartitionSpec) -> None:
    """Refuse names that are one name in manifests. Errors: `InvalidMetadataError`."""
    check_safe_names((field.name for field in spec.fields), "partition fields")


def check_column_names(schema: Schema) -> None:
    """Refuse columns of one struct that are one name in data files. Errors:
    `InvalidMetadataError`."""
    check_safe_names((field.name for field in schema.fields), "columns")
    for name, field in schema.walk():
        if isinstance(field.field_type, StructType):
            inner = (each.name for each in field.field_type.fields)
            check_safe_names(inner, f"columns of `{name}`:")


def check_reserved_names(schema: Schema, *, before: Schema | None = None) -> None:
    """Refuse columns with the name of a metadata column, in any case: engines ask for the file, the
    position or the id of a row by these names, and Iceberg Java reads no table whose own column has
    one. Fields inside of others are free.

    `before`: the schema that is changed; a column that has its name in it, too, may keep it.
    Errors: `InvalidMetadataError`.
    """
    fields = () if before is None else before.fields
    unchanged = {(field.field_id, field.name) for field in fields}
    for field in schema.fields:
        is_reserved = field.name.lower() in RESERVED_NAMES
        if is_reserved and (field.field_id, field.name) not in unchanged:
            raise InvalidMetadataError(
                f"column `{field.name}`: Iceberg reserves this name for a metadata column, and its"
                " engines read no table with such a column; expected none of"
                f" {', '.join(RESERVED_NAMES)}: rename it"
            )


def check_partition_name(field: PartitionField, schema: Schema) -> None:
    """Refuse a name that a column has which is not the source: the reference reads no such table.

    If the source is missing (an old spec), another column may have its name.
    """
    column = schema.find(field.name)
    if not field.name:
        raise InvalidMetadataError(f"partition field {field.field_id}: expected a name")
    if (
        column is not None
        and column.field_id != field.source_id
        and schema.field(field.source_id) is not None
    ):
        raise InvalidMetadataError(
            f"partition field `{field.name}`: another column than its source has this name"
        )


def check_sort_order(order: SortOrder, schema: Schema) -> None:
    """Refuse an order that cannot be sorted by under a schema."""
    for position, field in enumerate(order.fields):
        where = f"sort order {order.order_id}: field {position}"
        _check_sources(field.source_ids, field.transform, schema, where)


def _check_unsorted(orders: Iterable[SortOrder]) -> None:
    for order in orders:
        if (order.order_id == 0) != (not order.fields):
            wanted = "fields" if order.order_id else "no fields"
            raise InvalidMetadataError(
                f"sort order {order.order_id}: expected {wanted}: 0 is the unsorted order, and no"
                " other is"
            )


def _check_sources(
    source_ids: Iterable[int], transform: Transform, schema: Schema, where: str
) -> None:
    for source_id in source_ids:
        source = schema.field(source_id)
        if source is None:
            raise InvalidMetadataError(
                f"{where}: expected a source column with id {source_id} in schema"
                f" {schema.schema_id}, found none"
            )
        if any(not isinstance(each.field_type, StructType) for each in schema.ancestors(source_id)):
            raise InvalidMetadataError(
                f"{where}: expected a source column outside of lists and maps, found"
                f" `{schema.column_name(source_id)}`"
            )
        if not transform.can_transform(source.field_type):
            raise InvalidMetadataError(
                f"{where}: transform `{transform}` cannot take the {source.field_type} of column"
                f" `{schema.column_name(source_id)}`"
            )


def check_schema(schema: Schema, format_version: int) -> None:
    """Refuse a new schema that no reader accepts, or none of its format version."""
    validate_schema(schema)
    check_column_names(schema)
    if format_version >= FORMAT_VERSION_MAX:
        return
    for name, field in schema.walk():
        if isinstance(field.field_type, _V3_TYPES):
            raise InvalidMetadataError(
                f"column `{name}`: type {field.field_type} needs format version 3, found"
                f" {format_version}"
            )
        if field.initial_default is not None:
            raise InvalidMetadataError(
                f"column `{name}`: an initial default needs format version 3, found"
                f" {format_version}"
            )


def _check_ids(metadata: TableMetadata) -> None:
    schema_ids = [schema.schema_id for schema in metadata.schemas]
    spec_ids = [spec.spec_id for spec in metadata.partition_specs]
    order_ids = [order.order_id for order in metadata.sort_orders]
    _check_unique("schema-id", schema_ids, "`schemas`")
    _check_unique("spec-id", spec_ids, "`partition-specs`")
    _check_unique("order-id", order_ids, "`sort-orders`")
    _check_among("current-schema-id", metadata.current_schema_id, schema_ids, "schemas")
    _check_among("default-spec-id", metadata.default_spec_id, spec_ids, "partition-specs")
    _check_among("default-sort-order-id", metadata.default_sort_order_id, order_ids, "sort-orders")
    if len(metadata.snapshots_by_id) != len(metadata.snapshots):
        snapshot_ids = (snapshot.snapshot_id for snapshot in metadata.snapshots)
        _check_unique("snapshot-id", snapshot_ids, "`snapshots`")


def _check_unique(key: str, values: Iterable[object], where: str) -> None:
    seen: set[object] = set()
    for value in values:
        if value in seen:
            raise InvalidMetadataError(f"{where}: `{key}`: expected each once, found {value} twice")
        seen.add(value)


def _check_among(key: str, value: int, known: Sequence[int], where: str) -> None:
    if value not in known:
        raise InvalidMetadataError(f"`{key}`: expected one of `{where}`, found {value}")


def _check_sequence_numbers(metadata: TableMetadata) -> None:
    last = metadata.last_sequence_number
    if metadata.format_version == 1 and last != 0:
        raise InvalidMetadataError(
            f"`last-sequence-number`: expected 0 in format version 1, found {last}"
        )
    for snapshot in metadata.snapshots:
        if snapshot.sequence_number > last:
            raise InvalidMetadataError(
                f"snapshot {snapshot.snapshot_id}: `sequence-number`: expected at most"
                f" `last-sequence-number` {last}, found {snapshot.sequence_number}"
            )


def _check_refs(metadata: TableMetadata) -> None:
    current, main = metadata.current_snapshot_id, metadata.refs.get(MAIN)
    if current is not None and metadata.snapshot_by_id(current) is None:
        raise InvalidMetadataError(
            f"`current-snapshot-id`: expected one of `snapshots`, found {current}"
        )
    for name, ref in metadata.refs.items():
        if metadata.snapshot_by_id(ref.snapshot_id) is None:
            raise InvalidMetadataError(
                f"`refs`: `{name}`: expected one of `snapshots`, found {ref.snapshot_id}"
            )
    if main is not None and (main.snapshot_id != current or main.type != "branch"):
        raise InvalidMetadataError(
            f"`refs`: `{MAIN}`: expected a branch at `current-snapshot-id` {current}, found a"
            f" {main.type} at {main.snapshot_id}"
        )


def _check_log(
    key: str, log: Sequence[SnapshotLogEntry | MetadataLogEntry], last_updated_ms: int
) -> None:
    latest = None
    for position, entry in enumerate(log):
        if latest is not None and latest - entry.timestamp_ms > _DISORDER_MS_MAX:
            raise InvalidMetadataError(
                f"`{key}`: entry {position}: expected a `timestamp-ms` not before {latest} (one"
                f" minute of disorder is tolerated), found {entry.timestamp_ms}"
            )
        latest = entry.timestamp_ms
    if latest is not None and latest - last_updated_ms > _DISORDER_MS_MAX:
        raise InvalidMetadataError(
            f"`last-updated-ms`: expected at least {latest}, the last entry of `{key}` (one minute"
            f" of disorder is tolerated), found {last_updated_ms}"
        )
