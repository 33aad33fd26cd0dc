"""Literals become values of a column's type as in Iceberg Java."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from uuid import UUID

import pytest

from committer.iceberg.expressions.literals import Limit, convert_literal
from committer.iceberg.values.single_value import parse_json_value, print_json_value
from committer.iceberg.values.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    StringType,
    TimestampNanoType,
    TimestamptzType,
    UUIDType,
)
from tests.support.builders.fixtures import vectors
from tests.support.iceberg.vector_values import json_text, vector_type

SOURCES: dict[str, tuple[Callable[[str], object], IcebergType | None]] = {
    "Integer": (int, IntegerType()),
    "Long": (int, None),
    "Float": (float, FloatType()),
    "Double": (float, DoubleType()),
    "BigDecimal": (Decimal, None),
    "String": (str, None),
    "Boolean": (lambda text: text == "true", None),
    "UUID": (UUID, None),
    "bytes": (bytes.fromhex, None),
}


def expected(kind: IcebergType, result: object) -> str:
    """Return the expected text. Floats are parsed: Java 17 prints some with a digit too many."""
    is_value = isinstance(result, float) and kind == FloatType()
    return json_text(print_json_value(kind, parse_json_value(kind, result)) if is_value else result)


def test_every_conversion_is_that_of_java() -> None:
    cases = vectors("literals")["cases"]
    assert len(cases) == 1848
    for case in cases:
        read, source = SOURCES[case["from"]]
        kind = vector_type(case["to"])
        if "error" in case:
            with pytest.raises(ValueError, match="expected"):
                convert_literal(read(case["value"]), kind, source)
            continue
        found = convert_literal(read(case["value"]), kind, source)
        shown = found.value if isinstance(found, Limit) else print_json_value(kind, found)
        assert json_text(shown) == expected(kind, case["result"]), case


def test_floats_beyond_four_bytes_compare_as_such() -> None:
    assert convert_literal(1e39, FloatType()) is Limit.ABOVE_MAX
    assert convert_literal(-math.inf, FloatType()) is Limit.BELOW_MIN
    # The text of the largest float, which is a little more than the float.
    assert convert_literal(3.4028235e38, FloatType()) == 3.4028234663852886e38


def test_half_of_a_character_is_no_text() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        convert_literal("a\ud800", StringType())


def test_infinity_has_a_text_form_and_nan_has_none() -> None:
    assert convert_literal("-Infinity", DoubleType()) == -math.inf
    assert convert_literal("NaN", DoubleType()) is None
    with pytest.raises(ValueError, match="cannot be NaN"):
        convert_literal(math.nan, DoubleType())


def test_a_decimal_keeps_its_scale() -> None:
    assert convert_literal(12.345, DecimalType(9, 2)) == Decimal("12.35")
    with pytest.raises(ValueError, match="2 digits behind the point"):
        convert_literal("12.3", DecimalType(9, 2))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("2026-01-01T00:00:00", TimestamptzType()),
        ("2026-01-01T00:00:00+19:00", TimestamptzType()),
        ("2026-01-01T00:00:00+01:00", TimestampNanoType()),
        ("3000-01-01T00:00:00", TimestampNanoType()),
        ("f79c3e09677c4bbda4793f349cb785e7", UUIDType()),
        ("f79c-3e09-677c-4bbd-a4793f349cb785e7", UUIDType()),
        ("1_0.00", DecimalType(9, 2)),
        (" 1.00", DecimalType(9, 2)),
        ("Infinity", DecimalType(9, 2)),
    ],
)
def test_text_that_is_no_value_of_the_type_is_refused(text: str, kind: IcebergType) -> None:
    with pytest.raises(ValueError, match=r"expected|no such offset"):
        convert_literal(text, kind)
