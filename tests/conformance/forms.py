"""Frazil's findings in the keys and value forms of `expected.json`; and typed comparisons."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from typing import Any

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.manifest.manifest_list import ManifestFile, PartitionFieldSummary
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.metadata.table_statistics import EncryptedKey
from committer.iceberg.schema.partition_spec import (
    PartitionSpec,
    partition_path,
    partition_type,
    print_partition_spec,
)
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.display_values import human_value
from committer.iceberg.values.single_value import decode_value, print_json_value
from committer.iceberg.values.types import (
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from tests.conformance.check import Mismatch, same, same_human, same_value
from tests.conformance.table import ListedEntry

Form = dict[str, Any]

_COUNTS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_OF_DELETES = ("referenced_data_file", "content_offset", "content_size_in_bytes")
_OF_ROWS = (
    *("manifest_path", "manifest_length", "partition_spec_id", "sequence_number"),
    *("min_sequence_number", "added_snapshot_id", "added_files_count", "existing_files_count"),
    *("deleted_files_count", "added_rows_count", "existing_rows_count", "deleted_rows_count"),
    "first_row_id",
)


# --- Schemas, specs, snapshots, keys -------------------------------------------------------------


def schema_text(schema: Schema) -> str:
    """Print a schema as Iceberg Java does for a human."""
    lines = [f"  {_column_text(column, schema)}" for column in schema.fields]
    return "\n".join(["table {", *lines, "}"])


def _column_text(column: NestedField, schema: Schema) -> str:
    need = "required" if column.required else "optional"
    doc = f" ({column.doc})" if column.doc else ""
    key = " (id)" if column.field_id in schema.identifier_field_ids else ""
    return f"{column.field_id}: {column.name}: {need} {column.field_type}{doc}{key}"


def spec_form(spec: PartitionSpec, schema: Schema) -> Form:
    kind = str(partition_type(spec, schema))
    return {**print_partition_spec(spec), "partition_type": kind}


def snapshot_form(snapshot: Snapshot) -> Form:
    """Describe a snapshot without its manifests and rows."""
    summary = dict(snapshot.summary or {})
    return {
        "snapshot_id": snapshot.snapshot_id,
        "parent_id": snapshot.parent_snapshot_id,
        "sequence_number": snapshot.sequence_number,
        "timestamp_ms": snapshot.timestamp_ms,
        "operation": summary.pop("operation", None),
        "schema_id": snapshot.schema_id,
        "first_row_id": snapshot.first_row_id,
        "added_rows": snapshot.added_rows,
        "key_id": snapshot.key_id,
        "manifest_list": snapshot.manifest_list,
        "summary": summary,
    }


def key_form(key: EncryptedKey) -> Form:
    return {
        "key_id": key.key_id,
        "encrypted_by_id": key.details.get("encrypted-by-id"),
        "encrypted_key_metadata_hex": base64.b64decode(key.encrypted_key_metadata).hex(),
        "properties": key.details.get("properties", {}),
    }


# --- Manifests -----------------------------------------------------------------------------------


def row_form(row: ManifestFile, kind: StructType) -> Form:
    """Describe a row of a manifest list; `kind`: the partition type of its spec."""
    described = {name: getattr(row, name) for name in _OF_ROWS}
    described["content"] = int(row.content)
    described["key_metadata"] = _hex(row.key_metadata)
    if row.partitions is not None:
        fields = zip(row.partitions, kind.fields, strict=True)
        described["partitions"] = [_summary_form(one, of.field_type) for one, of in fields]
    return described


def _summary_form(summary: PartitionFieldSummary, kind: IcebergType) -> Form:
    described: Form = {
        "contains_null": summary.contains_null,
        "contains_nan": summary.contains_nan,
    }
    for key, bound in (("lower", summary.lower_bound), ("upper", summary.upper_bound)):
        described[f"{key}_hex"] = _hex(bound)
        if bound is not None:
            described[key] = print_json_value(kind, decode_value(kind, bound))
    return described


def _hex(content: bytes | None) -> str | None:
    return None if content is None else content.hex()


def same_row(found: Form, wanted: Form, kind: StructType, place: str) -> None:
    """Check as `same` does; compare bounds of partitions as values of their types."""
    found, wanted = dict(found), dict(wanted)
    ours, theirs = found.pop("partitions", None), wanted.pop("partitions", None)
    same(found, wanted, place)
    if ours is None or theirs is None or len(ours) != len(theirs):
        same(ours, theirs, f"{place}.partitions")
        return
    for number, field in enumerate(kind.fields):
        one, other, where = dict(ours[number]), dict(theirs[number]), f"{place}.{field.name}"
        for key in {"lower", "upper"} & set(one) & set(other):
            same_value(field.field_type, one.pop(key), other.pop(key), f"{where}.{key}")
        same(one, other, where)


# --- Files ---------------------------------------------------------------------------------------


def entry_form(listed: ListedEntry) -> Form:
    entry = listed.entry
    return {
        "status": int(entry.status),
        "snapshot_id": entry.snapshot_id,
        "data_sequence_number": entry.sequence_number,
        "file_sequence_number": entry.file_sequence_number,
        "file": file_form(listed),
    }


def file_form(listed: ListedEntry) -> Form:
    """Describe a file of a manifest entry without its metrics."""
    file, entry = listed.entry.data_file, listed.entry
    fields = partition_type(listed.spec, listed.schema).fields
    described: Form = {
        "content": int(file.content),
        "file_path": file.file_path,
        "file_format": file.file_format,
        "spec_id": file.spec_id,
        "partition": {
            field.name: print_json_value(field.field_type, value)
            for field, value in zip(fields, file.partition, strict=True)
        },
        "partition_path": partition_path(listed.spec, listed.schema, file.partition),
        "record_count": file.record_count,
        "file_size_in_bytes": file.file_size_in_bytes,
        "key_metadata": _hex(file.key_metadata),
        "equality_ids": _list(file.equality_ids),
        "sort_order_id": file.sort_order_id,
        "first_row_id": file.first_row_id,
        "data_sequence_number": entry.sequence_number,
        "file_sequence_number": entry.file_sequence_number,
    }
    if file.content:
        described |= {name: getattr(file, name) for name in _OF_DELETES}
    return described


def live_file_form(listed: ListedEntry, types: Mapping[int, IcebergType]) -> Form:
    """Describe a live file with its metrics; `types` of all columns by their ids."""
    file = listed.entry.data_file
    described = file_form(listed) | {name: _texts(getattr(file, name)) for name in _COUNTS}
    described["lower_bounds"] = _bounds_form(file.lower_bounds, types)
    described["upper_bounds"] = _bounds_form(file.upper_bounds, types)
    described["split_offsets"] = _list(file.split_offsets)
    return described


def _list(values: tuple[int, ...] | None) -> list[int] | None:
    return None if values is None else list(values)


def _texts(counts: Mapping[int, int] | None) -> Form | None:
    return None if counts is None else {str(key): value for key, value in counts.items()}


def _bounds_form(
    bounds: Mapping[int, bytes] | None, types: Mapping[int, IcebergType]
) -> Form | None:
    if bounds is None:
        return None
    return {str(key): _bound_form(types.get(key), encoded) for key, encoded in bounds.items()}


def _bound_form(kind: IcebergType | None, encoded: bytes) -> Form:
    """Describe a bound; columns of no schema (positions of deletes, row ids) have none to read."""
    if kind is None:
        return {"hex": encoded.hex()}
    if isinstance(kind, GeometryType | GeographyType):
        text = "GeospatialBound(x={}, y={})".format(*struct.unpack("<2d", encoded[:16]))
        return {"hex": encoded.hex(), "value": f"?{text}", "human": text}
    value = decode_value(kind, encoded)
    described = {"value": print_json_value(kind, value), "human": human_value(kind, value)}
    return {"hex": encoded.hex(), **described}


def column_types(*schemas: Schema) -> dict[int, IcebergType]:
    """Return the type of each column, at any depth; of the last schema that has it."""
    found: dict[int, IcebergType] = {}
    for schema in schemas:
        _add_types(schema.fields, found)
    return found


def _add_types(fields: tuple[NestedField, ...], found: dict[int, IcebergType]) -> None:
    for field in fields:
        found[field.field_id] = field.field_type
        match field.field_type:
            case StructType(inner):
                _add_types(inner, found)
            case ListType() as kind:
                element = NestedField(kind.element_id, "element", kind.element_type, False)
                _add_types((element,), found)
            case MapType() as kind:
                key = NestedField(kind.key_id, "key", kind.key_type, True)
                _add_types(
                    (key, NestedField(kind.value_id, "value", kind.value_type, False)), found
                )


def same_file(
    found: Form, wanted: Form, listed: ListedEntry, types: Mapping[int, IcebergType], place: str
) -> None:
    """Check as `same` does; compare partition values and bounds as values of their types."""
    found, wanted = dict(found), dict(wanted)
    _same_partition(found, wanted, listed, place)
    for name in ("lower_bounds", "upper_bounds"):
        ours, theirs = found.pop(name, None), wanted.pop(name, None)
        if ours is None or theirs is None or set(ours) != set(theirs):
            same(ours, theirs, f"{place}.{name}")
            continue
        for key, bound in ours.items():
            _same_bound(types.get(int(key)), bound, theirs[key], f"{place}.{name}.{key}")
    same(found, wanted, place)


def _same_partition(found: Form, wanted: Form, listed: ListedEntry, place: str) -> None:
    ours, theirs = found.pop("partition"), wanted.pop("partition")
    if set(ours) != set(theirs):
        same(ours, theirs, f"{place}.partition")
    fields = partition_type(listed.spec, listed.schema).fields
    for field in fields:
        where = f"{place}.partition.{field.name}"
        same_value(field.field_type, ours[field.name], theirs[field.name], where)


def _same_bound(kind: IcebergType | None, found: Form, wanted: Form, place: str) -> None:
    if set(found) != set(wanted):
        raise Mismatch(f"{place}: expected {sorted(wanted)}")
    same(found["hex"], wanted["hex"], place)
    if kind is None:
        return
    same_value(kind, found["value"], wanted["value"], f"{place}.value")
    same_human(kind, found["human"], wanted["human"], f"{place}.human")


def sort_key(file: DataFile) -> tuple[str, int]:
    """Return the key of live files: deletion vectors of one Puffin file by their offset."""
    return file.file_path, file.content_offset or 0
