"""Keys of rows as the writer computes partition values, of the batches that Spark sends."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pyarrow as pa
import pytest

from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import (
    IcebergType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
    UUIDType,
)
from tests.support.workers.tables import required
from workers.distribution.distribution_keys import KeyTransform

ZONED = pa.timestamp("us", "UTC")
LATE = datetime(1969, 12, 31, 23, 30, tzinfo=UTC)
FIRST = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


@pytest.mark.parametrize(
    ("kind", "transform", "rows", "keys"),
    [
        # Values of the specification's appendix B.
        (LongType(), "bucket[2147483647]", pa.array([34, None]), [2017239379, None]),
        (StringType(), "bucket[2147483647]", pa.array(["iceberg"]), [1210000089]),
        (UUIDType(), "bucket[2147483647]", pa.array([str(FIRST)]), [1488055340]),
        (TimestamptzType(), "day", pa.array([LATE], ZONED), [-1]),
        (TimestamptzType(), "hour", pa.array([LATE], ZONED), [-1]),
        (StringType(), "truncate[2]", pa.array(["äbc", None]), ["äb", None]),
        (LongType(), "truncate[10]", pa.array([-1, 11]), [-10, 10]),
    ],
)
def test_keys_are_the_partition_values_of_the_rows(
    kind: IcebergType, transform: str, rows: pa.Array, keys: list[object]
) -> None:
    found = KeyTransform(required(1, "c", kind), 1, parse_transform(transform))
    assert found.values(rows).cast(found.result_type()).to_pylist() == keys


def test_a_key_may_lie_within_a_struct() -> None:
    point = NestedField(1, "point", StructType((required(2, "x", LongType()),)), required=True)
    found = KeyTransform(point, 2, parse_transform("truncate[10]"))
    assert found.values(pa.array([{"x": 17}, None])).to_pylist() == [10, None]
