"""Transforms give the partition values, hashes and paths that Iceberg Java gives."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.values.single_value import parse_json_value, print_json_value
from committer.iceberg.values.transforms import (
    DAY,
    UnknownTransform,
    bucket_hash,
    parse_transform,
)
from committer.iceberg.values.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimeType,
    UUIDType,
)
from tests.support.builders.fixtures import vectors
from tests.support.iceberg.vector_values import json_text, vector_type

CASES: list[dict[str, Any]] = vectors("transforms")["cases"]
# Java 17 prints floats that are not the nearest of the shortest; later Javas, and we, do.
JAVA_17_FLOATS = {7.5191612e25, 3585551630000.0, -60477338000000.0}


def source_value(case: dict[str, Any], kind: IcebergType) -> object:
    if kind in (FloatType(), DoubleType()) and isinstance(case["value"], str):
        return float(case["value"])
    return parse_json_value(kind, case["value"])


def test_hashes_are_those_of_java() -> None:
    hashed = [case for case in CASES if "hash" in case]
    assert len(hashed) > 800
    for case in hashed:
        kind = vector_type(case["type"])
        assert bucket_hash(kind)(source_value(case, kind)) == case["hash"], case["type"]


def test_partition_values_and_their_types_are_those_of_java() -> None:
    for case in CASES:
        kind = vector_type(case["type"])
        value = source_value(case, kind)
        for text, wanted in case["results"].items():
            transform = parse_transform(text)
            result_type = transform.result_type(kind)
            assert str(result_type) == wanted["result_type"], (text, case["type"])
            printed = print_json_value(result_type, transform.apply(kind, value))
            if wanted["result"] in JAVA_17_FLOATS:
                assert struct.pack("<f", printed) == struct.pack("<f", wanted["result"])
            else:
                assert json_text(printed) == json_text(wanted["result"]), (text, case)


def test_partition_values_are_shown_as_java_shows_them() -> None:
    for case in CASES:
        kind = vector_type(case["type"])
        value = source_value(case, kind)
        for text, wanted in case["results"].items():
            transform = parse_transform(text)
            shown = transform.human(kind, transform.apply(kind, value))
            if wanted["result"] in JAVA_17_FLOATS:
                assert struct.pack("<f", float(shown)) == struct.pack("<f", wanted["result"])
            else:
                assert shown == wanted["human"], (text, case["type"], case["value"])


def test_transforms_accept_the_source_types_that_java_accepts() -> None:
    accepted: dict[str, set[str]] = {}
    for case in CASES:
        accepted.setdefault(case["type"], set()).update(case["results"])
    texts = set().union(*accepted.values())
    for kind, wanted in accepted.items():
        found = {text for text in texts if parse_transform(text).can_transform(vector_type(kind))}
        assert found == wanted, kind


@pytest.mark.parametrize(
    ("kind", "value", "hashed"),
    [
        (IntegerType(), 1, 1392991556),
        (IntegerType(), 34, 2017239379),
        (LongType(), 34, 2017239379),
        (DecimalType(9, 2), Decimal("14.20"), -500754589),
        (DecimalType(9, 2), Decimal("14.2"), -500754589),
        (DateType(), 17486, -653330422),
        (TimeType(), 81_068_000_000, -662762989),
        (TimestampType(), 1_510_871_468_000_000, -2047944441),
        (TimestampType(), 1_510_871_468_000_001, -1207196810),
        (TimestampNanoType(), 1_510_871_468_000_001_001, -1207196810),
        (StringType(), "iceberg", 1210000089),
        (StringType(), "34", -427558391),
        (UUIDType(), UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), 1488055340),
        (BinaryType(), bytes((0, 1, 2, 3)), -188683207),
    ],
    ids=str,
)
def test_hashes_are_those_of_the_specification(
    kind: IcebergType, value: object, hashed: int
) -> None:
    assert bucket_hash(kind)(value) == hashed


@pytest.mark.parametrize(
    ("text", "kind", "value", "result"),
    [
        ("truncate[10]", IntegerType(), -1, -10),
        ("truncate[10]", LongType(), -11, -20),
        ("truncate[10]", DecimalType(9, 2), Decimal("12.34"), Decimal("12.30")),
        ("truncate[10]", DecimalType(9, 2), Decimal("-0.05"), Decimal("-0.10")),
        ("truncate[2]", StringType(), "a😀b", "a😀"),
        ("truncate[2]", BinaryType(), b"abc", b"ab"),
        ("year", DateType(), -1, -1),
        ("month", TimestampType(), -1, -1),
        ("day", TimestampType(), -1, -1),
        ("hour", TimestampNanoType(), -1, -1),
    ],
)
def test_numbers_are_cut_toward_minus_infinity(
    text: str, kind: IcebergType, value: object, result: object
) -> None:
    assert parse_transform(text).apply(kind, value) == result


def test_null_stays_null_in_every_transform() -> None:
    for text in ("identity", "void", "bucket[4]", "truncate[4]"):
        assert parse_transform(text).apply(StringType(), None) is None
        assert parse_transform(text).human(StringType(), None) == "null"
    for text in ("year", "month", "day", "hour"):
        assert parse_transform(text).apply(TimestampType(), None) is None


def test_nan_is_its_own_identity_partition() -> None:
    value = parse_transform("identity").apply(DoubleType(), math.nan)
    assert parse_transform("identity").human(DoubleType(), value) == "NaN"


def test_times_are_shown_with_the_digits_that_they_need_in_threes() -> None:
    identity = parse_transform("identity")
    shown = {0: "00:00", 1_000_000: "00:00:01", 120_000: "00:00:00.120", 1: "00:00:00.000001"}
    for value, text in shown.items():
        assert identity.human(TimeType(), value) == text


def test_transform_that_is_not_known_is_kept_as_text_and_never_applied() -> None:
    for text in ("zorder", "Bucket_V2[16]", "bucket[]", "bucket[x]", "bucket[٤]"):
        transform = parse_transform(text)
        assert transform == UnknownTransform(text)
        assert str(transform) == text
        assert transform.can_transform(LongType())
        assert not transform.preserves_order
        assert transform.result_type(LongType()) == StringType()
        with pytest.raises(UnsupportedError, match="transform"):
            transform.apply(LongType(), 1)


@pytest.mark.parametrize("text", ["bucket[0]", "truncate[0]", "bucket[2147483648]"])
def test_width_that_is_no_positive_int_is_refused(text: str) -> None:
    with pytest.raises(InvalidMetadataError, match="from 1 to 2147483647"):
        parse_transform(text)


ORDERED = (
    (DateType(), ("identity", "year", "month", "day")),
    (TimestampNanoType(), ("identity", "year", "month", "day", "hour")),
    (LongType(), ("identity", "truncate[3]", "truncate[6]", "truncate[10]")),
    (DecimalType(9, 2), ("identity", "truncate[5]", "truncate[50]")),
    (StringType(), ("identity", "truncate[1]", "truncate[3]")),
    (BinaryType(), ("identity", "truncate[1]", "truncate[3]")),
)


def test_transforms_that_preserve_order_do_so_for_the_values_of_the_vectors() -> None:
    for kind, texts in ORDERED:
        values = ordered_values(kind)
        assert len(values) > 15
        for text in texts:
            transform = parse_transform(text)
            assert transform.preserves_order
            # The lowest numbers wrap around, as they do in the reference implementation.
            usable = values[2:] if "truncate" in text and kind in (LongType(),) else values
            parts: list[Any] = [transform.apply(kind, value) for value in usable]
            assert parts == sorted(parts), (text, str(kind))
    for text in ("bucket[4]", "void", "zorder"):
        assert not parse_transform(text).preserves_order


def ordered_values(kind: IcebergType) -> list[Any]:
    found: list[Any] = [
        source_value(case, kind)
        for case in CASES
        if case["type"] == str(kind) and case["value"] is not None
    ]
    return sorted(set(found))


def test_transform_of_a_type_that_it_does_not_accept_is_refused() -> None:
    for text, kind in (("bucket[4]", DoubleType()), ("hour", DateType())):
        with pytest.raises(UnsupportedError, match=str(kind)):
            parse_transform(text).apply(kind, 1)
    with pytest.raises(UnsupportedError):
        bucket_hash(StructType(()))
    with pytest.raises(UnsupportedError):
        DAY.function(LongType())


def test_transforms_are_equal_by_value_and_read_in_any_case() -> None:
    assert parse_transform("Bucket[016]") == parse_transform("bucket[16]")
    assert parse_transform("DAY") is DAY
    assert parse_transform("bucket[16]") != parse_transform("truncate[16]")
