"""Arrow arrays as lists of Iceberg in-memory values, and the way back.

For few values (partition tuples, defaults), never for rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pyarrow as pa

from committer.iceberg.values.types import IcebergType, UUIDType
from workers.arrow.arrow_types import arrow_type


def physical(array: pa.Array) -> pa.Array:
    """Convert dates, times and timestamps to their integers, uuids to 16 bytes; keep the rest."""
    if isinstance(array, pa.ExtensionArray):
        return array.storage
    if pa.types.is_date32(array.type):
        return array.view(pa.int32())
    if pa.types.is_time64(array.type) or pa.types.is_timestamp(array.type):
        return array.view(pa.int64())
    return array


def to_values(array: pa.Array, kind: IcebergType) -> list[object]:
    """Return the values of an array that holds `kind` (a result of `arrow_type`)."""
    values: list[object] = physical(array).to_pylist()
    if isinstance(kind, UUIDType):
        return [UUID(bytes=value) if isinstance(value, bytes) else None for value in values]
    return values


def to_array(values: Sequence[object], kind: IcebergType) -> pa.Array:
    """Build an array of `arrow_type(kind)` with these values."""
    target = arrow_type(kind)
    if isinstance(kind, UUIDType):
        stored = [value.bytes if isinstance(value, UUID) else None for value in values]
        return pa.ExtensionArray.from_storage(target, pa.array(stored, pa.binary(16)))
    if pa.types.is_date32(target):
        return pa.array(values, pa.int32()).view(target)
    if pa.types.is_time64(target) or pa.types.is_timestamp(target):
        return pa.array(values, pa.int64()).view(target)
    return pa.array(values, target)
