"""Sources of patterns match what they are for, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from committer.iceberg.avro.binary import LONGS, encode_bytes
from committer.iceberg.schema.bound_forms import form_of
from committer.iceberg.splice.pair_patterns import COUNT, ID, ID_LIMIT, LENGTH_LIMIT, bound, ids
from committer.iceberg.values.type_json import parse_type

IDS = st.integers(1, ID_LIMIT - 1)
KINDS = ("boolean", "long", "uuid", "fixed[3]", "fixed[90]", "binary", "decimal(9, 2)")


def matcher(source: bytes) -> Callable[[bytes], object]:
    return re.compile(source, re.DOTALL).fullmatch


@given(st.sets(IDS, max_size=20), st.lists(IDS))
def test_ids_match_these_columns_alone(columns: set[int], others: list[int]) -> None:
    match = matcher(ids(columns))
    # Those that differ from a column in one byte, too.
    near = {one ^ bit for one in columns for bit in (1, 32, 64, 4096)} - {0}
    for column in {*columns, *others, *near}:
        assert (match(LONGS[column]) is not None) == (column in columns)


@given(IDS)
def test_an_id_in_more_bytes_than_it_takes_is_none(column: int) -> None:
    longer = LONGS[column][:-1] + bytes((LONGS[column][-1] | 128, 0))
    assert matcher(ID)(LONGS[column])
    assert not matcher(ID)(longer)


@given(st.integers(-(2**62), 2**62 - 1))
def test_counts_are_not_negative(value: int) -> None:
    assert (matcher(COUNT)(LONGS[value]) is not None) == (value >= 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_bound_matches_by_its_length(kind: str) -> None:
    form = form_of(parse_type(kind))
    match = matcher(bound(form, limit=LENGTH_LIMIT))
    for length in range(LENGTH_LIMIT):
        content = bytes(length)
        assert (match(encode_bytes(content)) is not None) == form.fits(content)


@given(st.integers(1, 38), st.integers(-3, 3), st.integers(-(2**130), 2**130), st.data())
def test_a_decimal_has_no_more_digits_than_its_type(
    precision: int, beside: int, any_number: int, data: st.DataObject
) -> None:
    form = form_of(parse_type(f"decimal({precision}, 0)"))
    match = matcher(bound(form))
    limit = 10**precision
    for number in (limit + beside, -limit + beside, any_number % (3 * limit) - limit, any_number):
        shortest = (number.bit_length() + 8) // 8
        content = number.to_bytes(data.draw(st.integers(shortest, 18)), "big", signed=True)
        assert (match(encode_bytes(content)) is not None) == form.fits(content)
