"""The fast way through six maps takes what reading them value by value finds right, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.binary import LONGS, encode_bytes, read_bytes, read_long
from committer.iceberg.entry.entry_parts import Unexpected
from committer.iceberg.schema.bound_forms import ANY_BOUNDS, BoundForms, bound_forms, is_utf8
from committer.iceberg.schema.schema import Schema
from committer.iceberg.splice.addition_maps import AdditionMaps
from committer.iceberg.splice.any_order import BoundMaps
from committer.iceberg.splice.layout_pattern import MapColumns, SixMaps
from committer.iceberg.splice.map_patterns import merged
from committer.iceberg.values.type_json import parse_type
from committer.iceberg.values.types import NestedField

KINDS = {
    1: "long",
    2: "string",
    3: "string",
    4: "decimal(9, 2)",
    5: "string",
    63: "boolean",
    64: "string",
    65: "string",
    9000: "string",
}
FORMS = bound_forms(
    (),
    Schema(tuple(NestedField(n, f"c{n}", parse_type(kind), False) for n, kind in KINDS.items())),
    10_000,
)
# Whole letters, halves of them, and what looks like a letter and is none.
TEXTS = ("", "a", "ab", "é", "漢字", "𝄞", "x" * 70, "é" * 40, "漢" * 50)
PIECES = (b"\xc3", b"\xa9", b"\xe6\xbc", b"\xa2", b"\xf0\x9d", b"\xed\xa0\x80", b"\xc0\x80")
RIGHT = {
    "long": (bytes(8), bytes(4), b"\xff" * 8, b"\xc3" * 8),
    "string": tuple(text.encode() for text in TEXTS),
    "decimal(9, 2)": (b"\0", b"\xff", b"\x3b\x9a\xc9\xff", b"\xc4\x65\x36\x01"),
    "boolean": (b"\0", b"\1"),
}
WRONG = {
    "long": (b"", bytes(3)),
    "string": (*PIECES, b"a\xc3", b"\xa9b", b"x" * 70 + b"\xc3", b"x" * 150 + b"\xc3"),
    "decimal(9, 2)": (b"", bytes(5), b"\x3b\x9a\xca\x00", b"\xc4\x65\x36\x00"),
    "boolean": (b"", b"\0\0"),
}


@dataclass(frozen=True)
class Map:
    """Pairs as a writer gave them."""

    pairs: Sequence[tuple[int, int | bytes]]
    is_sized: bool

    def encode(self) -> bytes:
        if not self.pairs:
            return b"\x02\x00"
        body = b"".join(LONGS[key] + _encoded(value) for key, value in self.pairs)
        count = len(self.pairs)
        head = LONGS[-count] + LONGS[len(body)] if self.is_sized else LONGS[count]
        return b"\x02" + head + body + b"\x00"

    def is_right(self) -> bool:
        keys = [key for key, _ in self.pairs]
        return len(set(keys)) == len(keys) and all(_fits(*pair) for pair in self.pairs)


def _encoded(value: int | bytes) -> bytes:
    return LONGS[value] if isinstance(value, int) else encode_bytes(value)


def _fits(key: int, value: int | bytes) -> bool:
    return value >= 0 if isinstance(value, int) else FORMS.of(key).fits(value)


def encoded(maps: Sequence[Map | None]) -> bytes:
    return b"".join(b"\0" if one is None else one.encode() for one in maps)


# Mostly all columns in their order, sometimes some of them or in any order, rarely one twice.
_ALL = tuple(KINDS)
COLUMNS = st.one_of(
    st.just(_ALL),
    st.lists(st.sampled_from(_ALL), unique=True).map(lambda some: tuple(sorted(some))),
    st.permutations(_ALL).map(tuple),
    st.lists(st.sampled_from(_ALL), min_size=2, max_size=3).map(tuple),
)
COUNTS = st.one_of(st.sampled_from((0, 1, 63, 64, 8191, 2**40)), st.sampled_from((-1, -65)))


@st.composite
def _maps(draw: st.DrawFn, *, wrong: bool) -> Map | None:
    columns = draw(st.one_of(st.none(), COLUMNS))
    if columns is None:
        return None
    return Map([(one, draw(_bounds(one, wrong=wrong))) for one in columns], draw(st.booleans()))


def _bounds(column: int, *, wrong: bool) -> st.SearchStrategy[bytes]:
    kind = KINDS[column]
    return st.sampled_from((*RIGHT[kind], *(WRONG[kind] if wrong else ())))


@st.composite
def _longs(draw: st.DrawFn) -> Map | None:
    columns = draw(st.one_of(st.none(), COLUMNS))
    if columns is None:
        return None
    value = draw(COUNTS)
    return Map([(one, value) for one in columns], draw(st.booleans()))


@st.composite
def _entries(draw: st.DrawFn) -> list[list[Map | None]]:
    """Draw entries of one writer: a few kinds of maps, which repeat."""
    longs = draw(st.lists(_longs(), min_size=1, max_size=3))
    right = draw(st.lists(_maps(wrong=False), min_size=1, max_size=4))
    wrong = draw(st.lists(_maps(wrong=True), max_size=2))
    bounds = st.sampled_from([*right * 3, *wrong])
    entry = st.tuples(*4 * [st.sampled_from(longs)], *2 * [bounds]).map(list)
    return draw(st.lists(entry, min_size=1, max_size=12))


def end_of(maps: AdditionMaps, raw: bytes, start: int) -> int | None:
    """Return where six maps end that the fast way takes; None: it leaves them to the decoder."""
    texts: list[bytes] = []
    known = maps.match(raw, start)
    if known is None:
        try:
            stop = maps.step(raw, start, texts)
        except (Unexpected, InvalidMetadataError, IndexError):
            return None
    else:
        stop = start + known[0]
        if known[4] is not None:
            texts += known[4](raw, start)
    return stop if is_utf8(b"".join(texts)) else None


@pytest.mark.thorough
@settings(max_examples=100, deadline=None)
@given(_entries())
def test_the_fast_way_and_the_plain_one_agree(entries: list[list[Map | None]]) -> None:
    maps = AdditionMaps(FORMS)
    for entry in entries:
        content = encoded(entry)
        is_right = all(one is None or one.is_right() for one in entry)
        raw = b"\xc3" + content + bytes(9)
        assert end_of(maps, raw, 1) == (1 + len(content) if is_right else None)


@pytest.mark.simulation
@settings(max_examples=100, deadline=None)
@given(_entries(), st.data())
def test_of_damaged_maps_only_what_a_decoder_finds_right_is_taken(
    entries: list[list[Map | None]], data: st.DataObject
) -> None:
    maps = AdditionMaps(FORMS)
    for entry in entries:
        end_of(maps, encoded(entry) + bytes(9), 0)
    for entry in entries[:4]:
        damaged = bytearray(encoded(entry) + bytes(9))
        place = data.draw(st.integers(0, len(damaged) - 10))
        damaged[place] = data.draw(st.sampled_from((0, 1, 2, 4, 0x7F, 0x80, 0xA9, 0xC3, 0xFF)))
        found = end_of(maps, bytes(damaged), 0)
        if found is not None:
            assert found == _decoded_end(bytes(damaged))


def _decoded_end(raw: bytes) -> int | None:
    position = 0
    for place in range(6):
        branch, position = read_long(raw, position)
        if not branch:
            continue
        pairs: list[tuple[int, int | bytes]] = []
        while True:
            count, position = read_long(raw, position)
            if not count:
                break
            size, start = read_long(raw, position) if count < 0 else (None, position)
            position = start
            for _ in range(abs(count)):
                key, position = read_long(raw, position)
                value: int | bytes
                value, position = (read_long if place < 4 else read_bytes)(raw, position)
                pairs.append((key, value))
            if size is not None and start + size != position:
                return None
        if not Map(pairs, False).is_right():
            return None
    return position


# --- Where a map ends ----------------------------------------------------------------------------

IDS = st.integers(min_value=1, max_value=8191)
LONG_MAPS = st.dictionaries(IDS, st.integers(min_value=0, max_value=2**61), min_size=1, max_size=4)
BOUND_MAPS = st.dictionaries(IDS, st.binary(max_size=70), min_size=1, max_size=4)
# Few different bytes, so that shapes repeat and nearly fit.
NOISE = st.lists(st.sampled_from(b"\x00\x02\x04\x08\x7f\x80\x81\xff"), max_size=24).map(bytes)
# They remember what they have seen in other examples.
ANY_MAPS = AdditionMaps(ANY_BOUNDS)


def sized(body: bytes, count: int, *, of_bytes: bool) -> bytes:
    """Build six maps, of which one has a body, and states its size."""
    one = b"\x02" + LONGS[-count] + LONGS[len(body)] + body + b"\0"
    return 4 * b"\0" + one + b"\0" if of_bytes else one + 5 * b"\0"


def is_taken(body: bytes, count: int, *, of_bytes: bool, forms: BoundForms | None = None) -> bool:
    raw = sized(body, count, of_bytes=of_bytes)
    maps = ANY_MAPS if forms is None else AdditionMaps(forms)
    return end_of(maps, raw, 0) == len(raw)


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


@pytest.mark.thorough
@settings(deadline=None)
@given(LONG_MAPS, BOUND_MAPS)
def test_what_a_writer_makes_is_taken(counts: dict[int, int], values: dict[int, bytes]) -> None:
    assert is_taken(longs(counts), len(counts), of_bytes=False)
    assert is_taken(bounds(values), len(values), of_bytes=True)


@settings(deadline=None)
@given(st.one_of(NOISE, LONG_MAPS.map(longs)), st.integers(min_value=1, max_value=6))
def test_longs_that_are_taken_fill_their_bytes(body: bytes, count: int) -> None:
    if is_taken(body, count, of_bytes=False):
        assert fills(body, count, of_bytes=False)


@settings(deadline=None)
@given(st.one_of(NOISE, BOUND_MAPS.map(bounds)), st.integers(min_value=1, max_value=6))
def test_bounds_that_are_taken_fill_their_bytes(body: bytes, count: int) -> None:
    if is_taken(body, count, of_bytes=True):
        assert fills(body, count, of_bytes=True)


def test_a_map_that_is_known_does_not_let_another_count_or_length_pass() -> None:
    good = bounds({1: b"12345678", 2: b"1234"})
    assert is_taken(good, 2, of_bytes=True)
    # As long, but the second length points behind the end.
    assert not is_taken(bounds({1: b"12345678"}) + b"\x04\x0a1234", 2, of_bytes=True)
    assert not is_taken(good, 1, of_bytes=True)
    assert not is_taken(good, 3, of_bytes=True)
    counts = longs({1: 5, 2: 70_000})
    assert is_taken(counts, 2, of_bytes=False)
    assert not is_taken(counts, 1, of_bytes=False)
    assert not is_taken(counts + b"\x00", 2, of_bytes=False)
    assert not is_taken(counts[:-1] + b"\x80", 2, of_bytes=False)


def test_ids_that_no_reader_takes_for_an_int_are_left_to_the_decoder() -> None:
    assert not is_taken(LONGS[2**40] + b"\x02", 1, of_bytes=False)
    assert not is_taken(LONGS[2**40] + b"\x02a", 1, of_bytes=True)


@pytest.mark.thorough
@settings(deadline=None)
@given(LONG_MAPS, st.integers(min_value=-(2**61), max_value=-1), st.integers(0, 3))
def test_no_negative_count_is_taken_whatever_was_before(
    counts: dict[int, int], negative: int, place: int
) -> None:
    assert is_taken(longs(counts), len(counts), of_bytes=False)
    # In as many bytes, so that the layout is known.
    key = list(counts)[place % len(counts)]
    for value in (negative, -counts[key] - 1):
        assert not is_taken(longs(counts | {key: value}), len(counts), of_bytes=False)


@pytest.mark.parametrize("is_sized", [False, True])
@pytest.mark.parametrize("learned", ["é", "éé", "ab"])
@pytest.mark.parametrize("columns", [(2, 3), (2, 5), (64, 65)])
def test_halves_of_two_texts_are_no_letter(
    columns: tuple[int, int], learned: str, is_sized: bool
) -> None:
    def content(first: bytes, second: bytes) -> bytes:
        pairs = [(columns[0], first), (4, b"\0"), (columns[1], second)]
        kept = [pair for pair in pairs if pair[0] != 4 or columns == (2, 5)]
        return encoded([*5 * [None], Map(kept, is_sized)])

    maps = AdditionMaps(FORMS)
    right = content(learned.encode(), learned.encode())
    for _ in range(3):
        assert end_of(maps, right, 0) == len(right)
    for first, second in ((b"a\xc3", b"\xa9b"), (b"a\xc3", b"\xa9"), (b"aaa\xc3", b"\xa9bbb")):
        assert end_of(maps, content(first, second) + bytes(9), 0) is None


@pytest.mark.parametrize("is_sized", [False, True])
@pytest.mark.parametrize("columns", [(2, 3), (2, 4, 5), (64, 65)])
def test_texts_at_known_places_are_looked_at_one_by_one(
    columns: tuple[int, ...], is_sized: bool
) -> None:
    def content(first: bytes, second: bytes, number: bytes = b"\0") -> bytes:
        pairs = [(columns[0], first), (columns[-1], second)]
        if 4 in columns:
            pairs.insert(1, (4, number))
        return encoded([*5 * [None], Map(pairs, is_sized)])

    maps = AdditionMaps(FORMS)
    # Letters of one length in other bytes: from the second one on the places of texts are known.
    for text in ("é", "ab"):
        right = content(text.encode(), text.encode())
        assert end_of(maps, right, 0) == len(right)
    right = content(b"a1", "ü".encode(), b"\xff")
    assert maps.match(right, 0) is not None
    assert end_of(maps, right, 0) == len(right)
    wrong = content(b"a\xc3", b"\xa9b")
    assert maps.match(wrong, 0) is not None
    assert end_of(maps, wrong, 0) is None


def test_a_half_letter_is_handed_on_whatever_texts_were_before() -> None:
    def content(first: bytes, second: bytes) -> bytes:
        return encoded([*5 * [None], Map([(5, first), (1, bytes(8)), (2, second)], False)])

    bounds = BoundMaps(FORMS)
    bounds.learn(10)
    # Maps beyond ASCII, so many that they get a pattern of their own, and others in between.
    for text in ("é", "漢字", "é", "ab", "x" * 70, "𝄞", "ü", "b", "ü", "ü"):
        right, texts = content(text.encode(), b"a"), list[bytes]()
        found = bounds.read(right, 5, texts)
        assert found == ((LONGS[5] + LONGS[1] + LONGS[2], False), len(right))
        assert is_utf8(b"".join(texts))
        for wrong in (b"a\xc3", b"\xa9b"):
            assert bounds.read(content(wrong, text.encode()), 5, texts) is not None
            assert not is_utf8(b"".join(texts))
            texts.clear()


@pytest.mark.parametrize("count", [2, 9])
def test_a_size_that_lies_is_found_whatever_was_before(count: int) -> None:
    def content(text: bytes, lie: int) -> bytes:
        body = b"".join(LONGS[key] + LONGS[5] for key in range(1, count)) + LONGS[99] + LONGS[5]
        counts = b"\x02" + LONGS[-count] + LONGS[len(body) + lie] + body + b"\0"
        body = bounds({1: bytes(8), 2: text})
        return counts + 3 * b"\0" + b"\x02\x03" + LONGS[len(body)] + body + b"\0\0"

    maps = AdditionMaps(FORMS)
    for length in range(1, 9):
        right = content(b"x" * length, 0)
        assert end_of(maps, right, 0) == len(right)
        for lie in (-1, 1):
            assert end_of(maps, content(b"x" * (20 + length), lie), 0) is None


# --- Patterns of several examples ----------------------------------------------------------------


def six(*columns: int, is_sized: bool = False, is_partial: bool = False) -> SixMaps:
    return (*4 * [None], MapColumns(columns, is_sized, is_partial), None)


def test_maps_are_merged_in_an_order_that_is_that_of_each() -> None:
    assert merged(six(1, 3, 4), six(1, 2, 4, 5)) == six(1, 2, 3, 4, 5, is_partial=True)
    assert merged(six(1, 2), six(1, 2)) == six(1, 2)
    assert merged(six(1, 2, 3, is_partial=True), six(1, 3)) == six(1, 2, 3, is_partial=True)
    for other in (six(2, 1), six(1, 2, is_sized=True), six(), 6 * (None,)):
        assert merged(six(1, 2), other) is None


def test_a_pattern_of_some_columns_counts_those_that_are_there() -> None:
    """Columns are missing here and there: after some such entries one pattern matches them all."""
    maps = AdditionMaps(FORMS)
    columns = [(1, 2, 4), (1, 2), (2, 4), (1, 4), (1, 2, 3), (3, 4), (2, 3), (1,), (2,)]
    for is_sized in (False, True):
        for some in (*columns, *columns, *columns):
            pairs = [(one, RIGHT[KINDS[one]][1]) for one in some]
            right = encoded([*5 * [None], Map(pairs, is_sized)])
            assert end_of(maps, right + bytes(9), 0) == len(right)
            for count in {len(some) - 1, len(some) + 1, 7} - {0}:
                lying = LONGS[-count if is_sized else count]
                wrong = right[:6] + lying + right[7:]
                with suppress(IndexError):
                    assert end_of(maps, wrong + b"\x02" * 9, 0) != len(right)
