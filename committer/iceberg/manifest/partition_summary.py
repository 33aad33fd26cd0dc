"""Summaries of what partition tuples a manifest holds: null, NaN and bounds per field.

Source: the specification, "Manifest Lists", field_summary;
docs/reference/iceberg-notes.md 1.5, 6.4.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast
from uuid import UUID

from committer.iceberg.manifest.manifest_list import PartitionFieldSummary
from committer.iceberg.values.single_value import encode_value
from committer.iceberg.values.types import DoubleType, FloatType, IcebergType, StructType, UUIDType

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

# How Iceberg Java orders uuids: as two signed halves.
UUID_HALVES = struct.Struct(">qq")


def summarize_partitions(
    partition_type: StructType, partitions: Iterable[tuple[object, ...]]
) -> tuple[PartitionFieldSummary, ...]:
    """Summarize tuples (each distinct one is enough), field by field."""
    columns = list(zip(*partitions, strict=True)) or [()] * len(partition_type.fields)
    return tuple(
        _summary(field.field_type, column)
        for field, column in zip(partition_type.fields, columns, strict=True)
    )


def _summary(kind: IcebergType, values: tuple[object, ...]) -> PartitionFieldSummary:
    present = [value for value in values if value is not None]
    bounded = present
    if isinstance(kind, FloatType | DoubleType):
        bounded = [value for value in present if not _is_nan(value)]
    contains_null, contains_nan = len(present) < len(values), len(bounded) < len(present)
    if not bounded:
        return PartitionFieldSummary(contains_null, contains_nan, None, None)
    if len(bounded) == 1:
        only = encode_value(kind, bounded[0])
        return PartitionFieldSummary(contains_null, contains_nan, only, only)
    order = _order(kind)
    lower, upper = min(bounded, key=order), max(bounded, key=order)
    return PartitionFieldSummary(
        contains_null, contains_nan, encode_value(kind, lower), encode_value(kind, upper)
    )


def partition_order(
    partition_type: StructType,
) -> Callable[[tuple[object, ...]], tuple[SupportsRichComparison, ...]]:
    """Return a key that sorts tuples of a partition type: null first, NaN last."""
    orders = [_order(field.field_type) for field in partition_type.fields]

    def key(partition: tuple[object, ...]) -> tuple[SupportsRichComparison, ...]:
        return tuple(
            (
                value is not None,
                _is_nan(value),
                0 if value is None or _is_nan(value) else order(value),
            )
            for order, value in zip(orders, partition, strict=True)
        )

    return key


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _order(kind: IcebergType) -> Callable[[object], SupportsRichComparison]:
    if isinstance(kind, FloatType | DoubleType):
        return _float_order
    if isinstance(kind, UUIDType):
        return _uuid_order
    return lambda value: cast("SupportsRichComparison", value)


def _float_order(value: object) -> tuple[float, float]:
    """Return a key of a float that sorts -0.0 before +0.0, which are equal in Python."""
    if not isinstance(value, float):
        raise TypeError("a float partition value that is not a float")
    return value, math.copysign(1.0, value)


def _uuid_order(value: object) -> tuple[int, int]:
    """Return two signed halves, as readers compare that prune by these bounds (Java's order)."""
    if not isinstance(value, UUID):
        raise TypeError("a uuid partition value that is not a uuid")
    high, low = UUID_HALVES.unpack(value.bytes)
    return high, low
