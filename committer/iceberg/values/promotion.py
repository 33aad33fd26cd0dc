"""Type promotion: which types may become which, and what that does to values and partitions.

Source: the specification, "Schema Evolution"; docs/reference/iceberg-notes.md 1.3.
"""

from __future__ import annotations

from typing import cast

from committer.errors import InvalidMetadataError
from committer.iceberg.values.calendar import DAY_MICROS, DAY_NANOS
from committer.iceberg.values.transforms import (
    BucketTransform,
    IdentityTransform,
    Transform,
    UnknownTransform,
)
from committer.iceberg.values.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    TimestampNanoType,
    TimestampType,
    UnknownType,
)

_LONG_LIMIT = 1 << 63


def is_promotion_allowed(old: IcebergType, new: IcebergType, *, format_version: int) -> bool:
    """Return whether a column's type may become another; every type may stay as it is."""
    if old == new:
        return True
    match old, new:
        case (IntegerType(), LongType()) | (FloatType(), DoubleType()):
            return True
        case DecimalType(precision, scale), DecimalType(wider, new_scale):
            return scale == new_scale and precision < wider
        case (DateType(), TimestampType() | TimestampNanoType()) | (UnknownType(), _):
            return format_version >= 3
    return False


def promoted_value(old: IcebergType, new: IcebergType, value: object) -> object:
    """Return a value of the old type as one of the new, where the promotion is allowed.

    Errors: `InvalidMetadataError` for a date that the new type cannot hold.
    """
    if value is None or not isinstance(old, DateType) or isinstance(new, DateType):
        return value
    found = cast(int, value) * (DAY_MICROS if isinstance(new, TimestampType) else DAY_NANOS)
    if not -_LONG_LIMIT <= found < _LONG_LIMIT:
        raise InvalidMetadataError(f"a date is out of the range of its promoted type {new}")
    return found


def keeps_partition_values(transform: Transform, old: IcebergType, new: IcebergType) -> bool:
    """Return whether a transform gives the same partition values after a promotion.

    Those of null never change. A transform that is not known may do anything.
    """
    if old == new or isinstance(old, UnknownType):
        return True
    if isinstance(transform, UnknownTransform):
        return False
    return not (
        isinstance(old, DateType) and isinstance(transform, IdentityTransform | BucketTransform)
    )
