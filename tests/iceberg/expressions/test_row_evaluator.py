"""Filters on rows, nulls and NaNs."""

from __future__ import annotations

import math

import pytest

from committer.iceberg.expressions.where_text import parse_where
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import (
    DateType,
    DoubleType,
    NestedField,
    StringType,
    StructType,
)
from tests.support.iceberg.row_evaluator import row_evaluator

SCHEMA = Schema(
    (
        NestedField(1, "d", DoubleType(), False),
        NestedField(2, "s", StringType(), False),
        NestedField(3, "st", StructType((NestedField(4, "day", DateType(), False),)), False),
    )
)
NULLS = (None, None, None)
NAN = (math.nan, None, None)
ROW = (1.5, "bc", (366,))


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        ("true", [NULLS, NAN, ROW]),
        ("false", []),
        ("d is null", [NULLS]),
        ("d is not null", [NAN, ROW]),
        ("d is nan", [NAN]),
        ("d is not nan", [NULLS, ROW]),
        ("d < 2", [ROW]),
        ("d <= 1.5", [ROW]),
        ("d > 1", [ROW]),
        ("d >= 2", []),
        ("d = 1.5", [ROW]),
        ("d != 1.5", [NULLS, NAN]),
        ("d in (1.5, 2)", [ROW]),
        ("d not in (1.5, 2)", [NULLS, NAN]),
        ("not d < 2", []),
        ("starts_with(s, 'b')", [ROW]),
        ("not starts_with(s, 'b')", [NULLS, NAN]),
        ("st.day = '1971-01-02'", [ROW]),
        ("st.day is null", [NULLS, NAN]),
        ("year(st.day) = 1", [ROW]),
        ("bucket(1, s) = 0", [ROW]),
        ("d = 1.5 and s = 'x' or st.day is not null", [ROW]),
    ],
)
def test_rows_match(text: str, matching: list[object]) -> None:
    matches = row_evaluator(SCHEMA, parse_where(text))
    assert [row for row in (NULLS, NAN, ROW) if matches(row)] == matching
