"""The comparison says no as soon as one row is lost, doubled or changed."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from committer.demo.demo_readers import sums_by_carrier
from committer.demo.demo_verdict import Reading, Sums, differences, disagreements, total

FLIGHTS = pa.table(
    {
        "carrier": ["AA", "AA", "UA", "DL"],
        "distance": [100, 200, 300, 400],
        "arr_delay": pa.array([-3, None, 7, 0], pa.int32()),
    }
)
EXPECTED = sums_by_carrier(FLIGHTS)


def reading(flights: pa.Table, paths: tuple[str, ...] = ("a", "b")) -> Reading:
    return Reading("Reader", sums_by_carrier(flights), paths)


def with_column(name: str, values: list[object]) -> pa.Table:
    position = FLIGHTS.schema.get_field_index(name)
    return FLIGHTS.set_column(position, name, pa.array(values, FLIGHTS.schema.field(name).type))


def test_sums_are_exact_and_count_what_is_known() -> None:
    assert {
        "AA": Sums(flights=2, arrived=1, distance=300, arr_delay=-3),
        "UA": Sums(flights=1, arrived=1, distance=300, arr_delay=7),
        "DL": Sums(flights=1, arrived=1, distance=400, arr_delay=0),
    } == EXPECTED
    assert total(EXPECTED) == Sums(4, 3, 1000, 4)


def test_the_same_rows_in_any_order_pass() -> None:
    assert differences(EXPECTED, reading(FLIGHTS.take([3, 1, 0, 2]))) == []


def test_a_lost_row_is_told_with_its_carrier() -> None:
    found = differences(EXPECTED, reading(FLIGHTS.slice(1)))
    assert found[0] == "Reader: 3 rows, expected 4"
    assert len(found) == 2
    assert found[1].startswith("Reader: carrier AA: ")


def test_a_doubled_row_is_told_although_its_sums_are_zero() -> None:
    zero = pa.table({"carrier": ["DL"], "distance": [0], "arr_delay": pa.array([0], pa.int32())})
    found = differences(EXPECTED, reading(pa.concat_tables([FLIGHTS, zero])))
    assert found[0] == "Reader: 5 rows, expected 4"


def test_one_row_lost_and_another_doubled_is_told_although_the_count_is_right() -> None:
    found = differences(EXPECTED, reading(FLIGHTS.take([0, 1, 2, 2])))
    assert [text.split(":")[1].strip() for text in found] == ["carrier DL", "carrier UA"]


def test_a_changed_value_is_told() -> None:
    for changed in (
        with_column("distance", [100, 200, 300, 401]),
        with_column("arr_delay", [-3, 0, 7, 0]),  # null has become zero
        with_column("carrier", ["AA", "AA", "DL", "UA"]),
    ):
        assert differences(EXPECTED, reading(changed))


def test_a_carrier_that_was_never_put_in_is_told() -> None:
    found = differences({}, reading(FLIGHTS.slice(3)))
    assert found[1].startswith("Reader: carrier DL: ")


def test_a_path_that_is_named_twice_is_told_although_the_sums_are_right() -> None:
    twice = reading(FLIGHTS, ("a", "b", "a"))
    assert differences(EXPECTED, twice) == ["Reader: file named twice: a"]
    assert twice.duplicate_paths == ["a"]


def test_readers_that_see_other_files_disagree() -> None:
    one = reading(FLIGHTS)
    other = replace(one, reader="Other", paths=("b", "c"))
    assert disagreements(one, one) == []
    assert disagreements(one, other) == [
        "1 data files are seen by Reader only: a",
        "1 data files are seen by Other only: c",
    ]
