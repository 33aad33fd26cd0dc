"""Percentiles, medians and ratios."""

from __future__ import annotations

import math

import pytest

from bench.statistics import Spread, median, percentile, ratio


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1), (0.01, 1), (0.5, 50), (0.99, 99), (0.991, 100), (1.0, 100)]
)
def test_a_percentile_is_a_value_that_this_share_does_not_exceed(
    share: float, expected: float
) -> None:
    assert percentile(range(100, 0, -1), share) == expected


def test_the_only_value_is_every_percentile() -> None:
    assert [percentile([7.0], share) for share in (0.0, 0.5, 0.99, 1.0)] == [7.0] * 4


def test_the_median_lies_in_the_middle() -> None:
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert median([4.0, 1.0, 2.0, 3.0]) == 2.5


def test_nothing_has_no_percentile_and_no_median() -> None:
    assert math.isnan(percentile([], 0.5))
    assert math.isnan(median([]))


def test_a_spread_leaves_out_what_was_not_measured() -> None:
    assert Spread.of([5.0, math.nan, 1.0, 3.0]) == Spread(3.0, 1.0, 5.0)
    assert math.isnan(Spread.of([math.nan]).median)


def test_a_ratio_to_nothing_is_no_number() -> None:
    assert ratio(6.0, 3.0) == 2.0
    assert math.isnan(ratio(6.0, 0.0))
