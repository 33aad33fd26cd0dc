"""Content File Serialization: reads a data or delete file from a JSON object.

Source: the specification, Appendix C; docs/reference/iceberg-notes.md 6.5. Older forms are read too
(enum names, partition as an object by field id).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from decimal import Decimal
from typing import TypeVar, cast

from committer.errors import InvalidMetadataError
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.schema.partition_spec import PartitionSpec, partition_type
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.json_reader import is_integer
from committer.iceberg.values.single_value import parse_json_value
from committer.iceberg.values.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    NestedField,
)

_T = TypeVar("_T")

_CONTENTS = {
    **{content.name.lower().replace("_", "-"): content for content in DataFileContent},
    **{content.name: content for content in DataFileContent},
}
_HEX_DIGITS = re.compile(r"(?:[0-9A-Fa-f]{2})*")
_KEYS = frozenset(one.name.replace("_", "-") for one in fields(DataFile))
_MAPS = {
    *("column-sizes", "value-counts", "null-value-counts", "nan-value-counts"),
    *("lower-bounds", "upper-bounds"),
}
# As partition values are printed by the reference. As defaults these are refused.
_NOT_NUMBERS = ("NaN", "Infinity", "-Infinity")


def parse_content_file(
    document: object, specs: Mapping[int, PartitionSpec], schema: Schema
) -> DataFile:
    """Read a file from JSON. `specs` are the table's by id; the file names one.

    Errors: `InvalidMetadataError` names the key and what was expected.
    """
    if not isinstance(document, dict):
        raise InvalidMetadataError("content file: expected a JSON object")
    content = document.get("content", "data")
    if not isinstance(content, str) or content not in _CONTENTS:
        raise _expected("content", "data, position-deletes or equality-deletes")
    spec = specs.get(_integer(document, "spec-id"))
    if spec is None:
        raise _expected("spec-id", "a partition spec of the table")
    return DataFile(
        content=_CONTENTS[content],
        file_path=_text(document, "file-path"),
        file_format=_text(document, "file-format").upper(),
        partition=_partition(document.get("partition"), spec, schema),
        record_count=_count(document, "record-count"),
        file_size_in_bytes=_count(document, "file-size-in-bytes"),
        column_sizes=_optional(_counts, document, "column-sizes"),
        value_counts=_optional(_counts, document, "value-counts"),
        null_value_counts=_optional(_counts, document, "null-value-counts"),
        nan_value_counts=_optional(_counts, document, "nan-value-counts"),
        lower_bounds=_optional(_bounds, document, "lower-bounds"),
        upper_bounds=_optional(_bounds, document, "upper-bounds"),
        key_metadata=_optional(_bytes, document, "key-metadata"),
        split_offsets=_optional(_integers, document, "split-offsets"),
        equality_ids=_optional(_integers, document, "equality-ids"),
        sort_order_id=_optional(_integer, document, "sort-order-id"),
        first_row_id=_optional(_integer, document, "first-row-id"),
        referenced_data_file=_optional(_text, document, "referenced-data-file"),
        content_offset=_optional(_integer, document, "content-offset"),
        content_size_in_bytes=_optional(_integer, document, "content-size-in-bytes"),
        spec_id=spec.spec_id,
    )


def unknown_keys(document: object) -> list[str]:
    """Return the keys of a file's JSON that no version has, also those of its maps; sorted.

    Reading passes over them, as the specification asks of its readers.
    """
    if not isinstance(document, dict):
        return []
    unknown = document.keys() - _KEYS
    for name in _MAPS & document.keys():
        pairs = document[name]
        if isinstance(pairs, dict):
            unknown |= {f"{name}.{key}" for key in pairs.keys() - {"keys", "values"}}
    return sorted(unknown)


def _partition(document: object, spec: PartitionSpec, schema: Schema) -> tuple[object, ...]:
    fields = partition_type(spec, schema).fields
    if isinstance(document, dict):
        # The form of Iceberg Java up to 1.10: by partition field id, nulls left out.
        if not document.keys() <= {str(field.field_id) for field in fields}:
            raise _expected("partition", "the field ids of its spec only")
        document = [document.get(str(field.field_id)) for field in fields]
    if document is None and not fields:
        return ()
    if not isinstance(document, list) or len(document) != len(fields):
        raise _expected("partition", f"{len(fields)} values")
    return tuple(
        _partition_value(value, field) for value, field in zip(document, fields, strict=True)
    )


def _partition_value(value: object, field: NestedField) -> object:
    if value is None:
        return None
    if isinstance(field.field_type, FloatType | DoubleType) and value in _NOT_NUMBERS:
        return float(str(value))
    try:
        parsed = parse_json_value(field.field_type, value)
    except (ValueError, TypeError, ArithmeticError, InvalidMetadataError):
        # The value is data: the message does not repeat it, nor what the parser said of it.
        raise _expected("partition", f"a {field.field_type} for field {field.name}") from None
    if not _is_held(field.field_type, parsed):
        raise _expected("partition", f"a {field.field_type} for field {field.name}")
    return parsed


def _is_held(kind: IcebergType, value: object) -> bool:
    """Return whether the bytes of a manifest hold a value: of decimals not more digits than the
    type has."""
    is_decimal = isinstance(kind, DecimalType) and isinstance(value, Decimal)
    return not is_decimal or cast(DecimalType, kind).holds(cast(Decimal, value))


def _optional(
    read: Callable[[Mapping[str, object], str], _T], document: Mapping[str, object], key: str
) -> _T | None:
    """Read what a key has; None for null and for no key."""
    return None if document.get(key) is None else read(document, key)


def _counts(document: Mapping[str, object], key: str) -> Mapping[int, int]:
    pairs = _pairs(document, key)
    if not all(is_integer(value, 64) for value in pairs.values()):
        raise _expected(key, "integer values")
    return cast("Mapping[int, int]", pairs)


def _bounds(document: Mapping[str, object], key: str) -> Mapping[int, bytes]:
    return {field_id: _hex(value, key) for field_id, value in _pairs(document, key).items()}


def _pairs(document: Mapping[str, object], key: str) -> dict[int, object]:
    value = document[key]
    if not isinstance(value, dict):
        raise _expected(key, "an object of keys and values")
    keys, values = value.get("keys"), value.get("values")
    if not isinstance(keys, list) or not isinstance(values, list) or len(keys) != len(values):
        raise _expected(key, "as many values as keys")
    if not all(is_integer(field_id, 32) and field_id >= 0 for field_id in keys):
        raise _expected(key, "field ids as keys")
    pairs = dict(zip(keys, values, strict=True))
    if len(pairs) != len(keys):
        raise _expected(key, "each field id once")
    return pairs


def _hex(value: object, key: str) -> bytes:
    if not isinstance(value, str) or not _HEX_DIGITS.fullmatch(value):
        raise _expected(key, "hexadecimal digits")
    return bytes.fromhex(value)


def _bytes(document: Mapping[str, object], key: str) -> bytes:
    return _hex(document[key], key)


def _integers(document: Mapping[str, object], key: str) -> tuple[int, ...]:
    values = document[key]
    if not isinstance(values, list) or not all(is_integer(value, 64) for value in values):
        raise _expected(key, "a list of integers")
    return tuple(values)


def _integer(document: Mapping[str, object], key: str) -> int:
    value = document.get(key)
    if type(value) is not int or not is_integer(value, 64):
        raise _expected(key, "an integer")
    return value


def _count(document: Mapping[str, object], key: str) -> int:
    value = _integer(document, key)
    if value < 0:
        raise _expected(key, "0 or more")
    return value


def _text(document: Mapping[str, object], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str) or not value:
        raise _expected(key, "text")
    return value


def _expected(key: str, what: str) -> InvalidMetadataError:
    return InvalidMetadataError(f"content file: `{key}`: expected {what}")
