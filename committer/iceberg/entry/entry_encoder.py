"""Encodes manifest entries as Avro records, specialized for this one schema. Nothing else.

A general Avro encoder walks some 120 key and value records per entry; this one joins looked-up
bytes, ten times faster. Maps are `metric_maps.py`, partition tuples `partition_encoder.py`. Each
map and list is one block with its size in front, so that a check of the entry skips it in one
jump.
Source: the specification, "Manifests"; docs/reference/iceberg-notes.md 6.4 (order of fields).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from committer.errors import InvariantError, UnsupportedError
from committer.iceberg.avro.binary import LONGS, encode_bytes
from committer.iceberg.avro.manifest_schemas import BLOCK_SIZE_IN_BYTES
from committer.iceberg.entry.data_file import DataFile, ManifestEntry, ManifestEntryStatus
from committer.iceberg.entry.metric_maps import bounds_encoder, long_map_encoder
from committer.iceberg.entry.partition_encoder import partition_encoder
from committer.iceberg.values.types import StructType

EntryEncoder = Callable[[ManifestEntry], bytes]
AdditionEncoder = Callable[[DataFile], bytes]
# Encodes a file from its path to its last field; True for files that are added.
_FileEncoder = Callable[[DataFile, bool], bytes]

_NULL = b"\0"
_SOME = b"\x02"
_EMPTY = b"\x02\0"
_THREE_NULLS = 3 * _NULL
_ADDED = ManifestEntryStatus.ADDED
_BLOCK_SIZE = LONGS[BLOCK_SIZE_IN_BYTES]
# The head of an entry that inherits everything, which is nearly every one that is written.
_ADDED_HEADS = [LONGS[_ADDED] + _THREE_NULLS + LONGS[content] for content in range(3)]
_ADDED_HEAD_V1 = LONGS[_ADDED] + _NULL
_LISTS_KEPT = 1024


def entry_encoder(format_version: int, partition_type: StructType) -> EntryEncoder:
    """Return a function that encodes one entry. An entry that the format version cannot hold is an
    error of the caller: `InvariantError`."""
    encode = _file_encoder(format_version, partition_type)
    head = _head_v1 if format_version == 1 else _head

    def encode_entry(entry: ManifestEntry) -> bytes:
        is_added = entry.status == _ADDED
        return head(entry) + encode(entry.data_file, is_added)

    return encode_entry


def addition_encoder(format_version: int, partition_type: StructType) -> AdditionEncoder:
    """Return an encoder as `entry_encoder`, of a new file: everything inheritable is null."""
    encode = _file_encoder(format_version, partition_type)
    if format_version == 1:
        return lambda file: _ADDED_HEAD_V1 + encode(file, True)
    return lambda file: _ADDED_HEADS[file.content] + encode(file, True)


def _head_v1(entry: ManifestEntry) -> bytes:
    return LONGS[entry.status] + _optional_long(entry.snapshot_id)


def _head(entry: ManifestEntry) -> bytes:
    ids = (entry.snapshot_id, entry.sequence_number, entry.file_sequence_number)
    if entry.status == _ADDED:
        if ids == (None, None, None):
            return _ADDED_HEADS[entry.data_file.content]
    elif None in ids:
        raise InvariantError(f"{entry.data_file.file_path}: only an added entry inherits its ids")
    return b"".join(
        (LONGS[entry.status], *map(_optional_long, ids), LONGS[entry.data_file.content])
    )


def _file_encoder(format_version: int, partition_type: StructType) -> _FileEncoder:
    tail = {1: _tail_v1, 2: _tail_v2, 3: _tail_v3}.get(format_version)
    if tail is None:
        raise UnsupportedError(f"format version {format_version}: expected 1, 2 or 3")
    partition = partition_encoder(partition_type)
    block_size = _BLOCK_SIZE if format_version == 1 else b""
    column_sizes, value_counts = long_map_encoder(), long_map_encoder(repeated=True)
    null_value_counts = long_map_encoder(repeated=True)
    nan_value_counts, bounds = long_map_encoder(repeated=True), bounds_encoder()

    def encode_file(file: DataFile, is_added: bool) -> bytes:
        path = file.file_path.encode()
        return b"".join(
            (
                LONGS[len(path)],
                path,
                _file_format(file.file_format),
                partition(file.partition),
                LONGS[file.record_count],
                LONGS[file.file_size_in_bytes],
                block_size,
                column_sizes(file.column_sizes),
                value_counts(file.value_counts),
                null_value_counts(file.null_value_counts),
                nan_value_counts(file.nan_value_counts),
                bounds(file.lower_bounds, file.upper_bounds),
                _NULL if file.key_metadata is None else _SOME + encode_bytes(file.key_metadata),
                _list(file.split_offsets),
                tail(file, is_added),
            )
        )

    return encode_file


def _tail_v1(file: DataFile, _: bool) -> bytes:
    if file.content:
        raise InvariantError(f"{file.file_path}: format version 1 has no delete files")
    return _optional_long(file.sort_order_id)


def _tail_v2(file: DataFile, _: bool) -> bytes:
    if file.content_offset is not None or (file.content and file.is_deletion_vector):
        raise InvariantError(f"{file.file_path}: format version 2 has no deletion vectors")
    ids, order_id, referenced = file.equality_ids, file.sort_order_id, file.referenced_data_file
    if ids is None and order_id is None and referenced is None:
        return _THREE_NULLS
    return _list(ids) + _optional_long(order_id) + _optional_text(referenced)


def _tail_v3(file: DataFile, is_added: bool) -> bytes:
    # Row ids of added files come from the manifest list, never from a descriptor.
    return b"".join(
        (
            _list(file.equality_ids),
            _optional_long(file.sort_order_id),
            _NULL if is_added else _optional_long(file.first_row_id),
            _optional_text(file.referenced_data_file),
            _optional_long(file.content_offset),
            _optional_long(file.content_size_in_bytes),
        )
    )


@lru_cache(maxsize=16)
def _file_format(name: str) -> bytes:
    return encode_bytes(name.upper().encode())


def _optional_long(value: int | None) -> bytes:
    return _NULL if value is None else _SOME + LONGS[value]


def _optional_text(value: str | None) -> bytes:
    return _NULL if value is None else _SOME + encode_bytes(value.encode())


@lru_cache(maxsize=_LISTS_KEPT)
def _list(values: tuple[int, ...] | None) -> bytes:
    if not values:
        return _NULL if values is None else _EMPTY
    items = b"".join(map(LONGS.__getitem__, values))
    return b"\x02%b%b%b\0" % (LONGS[-len(values)], LONGS[len(items)], items)
