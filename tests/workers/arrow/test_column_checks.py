from __future__ import annotations

import pyarrow as pa
import pytest

from committer.errors import PublishError
from committer.iceberg.schema.table_text import parse_columns
from workers.arrow.arrow_schema import match_columns
from workers.arrow.column_checks import check_nullability, check_order

TABLE = parse_columns("a long not null, b string, s struct<x: long not null, y: long>")


def frame(*order: str, nullable: bool = True) -> pa.Schema:
    inner = [pa.field(name, pa.int64(), nullable) for name in order if name in "xy"]
    kinds = {"a": pa.int64(), "b": pa.string(), "s": pa.struct(inner)}
    return pa.schema([pa.field(name, kinds[name], nullable) for name in order if name in kinds])


@pytest.mark.parametrize("order", ["abxys", "asxy", "ab", "a"])
def test_fields_in_the_tables_order_pass(order: str) -> None:
    check_order(match_columns(frame(*order), TABLE).columns)


@pytest.mark.parametrize(("order", "column"), [("baxys", "b"), ("abyxs", r"s\.y")])
def test_a_field_out_of_order_is_named(order: str, column: str) -> None:
    with pytest.raises(PublishError, match=rf"column {column} comes before column"):
        check_order(match_columns(frame(*order), TABLE).columns)


def test_what_may_be_null_and_must_not_is_named_at_every_level() -> None:
    found = frame(*"abxys")
    with pytest.raises(PublishError, match=r"requires a, s\.x, and"):
        check_nullability(list(found), match_columns(found, TABLE).columns)
    strict = frame(*"abxys", nullable=False)
    check_nullability(list(strict), match_columns(strict, TABLE).columns)
