"""Numbers out of many: percentiles, medians, ranges, ratios. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, nan


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that `share` of the values do not exceed; NaN of none."""
    if not values:
        return nan
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def median(values: Sequence[float]) -> float:
    """Return the value in the middle, or the mean of the two there; NaN of none."""
    if not values:
        return nan
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


@dataclass(frozen=True, slots=True)
class Spread:
    """The spread of a value over several rounds."""

    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        known = [value for value in values if value == value]
        if not known:
            return cls(nan, nan, nan)
        return cls(median(known), min(known), max(known))


def ratio(value: float, base: float) -> float:
    """Return the ratio; NaN if the base is 0."""
    return value / base if base else nan
