"""The second act's verdict compares rows: each kind of difference is told with ids."""

from __future__ import annotations

import pyarrow as pa
import pytest

from committer.demo.demo_readers import sums_by_carrier
from committer.demo.demo_verdict import Reading
from committer.demo.latest_readers import ReadRows, row_differences

EXPECTED = pa.table(
    {
        "id": pa.array([1, 2, 4], pa.int32()),
        "carrier": ["AA", "UA", "AA"],
        "distance": [100, 200, 300],
        "arr_delay": pa.array([-3, None, 7], pa.int32()),
        "time_hour": pa.array([0, 1, 2], pa.timestamp("us", "UTC")),
    }
)


def found(rows: pa.Table) -> list[str]:
    return row_differences(ReadRows(Reading("Reader", sums_by_carrier(rows), ()), rows), EXPECTED)


def test_the_same_rows_pass_in_any_order_and_by_any_names_of_types() -> None:
    types = {"id": pa.int64(), "time_hour": pa.timestamp("us", "Etc/UTC")}
    fields = [pa.field(each.name, types.get(each.name, each.type)) for each in EXPECTED.schema]
    assert found(EXPECTED.take([2, 0, 1]).cast(pa.schema(fields))) == []


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ([0, 2], ["missing: id 2"]),
        ([0, 1, 2, 2], ["there twice: id 4"]),
        ([1, 1, 2], ["missing: id 1", "there twice: id 2"]),
        ([], ["missing: id 1, 2, 4"]),
    ],
)
def test_rows_that_are_lost_or_there_twice_are_told(places: list[int], said: list[str]) -> None:
    rows = EXPECTED.take(pa.array(places, pa.int64()))
    assert [text.split(" are ")[1] for text in found(rows)] == said


def test_an_older_state_of_a_row_is_told_although_the_count_is_right() -> None:
    older = EXPECTED.set_column(3, "arr_delay", pa.array([-3, None, None], pa.int32()))
    assert found(older) == ["Reader: 1 flights are different: id 4"]


def test_a_row_that_should_have_been_deleted_is_told() -> None:
    extra = EXPECTED.slice(0, 1).set_column(0, "id", pa.array([3], pa.int32()))
    assert found(pa.concat_tables([EXPECTED, extra])) == ["Reader: 1 flights are too many: id 3"]


def test_no_more_than_some_ids_are_named() -> None:
    many = pa.concat_tables(
        [
            EXPECTED,
            *(
                EXPECTED.set_column(0, "id", pa.array([n, n + 1, n + 2], pa.int32()))
                for n in (10, 20)
            ),
        ]
    )
    assert found(many) == ["Reader: 6 flights are too many: id 10, 11, 12, 20, 21, …"]
