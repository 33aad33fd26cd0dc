"""Deletes, updates and merges by conditions of every kind: the rows that Spark chooses change."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import functions as F

from frazil.spark import delete_from, merge_into, update
from tests.integration.changes.harness import ChangesHarness
from tests.support.integration.random_conditions import COLUMNS, RandomConditions
from tests.support.integration.real_harness import CATALOG

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    # PySpark leaves the connection of a `collect` to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning"),
]

SPARKS = "number INT, mark INT, " + ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
AT = datetime(2024, 3, 1, 10, 0, tzinfo=UTC)
# The values of each column, as Spark has them.
VALUES: tuple[tuple[Any, ...], ...] = (
    (None, -1, 1, 2, 5, 7),
    (None, 3, 5, 2**40),
    (None, "", "a", "ab", "5", "x"),
    (None, date(2024, 1, 1), date(2024, 1, 2)),
    (None, AT, AT.replace(microsecond=1)),
    (None, AT.replace(tzinfo=None), datetime(2025, 1, 1)),
    (None, Decimal("1.50"), Decimal("-2.00")),
    (None, -1.0, 0.0, -0.0, 1.0, float("inf"), float("nan")),
    (None, True, False),
    (None, (None,), (3,)),
)
SEED = 38
_CHANCE = random.Random(SEED)
ROWS = [(number, 0, *map(_CHANCE.choice, VALUES)) for number in range(42)]
# Conjuncts of one operand and of three, on which a change has failed, and what is like them.
TEXTS: Mapping[str, tuple[str, ...]] = {
    "update": (
        "isnan(ratio)",
        "IF(flag, id = 1, id = 2)",
        "CASE WHEN flag THEN id = 5 ELSE id = 7 END",
        "id IN (SELECT n FROM numbers)",
    ),
    "delete": (
        "coalesce(id = 1, flag, false) AND big IS NOT NULL",
        "cast(id AS boolean)",
        f"id IN ({', '.join(map(str, range(5, 10_010)))})",
        "id NOT IN (SELECT n FROM numbers) OR flag",
    ),
    "merge": (
        "isnan(ratio)",
        "IF(flag, id = 1, id = 2)",
        "NOT cast(id AS boolean)",
    ),
}
# Of random conditions, for each command.
COUNT = 2


@pytest.fixture
def rows(harness: ChangesHarness) -> Iterator[Any]:
    harness.frame([(1,), (5,)], "n INT").createOrReplaceTempView("numbers")
    yield harness.frame(ROWS, SPARKS)


def create(harness: ChangesHarness, name: str, rows: Any, **properties: Any) -> None:
    """Create a table of all rows, in a few files."""
    harness.create(name, SPARKS, **properties)
    rows.repartition(3).createOrReplaceTempView("rows_of_conditions")
    harness.sql(f"INSERT INTO {CATALOG}.{name} SELECT * FROM rows_of_conditions")


def texts_of(command: str) -> list[str]:
    seed = SEED + len(command) + ord(command[0])
    conditions = RandomConditions(seed)
    texts = [conditions.draw() for _ in range(COUNT)]
    print(f"seed {seed}: {texts}")
    return [*TEXTS[command], *texts]


def chosen(rows: Any, text: str) -> set[int]:
    """Return the numbers of the rows for which Spark says that a condition is true."""
    return {row[0] for row in rows.filter(F.expr(text)).select("number").collect()}


def numbers(harness: ChangesHarness, name: str, mark: int | None = None) -> set[int]:
    found = harness.rows(name, "number, mark")
    return {number for number, marked in found if mark is None or marked == mark}


@pytest.mark.parametrize(
    "mode", ["copy-on-write", pytest.param("merge-on-read", marks=pytest.mark.heavy)]
)
def test_an_update_changes_the_rows_that_spark_chooses(
    harness: ChangesHarness, rows: Any, mode: str
) -> None:
    name = f"conditions.updated_{mode[:4]}"
    create(harness, name, rows, write_update_mode=mode)
    for mark, text in enumerate(texts_of("update"), 1):
        changed = update(name, {"mark": str(mark)}, text, spark=harness.spark)
        expected = chosen(rows, text)
        assert (changed.updated_rows, numbers(harness, name, mark)) == (
            len(expected),
            expected,
        ), text
    assert numbers(harness, name) == set(range(len(ROWS)))


@pytest.mark.heavy
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_delete_removes_the_rows_that_spark_chooses(
    harness: ChangesHarness, rows: Any, mode: str
) -> None:
    name = f"conditions.deleted_{mode[:4]}"
    create(harness, name, rows, write_delete_mode=mode)
    left = set(range(len(ROWS)))
    for part, text in enumerate(texts_of("delete")):
        # Some rows each time, so that there are some for the next one.
        where = f"({text}) AND number % 7 = {part % 7}"
        delete_from(name, where, spark=harness.spark)
        left -= chosen(rows, where)
        assert numbers(harness, name) == left, text


@pytest.mark.heavy
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_merge_matches_the_pairs_that_spark_chooses(
    harness: ChangesHarness, rows: Any, mode: str
) -> None:
    name = f"conditions.merged_{mode[:4]}"
    create(harness, name, rows, write_merge_mode=mode)
    source = harness.frame([(number,) for number in range(0, 60, 2)], "pick INT")
    texts = texts_of("merge")
    for mark, text in enumerate(texts, 1):
        even = {number for number in chosen(rows, text) if number % 2 == 0}
        by_condition = merge_into(name, source, f"number = pick AND ({text})")
        changed = by_condition.when_matched_update(set={"mark": str(mark)}).execute()
        assert (changed.updated_rows, numbers(harness, name, mark)) == (len(even), even), text
    by_clause = merge_into(name, source, "number = pick")
    for mark, text in enumerate(texts[:3], 100):
        by_clause = by_clause.when_matched_update(text, set={"mark": str(mark)})
    by_clause.execute()
    expected: dict[int, int] = {}
    for mark, text in reversed(list(enumerate(texts[:3], 100))):
        expected |= {number: mark for number in chosen(rows, text) if number % 2 == 0}
    for mark in (100, 101, 102):
        assert numbers(harness, name, mark) == {k for k, v in expected.items() if v == mark}


def test_a_merge_by_a_function_of_python_matches_as_it_says(
    harness: ChangesHarness, rows: Any
) -> None:
    """It has the name of a function of Spark's own, which is another one."""
    name = "conditions.by_function"
    create(harness, name, rows, write_merge_mode="merge-on-read")
    source = harness.frame([(1,), (3,)], "pick INT")

    # Of one with hints Spark makes another kind of function.
    def negative(value):  # type: ignore[no-untyped-def]
        return value + 1

    on = F.col("number") == F.udf(negative, "int")(F.col("pick"))
    merge = merge_into(name, source, on)
    assert merge.when_matched_update(set={"mark": "1"}).execute().updated_rows == 2
    assert numbers(harness, name, 1) == {2, 4}
