"""Filters as a request carries them."""

from __future__ import annotations

from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    EqualTo,
    In,
    Reference,
)
from workers.changes.spark_conditions import printed_filter


def test_a_filter_is_printed_where_it_leaves_rows_out() -> None:
    printed = {"type": "eq", "term": "id", "value": 5}
    assert printed_filter(EqualTo(Reference("id"), 5)) == printed
    assert printed_filter(ALWAYS_FALSE) is False
    assert printed_filter(ALWAYS_TRUE) is None


def test_a_filter_that_is_too_long_for_a_request_is_left_out() -> None:
    ids = tuple(range(10**8, 10**8 + 60_000))
    assert printed_filter(In(Reference("id"), ids)) is None
    assert printed_filter(In(Reference("id"), ids[:100])) is not None
