"""Encodes manifest entries as Avro records, specialised for this one schema. Nothing else.

A general Avro encoder walks some 120 key and value records per entry; this one joins looked-up
bytes, ten times faster. Each map and list is one block with its size in front (a negative count,
then the length: plain Avro), so that whoever checks the entry skips it in one jump.
Source: the specification, "Manifests"; field order as format.md 8.4.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from uuid import UUID

from committer.errors import InvariantError, UnsupportedError
from committer.iceberg.avro_binary import LONGS, encode_bytes
from committer.iceberg.avro_decoder import EXACT
from committer.iceberg.avro_schemas import BLOCK_SIZE_IN_BYTES, decimal_bytes
from committer.iceberg.data_file import (
    DataFile,
    DataFileContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.iceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

EntryEncoder = Callable[[ManifestEntry], bytes]
PartitionEncoder = Callable[[tuple[object, ...]], bytes]
_ValueEncoder = Callable[[object], bytes]

_NULL = b"\0"
_SOME = b"\x02"
_long = LONGS.__getitem__
_STATUS = {status: LONGS[status] for status in ManifestEntryStatus}
_BLOCK_SIZE = LONGS[BLOCK_SIZE_IN_BYTES]
_EMPTY = b"\x02\0"
# The head of an entry that inherits everything, which is nearly every one that is written.
_ADDED_HEADS = {
    content: LONGS[ManifestEntryStatus.ADDED] + 3 * _NULL + LONGS[content]
    for content in DataFileContent
}
# Files of one table have metrics of the same columns, and often the same counts of nulls.
_LAYOUTS_KEPT = 256
_MAPS_KEPT = 1024
_PARTITIONS_KEPT = 4096


def entry_encoder(format_version: int, partition_type: StructType) -> EntryEncoder:
    """A function that encodes one entry. What the format version cannot hold is an error of the
    caller: `InvariantError`."""
    partition = partition_encoder(partition_type)
    if format_version == 1:
        return lambda entry: _entry_v1(entry, partition)
    if format_version == 2:
        return lambda entry: _entry_v2(entry, partition)
    if format_version == 3:
        return lambda entry: _entry_v3(entry, partition)
    raise UnsupportedError(f"format version {format_version}: expected 1, 2 or 3")


def _entry_v1(entry: ManifestEntry, partition: PartitionEncoder) -> bytes:
    file = entry.data_file
    if file.content:
        raise InvariantError(f"{file.file_path}: format version 1 has no delete files")
    return b"".join(
        (
            _STATUS[entry.status],
            _optional_long(entry.snapshot_id),
            *_paths_and_counts(file, partition),
            _BLOCK_SIZE,
            *_metrics(file),
            _optional_long(file.sort_order_id),
        )
    )


def _entry_v2(entry: ManifestEntry, partition: PartitionEncoder) -> bytes:
    file = entry.data_file
    if file.content_offset is not None or file.is_deletion_vector:
        raise InvariantError(f"{file.file_path}: format version 2 has no deletion vectors")
    return b"".join(
        (
            _head(entry),
            *_paths_and_counts(file, partition),
            *_metrics(file),
            _list(file.equality_ids),
            _optional_long(file.sort_order_id),
            _optional_text(file.referenced_data_file),
        )
    )


def _entry_v3(entry: ManifestEntry, partition: PartitionEncoder) -> bytes:
    file = entry.data_file
    # Row ids of added files come from the manifest list, whatever a descriptor says.
    is_added = entry.status == ManifestEntryStatus.ADDED
    return b"".join(
        (
            _head(entry),
            *_paths_and_counts(file, partition),
            *_metrics(file),
            _list(file.equality_ids),
            _optional_long(file.sort_order_id),
            _NULL if is_added else _optional_long(file.first_row_id),
            _optional_text(file.referenced_data_file),
            _optional_long(file.content_offset),
            _optional_long(file.content_size_in_bytes),
        )
    )


def _head(entry: ManifestEntry) -> bytes:
    ids = (entry.snapshot_id, entry.sequence_number, entry.file_sequence_number)
    if entry.status == ManifestEntryStatus.ADDED:
        if ids == (None, None, None):
            return _ADDED_HEADS[entry.data_file.content]
    elif None in ids:
        raise InvariantError(f"{entry.data_file.file_path}: only an added entry inherits its ids")
    return b"".join(
        (_STATUS[entry.status], *map(_optional_long, ids), LONGS[entry.data_file.content])
    )


def _paths_and_counts(file: DataFile, partition: PartitionEncoder) -> tuple[bytes, ...]:
    path = file.file_path.encode()
    return (
        LONGS[len(path)],
        path,
        _file_format(file.file_format),
        partition(file.partition),
        LONGS[file.record_count],
        LONGS[file.file_size_in_bytes],
    )


@lru_cache(maxsize=16)
def _file_format(name: str) -> bytes:
    return encode_bytes(name.upper().encode())


def _metrics(file: DataFile) -> tuple[bytes, ...]:
    key_metadata = file.key_metadata
    return (
        _long_map(file.column_sizes),
        _repeated_map(file.value_counts),
        _repeated_map(file.null_value_counts),
        _repeated_map(file.nan_value_counts),
        _bytes_map(file.lower_bounds),
        _bytes_map(file.upper_bounds),
        _NULL if key_metadata is None else _SOME + encode_bytes(key_metadata),
        _list(file.split_offsets),
    )


def _optional_long(value: int | None) -> bytes:
    return _NULL if value is None else _SOME + LONGS[value]


def _optional_text(value: str | None) -> bytes:
    return _NULL if value is None else _SOME + encode_bytes(value.encode())


def _repeated_map(pairs: Mapping[int, int] | None) -> bytes:
    """As `_long_map`, for values that many files share."""
    if not pairs:
        return _NULL if pairs is None else _EMPTY
    return _kept_long_map(tuple(pairs), tuple(pairs.values()))


@lru_cache(maxsize=_MAPS_KEPT)
def _kept_long_map(ids: tuple[int, ...], values: tuple[int, ...]) -> bytes:
    return _long_map(dict(zip(ids, values, strict=True)))


def _long_map(pairs: Mapping[int, int] | None) -> bytes:
    if not pairs:
        return _NULL if pairs is None else _EMPTY
    parts = _id_layout(tuple(pairs)).copy()
    parts[1::2] = map(_long, pairs.values())
    items = b"".join(parts)
    return b"\x02%b%b%b\0" % (LONGS[-len(pairs)], LONGS[len(items)], items)


@lru_cache(maxsize=_LAYOUTS_KEPT)
def _id_layout(ids: tuple[int, ...]) -> list[bytes]:
    """Every id, and a place for the value behind it. To be copied."""
    return [part for field_id in ids for part in (LONGS[field_id], b"")]


def _bytes_map(pairs: Mapping[int, bytes] | None) -> bytes:
    if not pairs:
        return _NULL if pairs is None else _EMPTY
    bounds = pairs.values()
    parts = _bound_layout(tuple(pairs), tuple(map(len, bounds))).copy()
    parts[1::2] = bounds
    return b"".join(parts)


@lru_cache(maxsize=_MAPS_KEPT)
def _bound_layout(ids: tuple[int, ...], lengths: tuple[int, ...]) -> list[bytes]:
    """A whole map with a place for each bound of these lengths. To be copied."""
    heads = [LONGS[one] + LONGS[length] for one, length in zip(ids, lengths, strict=True)]
    size = sum(map(len, heads)) + sum(lengths)
    heads[0] = _SOME + LONGS[-len(ids)] + LONGS[size] + heads[0]
    return [*(part for head in heads for part in (head, b"")), _NULL]


def _list(values: tuple[int, ...] | None) -> bytes:
    if not values:
        return _NULL if values is None else _EMPTY
    items = b"".join(map(_long, values))
    return b"\x02%b%b%b\0" % (LONGS[-len(values)], LONGS[len(items)], items)


# --- Partition tuples ----------------------------------------------------------------------------


def partition_encoder(partition_type: StructType) -> PartitionEncoder:
    """A function that encodes a partition tuple. Errors: `InvariantError` for a wrong length."""
    encoders = tuple(_value_encoder(field.field_type) for field in partition_type.fields)
    if not encoders:
        return _no_partition
    # An unknown field has the Avro type null, which takes no byte at all, not even a branch.
    unknown = tuple(isinstance(field.field_type, UnknownType) for field in partition_type.fields)
    if any(unknown):
        return lambda values: _with_unknown(values, encoders, unknown)

    def encode(values: tuple[object, ...]) -> bytes:
        if len(values) != len(encoders):
            raise InvariantError(f"{len(values)} partition values, expected {len(encoders)}")
        return b"".join(
            [
                _NULL if value is None else _SOME + encoder(value)
                for encoder, value in zip(encoders, values, strict=True)
            ]
        )

    return _remembering(encode)


def _remembering(encode: PartitionEncoder) -> PartitionEncoder:
    """Files share partitions. By their text: as keys themselves -0.0 and 0.0 would be one."""
    known: dict[str, bytes] = {}

    def encode_once(values: tuple[object, ...]) -> bytes:
        key = repr(values)
        encoded = known.get(key)
        if encoded is None:
            if len(known) >= _PARTITIONS_KEPT:
                known.clear()
            encoded = known[key] = encode(values)
        return encoded

    return encode_once


def _no_partition(values: tuple[object, ...]) -> bytes:
    if values:
        raise InvariantError(f"{len(values)} partition values in an unpartitioned spec")
    return b""


def _with_unknown(
    values: tuple[object, ...], encoders: tuple[_ValueEncoder, ...], unknown: tuple[bool, ...]
) -> bytes:
    return b"".join(
        b"" if skip else _NULL if value is None else _SOME + encoder(value)
        for encoder, value, skip in zip(encoders, values, unknown, strict=True)
    )


def _value_encoder(kind: IcebergType) -> _ValueEncoder:
    match kind:
        case BooleanType():
            return lambda value: b"\x01" if value else b"\0"
        case FloatType() | DoubleType():
            layout = "<f" if isinstance(kind, FloatType) else "<d"
            return lambda value: struct.pack(layout, value)
        case StringType():
            return lambda value: encode_bytes(str(value).encode())
        case BinaryType():
            return lambda value: encode_bytes(_bytes(value))
        case FixedType():
            return lambda value: _fixed(value, kind.length)
        case DecimalType():
            return lambda value: _decimal(value, kind)
        case UUIDType():
            return _uuid
        case _:
            return _integer_encoder(kind)


_INTEGERS = (
    IntegerType,
    LongType,
    DateType,
    TimeType,
    TimestampType,
    TimestamptzType,
    TimestampNanoType,
    TimestamptzNanoType,
    UnknownType,
)


def _integer_encoder(kind: IcebergType) -> _ValueEncoder:
    if not isinstance(kind, _INTEGERS):
        raise UnsupportedError(f"a partition field of type {kind}")
    return _integer


def _integer(value: object) -> bytes:
    if not isinstance(value, int):
        raise InvariantError("a partition value that is not an integer")
    return LONGS[value]


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise InvariantError("a partition value that is not bytes")
    return value


def _fixed(value: object, length: int) -> bytes:
    content = _bytes(value)
    if len(content) != length:
        raise InvariantError(f"a fixed partition value of {len(content)} bytes, not {length}")
    return content


def _decimal(value: object, kind: DecimalType) -> bytes:
    if not isinstance(value, Decimal):
        raise InvariantError("a partition value that is not a decimal")
    scaled = EXACT.scaleb(value, kind.scale)
    unscaled = int(scaled)
    if unscaled != scaled:
        raise InvariantError(f"a decimal partition value with more than {kind.scale} digits")
    return unscaled.to_bytes(decimal_bytes(kind.precision), "big", signed=True)


def _uuid(value: object) -> bytes:
    if not isinstance(value, UUID):
        raise InvariantError("a partition value that is not a uuid")
    return value.bytes
