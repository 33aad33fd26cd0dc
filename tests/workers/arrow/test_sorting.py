"""Rows come into the order of the table: NaN, zeros and nulls where the specification has them."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from committer.iceberg.schema.sort_order import SortField, SortOrder
from committer.iceberg.schema.table_text import parse_columns, parse_sort_order
from committer.iceberg.values.transforms import parse_transform
from workers.arrow.arrow_schema import arrow_schema
from workers.arrow.sorting import Sorter, bind_sorter

TABLE = parse_columns("n long, d double, t string, s struct<x: timestamptz>")
FILE = arrow_schema(TABLE)


def sorter(text: str) -> Sorter:
    found = bind_sorter(parse_sort_order(text, TABLE), TABLE, FILE)
    assert found is not None
    return found


def rows(column: str, values: list[object]) -> pa.Table:
    numbers: list[object] = list(range(len(values)))
    whole = {**dict.fromkeys(FILE.names, [None] * len(values)), "n": numbers, column: values}
    return pa.table(whole, schema=FILE)


def numbers(order: str, column: str, values: list[object]) -> list[int]:
    """Return which row is where after the sort."""
    found = sorter(order).sort(rows(column, values))
    return found.column("n").to_pylist()  # type: ignore[no-any-return]


ODD = [1.0, math.nan, None, -0.0, 0.0, -math.inf, math.inf]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("d", [2, 5, 3, 4, 0, 6, 1]),
        ("d nulls last", [5, 3, 4, 0, 6, 1, 2]),
        ("d desc", [1, 6, 0, 4, 3, 5, 2]),
        ("d desc nulls first", [2, 1, 6, 0, 4, 3, 5]),
    ],
)
def test_odd_numbers_are_where_the_specification_has_them(order: str, expected: list[int]) -> None:
    assert numbers(order, "d", list(ODD)) == expected


def test_texts_compare_as_bytes_and_equal_rows_keep_their_order() -> None:
    assert numbers("t", "t", ["b", "é", "a", "b", "Z", "a"]) == [4, 2, 5, 0, 3, 1]
    assert numbers("truncate(1, t) desc", "t", ["ab", "b", "aa", "bb"]) == [1, 3, 0, 2]


def test_a_column_inside_a_struct_and_a_later_key_count() -> None:
    values = [{"x": 7_200_000_000}, {"x": 3_600_000_001}, {"x": 3_600_000_000}]
    assert numbers("hour(s.x), n desc", "s", list(values)) == [2, 1, 0]


def test_rows_in_order_are_not_copied() -> None:
    table = rows("n", [1, 2, 3])
    assert sorter("n").sort(table) is table
    assert sorter("n desc").sort(table).column("n").to_pylist() == [3, 2, 1]


@pytest.mark.parametrize(("last", "first", "follows"), [(1, 2, True), (2, 2, True), (2, 1, False)])
def test_a_row_follows_another_unless_it_is_before_it(last: int, first: int, follows: bool) -> None:
    assert sorter("n").follows(rows("n", [last]), rows("n", [first])) is follows


def test_an_order_that_is_not_known_whole_sorts_nothing() -> None:
    fields = [
        SortField((1,), parse_transform(text), "asc", "nulls-first")
        for text in ("identity", "zorder")
    ]
    assert bind_sorter(SortOrder(1, tuple(fields)), TABLE, FILE) is None
    assert bind_sorter(SortOrder(1, (fields[0],)), TABLE, FILE) is not None
    assert bind_sorter(SortOrder(), TABLE, FILE) is None
