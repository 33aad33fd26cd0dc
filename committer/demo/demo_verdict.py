"""Compares a table with what was put in: sums by carrier, and file paths. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_NAMED_MAX = 5


@dataclass(frozen=True, slots=True)
class Sums:
    """Of the flights of one carrier. `arrived` counts those whose arrival delay is known."""

    flights: int = 0
    arrived: int = 0
    distance: int = 0
    arr_delay: int = 0

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.flights + other.flights,
            self.arrived + other.arrived,
            self.distance + other.distance,
            self.arr_delay + other.arr_delay,
        )


Carriers = Mapping[str, Sums]


@dataclass(frozen=True, slots=True)
class Reading:
    """A reader's findings in a table: sums by carrier, and the path of each live data file."""

    reader: str
    carriers: Carriers
    paths: Sequence[str]

    @property
    def duplicate_paths(self) -> list[str]:
        return sorted(path for path, times in Counter(self.paths).items() if times > 1)


def total(carriers: Carriers) -> Sums:
    """Sum over all carriers."""
    return sum(carriers.values(), Sums())


def differences(expected: Carriers, reading: Reading) -> list[str]:
    """Return each difference between the input and the reader's findings; none if all is well."""
    found = [
        *_differing_carriers(expected, reading),
        *(f"{reading.reader}: file named twice: {path}" for path in reading.duplicate_paths),
    ]
    rows, rows_expected = total(reading.carriers).flights, total(expected).flights
    if rows != rows_expected:
        found.insert(0, f"{reading.reader}: {rows:,} rows, expected {rows_expected:,}")
    return found


def _differing_carriers(expected: Carriers, reading: Reading) -> list[str]:
    return [
        f"{reading.reader}: carrier {carrier}: found {reading.carriers.get(carrier, Sums())},"
        f" expected {expected.get(carrier, Sums())}"
        for carrier in sorted(expected.keys() | reading.carriers.keys())
        if reading.carriers.get(carrier) != expected.get(carrier)
    ]


def disagreements(one: Reading, other: Reading) -> list[str]:
    """Describe data files that only one of two readers sees."""
    found = []
    for mine, others in ((one, other), (other, one)):
        alone = sorted(set(mine.paths) - set(others.paths))
        if alone:
            named = ", ".join(alone[:_NAMED_MAX])
            found.append(f"{len(alone)} data files are seen by {mine.reader} only: {named}")
    return found
