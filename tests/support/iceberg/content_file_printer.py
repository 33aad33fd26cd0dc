"""Prints a data or delete file as JSON, as Appendix C of the specification says and Java does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.partition_spec import PartitionSpec, partition_type
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.single_value import print_json_value

# Of the fields that may be null: attribute and key, in the order in which they are printed.
_OPTIONAL = {
    one.name: one.name.replace("_", "-") for one in fields(DataFile) if one.default is None
}


def print_content_file(
    data_file: DataFile, spec: PartitionSpec, schema: Schema
) -> dict[str, object]:
    """Print the JSON object of a file without keys that are null."""
    parts = partition_type(spec, schema).fields
    printed: dict[str, object] = {
        "spec-id": spec.spec_id,
        "content": data_file.content.name.lower().replace("_", "-"),
        "file-path": data_file.file_path,
        "file-format": data_file.file_format.lower(),
        "partition": [
            print_json_value(field.field_type, value)
            for field, value in zip(parts, data_file.partition, strict=True)
        ],
        "file-size-in-bytes": data_file.file_size_in_bytes,
        "record-count": data_file.record_count,
    }
    for name, key in _OPTIONAL.items():
        value = getattr(data_file, name)
        if value is not None:
            printed[key] = _print(value)
    return printed


def _print(value: object) -> object:
    match value:
        case bytes():
            return value.hex().upper()
        case tuple():
            return list(value)
        case Mapping():
            values = [
                one.hex().upper() if isinstance(one, bytes) else one for one in value.values()
            ]
            return {"keys": list(value), "values": values}
        case _:
            return value
