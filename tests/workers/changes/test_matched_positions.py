"""Positions that tasks collect: of each data file, and which of them came twice."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from workers.changes.tasks.matched_positions import MatchedPositions


def add(found: MatchedPositions, *rows: tuple[str, int]) -> int:
    files = pa.array([path for path, _ in rows], pa.string())
    return found.add(files, pa.array([position for _, position in rows], pa.int64()))


def test_rows_of_any_order_are_collected_by_file() -> None:
    chance = random.Random("positions")
    some = [(f"f{chance.randrange(5)}", chance.randrange(1 << 40)) for _ in range(2_000)]
    rows = list(dict.fromkeys(some))
    found = MatchedPositions()
    for start in range(0, len(rows), 300):
        part = rows[start : start + 300]
        assert add(found, *part) == len(part)
    expected: dict[str, list[int]] = {}
    for path, position in rows:
        expected.setdefault(path, []).append(position)
    assert {path: list(one) for path, one in found.by_file.items()} == {
        path: sorted(positions) for path, positions in expected.items()
    }
    assert found.repeated is None


@pytest.mark.parametrize("batches", [[[("a", 7), ("b", 7), ("a", 7)]], [[("a", 7)], [("a", 7)]]])
def test_a_row_that_comes_twice_is_told(batches: list[list[tuple[str, int]]]) -> None:
    found = MatchedPositions()
    added = sum(add(found, *rows) for rows in batches)
    assert found.repeated == ("a", 7)
    assert added == sum(map(len, batches)) - 1
    assert sum(vector.cardinality for vector in found.by_file.values()) == added


def test_no_rows_are_nothing() -> None:
    found = MatchedPositions()
    assert add(found) == 0
    assert found.by_file == {}
