from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pyarrow as pa
import pytest

from committer.errors import PublishError
from committer.iceberg.values.types import DoubleType, LongType, StringType
from tests.support.workers.tables import optional, required, schema
from workers.upserts.upsert import DeleteMark, Upsert
from workers.upserts.upsert_columns import bind_upsert
from workers.upserts.winning_rows import WinningRows

TABLE = schema(
    required(1, "id", LongType()),
    required(2, "name", StringType()),
    optional(3, "score", DoubleType()),
)
FRAME = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("score", pa.float64()),
        ("gone", pa.bool_()),
        ("at", pa.int64()),
    ]
)
Row = tuple[int, str | None, float | None, bool, int]
ORDERED = Upsert(("id",), DeleteMark("gone"), "at")


def winners(
    rows: Sequence[Row], *, step: int = 3, drop_bytes: int = 1 << 30, bytes_max: int = 1 << 30
) -> tuple[list[int], list[tuple[int, str]]]:
    """Return the keys that count, and those that are not deleted with their names."""
    columns = bind_upsert(ORDERED, FRAME, TABLE)
    collected = WinningRows(columns, drop_bytes=drop_bytes, bytes_max=bytes_max)
    for start in range(0, len(rows), step):
        values = list(zip(*rows[start : start + step], strict=True))
        collected.add(pa.record_batch([list(column) for column in values], schema=FRAME))
    found = collected.finish()
    if found is None:
        return [], []
    kept = [(row["id"], row["name"]) for row in found.rows.to_pylist()]
    return sorted(found.keys.column("id").to_pylist()), sorted(kept)


def test_the_highest_sequence_of_a_key_counts_in_whatever_order_rows_come() -> None:
    rows: list[Row] = [
        (1, "new", None, False, 9),
        (2, "only", None, False, 1),
        (1, "old", None, False, -3),
        (1, "older", None, False, -7),
    ]
    assert winners(rows) == ([1, 2], [(1, "new"), (2, "only")])
    assert winners(rows[::-1]) == ([1, 2], [(1, "new"), (2, "only")])


def test_a_deleted_key_counts_and_has_no_row() -> None:
    rows: list[Row] = [
        (1, "a", None, False, 1),
        (1, None, None, True, 2),  # which may lack what a row must have
        (2, "b", None, True, 1),
        (2, "again", None, False, 2),
    ]
    assert winners(rows) == ([1, 2], [(2, "again")])


def test_a_row_that_has_lost_need_not_fit_the_table() -> None:
    rows: list[Row] = [(1, None, None, False, 1), (1, "good", None, False, 2)]
    assert winners(rows) == ([1], [(1, "good")])
    with pytest.raises(PublishError, match="column name is required"):
        winners([(1, None, None, False, 1)])


def test_a_row_that_comes_twice_is_one() -> None:
    row: Row = (1, "a", math.nan, False, 5)
    assert winners([row, row, row, (1, "b", 0.0, False, 4)]) == ([1], [(1, "a")])


@pytest.mark.parametrize("other", ["b", "a"])
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
def test_two_rows_that_nothing_orders_are_refused(order: tuple[int, ...], other: str) -> None:
    same: Row = (1, "a", 0.0, False, 5)
    rows: list[Row] = [same, (1, other, -0.0, False, 5), same]
    with pytest.raises(PublishError, match=r"several different rows .*\{'id': 1\}.* equal in `at`"):
        winners([rows[at] for at in order])


@pytest.mark.parametrize("step", [1, 2, 5])
def test_a_tie_that_a_later_row_wins_over_is_none(step: int) -> None:
    rows: list[Row] = [
        (1, "a", None, False, 5),
        (1, "b", None, False, 5),
        (1, "c", None, False, 6),
    ]
    assert winners(rows, step=step, drop_bytes=1) == ([1], [(1, "c")])


def test_a_tie_is_found_though_losers_were_dropped_between_its_rows() -> None:
    rows: list[Row] = [
        (1, "a", None, False, 5),
        (1, "b", None, False, 5),
        (1, "c", None, False, 4),
    ]
    for order in ((0, 1, 2), (0, 2, 1), (2, 1, 0)):
        with pytest.raises(PublishError, match="several different rows"):
            winners([rows[at] for at in order], step=1, drop_bytes=1)


def test_without_a_sequence_rows_of_one_key_have_no_order() -> None:
    frame = FRAME.remove(4).remove(3)
    collected = WinningRows(bind_upsert(Upsert(("id",)), frame, TABLE))
    collected.add(pa.record_batch([[1, 1], ["a", "b"], [0.0, 0.0]], schema=frame))
    with pytest.raises(PublishError, match="option `upsert-sequence-column`"):
        collected.finish()


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_are_dropped_on_the_way_change_nothing(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    rows: list[Row] = [
        (chance.randrange(12), f"r{at}", None, chance.random() < 0.3, at) for at in range(200)
    ]
    chance.shuffle(rows)
    model: dict[int, Row] = {}
    for row in sorted(rows, key=lambda one: one[4]):
        model[row[0]] = row
    expected = (
        sorted(model),
        sorted((one[0], one[1]) for one in model.values() if not one[3] and one[1]),
    )
    assert winners(rows, step=7) == expected
    assert winners(rows, step=7, drop_bytes=1) == expected


def test_more_rows_than_fit_are_refused() -> None:
    rows: list[Row] = [(at, "x" * 1000, None, False, at) for at in range(2000)]
    with pytest.raises(PublishError, match="more than 1 MiB: use more partitions"):
        winners(rows, step=100, bytes_max=1 << 20)
    of_one_key: list[Row] = [(1, *row[1:]) for row in rows]
    assert winners(of_one_key, step=100, bytes_max=1 << 20, drop_bytes=1 << 18)[0] == [1]


def test_no_rows_have_no_winners() -> None:
    assert winners([]) == ([], [])
