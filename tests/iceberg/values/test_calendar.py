"""Dates and times as text, far outside the years that the standard library knows too."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from committer.iceberg.values.calendar import (
    SECOND_MICROS,
    SECOND_NANOS,
    civil_from_days,
    days_from_civil,
    parse_date,
    parse_time,
    parse_timestamp,
    print_date,
    print_instant,
    print_time,
    print_timestamp,
)


def test_days_are_those_of_the_standard_library() -> None:
    epoch = date(1970, 1, 1)
    for day in range(-719_162, 2_932_896, 61):
        found = epoch + timedelta(days=day)
        assert civil_from_days(day) == (found.year, found.month, found.day)
        assert days_from_civil(found.year, found.month, found.day) == day


def test_an_instant_is_printed_in_utc_also_beyond_the_standard_library() -> None:
    assert print_instant(1_577_836_800_000) == "2020-01-01T00:00:00Z"
    assert print_instant(5) == "1970-01-01T00:00:00.005Z"
    assert print_instant(2**63 - 1) == "+292278994-08-17T07:12:55.807Z"


def test_years_outside_four_digits_are_read_back() -> None:
    for day in (-(2**31), -1_000_000, -719_529, 3_000_000, 2**31 - 1):
        assert parse_date(print_date(day)) == day
    assert print_date(2**31 - 1) == "+5881580-07-11"
    assert print_date(-719_529) == "-0001-12-31"


def test_timestamps_are_read_back_in_both_units() -> None:
    for per_second in (SECOND_MICROS, SECOND_NANOS):
        for value in (0, -1, 1, 1_510_871_468 * per_second + 1, -(2**62)):
            assert parse_timestamp(print_timestamp(value, per_second), per_second,
                                   with_zone=False) == value  # fmt: skip
    assert print_time(81_068_120_000, SECOND_MICROS) == "22:31:08.12"


@pytest.mark.parametrize(
    "text", ["2017-02-29", "1900-02-29", "2017-00-01", "2017-01-00", "17-01-01", "2017-1-1", ""]
)
def test_date_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="date"):
        parse_date(text)


@pytest.mark.parametrize(
    "text", ["24:00:00", "00:60:00", "00:00:60", "1:00:00", "00:00:00.0000001"]
)
def test_time_that_does_not_exist_or_is_too_fine_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_time(text, SECOND_MICROS)


def test_zone_must_be_utc_and_only_where_it_belongs() -> None:
    for text in ("2017-11-16T22:31:08+00:00", "2017-11-16T22:31:08Z"):
        assert parse_timestamp(text, SECOND_MICROS, with_zone=True) == 1_510_871_468_000_000
        with pytest.raises(ValueError, match="expected a timestamp"):
            parse_timestamp(text, SECOND_MICROS, with_zone=False)
    for text in ("2017-11-16T22:31:08+01:00", "2017-11-16T22:31:08"):
        with pytest.raises(ValueError, match="expected a timestamp"):
            parse_timestamp(text, SECOND_MICROS, with_zone=True)
