"""What is recognised as a map of so many pairs is one, whatever was recognised before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from committer.errors import InvalidMetadataError
from committer.iceberg.avro_binary import LONGS, encode_bytes, read_bytes, read_long
from committer.iceberg.bound_forms import ANY_BOUNDS
from committer.iceberg.map_patterns import MapPatterns
from committer.iceberg.sized_maps import SizedBounds, holds_counts

IDS = st.integers(min_value=1, max_value=8191)
LONG_MAPS = st.dictionaries(IDS, st.integers(min_value=0, max_value=2**61), min_size=1, max_size=4)
BOUND_MAPS = st.dictionaries(IDS, st.binary(max_size=70), min_size=1, max_size=4)
# Few different bytes, so that shapes repeat and nearly fit.
NOISE = st.lists(st.sampled_from(b"\x00\x02\x04\x08\x7f\x80\x81\xff"), max_size=24).map(bytes)


holds_bounds = SizedBounds(ANY_BOUNDS, MapPatterns(ANY_BOUNDS)).hold


def longs(pairs: dict[int, int]) -> bytes:
    return b"".join(LONGS[key] + LONGS[value] for key, value in pairs.items())


def bounds(pairs: dict[int, bytes]) -> bytes:
    return b"".join(LONGS[key] + encode_bytes(value) for key, value in pairs.items())


def fills(body: bytes, count: int, *, of_bytes: bool) -> bool:
    position = 0
    try:
        for _ in range(count):
            _, position = read_long(body, position)
            _, position = (read_bytes if of_bytes else read_long)(body, position)
    except InvalidMetadataError:
        return False
    return position == len(body)


@given(LONG_MAPS, BOUND_MAPS)
def test_what_a_writer_makes_is_recognised(
    counts: dict[int, int], values: dict[int, bytes]
) -> None:
    assert holds_counts(longs(counts), len(counts))
    assert holds_bounds(bounds(values), len(values))


@given(st.one_of(NOISE, LONG_MAPS.map(longs)), st.integers(min_value=1, max_value=6))
def test_longs_that_are_recognised_fill_their_bytes(body: bytes, count: int) -> None:
    if holds_counts(body, count):
        assert fills(body, count, of_bytes=False)


@given(st.one_of(NOISE, BOUND_MAPS.map(bounds)), st.integers(min_value=1, max_value=6))
def test_bounds_that_are_recognised_fill_their_bytes(body: bytes, count: int) -> None:
    if holds_bounds(body, count):
        assert fills(body, count, of_bytes=True)


def test_a_shape_that_is_known_does_not_let_another_count_or_length_pass() -> None:
    good = bounds({1: b"12345678", 2: b"1234"})
    assert holds_bounds(good, 2)
    # As long, but the second length points behind the end.
    assert not holds_bounds(bounds({1: b"12345678"}) + b"\x04\x0a1234", 2)
    assert not holds_bounds(good, 1)
    assert not holds_bounds(good, 3)
    counts = longs({1: 5, 2: 70_000})
    assert holds_counts(counts, 2)
    assert not holds_counts(counts, 1)
    assert not holds_counts(counts + b"\x00", 2)
    assert not holds_counts(counts[:-1] + b"\x80", 2)


def test_ids_that_no_reader_takes_for_an_int_are_left_to_the_decoder() -> None:
    assert not holds_counts(LONGS[2**40] + b"\x02", 1)
    assert not holds_bounds(LONGS[2**40] + b"\x02a", 1)


@given(LONG_MAPS, st.integers(min_value=-(2**61), max_value=-1), st.integers(0, 3))
def test_no_negative_count_is_recognised_whatever_was_before(
    counts: dict[int, int], negative: int, place: int
) -> None:
    assert holds_counts(longs(counts), len(counts))
    # In as many bytes, so that the shape is known.
    key = list(counts)[place % len(counts)]
    for value in (negative, -counts[key] - 1):
        assert not holds_counts(longs(counts | {key: value}), len(counts))
