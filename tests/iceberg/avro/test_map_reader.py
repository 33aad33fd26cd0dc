"""Maps that are recognized hold what a decoder reads from them; nothing else is recognized."""

from __future__ import annotations

import struct
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.errors import InvalidMetadataError
from committer.iceberg.avro import map_reader
from committer.iceberg.avro.binary import LONGS, encode_bytes, read_bytes, read_long
from committer.iceberg.avro.decoder import decode_record, record_decoder
from committer.iceberg.avro.map_reader import read_bounds_pairs, read_long_pairs
from committer.iceberg.entry.metric_maps import bounds_encoder, long_map_encoder

IDS = st.integers(-(2**31), 2**31 - 1)
NARROW = st.one_of(st.integers(-64, 63), st.integers(-8192, 8191))
WIDE = st.one_of(NARROW, st.integers(0, 2**40))
SCHEMA = b"""{"type": "record", "name": "two", "fields": [
 {"name": "a", "field-id": 1, "type": {"type": "array", "logicalType": "map", "items":
  {"type": "record", "name": "k1_v2", "fields": [
   {"name": "key", "type": "int"}, {"name": "value", "type": "long"}]}}},
 {"name": "b", "field-id": 2, "type": {"type": "array", "logicalType": "map", "items":
  {"type": "record", "name": "k3_v4", "fields": [
   {"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}]}}}]}"""


def long_body(pairs: dict[int, int]) -> bytes:
    return b"".join(LONGS[key] + LONGS[value] for key, value in pairs.items())


def bounds_body(pairs: dict[int, bytes]) -> bytes:
    return b"".join(LONGS[key] + encode_bytes(value) for key, value in pairs.items())


def decoded_longs(body: bytes, count: int) -> dict[int, int] | None:
    pairs, position = {}, 0
    for _ in range(count):
        key, position = read_long(body, position)
        pairs[key], position = read_long(body, position)
    return pairs if position == len(body) else None


def decoded_bounds(body: bytes, count: int) -> dict[int, bytes] | None:
    pairs, position = {}, 0
    for _ in range(count):
        key, position = read_long(body, position)
        pairs[key], position = read_bytes(body, position)
    return pairs if position == len(body) else None


def damaged(body: bytes, data: st.DataObject) -> bytes:
    changed = bytearray(body)
    for place in data.draw(st.lists(st.integers(0, len(body) - 1), max_size=3)):
        changed[place] ^= data.draw(st.integers(1, 255))
    return bytes(changed)


@pytest.mark.simulation
@settings(max_examples=200, deadline=None)
@given(st.dictionaries(IDS, WIDE, min_size=1, max_size=8), st.data())
def test_longs_that_are_read_at_once_are_those_of_a_decoder(
    pairs: dict[int, int], data: st.DataObject
) -> None:
    body = long_body(pairs)
    assert read_long_pairs(body, len(pairs)) in (pairs, None)
    changed, count = damaged(body, data), data.draw(st.integers(1, 9))
    found = read_long_pairs(changed, count)
    if found is not None:
        assert found == decoded_longs(changed, count)


@pytest.mark.thorough
@settings(max_examples=200, deadline=None)
@given(st.dictionaries(IDS, st.binary(max_size=20), min_size=1, max_size=8), st.data())
def test_bounds_that_are_read_at_once_are_those_of_a_decoder(
    pairs: dict[int, bytes], data: st.DataObject
) -> None:
    body = bounds_body(pairs)
    assert read_bounds_pairs(body, len(pairs)) in (pairs, None)
    changed, count = damaged(body, data), data.draw(st.integers(1, 9))
    found = read_bounds_pairs(changed, count)
    if found is not None:
        assert found == decoded_bounds(changed, count)


@pytest.mark.parametrize("value", [0, 1, -1, 63, -64, 64, -65, 8191, -8192])
def test_numbers_of_one_and_two_bytes_are_read_at_once(value: int) -> None:
    assert read_long_pairs(long_body({1: value, 200: value}), 2) == {1: value, 200: value}


def test_wider_numbers_and_numbers_that_do_not_end_are_left_to_a_decoder() -> None:
    assert read_long_pairs(long_body({1: 8192}), 1) is None
    assert read_long_pairs(b"\x02\x80", 1) is None
    assert read_long_pairs(b"", 1) is None
    assert read_long_pairs(b"\x02", 1) is None


def test_bounds_are_recognized_by_their_ids_and_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    # One layout of each length is kept: that of another test may be of other columns.
    monkeypatch.setattr(map_reader, "_bounds_layouts", {})
    assert read_bounds_pairs(bounds_body({5: b"12345678", 6: b"abc"}), 2) is not None
    other = {5: struct.pack("<q", 7), 6: b"xyz"}
    assert read_bounds_pairs(bounds_body(other), 2) == other
    assert read_bounds_pairs(bounds_body({5: b"12345678", 7: b"abc"}), 2) is None
    assert read_bounds_pairs(bounds_body({5: b"1234567", 6: b"abcd"}), 2) is None


def record_of(longs: bytes, bounds: bytes) -> dict[int, object]:
    # Of optional maps, as they are encoded, without the branch.
    raw = longs[1:] + bounds[1:]
    record, stop = decode_record(record_decoder(SCHEMA), raw, 0)
    assert stop == len(raw)
    return record


def test_records_are_decoded_with_and_without_what_was_read_before() -> None:
    for number in range(4):
        longs = {1: number, 2: 1000 * number, 3: 10**number}
        bounds = {1: bytes([number]) * 8, 2: b"x" * (number % 2)}
        lower = bounds_encoder()(bounds, None)[:-1]
        assert record_of(long_map_encoder()(longs), lower) == {1: longs, 2: bounds}


@pytest.mark.parametrize("place", [1, 2])
def test_a_size_that_lies_is_still_an_error(place: int) -> None:
    longs = bytearray(long_map_encoder()({1: 5, 2: 6}))
    record_of(bytes(longs), b"\x02\x00")
    longs[place] += 2
    with pytest.raises(InvalidMetadataError):
        record_of(bytes(longs), b"\x02\x00")


def test_maps_of_several_blocks_are_read_to_their_end() -> None:
    blocks = b"\x02" + b"\x01\x04\x02\x0a" + b"\x01\x04\x04\x0c" + b"\x00"
    found = record_of(blocks, b"\x02\x00")
    assert cast("dict[int, int]", found[1]) == {1: 5, 2: 6}
