"""Values are stored as Spark's ANSI store assignment casts them, and what does not fit is named.

The values were compared with what Spark and Iceberg's runtime write for the same statements.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from committer.errors import PublishError
from committer.iceberg.schema.table_text import parse_columns
from workers.arrow.arrow_schema import match_columns

ZONED = pa.timestamp("us", "America/New_York")
NOON = datetime(2024, 3, 10, 12, 34, 56, 789000, UTC)


def stored(values: list[Any], found: pa.DataType, wanted: str) -> list[Any]:
    batch = pa.record_batch({"c": pa.array(values, found)})
    matched = match_columns(batch.schema, parse_columns(f"c {wanted}"))
    return matched.conform(batch).column(0).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("found", "value", "wanted", "expected"),
    [
        (pa.int8(), 5, "long", 5),
        (pa.int64(), 7, "int", 7),
        (pa.int64(), 2**53 + 1, "double", float(2**53)),
        (pa.int64(), 7, "decimal(9, 2)", Decimal("7.00")),
        (pa.float32(), 0.5, "double", 0.5),
        (pa.float64(), -1.9, "long", -1),
        (pa.float64(), 0.125, "decimal(9, 2)", Decimal("0.13")),
        (pa.float64(), -2.675, "decimal(9, 2)", Decimal("-2.68")),
        (pa.float32(), 0.1, "decimal(9, 2)", Decimal("0.10")),
        (pa.float32(), 0.1, "decimal(20, 18)", Decimal("0.100000001490116120")),
        (pa.float64(), float("inf"), "decimal(9, 2)", None),
        (pa.float64(), float("nan"), "decimal(9, 2)", None),
        (pa.float64(), 1e300, "float", float("inf")),
        (pa.decimal128(9, 2), Decimal("-1.99"), "int", -1),
        (pa.decimal128(9, 2), Decimal("1.15"), "double", 1.15),
        (pa.decimal128(9, 3), Decimal("1.005"), "decimal(9, 2)", Decimal("1.01")),
        (pa.decimal128(9, 3), Decimal("-1.005"), "decimal(9, 2)", Decimal("-1.01")),
        (pa.decimal128(9, 2), Decimal("1.50"), "decimal(18, 4)", Decimal("1.5000")),
        (pa.bool_(), True, "string", "true"),
        (pa.int32(), -7, "string", "-7"),
        (pa.decimal128(38, 18), Decimal("1E-18"), "string", "0.000000000000000001"),
        (pa.float64(), 1e7, "string", "1.0E7"),
        (pa.float64(), 123456.789, "string", "123456.789"),
        (pa.float64(), 0.001, "string", "0.001"),
        (pa.float64(), -0.00099, "string", "-9.9E-4"),
        (pa.float64(), 100.0, "string", "100.0"),
        (pa.float64(), -0.0, "string", "-0.0"),
        (pa.float64(), float("nan"), "string", "NaN"),
        (pa.float32(), 0.1, "string", "0.1"),
        (pa.date32(), date(2024, 2, 29), "string", "2024-02-29"),
        (pa.binary(), b"AB", "string", "AB"),
        (ZONED, NOON, "string", "2024-03-10 08:34:56.789"),
        (pa.timestamp("us"), datetime(2024, 1, 1), "string", "2024-01-01 00:00:00"),
        (ZONED, datetime(2024, 1, 1, 2, tzinfo=UTC), "date", date(2023, 12, 31)),
        (ZONED, datetime(2024, 1, 1, 2, tzinfo=UTC), "timestamp", datetime(2023, 12, 31, 21)),
        (pa.timestamp("us"), datetime(1969, 12, 31, 23, 59), "date", date(1969, 12, 31)),
        (pa.date32(), date(2024, 2, 29), "timestamp", datetime(2024, 2, 29)),
    ],
)
def test_a_value_is_stored_as_spark_casts_it(
    found: pa.DataType, value: object, wanted: str, expected: object
) -> None:
    [kept, nothing] = stored([value, None], found, wanted)
    assert (kept, str(kept), nothing) == (expected, str(expected), None)


@pytest.mark.parametrize(
    ("found", "value", "wanted"),
    [
        (pa.int64(), 2**31, "int"),
        (pa.int32(), 10**7, "decimal(9, 3)"),
        (pa.float64(), 1e19, "long"),
        (pa.float64(), float("nan"), "int"),
        (pa.decimal128(18, 0), Decimal(2**31), "int"),
        (pa.decimal128(9, 2), Decimal("9999999.99"), "decimal(8, 1)"),
        (pa.binary(), b"\xff", "string"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_column(
    found: pa.DataType, value: object, wanted: str
) -> None:
    with pytest.raises(PublishError, match=r"column c holds a value that is no ") as refused:
        stored([None, None, None, value, None], found, wanted)
    assert str(refused.value).endswith(f": {value!r}")


def test_nested_values_are_stored_alike_and_named_with_their_path() -> None:
    inner = pa.list_(pa.struct([("x", pa.int64())]))
    wanted = "list<struct<x: int>>"
    assert stored([[{"x": 1}], None], inner, wanted) == [[{"x": 1}], None]
    with pytest.raises(PublishError, match=r"column c\.element\.x holds .* no int: 2147483648"):
        stored([[{"x": 1}, {"x": 2**31}]], inner, wanted)
