"""A footer that other writers wrote says less than ours, and sometimes what is not true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from committer.iceberg.schema.metrics_config import FULL
from committer.iceberg.values.types import (
    DecimalType,
    DoubleType,
    IcebergType,
    LongType,
    StringType,
)
from workers.arrow.footer_metrics import ColumnFacts, Leaf, column_facts


@dataclass(frozen=True)
class Statistics:
    """Statistics as pyarrow shows those of a footer; None for what it lacks."""

    null_count: int | None
    low: object = None
    high: object = None

    @property
    def has_null_count(self) -> bool:
        return self.null_count is not None

    @property
    def has_min_max(self) -> bool:
        return self.low is not None

    @property
    def min_raw(self) -> object:
        return self.low

    @property
    def max_raw(self) -> object:
        return self.high


@dataclass(frozen=True)
class Group:
    """A row group of one column."""

    num_values: int
    statistics: Statistics | None

    def column(self, position: int) -> Group:
        return self


def facts(kind: IcebergType, groups: Sequence[Group], units: int = 1) -> ColumnFacts:
    return column_facts(groups, Leaf(1, kind, (), False, FULL, 0, units))


def test_all_row_groups_count_and_bound_together() -> None:
    groups = [Group(3, Statistics(1, 5, 9)), Group(2, Statistics(0, -1, 6))]
    assert facts(LongType(), groups) == ColumnFacts(5, 1, (-1, 9))
    assert facts(LongType(), groups, units=1_000) == ColumnFacts(5, 1, (-1_000, 9_000))


def test_a_row_group_of_nulls_needs_no_bounds() -> None:
    groups = [Group(3, Statistics(3)), Group(2, Statistics(0, 5, 6))]
    assert facts(LongType(), groups) == ColumnFacts(5, 3, (5, 6))
    assert facts(LongType(), groups[:1]) == ColumnFacts(3, 3, None)


@pytest.mark.parametrize("silent", [None, Statistics(None), Statistics(1)], ids=str)
def test_one_row_group_without_bounds_leaves_the_file_without(silent: Statistics | None) -> None:
    found = facts(LongType(), [Group(2, Statistics(0, 5, 6)), Group(2, silent)])
    assert found.bounds is None
    is_counted = silent is not None and silent.has_null_count
    assert found.null_count == (1 if is_counted else None)


def test_nulls_that_one_row_group_does_not_count_are_unknown() -> None:
    groups = [Group(2, Statistics(None, 5, 6)), Group(2, Statistics(1, 5, 6))]
    assert facts(LongType(), groups) == ColumnFacts(4, None, (5, 6))


def test_a_nan_is_no_bound_and_zeros_bound_both_zeros() -> None:
    nan = float("nan")
    for low, high in ((nan, 1.0), (1.0, nan), (nan, nan)):
        assert facts(DoubleType(), [Group(2, Statistics(0, low, high))]).bounds is None
    assert str(facts(DoubleType(), [Group(1, Statistics(0, 0.0, -0.0))]).bounds) == "(-0.0, 0.0)"


def test_decimals_in_bytes_compare_as_numbers() -> None:
    low, high = (number.to_bytes(4, "big", signed=True) for number in (-5, 7))
    groups = [Group(1, Statistics(0, low, low)), Group(1, Statistics(0, high, high))]
    found = facts(DecimalType(12, 2), groups).bounds
    assert found is not None and [str(one) for one in found] == ["-0.05", "0.07"]


def test_a_text_that_was_cut_within_a_character_bounds_nothing() -> None:
    groups = [Group(1, Statistics(0, b"a", "é".encode()[:1]))]
    assert facts(StringType(), groups) == ColumnFacts(1, 0, None)
