"""Builders of what a benchmark has measured."""

from __future__ import annotations

from bench.records import Record, Value


def record(
    scenario: str = "a", system: str = "frazil", case: str = "16 writers", **values: Value
) -> Record:
    return Record(scenario, system, case, 0, values)
