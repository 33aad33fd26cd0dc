"""The schemas of manifests and manifest lists, format versions 1 to 3, as data and as Avro; any
other struct as Avro, such as that of a data file.

No encoding of records. Source: the specification, "Manifests", "Manifest Lists" and Appendix A,
"Avro"; docs/reference/iceberg-notes.md 6.3, 6.4 (names, docs and order).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from committer.errors import UnsupportedError
from committer.iceberg.schema.avro_names import safe_name
from committer.iceberg.values.type_json import print_field
from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)

AvroSchema = dict[str, object] | list[object] | str

_INT, _LONG, _STRING, _BINARY = IntegerType(), LongType(), StringType(), BinaryType()


def _required(field_id: int, name: str, kind: IcebergType, doc: str | None = None) -> NestedField:
    return NestedField(field_id, name, kind, True, doc)


def _optional(field_id: int, name: str, kind: IcebergType, doc: str | None = None) -> NestedField:
    return NestedField(field_id, name, kind, False, doc)


def _long_map(key_id: int, value_id: int) -> MapType:
    return MapType(key_id, _INT, value_id, _LONG, True)


def _bytes_map(key_id: int, value_id: int) -> MapType:
    return MapType(key_id, _INT, value_id, _BINARY, True)


# --- Manifest lists ------------------------------------------------------------------------------

_PARTITIONS = ListType(
    508,
    StructType(
        (
            _required(
                509, "contains_null", BooleanType(), "True if any file has a null partition value"
            ),
            _optional(
                518, "contains_nan", BooleanType(), "True if any file has a nan partition value"
            ),
            _optional(510, "lower_bound", _BINARY, "Partition lower bound for all files"),
            _optional(511, "upper_bound", _BINARY, "Partition upper bound for all files"),
        )
    ),
    True,
)

_MANIFEST_FILE_FIELDS = {
    field.field_id: field
    for field in (
        _required(500, "manifest_path", _STRING, "Location URI with FS scheme"),
        _required(501, "manifest_length", _LONG, "Total file size in bytes"),
        _required(502, "partition_spec_id", _INT, "Spec ID used to write"),
        _required(517, "content", _INT, "Contents of the manifest: 0=data, 1=deletes"),
        _required(515, "sequence_number", _LONG, "Sequence number when the manifest was added"),
        _required(516, "min_sequence_number", _LONG, "Lowest sequence number in the manifest"),
        _required(503, "added_snapshot_id", _LONG, "Snapshot ID that added the manifest"),
        _required(504, "added_files_count", _INT, "Added entry count"),
        _required(505, "existing_files_count", _INT, "Existing entry count"),
        _required(506, "deleted_files_count", _INT, "Deleted entry count"),
        _required(512, "added_rows_count", _LONG, "Added rows count"),
        _required(513, "existing_rows_count", _LONG, "Existing rows count"),
        _required(514, "deleted_rows_count", _LONG, "Deleted rows count"),
        _optional(507, "partitions", _PARTITIONS, "Summary for each partition"),
        _optional(519, "key_metadata", _BINARY, "Encryption key metadata blob"),
        _optional(
            520, "first_row_id", _LONG, "Starting row ID to assign to new rows in ADDED data files"
        ),
    )
}

MANIFEST_FILE_ORDER = {
    1: (500, 501, 502, 503, 504, 505, 506, 507, 512, 513, 514, 519),
    2: (500, 501, 502, 517, 515, 516, 503, 504, 505, 506, 512, 513, 514, 507, 519),
    3: (500, 501, 502, 517, 515, 516, 503, 504, 505, 506, 512, 513, 514, 507, 519, 520),
}
_COUNTS = frozenset((504, 505, 506, 512, 513, 514))


@lru_cache(maxsize=8)
def manifest_file_type(format_version: int) -> StructType:
    """Return the struct of one row of a manifest list."""
    fields = (_MANIFEST_FILE_FIELDS[i] for i in _order(MANIFEST_FILE_ORDER, format_version))
    if format_version > 1:
        return StructType(tuple(fields))
    # Version 1 made the counts optional: null means "assume there are some".
    return StructType(
        tuple(replace(f, required=False) if f.field_id in _COUNTS else f for f in fields)
    )


# --- Manifests -----------------------------------------------------------------------------------

_DATA_FILE_FIELDS = {
    field.field_id: field
    for field in (
        _required(
            134,
            "content",
            _INT,
            "Contents of the file: 0=data, 1=position deletes, 2=equality deletes",
        ),
        _required(100, "file_path", _STRING, "Location URI with FS scheme"),
        _required(101, "file_format", _STRING, "File format name: avro, orc, or parquet"),
        _required(103, "record_count", _LONG, "Number of records in the file"),
        _required(104, "file_size_in_bytes", _LONG, "Total file size in bytes"),
        _required(105, "block_size_in_bytes", _LONG),
        _optional(
            108, "column_sizes", _long_map(117, 118), "Map of column id to total size on disk"
        ),
        _optional(
            109,
            "value_counts",
            _long_map(119, 120),
            "Map of column id to total count, including null and NaN",
        ),
        _optional(
            110, "null_value_counts", _long_map(121, 122), "Map of column id to null value count"
        ),
        _optional(
            137,
            "nan_value_counts",
            _long_map(138, 139),
            "Map of column id to number of NaN values in the column",
        ),
        _optional(125, "lower_bounds", _bytes_map(126, 127), "Map of column id to lower bound"),
        _optional(128, "upper_bounds", _bytes_map(129, 130), "Map of column id to upper bound"),
        _optional(131, "key_metadata", _BINARY, "Encryption key metadata blob"),
        _optional(132, "split_offsets", ListType(133, _LONG, True), "Splittable offsets"),
        _optional(135, "equality_ids", ListType(136, _INT, True), "Equality comparison field IDs"),
        _optional(140, "sort_order_id", _INT, "Sort order ID"),
        _optional(
            142,
            "first_row_id",
            _LONG,
            "The first row ID assigned to the first row in the data file",
        ),
        _optional(
            143,
            "referenced_data_file",
            _STRING,
            "Fully qualified location (URI with FS scheme) of a data file that all deletes"
            " reference",
        ),
        _optional(144, "content_offset", _LONG, "The offset in the file where the content starts"),
        _optional(
            145,
            "content_size_in_bytes",
            _LONG,
            "The length of referenced content stored in the file",
        ),
    )
}

_METRICS = (108, 109, 110, 137, 125, 128)
DATA_FILE_ORDER = {
    1: (100, 101, 102, 103, 104, 105, *_METRICS, 131, 132, 140),
    2: (134, 100, 101, 102, 103, 104, *_METRICS, 131, 132, 135, 140, 143),
    3: (134, 100, 101, 102, 103, 104, *_METRICS, 131, 132, 135, 140, 142, 143, 144, 145),
}
# spec: data_file field 105, required in version 1 and meaningless
BLOCK_SIZE_IN_BYTES = 67108864


@lru_cache(maxsize=64)
def manifest_entry_type(format_version: int, partition_type: StructType) -> StructType:
    """Return the struct of one row of a manifest."""
    doc = "Partition data tuple, schema based on the partition spec" if format_version > 1 else None
    partition = _required(102, "partition", partition_type, doc)
    data_file = StructType(
        tuple(
            partition if field_id == 102 else _DATA_FILE_FIELDS[field_id]
            for field_id in _order(DATA_FILE_ORDER, format_version)
        )
    )
    fields = [_required(0, "status", _INT), _optional(1, "snapshot_id", _LONG)]
    if format_version > 1:
        fields.append(_optional(3, "sequence_number", _LONG))
        fields.append(_optional(4, "file_sequence_number", _LONG))
    return StructType((*fields, _required(2, "data_file", data_file)))


def _order(orders: dict[int, tuple[int, ...]], format_version: int) -> Sequence[int]:
    if format_version not in orders:
        raise UnsupportedError(f"format version {format_version}: expected 1, 2 or 3")
    return orders[format_version]


# --- Their Avro and JSON form --------------------------------------------------------------------


def avro_schema(struct: StructType, name: str) -> AvroSchema:
    """Return the Avro schema of a struct, with field ids.
    A repeated named type becomes a reference."""
    return _record(struct, name, set())


@lru_cache(maxsize=64)
def schema_headers(struct: StructType, name: str) -> tuple[bytes, bytes]:
    """Return the texts of the headers `avro.schema` and `iceberg.schema`."""
    fields = [print_field(field) for field in struct.fields]
    iceberg = {"type": "struct", "schema-id": 0, "fields": fields}
    return compact_json(avro_schema(struct, name)), compact_json(iceberg)


def compact_json(document: object) -> bytes:
    """Print JSON as the reference does in headers: without spaces, letters as they are."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def _record(struct: StructType, name: str, names: set[str]) -> dict[str, object]:
    fields = [_field(field, names) for field in struct.fields]
    return {"type": "record", "name": name, "fields": fields}


def _field(field: NestedField, names: set[str]) -> dict[str, object]:
    safe = safe_name(field.name)
    printed: dict[str, object] = {"name": safe, "type": _field_type(field, names)}
    if field.doc is not None:
        printed["doc"] = field.doc
    if not field.required:
        printed["default"] = None
    if safe != field.name:
        printed["iceberg-field-name"] = field.name
    printed["field-id"] = field.field_id
    return printed


def _field_type(field: NestedField, names: set[str]) -> AvroSchema:
    kind = _type(field.field_type, f"r{field.field_id}", names)
    return _optional_type(kind, required=field.required)


def _optional_type(kind: AvroSchema, *, required: bool) -> AvroSchema:
    return kind if required or kind == "null" else ["null", kind]


def _type(kind: IcebergType, record_name: str, names: set[str]) -> AvroSchema:
    match kind:
        case StructType():
            return _record(kind, record_name, names)
        case ListType():
            element = _type(kind.element_type, f"r{kind.element_id}", names)
            items = _optional_type(element, required=kind.element_required)
            return {"type": "array", "items": items, "element-id": kind.element_id}
        case MapType(key_type=StringType()):
            value = _type(kind.value_type, f"r{kind.value_id}", names)
            values = _optional_type(value, required=kind.value_required)
            ids = {"key-id": kind.key_id, "value-id": kind.value_id}
            return {"type": "map", "values": values, **ids}
        case MapType():
            return _pairs(kind, names)
        case VariantType():
            parts = [{"name": part, "type": "bytes"} for part in ("metadata", "value")]
            named: dict[str, object] = {"type": "record", "name": record_name, "fields": parts}
            return {**named, "logicalType": "variant"}
        case DecimalType():
            name, size = f"decimal_{kind.precision}_{kind.scale}", decimal_bytes(kind.precision)
            extra = {"logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
            return _fixed(name, size, names, extra)
        case FixedType():
            return _fixed(f"fixed_{kind.length}", kind.length, names, {})
        case UUIDType():
            return _fixed("uuid_fixed", 16, names, {"logicalType": "uuid"})
        case _:
            return _primitive(kind)


def _pairs(kind: MapType, names: set[str]) -> dict[str, object]:
    """Return a map's schema as an array of pairs: Avro's own maps have string keys only."""
    pair = StructType(
        (
            _required(kind.key_id, "key", kind.key_type),
            NestedField(kind.value_id, "value", kind.value_type, kind.value_required),
        )
    )
    items = _record(pair, f"k{kind.key_id}_v{kind.value_id}", names)
    return {"type": "array", "items": items, "logicalType": "map"}


def _fixed(name: str, size: int, names: set[str], extra: dict[str, object]) -> AvroSchema:
    if name in names:
        return name
    names.add(name)
    return {"type": "fixed", "name": name, "size": size, **extra}


def decimal_bytes(precision: int) -> int:
    """Compute the bytes of the smallest two's complement integer that holds `precision` digits."""
    largest: int = 10**precision - 1
    return (largest.bit_length() + 8) // 8


_PRIMITIVES: dict[type[IcebergType], AvroSchema] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    DateType: {"type": "int", "logicalType": "date"},
    TimeType: {"type": "long", "logicalType": "time-micros"},
    TimestampType: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    TimestamptzType: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    TimestampNanoType: {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    TimestamptzNanoType: {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
    StringType: "string",
    BinaryType: "bytes",
    UnknownType: "null",
}


def _primitive(kind: IcebergType) -> AvroSchema:
    try:
        printed = _PRIMITIVES[type(kind)]
    except KeyError:
        raise UnsupportedError(f"type {kind} in an Avro file") from None
    return dict(printed) if isinstance(printed, dict) else printed
