"""Encodes the partition tuple of a manifest entry, specialized for one partition type.

Source: the specification, "Manifests", field 102; types as "Appendix A".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable
from decimal import Decimal
from uuid import UUID

from committer.errors import InvariantError, UnsupportedError
from committer.iceberg.avro.binary import LONGS, encode_bytes
from committer.iceberg.avro.decoder import EXACT
from committer.iceberg.avro.manifest_schemas import decimal_bytes
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

PartitionEncoder = Callable[[tuple[object, ...]], bytes]
_ValueEncoder = Callable[[object], bytes]

_NULL = b"\0"
_SOME = b"\x02"
_PARTITIONS_KEPT = 4096


def partition_encoder(partition_type: StructType) -> PartitionEncoder:
    """Return a function that encodes a partition tuple.
    Errors: `InvariantError` for a wrong length."""
    encoders = tuple(_field_encoder(field.field_type) for field in partition_type.fields)
    if not encoders:
        return _no_partition

    def encode(values: tuple[object, ...]) -> bytes:
        if len(values) != len(encoders):
            raise InvariantError(f"{len(values)} partition values, expected {len(encoders)}")
        return b"".join([encoder(value) for encoder, value in zip(encoders, values, strict=True)])

    return _remembering(encode, partition_key(partition_type))


def partition_key(partition_type: StructType) -> Callable[[tuple[object, ...]], Hashable]:
    """Return a key that distinguishes tuples: floats by their text, or -0.0 and 0.0 were one."""
    kinds = (field.field_type for field in partition_type.fields)
    return repr if any(isinstance(kind, FloatType | DoubleType) for kind in kinds) else tuple


def _remembering(
    encode: PartitionEncoder, key_of: Callable[[tuple[object, ...]], Hashable]
) -> PartitionEncoder:
    """Remember encoded tuples: files share partitions."""
    known: dict[Hashable, bytes] = {}

    def encode_once(values: tuple[object, ...]) -> bytes:
        key = key_of(values)
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


def _field_encoder(kind: IcebergType) -> _ValueEncoder:
    if isinstance(kind, UnknownType):
        # Its Avro type is null, which takes no byte at all, not even a branch.
        return lambda value: b""
    encoder = _value_encoder(kind)
    return lambda value: _NULL if value is None else _SOME + encoder(value)


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
        case _ if isinstance(kind, _INTEGERS):
            return _integer
        case _:
            raise UnsupportedError(f"a partition field of type {kind}")


_INTEGERS = (
    IntegerType,
    LongType,
    DateType,
    TimeType,
    TimestampType,
    TimestamptzType,
    TimestampNanoType,
    TimestamptzNanoType,
)


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
