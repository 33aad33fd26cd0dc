"""Metrics modes come from the table's properties as in the reference implementation."""

from __future__ import annotations

import pytest

from committer.iceberg.schema.metrics_config import (
    COUNTS,
    DEFAULT,
    FULL,
    NONE,
    MetricsMode,
    metrics_config,
)
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED, SortField, SortOrder
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import (
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)


def optional_struct(field_id: int, name: str, *fields: NestedField) -> NestedField:
    return NestedField(field_id, name, StructType(fields), required=False)


def number(field_id: int, name: str) -> NestedField:
    return NestedField(field_id, name, IntegerType(), required=False)


NESTED = Schema(
    (
        optional_struct(11, "a", number(21, "i"), optional_struct(22, "s", number(31, "x")),
                        number(23, "b")),
        optional_struct(12, "c", number(24, "i")),
        number(13, "i"),
        NestedField(14, "l", ListType(25, LongType(), True), required=False),
        NestedField(15, "m", MapType(26, StringType(), 27, LongType(), False), required=False),
    )
)  # fmt: skip
PRIMITIVES = [13, 21, 23, 31, 24, 25, 26, 27]
MAX = "write.metadata.metrics.max-inferred-column-defaults"
DEFAULT_KEY = "write.metadata.metrics.default"


def build_order(*fields: tuple[int, str]) -> SortOrder:
    return SortOrder(
        1,
        tuple(
            SortField((source_id,), parse_transform(transform), "asc", "nulls-first")
            for source_id, transform in fields
        ),
    )


def test_every_primitive_column_has_bounds_of_sixteen_by_default() -> None:
    assert metrics_config({}, NESTED, UNSORTED) == dict.fromkeys(PRIMITIVES, DEFAULT)
    assert MetricsMode(counts=True, bounds=True, bounds_width=16) == DEFAULT


def test_wide_tables_have_metrics_for_the_first_columns_of_each_level_before_nested_ones() -> None:
    for count in range(len(PRIMITIVES) + 2):
        modes = metrics_config({MAX: str(count)}, NESTED, UNSORTED)
        assert [field_id for field_id in PRIMITIVES if modes[field_id] == DEFAULT] == (
            PRIMITIVES[:count]
        )
        assert set(modes.values()) <= {DEFAULT, NONE}


def test_hundred_and_first_column_has_no_metrics() -> None:
    schema = Schema(tuple(number(field_id, f"c{field_id}") for field_id in range(1, 103)))
    modes = metrics_config({}, schema, UNSORTED)
    assert (modes[100], modes[101], modes[102]) == (DEFAULT, NONE, NONE)
    assert metrics_config({MAX: "-1"}, schema, UNSORTED) == modes
    assert metrics_config({MAX: "many"}, schema, UNSORTED) == modes


def test_configured_default_is_for_all_columns_however_many() -> None:
    modes = metrics_config({DEFAULT_KEY: "Counts", MAX: "1"}, NESTED, UNSORTED)
    assert modes == dict.fromkeys(PRIMITIVES, COUNTS)


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("none", NONE),
        ("counts", COUNTS),
        ("FULL", FULL),
        ("truncate(4)", MetricsMode(counts=True, bounds=True, bounds_width=4)),
    ],
)
def test_column_has_the_mode_of_its_own_property(text: str, mode: MetricsMode) -> None:
    modes = metrics_config({"write.metadata.metrics.column.a.s.x": text}, NESTED, UNSORTED)
    assert modes == dict.fromkeys(PRIMITIVES, DEFAULT) | {31: mode}


@pytest.mark.parametrize("text", ["", "some", "truncate(0)", "truncate(-1)", "truncate(x)"])
def test_mode_that_is_not_known_is_ignored(text: str) -> None:
    column = "write.metadata.metrics.column.i"
    assert metrics_config({DEFAULT_KEY: text}, NESTED, UNSORTED)[13] == DEFAULT
    assert metrics_config({DEFAULT_KEY: "counts", column: text}, NESTED, UNSORTED)[13] == COUNTS


def test_columns_that_rows_are_sorted_by_have_bounds_unless_told_otherwise() -> None:
    order = build_order((13, "identity"), (21, "truncate[4]"), (23, "bucket[4]"), (99, "identity"))
    modes = metrics_config({DEFAULT_KEY: "none"}, NESTED, order)
    assert modes == dict.fromkeys(PRIMITIVES, NONE) | {13: DEFAULT, 21: DEFAULT}
    assert metrics_config({DEFAULT_KEY: "full"}, NESTED, order)[13] == FULL
    told = {DEFAULT_KEY: "counts", "write.metadata.metrics.column.i": "none"}
    assert metrics_config(told, NESTED, order)[13] == NONE


def test_property_of_a_column_that_does_not_exist_is_ignored() -> None:
    told = {"write.metadata.metrics.column.gone": "none"}
    assert metrics_config(told, NESTED, UNSORTED) == metrics_config({}, NESTED, UNSORTED)
