"""Cut bounds still bound, and are those of Iceberg Java."""

from __future__ import annotations

from typing import Any

import pytest

from committer.iceberg.values.truncation import truncate_lower, truncate_upper
from committer.iceberg.values.types import BinaryType, FixedType, IcebergType, LongType, StringType
from tests.support.builders.fixtures import vectors

CASES: list[dict[str, Any]] = vectors("truncated_bounds")["cases"]


def test_cut_bounds_of_text_are_those_of_java() -> None:
    cases = [case for case in CASES if case["kind"] == "string"]
    assert len(cases) > 100
    for case in cases:
        for width, wanted in case["by_width"].items():
            lower = truncate_lower(StringType(), case["value"], int(width))
            upper = truncate_upper(StringType(), case["value"], int(width))
            assert (lower, upper) == (wanted["min"], wanted["max"]), (case["value"], width)


@pytest.mark.parametrize("kind", [BinaryType(), FixedType(20)], ids=str)
def test_cut_bounds_of_bytes_are_those_of_java(kind: IcebergType) -> None:
    cases = [case for case in CASES if case["kind"] == "binary"]
    assert len(cases) > 100
    for case in cases:
        value = bytes.fromhex(case["value_hex"])
        for width, wanted in case["by_width"].items():
            wanted_upper = wanted["max_hex"] and bytes.fromhex(wanted["max_hex"])
            lower = truncate_lower(kind, value, int(width))
            upper = truncate_upper(kind, value, int(width))
            assert lower == bytes.fromhex(wanted["min_hex"]), (case["value_hex"], width)
            assert upper == (wanted_upper if value else b""), (case["value_hex"], width)


def test_upper_bound_steps_over_surrogates_and_gives_up_at_the_last_code_point() -> None:
    assert truncate_upper(StringType(), "\ud7ffx", 1) == "\ue000"
    assert truncate_upper(StringType(), "a\U0010ffffx", 2) == "b"
    assert truncate_upper(StringType(), "\U0010ffffx", 1) is None
    assert truncate_upper(BinaryType(), b"\xff\xffx", 2) is None


def test_other_types_are_left_as_they_are() -> None:
    assert truncate_lower(LongType(), 123456, 2) == 123456
    assert truncate_upper(LongType(), 123456, 2) == 123456
