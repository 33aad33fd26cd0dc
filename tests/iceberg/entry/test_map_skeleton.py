"""Recognized maps end where a decoder finds their end; nothing else is recognized."""

from __future__ import annotations

from io import BytesIO
from typing import Any, cast

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.iceberg.entry.map_skeleton import Skeletons
from committer.iceberg.entry.metric_maps import bounds_encoder, long_map_encoder


def schema(kind: str) -> Any:
    pair = {
        "type": "record",
        "name": f"{kind}_pair",
        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": kind}],
    }
    return fastavro.parse_schema(cast("Any", ["null", {"type": "array", "items": pair}]))


KINDS = (*4 * [schema("long")], *2 * [schema("bytes")])


def decoded_stop(raw: bytes) -> int:
    """Return where a decoder of six maps stops. Errors: fastavro's, for bytes that are no maps."""
    stream = BytesIO(raw)
    for kind in KINDS:
        fastavro.schemaless_reader(stream, kind, None)
    return stream.tell()


def six_maps(longs: dict[int, int], lower: dict[int, bytes], upper: dict[int, bytes]) -> bytes:
    encode = long_map_encoder()
    return (
        encode(longs) + encode(longs) + encode(None) + encode({}) + bounds_encoder()(lower, upper)
    )


def plain_maps(longs: dict[int, int], bounds: dict[int, bytes]) -> bytes:
    out = BytesIO()
    for kind in KINDS:
        pairs: dict[int, Any] = longs if kind is KINDS[0] else bounds
        records = [{"key": key, "value": value} for key, value in pairs.items()]
        fastavro.schemaless_writer(out, kind, records)
    return out.getvalue()


def stop_of(skeletons: Skeletons, raw: bytes, start: int) -> int:
    """Return where the recognized maps stop; 0 if none is."""
    found = skeletons.match(raw, start)
    return 0 if found is None else start + found[0]


def learned(maps: bytes) -> Skeletons:
    skeletons = Skeletons()
    assert stop_of(skeletons, maps, 0) == 0
    skeletons.learn(maps, 0, len(maps))
    return skeletons


MAPS = st.one_of(
    st.builds(
        six_maps,
        st.dictionaries(st.integers(1, 300), st.integers(-(2**63), 2**63 - 1), max_size=5),
        st.dictionaries(st.integers(1, 300), st.binary(max_size=70), max_size=5),
        st.dictionaries(st.integers(1, 300), st.binary(max_size=70), max_size=5),
    ),
    st.builds(
        plain_maps,
        st.dictionaries(st.integers(1, 300), st.integers(0, 2**40), max_size=5),
        st.dictionaries(st.integers(1, 300), st.binary(max_size=70), max_size=5),
    ),
)


@settings(max_examples=100, deadline=None)
@given(MAPS, st.binary(max_size=5), st.binary(max_size=5))
def test_maps_are_recognized_when_they_come_again(maps: bytes, before: bytes, rest: bytes) -> None:
    skeletons = learned(maps)
    raw = before + maps + rest
    assert stop_of(skeletons, raw, len(before)) == len(before) + len(maps)


@pytest.mark.simulation
@settings(max_examples=300, deadline=None)
@given(MAPS, st.data())
def test_whatever_is_recognized_ends_where_a_decoder_stops(
    maps: bytes, data: st.DataObject
) -> None:
    skeletons, changed = learned(maps), bytearray(maps)
    places = st.integers(0, len(maps) - 1)
    for place in data.draw(st.lists(places, min_size=1, max_size=3)):
        changed[place] ^= data.draw(st.integers(1, 255))
    stop = stop_of(skeletons, bytes(changed), 0)
    if stop:
        assert decoded_stop(bytes(changed)) == stop


def test_other_values_of_the_same_lengths_are_recognized_and_others_are_not() -> None:
    skeletons = learned(six_maps({1: 300, 2: 5}, {1: b"abc"}, {1: b"abd"}))
    for longs, bound, is_known in (
        ({1: 301, 2: 6}, b"xyz", True),
        ({1: 5, 2: 300}, b"xyz", False),
        ({1: 301, 3: 6}, b"xyz", False),
        ({1: 301, 2: 6}, b"xy", False),
    ):
        maps = six_maps(longs, {1: bound}, {1: bound})
        assert stop_of(skeletons, maps, 0) == (len(maps) if is_known else 0)


def test_maps_of_several_blocks_are_not_learned() -> None:
    # A pair, a second block with one more, and an empty map and four that are null: the bytes are
    # filled too by who takes the second block for the next map.
    maps = b"\x02\x02\x02\x02\x02\x02\x02\x00" + b"\x02\x00" + 4 * b"\x00"
    assert decoded_stop(maps) == len(maps)
    assert stop_of(learned(maps), maps, 0) == 0


@pytest.mark.parametrize("stop", [5, 7])
def test_bytes_that_the_maps_do_not_fill_are_not_learned(stop: int) -> None:
    skeletons = Skeletons()
    skeletons.learn(6 * b"\x00" + b"\x02", 0, stop)
    assert stop_of(skeletons, 8 * b"\x00", 0) == 0


def maps_of(length: int) -> bytes:
    return six_maps({}, {1: bytes(length)}, {})


def test_some_layouts_are_known_at_a_time() -> None:
    skeletons = Skeletons()
    for length in (1, 2):
        skeletons.learn(maps_of(length), 0, len(maps_of(length)))
    for length in (2, 1, 1, 2, 1):
        assert stop_of(skeletons, maps_of(length), 0) == len(maps_of(length))


def test_layouts_that_never_come_again_are_learned_no_more_for_a_while() -> None:
    skeletons = Skeletons()
    for length in range(40):
        assert stop_of(skeletons, maps_of(length), 0) == 0
        skeletons.learn(maps_of(length), 0, len(maps_of(length)))
    assert all(stop_of(skeletons, maps_of(length), 0) == 0 for length in range(40))
    tries = 0
    while not stop_of(skeletons, maps_of(1), 0):
        skeletons.learn(maps_of(1), 0, len(maps_of(1)))
        tries += 1
        assert tries <= 1_000
    assert tries > 500


def test_a_layout_that_comes_often_pays_for_learning_new_ones() -> None:
    skeletons = learned(maps_of(1))
    for length in range(2, 60):
        for _ in range(20):
            assert stop_of(skeletons, maps_of(1), 0)
        skeletons.learn(maps_of(length), 0, len(maps_of(length)))
        assert stop_of(skeletons, maps_of(length), 0)
