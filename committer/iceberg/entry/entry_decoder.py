"""Turns a decoded Avro record (a dict by field id) into a manifest entry, checking its types.

Inheritance is not applied here. Source: the specification, "Manifests";
docs/reference/iceberg-notes.md 6.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.decoder import Record
from committer.iceberg.entry.data_file import (
    DataFile,
    DataFileContent,
    ManifestEntry,
    ManifestEntryStatus,
)

_STATUS = dict(enumerate(ManifestEntryStatus))
_CONTENT = dict(enumerate(DataFileContent))


def entry_from_record(
    record: Record, partition_field_ids: tuple[int, ...], spec_id: int
) -> ManifestEntry:
    """Return the entry of a record of any writer schema.

    Absent fields read as in docs/reference/iceberg-notes.md 6.4.
    Errors: `InvalidMetadataError` for a missing field or one of a wrong type.
    """
    status, file = record.get(0), record.get(2)
    if not isinstance(status, int) or status not in _STATUS:
        raise InvalidMetadataError("manifest entry: a status that is not 0, 1 or 2")
    if not isinstance(file, dict):
        raise _wrong(2)
    return ManifestEntry(
        _STATUS[status],
        _long_or_none(record, 1),
        _long_or_none(record, 3),
        _long_or_none(record, 4),
        _data_file(file, partition_field_ids, spec_id),
    )


def _data_file(record: Record, partition_field_ids: tuple[int, ...], spec_id: int) -> DataFile:
    content, partition = record.get(134), record.get(102, {})
    if not isinstance(partition, dict):
        raise _wrong(102)
    if content is not None and (not isinstance(content, int) or content not in _CONTENT):
        raise InvalidMetadataError("manifest entry: a content that is not 0, 1 or 2")
    return DataFile(
        content=_CONTENT[content or 0],
        file_path=_text(record, 100),
        file_format=_text(record, 101).upper(),
        partition=tuple(partition.get(field_id) for field_id in partition_field_ids),
        record_count=_long(record, 103),
        file_size_in_bytes=_long(record, 104),
        column_sizes=_longs(record, 108),
        value_counts=_longs(record, 109),
        null_value_counts=_longs(record, 110),
        nan_value_counts=_longs(record, 137),
        lower_bounds=_bounds(record, 125),
        upper_bounds=_bounds(record, 128),
        key_metadata=_bytes_or_none(record, 131),
        split_offsets=_list(record, 132),
        equality_ids=_list(record, 135),
        sort_order_id=_long_or_none(record, 140),
        first_row_id=_long_or_none(record, 142),
        referenced_data_file=_text_or_none(record, 143),
        content_offset=_long_or_none(record, 144),
        content_size_in_bytes=_long_or_none(record, 145),
        spec_id=spec_id,
    )


def _long(record: Record, field_id: int) -> int:
    value = record.get(field_id)
    if type(value) is not int:
        raise _wrong(field_id)
    return value


def _long_or_none(record: Record, field_id: int) -> int | None:
    return None if record.get(field_id) is None else _long(record, field_id)


def _text(record: Record, field_id: int) -> str:
    value = record.get(field_id)
    if not isinstance(value, str):
        raise _wrong(field_id)
    return value


def _text_or_none(record: Record, field_id: int) -> str | None:
    return None if record.get(field_id) is None else _text(record, field_id)


def _bytes_or_none(record: Record, field_id: int) -> bytes | None:
    value = record.get(field_id)
    if value is not None and not isinstance(value, bytes):
        raise _wrong(field_id)
    return value


def _longs(record: Record, field_id: int) -> Mapping[int, int] | None:
    return cast("Mapping[int, int] | None", _map(record, field_id, int))


def _bounds(record: Record, field_id: int) -> Mapping[int, bytes] | None:
    return cast("Mapping[int, bytes] | None", _map(record, field_id, bytes))


def _map(record: Record, field_id: int, kind: type) -> object:
    pairs = record.get(field_id)
    if pairs is None:
        return None
    if not isinstance(pairs, dict) or set(map(type, pairs)) - {int}:
        raise _wrong(field_id)
    if set(map(type, pairs.values())) - {kind}:
        raise _wrong(field_id)
    return pairs


def _list(record: Record, field_id: int) -> tuple[int, ...] | None:
    items = record.get(field_id)
    if items is None:
        return None
    if not isinstance(items, tuple) or not all(type(item) is int for item in items):
        raise _wrong(field_id)
    return items


def _wrong(field_id: int) -> InvalidMetadataError:
    return InvalidMetadataError(f"manifest entry: field {field_id} is missing or of a wrong type")
