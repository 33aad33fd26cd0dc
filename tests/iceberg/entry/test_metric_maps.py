"""The maps of metrics are read back by a decoder that knows nothing of templates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from io import BytesIO
from itertools import chain
from typing import Any, cast

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.iceberg.entry.metric_maps import bounds_encoder, long_map_encoder

REPEATED = pytest.mark.parametrize("repeated", [False, True])
FIELD_IDS = st.one_of(st.integers(1, 40), st.integers(-(2**31), 2**31 - 1))
LONG_VALUES = st.one_of(st.integers(0, 300), st.integers(-(2**63), 2**63 - 1))


def decoded(encoded: bytes, kind: str) -> dict[int, Any] | None:
    pair = {
        "type": "record",
        "name": "k1_v2",
        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": kind}],
    }
    schema = cast("Any", ["null", {"type": "array", "items": pair}])
    stream = BytesIO(encoded)
    pairs = cast("list[dict[str, Any]] | None", fastavro.schemaless_reader(stream, schema, None))
    assert stream.read() == b""
    return None if pairs is None else {each["key"]: each["value"] for each in pairs}


def maps_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[int, Any] | None]]:
    """Generate maps: of the columns of the one before, of some of them, and of others."""
    columns = st.lists(FIELD_IDS, max_size=30, unique=True)
    same = columns.flatmap(
        lambda ids: st.lists(st.fixed_dictionaries(dict.fromkeys(ids, values)), max_size=4)
    )
    mixed = st.lists(st.none() | st.dictionaries(FIELD_IDS, values, max_size=30), max_size=4)
    groups = st.lists(st.one_of(same, mixed), max_size=3)
    return groups.map(lambda found: list(chain.from_iterable(found)))


@pytest.mark.simulation
@settings(max_examples=100, deadline=None)
@given(maps_of(LONG_VALUES))
@REPEATED
def test_maps_of_longs_read_back(repeated: bool, maps: list[dict[int, int] | None]) -> None:
    encode = long_map_encoder(repeated=repeated)
    for pairs in maps * 2:
        assert decoded(encode(pairs), "long") == pairs


@pytest.mark.simulation
@settings(max_examples=150, deadline=None)
@given(maps_of(st.binary(max_size=80)), st.booleans())
def test_bounds_read_back(maps: list[dict[int, bytes] | None], is_same: bool) -> None:
    encode = bounds_encoder()
    # Thrice: what comes again is encoded by a template, from the second time on.
    for lower, upper in list(zip(maps, maps if is_same else reversed(maps), strict=True)) * 3:
        encoded = encode(lower, upper)
        # Each is one map: what is behind the first is the second.
        length = len(bounds_encoder()(lower, None)) - 1
        assert decoded(encoded[:length], "bytes") == lower
        assert decoded(encoded[length:], "bytes") == upper


def test_bytes_that_look_like_a_placeholder_of_a_template_stay_what_they_are() -> None:
    # 19 columns are counted by the byte 37, a percent sign; so is an id or a long of -19.
    columns = (*range(1, 18), -19, 37 * 64)
    sizes = dict.fromkeys(columns, -19)
    assert decoded(long_map_encoder()(sizes), "long") == sizes
    bounds, encode = dict.fromkeys(columns, b"%b%%"), bounds_encoder()
    for _ in range(3):
        encoded = encode(bounds, bounds)
        assert decoded(encoded[: len(encoded) // 2], "bytes") == bounds
        assert decoded(encoded[len(encoded) // 2 :], "bytes") == bounds


@REPEATED
def test_equal_maps_give_equal_bytes_whatever_came_before(repeated: bool) -> None:
    encode, other = long_map_encoder(repeated=repeated), long_map_encoder(repeated=repeated)
    other({2: 1, 1: 1})
    assert encode({1: 5, 2: 6}) == other({2: 6, 1: 5})
    first, again = bounds_encoder(), bounds_encoder()
    bounds, turned = {1: b"a", 2: b"bc"}, {2: b"bc", 1: b"a"}
    assert {again(turned, bounds) for _ in range(3)} == {first(bounds, turned)}


@REPEATED
def test_a_map_that_answers_for_any_column_is_asked_for_its_own_only(repeated: bool) -> None:
    encode = long_map_encoder(repeated=repeated)
    encode({1: 1, 2: 1})
    others: Mapping[int, int] = Counter({3: 7, 4: 8})
    assert decoded(encode(others), "long") == {3: 7, 4: 8}


def test_bounds_of_other_columns_than_those_before_are_their_own() -> None:
    encode, default = bounds_encoder(), defaultdict[int, bytes](lambda: b"x", {3: b"y"})
    for _ in range(3):
        encode({1: b"a"}, {1: b"b"})
    assert encode({1: b"a"}, {2: b"b"}) == b"\x02\x01\x06\x02\x02a\x00\x02\x01\x06\x04\x02b\x00"
    assert decoded(encode(default, None)[:-1], "bytes") == {3: b"y"}
    assert decoded(encode(default, default)[:7], "bytes") == {3: b"y"}


def test_maps_are_written_as_one_block_with_its_size() -> None:
    # Branch 1, -2 pairs, 4 bytes, the pairs, and the end of the map.
    assert long_map_encoder()({1: 5, 2: 6}) == b"\x02\x03\x08\x02\x0a\x04\x0c\x00"
    for _ in range(3):
        encoded = bounds_encoder()({1: b"a"}, {1: b""})
        assert encoded == b"\x02\x01\x06\x02\x02a\x00\x02\x01\x04\x02\x00\x00"
    assert long_map_encoder()({}) == b"\x02\x00"
    assert long_map_encoder()(None) == b"\x00"
    assert bounds_encoder()({}, None) == b"\x02\x00\x00"
