"""Days, micro- and nanoseconds since 1970 as ISO text and back; years may lie outside 1 to 9999.

Source: the specification, Appendix D "JSON serialization" of single values.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

SECOND_MICROS = 1_000_000
SECOND_NANOS = 1_000_000_000
DAY_S = 86_400
DAY_MICROS = DAY_S * SECOND_MICROS
DAY_NANOS = DAY_S * SECOND_NANOS

_DATE = r"([+-]?\d{4,10})-(\d{2})-(\d{2})"
_TIME = r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?"
_DATE_ONLY = re.compile(_DATE, re.ASCII)
_TIME_ONLY = re.compile(_TIME, re.ASCII)
_TIMESTAMP = re.compile(_DATE + "T" + _TIME, re.ASCII)
_UTC_TIMESTAMP = re.compile(_DATE + "T" + _TIME + r"(Z|\+00:00)", re.ASCII)
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a day number, in the proleptic Gregorian calendar.

    Counts in eras of 400 years that start on 1 March, so that a leap day ends its year.
    """
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = year_of_era + era * 400 + (1 if month <= 2 else 0)
    return year, month, day


def days_from_civil(year: int, month: int, day: int) -> int:
    """Return the day number of a date. Errors: `ValueError` for a date that does not exist."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days_max = 29 if month == 2 and leap else _MONTH_DAYS[month - 1] if 1 <= month <= 12 else 0
    if not 1 <= day <= days_max:
        raise ValueError(f"no such date: {year}-{month:02d}-{day:02d}")
    shifted_year = year - (1 if month <= 2 else 0)
    era, year_of_era = divmod(shifted_year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def print_date(days: int) -> str:
    year, month, day = civil_from_days(days)
    return f"{_print_year(year)}-{month:02d}-{day:02d}"


def _print_year(year: int) -> str:
    if year > 9_999:
        return f"+{year}"
    return f"{year:04d}" if year >= 0 else f"-{-year:04d}"


def print_time(value: int, per_second: int) -> str:
    """Print a time of day; the fraction has as many digits as it needs."""
    seconds, fraction = divmod(value, per_second)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    if fraction == 0:
        return text
    digits = len(str(per_second)) - 1
    return f"{text}.{fraction:0{digits}d}".rstrip("0")


def print_timestamp(value: int, per_second: int) -> str:
    """Print a date and time without offset."""
    days, rest = divmod(value, DAY_S * per_second)
    return f"{print_date(days)}T{print_time(rest, per_second)}"


def print_instant(time_ms: int) -> str:
    """Print milliseconds since 1970 as `2017-11-16T22:31:08Z`."""
    return f"{print_timestamp(time_ms, 1_000)}Z"


def parse_date(text: str) -> int:
    """Parse a date as days since 1970. Errors: `ValueError`."""
    match = _DATE_ONLY.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a date such as 2017-11-16, found `{text}`")
    return days_from_civil(int(match[1]), int(match[2]), int(match[3]))


def parse_time(text: str, per_second: int) -> int:
    """Parse a time of day, in units of 1/`per_second` s. Errors: `ValueError`."""
    match = _TIME_ONLY.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a time such as 22:31:08.000001, found `{text}`")
    return _time_of_day(match.groups(), per_second)


def parse_timestamp(text: str, per_second: int, *, with_zone: bool) -> int:
    """Parse a timestamp, in units of 1/`per_second` s since 1970.
    Errors: `ValueError`, also where an offset is missing, not +00:00, or not expected."""
    match = (_UTC_TIMESTAMP if with_zone else _TIMESTAMP).fullmatch(text)
    if match is None:
        form = "2017-11-16T22:31:08" + ("+00:00" if with_zone else "")
        raise ValueError(f"expected a timestamp such as {form}, found `{text}`")
    days = days_from_civil(int(match[1]), int(match[2]), int(match[3]))
    return days * DAY_S * per_second + _time_of_day(match.groups()[3:7], per_second)


def _time_of_day(parts: tuple[str | None, ...], per_second: int) -> int:
    hour, minute, second = (int(part or 0) for part in parts[:3])
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"no such time: {hour:02d}:{minute:02d}:{second:02d}")
    digits = len(str(per_second)) - 1
    fraction = (parts[3] or "").ljust(9, "0")
    if int(fraction[digits:] or 0):
        raise ValueError(f"expected at most {digits} digits of a second, found `{parts[3]}`")
    return (hour * 3600 + minute * 60 + second) * per_second + int(fraction[:digits])


def read_time_ms(text: str) -> int:
    """Read a time that a person has written, as milliseconds since 1970: these, or an ISO time,
    which is UTC without a zone. Errors: `ValueError`.
    """
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"`{text}`: expected a time such as 2026-05-01T12:00:00Z, or milliseconds since 1970"
        ) from None
    since = (time if time.tzinfo else time.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * DAY_S + since.seconds) * 1000 + since.microseconds // 1000
