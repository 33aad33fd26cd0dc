"""Conditions as Spark plans them, read as Iceberg's: no row that Spark keeps is left out, and none
beside them is where the reading says that it is exact.

One Spark application, no committer.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from committer.iceberg.expressions.expression import (
    ALWAYS_TRUE,
    And,
    EqualTo,
    Expression,
    NotNull,
    Reference,
)
from committer.iceberg.expressions.expression_json import (
    DEPTH_MAX,
    parse_expression,
    print_expression,
)
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values import types as iceberg
from committer.iceberg.values.types import NestedField
from tests.support.iceberg.row_evaluator import row_evaluator
from tests.support.integration.random_conditions import COLUMNS, RandomConditions
from tests.support.integration.spark_session import spark_session
from workers.changes.spark_conditions import ALL_ROWS, NO_ROWS, RowFilter, filter_of
from workers.changes.tasks.row_kinds import FILE

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    # PySpark leaves the connection of a `collect` to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning"),
]

FIELDS: tuple[tuple[str, iceberg.IcebergType, str], ...] = (
    ("id", iceberg.IntegerType(), "int"),
    ("big", iceberg.LongType(), "bigint"),
    ("text", iceberg.StringType(), "string"),
    ("day", iceberg.DateType(), "date"),
    ("at", iceberg.TimestamptzType(), "timestamp"),
    ("clock", iceberg.TimestampType(), "timestamp_ntz"),
    ("price", iceberg.DecimalType(9, 2), "decimal(9,2)"),
    ("ratio", iceberg.DoubleType(), "double"),
    ("flag", iceberg.BooleanType(), "boolean"),
    (
        "place",
        iceberg.StructType((NestedField(20, "x", iceberg.IntegerType(), False),)),
        "struct<x: int>",
    ),
)
SCHEMA = Schema(
    tuple(NestedField(n + 1, name, kind, False) for n, (name, kind, _) in enumerate(FIELDS))
)
SPARKS = ", ".join(f"{name} {kind}" for name, _, kind in FIELDS)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NIGHT = datetime(2024, 3, 1, 9, 0, tzinfo=UTC)
# By column: values as Spark has them.
VALUES: tuple[tuple[Any, ...], ...] = (
    (None, -1, 5, 7),
    (None, 3, 2**40),
    (None, "", "a", "ab", "5", "x"),
    (None, date(2024, 1, 1), date(2024, 1, 2)),
    (None, NIGHT, NIGHT + timedelta(microseconds=1), NIGHT + timedelta(hours=1)),
    (None, NIGHT.replace(tzinfo=None), datetime(2025, 1, 1)),
    (None, Decimal("1.50"), Decimal("-2.00")),
    (None, -1.0, 0.0, -0.0, 1.0, math.inf, math.nan),
    (None, True, False),
    (None, (None,), (3,)),
)
ROWS = [
    tuple(
        value if at == column else VALUES[at][number % len(VALUES[at])] for at in range(len(FIELDS))
    )
    for column in range(len(FIELDS))
    for number, value in enumerate(VALUES[column] * 2)
] + [(*pair, *(None,) * 8) for pair in product(VALUES[0], VALUES[1])]
EXACT = (
    "id = 5",
    "id = 5 and text in ('a', 'x')",
    "big > 3 or not (id = 5)",
    "not (id = 5 and text = 'a')",
    "not (id is null or text = 'x')",
    "3 < id",
    "7 >= id",
    "id in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)",
    "id not in (5, 6)",
    "id between 0 and 6",
    "id is not null and big is null",
    "id = 5.0",
    "big = 3",
    "text <=> 'a'",
    "text like 'a%'",
    "not (text like 'a%')",
    "text > 'a'",
    "day >= '2024-01-02'",
    "day = date_add(date'2024-01-01', 1)",
    "day <> '2024-01-02'",
    "at > '2024-03-01 10:00:00'",
    "at = timestamp'2024-03-01 10:00:00'",
    "clock < timestamp_ntz'2024-06-01 00:00:00'",
    "price = 1.5",
    "price <= -2",
    "ratio > 0.5",
    "ratio < 0.5",
    "ratio = double('NaN')",
    "not (ratio > 0.5)",
    "flag",
    "not flag",
    "flag is null or flag",
    "place.x = 3",
    "place.x is null",
    "true",
    "false",
    "cast(null as boolean)",
)
# What Iceberg cannot say is left to Spark.
INEXACT = (
    "try_cast(text as int) = 5",
    "id % 2 = 1",
    "id = big",
    "ratio = 0.0",
    "id = 5 and length(text) = 1",
    "id = 5 or length(text) = 1",
    "upper(text) = 'A' and day is not null",
    "id = 5 and monotonically_increasing_id() >= 0",
    "id + 1 = 6",
    "text like '%b'",
    "not (id = 5 and length(text) = 1)",
    "place = named_struct('x', 3)",
    # Of one operand, and of three.
    "isnan(ratio)",
    "not isnan(ratio)",
    "if(flag, id = 5, id = 7)",
    "case when flag then id = 5 when big = 3 then true end",
    "coalesce(id = 5, flag, false) and text = 'a'",
    "cast(id as boolean)",
    "not cast(id as boolean) or big = 3",
    # Too many for a list: a set.
    f"id in ({', '.join(map(str, range(5, 10_010)))})",
)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    # Not UTC: a condition's times are of this zone.
    confs = {"spark.master": "local[1]", "spark.sql.session.timeZone": "Europe/Berlin"}
    with spark_session(tmp_path_factory.mktemp("spark"), confs, lambda _: None) as session:
        yield session


@pytest.fixture(scope="module")
def probe(spark: Any) -> Any:
    """Return a table without rows, as a change plans with it."""

    def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    return spark.range(0).mapInArrow(nothing, f"{SPARKS}, {FILE} string").alias("target")


def kept_by_spark(spark: Any, texts: Sequence[str]) -> dict[str, list[bool]]:
    """Ask Spark which rows each condition keeps, in one job."""
    rows = spark.createDataFrame([(n, *row) for n, row in enumerate(ROWS)], f"row int, {SPARKS}")
    answers = [
        F.coalesce(F.expr(text), F.lit(False)).alias(f"c{n}") for n, text in enumerate(texts)
    ]
    found = sorted(rows.select("row", *answers).collect())
    return {text: [answer[n + 1] for answer in found] for n, text in enumerate(texts)}


def in_memory(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return Iceberg's values of Spark's."""
    id_, big, text, day, at, clock, *rest = row
    return (
        id_,
        big,
        text,
        None if day is None else (day - EPOCH.date()).days,
        None if at is None else (at - EPOCH) // timedelta(microseconds=1),
        None
        if clock is None
        else (clock - EPOCH.replace(tzinfo=None)) // timedelta(microseconds=1),
        *rest,
    )


def matches(expression: Expression) -> list[bool]:
    test = row_evaluator(SCHEMA, expression)
    return [test(in_memory(row)) for row in ROWS]


def test_an_exact_reading_has_the_rows_of_spark(spark: Any, probe: Any) -> None:
    kept = kept_by_spark(spark, EXACT)
    for text in EXACT:
        found = filter_of(probe.filter(F.expr(text)), SCHEMA, FILE)
        assert found.is_exact, text
        assert matches(found.expression) == kept[text], text
        # A request carries it as JSON.
        parsed = parse_expression(print_expression(found.expression))
        assert matches(parsed) == kept[text], text
    assert len({tuple(answer) for answer in kept.values()}) > 20


def test_any_other_reading_leaves_no_row_of_spark_out(spark: Any, probe: Any) -> None:
    kept = kept_by_spark(spark, INEXACT)
    for text in INEXACT:
        found = filter_of(probe.filter(F.expr(text)), SCHEMA, FILE)
        assert not found.is_exact, text
        pairs = list(zip(matches(found.expression), kept[text], strict=True))
        assert all(matched or not is_kept for matched, is_kept in pairs), text
    at_least = filter_of(probe.filter("id = 5 and length(text) = 1"), SCHEMA, FILE).expression
    assert False in matches(at_least)


def test_an_hour_that_comes_twice_is_left_to_spark(probe: Any) -> None:
    for text, is_exact in (("02:30:00", False), ("03:30:00", True)):
        found = filter_of(probe.filter(f"at < '2024-10-27 {text}'"), SCHEMA, FILE)
        assert found.is_exact == is_exact


def test_a_join_says_what_it_asks_of_the_rows_of_the_table(spark: Any, probe: Any) -> None:
    source = spark.createDataFrame([(1, "a"), (7, "b")], "id int, word string").alias("source")
    same_id = "target.id = source.id"
    by_id = NotNull(Reference("id"))
    for on, rows, expected in (
        (same_id, source, by_id),
        (f"{same_id} and target.text = 'x'", source, None),
        (same_id, source.where("source.id = 7"), None),
        (f"{same_id} or target.text = 'x'", source, ALWAYS_TRUE),
        ("coalesce(target.id, 1) = source.id", source, ALWAYS_TRUE),
    ):
        found = filter_of(probe.join(rows, F.expr(on), "inner"), SCHEMA, FILE)
        assert not found.is_exact
        if expected is not None:
            assert found.expression == expected
    with_text = probe.join(source, F.expr(f"{same_id} and target.text = 'x'"), "inner")
    assert EqualTo(Reference("text"), "x") in parts(filter_of(with_text, SCHEMA, FILE))
    with_id = probe.join(source.where("source.id = 7"), F.expr(same_id), "inner")
    assert EqualTo(Reference("id"), 7) in parts(filter_of(with_id, SCHEMA, FILE))
    # Rows of the table that nothing matches stay in such a join: it asks nothing of them.
    for how in ("left", "full"):
        found = filter_of(
            probe.join(source, F.expr(f"{same_id} and target.id = 1"), how), SCHEMA, FILE
        )
        assert found.expression == ALWAYS_TRUE


def parts(found: RowFilter) -> list[Expression]:
    todo, done = [found.expression], []
    while todo:
        one = todo.pop()
        if isinstance(one, And):
            todo += [one.left, one.right]
        else:
            done.append(one)
    return done


def test_the_sessions_setting_is_as_it_was(spark: Any, probe: Any) -> None:
    name = "spark.sql.optimizer.inSetConversionThreshold"
    before = spark.conf.get(name)
    assert filter_of(probe.filter("id in (1, 2)"), SCHEMA, FILE).is_exact
    assert spark.conf.get(name) == before
    assert filter_of(probe.filter("true"), SCHEMA, FILE) == ALL_ROWS
    assert filter_of(probe.filter("false"), SCHEMA, FILE) == NO_ROWS


# --- Random conditions ---------------------------------------------------------------------------

SEEDS = range(1)
PER_SEED = 40


@pytest.mark.parametrize("seed", SEEDS)
def test_random_conditions_are_read_as_spark_means_them(spark: Any, probe: Any, seed: int) -> None:
    check_random(spark, probe, seed, PER_SEED)


@pytest.mark.heavy
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", range(len(SEEDS), 20))
def test_many_random_conditions_are_read_as_spark_means_them(
    spark: Any, probe: Any, seed: int
) -> None:
    check_random(spark, probe, seed, 5 * PER_SEED)


def check_random(spark: Any, probe: Any, seed: int, count: int) -> None:
    print(f"seed {seed}")
    conditions = RandomConditions(seed)
    texts = sorted({conditions.draw() for _ in range(count)})
    kept: dict[str, list[bool]] = {}
    for start in range(0, len(texts), 20):
        kept |= kept_by_spark(spark, texts[start : start + 20])
    exact = 0
    for text in texts:
        found = filter_of(probe.filter(F.expr(text)), SCHEMA, FILE)
        matched = matches(parse_expression(print_expression(found.expression)))
        exact += found.is_exact
        if found.is_exact:
            assert matched == kept[text], text
        else:
            assert all(
                is_matched or not is_kept
                for is_matched, is_kept in zip(matched, kept[text], strict=True)
            ), text
    assert 0 < exact < len(texts)


def test_random_conditions_are_of_every_kind_and_type() -> None:
    assert {name: kind for name, _, kind in FIELDS} == COLUMNS
    conditions = [RandomConditions(seed) for seed in SEEDS]
    for each in conditions:
        for _ in range(PER_SEED):
            each.draw()
    assert {kind for each in conditions for kind in each.drawn} == conditions[0].kinds


# --- Conditions of any depth ---------------------------------------------------------------------


def test_a_chain_of_any_length_is_read_whole(probe: Any) -> None:
    """A request holds so many levels: one for each operand would be too many."""
    by_value = [F.col("id") == F.lit(value) for value in range(6, 246)]
    assert len(by_value) > DEPTH_MAX
    found = filter_of(probe.filter(reduce(operator.or_, by_value)), SCHEMA, FILE)
    assert found.is_exact
    parsed = parse_expression(print_expression(found.expression))
    assert matches(parsed) == [row[0] == 7 for row in ROWS]
    by_text = " AND ".join(f"id <> {value}" for value in range(6, 606))
    found = filter_of(probe.filter(by_text), SCHEMA, FILE)
    assert found.is_exact
    parsed = parse_expression(print_expression(found.expression))
    assert matches(parsed) == [row[0] is not None and row[0] != 7 for row in ROWS]


def test_what_is_nested_too_deep_for_a_request_is_left_to_spark(probe: Any) -> None:
    condition = F.col("flag")
    for value in range(DEPTH_MAX // 3):
        condition = (condition & (F.col("id") != F.lit(value))) | (F.col("big") == F.lit(value))
    found = filter_of(probe.filter(condition), SCHEMA, FILE)
    assert not found.is_exact
    parse_expression(print_expression(found.expression))


@pytest.mark.parametrize("zone", ["+01:00", "GMT+8", "PST", "UTC+01:30"])
def test_times_in_a_zone_that_python_has_no_name_for_are_left_to_spark(
    spark: Any, probe: Any, zone: str
) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        assert filter_of(probe.filter("id = 5"), SCHEMA, FILE).is_exact
        found = filter_of(probe.filter("id = 5 and at > '2024-03-01 10:00:00'"), SCHEMA, FILE)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert not found.is_exact
    assert EqualTo(Reference("id"), 5) in parts(found)


def test_a_subquery_says_nothing_of_files(spark: Any, probe: Any) -> None:
    spark.createDataFrame([(5,)], "n int").createOrReplaceTempView("numbers")
    for text in (
        "id in (select n from numbers)",
        "id = (select max(n) from numbers)",
        "exists (select 1 from numbers where n = id)",
        "id not in (select n from numbers) or flag",
    ):
        found = filter_of(probe.filter(F.expr(text)), SCHEMA, FILE)
        assert not found.is_exact, text
        assert True in matches(found.expression), text


def test_a_function_of_python_is_left_to_spark(spark: Any, probe: Any) -> None:
    is_odd = F.udf(lambda value: value is not None and value % 2 == 1, "boolean")
    found = filter_of(probe.filter(is_odd("id") & (F.col("text") == "a")), SCHEMA, FILE)
    assert not found.is_exact
