"""A file's partition is proven by its bounds, said by its path, or refused by the field's name."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.table_text import parse_sort_order
from committer.iceberg.values.locations import shortened_path
from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestamptzType,
)
from tests.support.workers.parquet_files import adopt, parquet_bytes, problems, target_of
from tests.support.workers.tables import optional, required, schema, struct
from tests.support.workers.write_target import spec_of
from workers.adoption.adopt_file import Adopted

HOUR = 3_600_000_000


def partition(
    kind: IcebergType,
    transform: str,
    column: pa.Array | list[object] | None,
    location: str = "file:///t/a.parquet",
    **options: object,
) -> tuple[object, ...] | str:
    """Return the partition of a file with a column `c`, or the one problem with it."""
    target = target_of(
        schema(optional(1, "c", kind), optional(2, "other", LongType())),
        spec_of((1, "p", transform)),
    )
    columns = {"other": [0] * (1 if column is None else len(column))}
    if column is not None:
        columns["c"] = column  # type: ignore[assignment]
    outcome = adopt(parquet_bytes(pa.table(columns), **options), target, location)
    if isinstance(outcome, Adopted):
        return outcome.file.partition
    [problem] = problems(outcome)
    return problem


# --- By the footer --------------------------------------------------------------------------------

INSTANT = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp() * 1_000_000)


def times(*values: int | None) -> pa.Array:
    return pa.array(values, pa.timestamp("us", "UTC"))


@pytest.mark.parametrize(
    ("kind", "transform", "column", "expected"),
    [
        (LongType(), "identity", [7, 7], 7),
        (LongType(), "bucket[16]", [34, 34], 2017239379 % 16),
        (LongType(), "truncate[10]", [11, 19], 10),
        (LongType(), "void", [1, 2], None),
        (LongType(), "identity", pa.nulls(2, pa.int64()), None),
        (StringType(), "identity", ["a" * 100] * 2, "a" * 100),
        (StringType(), "truncate[2]", ["abc", "abz"], "ab"),
        (BinaryType(), "identity", [b"\xff"], b"\xff"),
        (BooleanType(), "identity", [True, True], True),
        (DecimalType(9, 2), "identity", [Decimal("1.50")] * 2, Decimal("1.50")),
        (DateType(), "month", pa.array([20513, 20540], pa.date32()), 674),
        (TimestamptzType(), "day", times(INSTANT, INSTANT + HOUR), 20513),
        (TimestamptzType(), "hour", times(INSTANT, INSTANT + HOUR - 1), 492324),
        (TimestamptzType(), "year", times(None, None), None),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bounds_that_give_one_value_prove_it(
    kind: IcebergType, transform: str, column: pa.Array, expected: object
) -> None:
    if isinstance(kind, DecimalType):
        column = pa.array(column, pa.decimal128(9, 2))
    assert partition(kind, transform, column) == (expected,)


@pytest.mark.parametrize(
    ("kind", "transform", "column", "said"),
    [
        (LongType(), "identity", [7, 8], "more than one partition"),
        (LongType(), "identity", [7, None], "nulls and other values"),
        (LongType(), "bucket[1]", [7, 8], "more than one partition"),
        (LongType(), "sieve[3]", [7], "not known"),
        (TimestamptzType(), "day", times(INSTANT, INSTANT + 24 * HOUR), "more than one"),
        (DoubleType(), "identity", [1.0, float("nan")], "NaN"),
        (StringType(), "identity", ["a" * 5_000] * 2, "no bounds"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_bounds_do_not_prove_is_refused_by_the_fields_name(
    kind: IcebergType, transform: str, column: pa.Array, said: str
) -> None:
    problem = partition(kind, transform, column)
    assert isinstance(problem, str)
    assert problem.startswith(f"partition field p ({transform}):") and said in problem


def test_a_file_without_statistics_proves_nothing() -> None:
    problem = partition(LongType(), "identity", [7, 7], write_statistics=False)
    assert "does not count the nulls" in problem


def test_the_lowest_numbers_wrap_around_and_are_not_one_with_the_highest() -> None:
    for width in (3, 5, 10, 1000):
        ends = pa.array([-(2**31), 2**31 - 1], pa.int32())
        assert isinstance(partition(IntegerType(), f"truncate[{width}]", ends), str)


def test_hours_that_wrap_around_to_one_are_not_one() -> None:
    ends = pa.array([-(2**31) * HOUR, 2**31 * HOUR], pa.int64()).cast(pa.timestamp("us", "UTC"))
    problem = partition(TimestamptzType(), "hour", ends)
    assert "more than one partition" in problem


def test_a_decimal_that_needs_another_digit_when_rounded_down_is_refused() -> None:
    column = pa.array([Decimal("-99.99")], pa.decimal128(4, 2))
    problem = partition(DecimalType(4, 2), "truncate[50]", column)
    assert "partition field p (truncate[50]): values of column c" in problem
    assert "-100.00" in problem
    assert partition(DecimalType(5, 2), "truncate[50]", column.cast(pa.decimal128(5, 2))) == (
        Decimal("-100.00"),
    )


def test_bounds_of_all_row_groups_count() -> None:
    one = partition(LongType(), "identity", [7, 7, 7], row_group_size=1)
    two = partition(LongType(), "identity", [7, 7, 8], row_group_size=1)
    assert one == (7,) and isinstance(two, str)


def test_the_table_may_keep_no_metrics_of_the_column() -> None:
    target = target_of(
        schema(optional(1, "c", StringType())),
        spec_of((1, "p", "identity")),
        write__metadata__metrics__default="none",
    )
    outcome = adopt(pa.table({"c": ["long enough to be cut somewhere"]}), target)
    assert isinstance(outcome, Adopted)
    assert outcome.file.partition == ("long enough to be cut somewhere",)
    assert (outcome.file.lower_bounds, outcome.file.column_sizes) == ({}, {})


def test_columns_of_the_tables_sort_order_have_bounds_whatever_the_default() -> None:
    table = schema(optional(1, "id", LongType()), optional(2, "c", StringType()))
    target = target_of(
        table,
        order=parse_sort_order("c", table),
        write__metadata__metrics__default="none",
    )
    outcome = adopt(pa.table({"id": [1], "c": ["x" * 20]}), target)
    assert isinstance(outcome, Adopted)
    assert outcome.file.lower_bounds == {2: b"x" * 16}
    assert outcome.file.upper_bounds == {2: b"x" * 15 + b"y"}


def test_a_field_of_a_struct_may_be_the_source() -> None:
    table = schema(optional(1, "s", struct(optional(2, "x", LongType()))))
    target = target_of(table, spec_of((2, "p", "identity")))
    outcome = adopt(pa.table({"s": [{"x": 5}, {"x": 5}]}), target)
    assert isinstance(outcome, Adopted) and outcome.file.partition == (5,)
    mixed = problems(adopt(pa.table({"s": [{"x": 5}, None]}), target))
    assert "nulls and other values" in mixed[0]


# --- By the path ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (StringType(), "S%C3%A3o%2FPaulo", "São/Paulo"),
        (StringType(), "", ""),
        (StringType(), "__HIVE_DEFAULT_PARTITION__", None),
        (LongType(), "-7", -7),
        (IntegerType(), "007", 7),
        (BooleanType(), "True", True),
        (DateType(), "2026-03-01", 20513),
        (DecimalType(9, 2), "1.50", Decimal("1.50")),
    ],
    ids=str,
)
def test_a_path_says_the_value_of_a_column_that_is_not_in_the_file(
    kind: IcebergType, text: str, expected: object
) -> None:
    for name in ("c", "p"):
        location = f"file:///t/{name}={text}/a.parquet"
        assert partition(kind, "identity", None, location) == (expected,)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (LongType(), "x"),
        (IntegerType(), str(2**31)),
        (DoubleType(), "1.0"),
        (DateType(), "1.3.2026"),
        (TimestamptzType(), "2026-03-01 12:00:00"),
        (DecimalType(9, 2), "1.505"),
    ],
    ids=str,
)
def test_a_text_that_is_no_value_of_the_column_is_refused(kind: IcebergType, text: str) -> None:
    problem = partition(kind, "identity", None, f"file:///t/c={text}/a.parquet")
    assert isinstance(problem, str) and f"`c={text}`" in problem


def test_a_column_in_neither_place_is_refused() -> None:
    missing = partition(LongType(), "identity", None)
    assert "no column c in the file and no folder `c=…`" in missing
    bucket = partition(LongType(), "bucket[4]", None, "file:///t/p=3/a.parquet")
    assert "no column c in the file" in bucket


def test_the_file_is_believed_before_its_path() -> None:
    assert partition(LongType(), "identity", [7], "file:///t/c=8/a.parquet") == (7,)


def test_a_shortened_folder_says_no_value() -> None:
    location = f"file:///t/{shortened_path('c=' + 'x' * 300)}/a.parquet"
    assert "no column c in the file" in partition(StringType(), "identity", None, location)
    assert partition(StringType(), "identity", ["abc"], location) == ("abc",)
    table = Schema((optional(1, "c", StringType()), optional(2, "other", LongType())))
    outcome = adopt(pa.table({"other": [1]}), target_of(table), location)
    assert "not partitioned by it" in problems(outcome)[0]


def test_two_values_in_a_path_are_refused() -> None:
    problem = partition(LongType(), "identity", None, "file:///c=1/c=2/a.parquet")
    assert "two values of `c`" in problem


def test_a_file_name_is_no_folder() -> None:
    assert isinstance(partition(LongType(), "identity", None, "file:///t/c=1"), str)


def test_another_transform_of_the_same_column_gets_its_value_from_the_path() -> None:
    table = schema(optional(1, "c", LongType()), optional(2, "other", LongType()))
    target = target_of(table, spec_of((1, "c", "identity"), (1, "b", "bucket[16]")))
    outcome = adopt(pa.table({"other": [1]}), target, "file:///t/c=34/a.parquet")
    assert isinstance(outcome, Adopted) and outcome.file.partition == (34, 2017239379 % 16)


def test_a_required_column_may_be_in_the_path_but_not_null() -> None:
    table = schema(required(1, "c", LongType()), optional(2, "other", LongType()))
    target = target_of(table, spec_of((1, "c", "identity")))
    rows = pa.table({"other": [1]})
    assert isinstance(adopt(rows, target, "file:///t/c=34/a.parquet"), Adopted)
    null = adopt(rows, target, "file:///t/c=__HIVE_DEFAULT_PARTITION__/a.parquet")
    assert "is required" in problems(null)[0]


@pytest.mark.parametrize("name", ["eventdate", "eventDate", "EVENTDATE", "Day", "day"])
def test_a_folder_may_have_the_name_in_another_case(name: str) -> None:
    table = schema(optional(1, "eventDate", DateType()), optional(2, "other", LongType()))
    target = target_of(table, spec_of((1, "day", "identity")))
    outcome = adopt(pa.table({"other": [1]}), target, f"file:///t/{name}=2026-03-01/a.parquet")
    assert isinstance(outcome, Adopted) and outcome.file.partition == (20513,)


def test_an_equal_name_goes_before_one_in_another_case_and_two_of_these_are_refused() -> None:
    names = ("cAb", "Cab", "other")
    table = schema(*(optional(at, name, LongType()) for at, name in enumerate(names, 1)))
    target = target_of(table, spec_of((1, "p", "identity")))
    rows = pa.table({"other": [1]})
    outcome = adopt(rows, target, "file:///t/cAb=7/a.parquet")
    assert isinstance(outcome, Adopted) and outcome.file.partition == (7,)
    [lost, *_] = problems(adopt(rows, target, "file:///t/Cab=7/p=8/a.parquet"))
    assert lost.startswith("column Cab: found only a folder `Cab=7`")
    [unclear] = problems(adopt(rows, target, "file:///t/cab=7/a.parquet"))
    assert "`cab=7`" in unclear and "`Cab` and `cAb`" in unclear


def test_two_values_of_one_column_in_two_spellings_are_refused() -> None:
    path = "file:///t/{}=1/{}=2/a.parquet"
    for names in (("c", "C"), ("p", "c"), ("P", "C")):
        problem = partition(LongType(), "identity", None, path.format(*names))
        assert isinstance(problem, str)
        assert f"`{names[0]}=1` and `{names[1]}=2`" in problem
    same = "file:///t/C=1/p=1/a.parquet"
    assert partition(LongType(), "identity", None, same) == (1,)


@pytest.mark.parametrize("column", [[1], None], ids=["in the file", "in the path"])
def test_a_folder_of_no_column_is_refused_with_the_columns(column: list[object] | None) -> None:
    location = "file:///t/year=2020/c=1/a.parquet"
    problem = partition(LongType(), "identity", column, location)
    assert problem == (
        "folder `year=2020` of its path: the table has no column `year`, whose value would be lost"
        " (its columns: `c`, `other`)"
    )


def test_extra_columns_may_be_in_the_path_too_if_they_are_allowed() -> None:
    target = target_of(schema(optional(1, "c", LongType())), extra=True)
    outcome = adopt(pa.table({"c": [1]}), target, "file:///t/year=2020/a.parquet")
    assert isinstance(outcome, Adopted)


def test_folders_of_partition_fields_of_any_spec_are_those_of_their_columns() -> None:
    table = schema(optional(1, "c", LongType()), optional(2, "other", LongType()))
    older = spec_of((1, "c_bucket", "bucket[4]"), (2, "was", "identity"))
    target = replace(target_of(table, spec_of((1, "p", "truncate[10]"))), older_specs=(older,))
    for folder in ("c_bucket=3", "C_BUCKET=3", "p=10", "was=5", "c=11"):
        whole = adopt(pa.table({"c": [11], "other": [5]}), target, f"file:///{folder}/a.parquet")
        assert isinstance(whole, Adopted), whole
    [lost] = problems(adopt(pa.table({"c": [11]}), target, "file:///was=5/a.parquet"))
    assert lost.startswith("column other: found only a folder `was=5`")


def test_folders_that_lead_to_the_tables_own_say_nothing() -> None:
    target = target_of(schema(optional(1, "c", LongType()), optional(2, "x", LongType())))
    own = replace(target, own_folders=("file:/env=prod/x=1/t",))
    for location in ("file:///env=prod/x=1/t/a.parquet", "file:/env=prod/x=1/t/c=1/a.parquet"):
        assert isinstance(adopt(pa.table({"c": [1]}), own, location), Adopted)
    for path in ("x=1/a.parquet", "x=1/t/x=1/a.parquet"):
        [problem, *_] = problems(adopt(pa.table({"c": [1]}), own, f"file:/env=prod/{path}"))
        assert problem.startswith("column x: found only a folder `x=1`")


@pytest.mark.parametrize(
    "folder", ["c=caf%E9", "caf%E9=c", "c=caf\udce9", "c=%ED%A0%80"], ids=ascii
)
def test_a_folder_that_is_no_text_is_refused_by_its_name(folder: str) -> None:
    problem = partition(StringType(), "identity", None, f"file:///t/{folder}/a.parquet")
    assert isinstance(problem, str)
    assert f"folder `{ascii(folder)[1:-1]}`" in problem and "UTF-8" in problem


def test_a_value_in_the_path_of_no_partition_field_would_be_lost() -> None:
    table = Schema((optional(1, "c", LongType()), optional(2, "other", LongType())))
    outcome = adopt(pa.table({"other": [1]}), target_of(table), "file:///t/c=34/a.parquet")
    assert "not partitioned by its value" in problems(outcome)[0]
    whole = adopt(pa.table({"c": [34]}), target_of(table), "file:///t/c=34/a.parquet")
    assert isinstance(whole, Adopted)
