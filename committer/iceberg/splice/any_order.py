"""Reads maps of metrics whatever columns they have, and in whatever order.

Writers that keep metrics in hash maps have another order in each entry, and most writers leave out
columns without values. So the patterns here are those of a table, however its writers lay out maps.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache, cached_property

from committer.iceberg.avro.binary import LONGS
from committer.iceberg.schema.bound_forms import ANY_BYTES, BoundForm, BoundForms
from committer.iceberg.splice.layout_pattern import MapLayout
from committer.iceberg.splice.pair_patterns import (
    ANY_BYTE,
    ASCII,
    COUNT,
    EVEN,
    ID,
    ID_LIMIT,
    LENGTH_LIMIT,
    ODD,
    SHORT_ID,
    SHORT_ID_LIMIT,
    SIZE,
    bound,
    ids,
    one_of,
    text_piece,
)

_Match = Callable[[bytes, int], re.Match[bytes] | None]
_FindAll = Callable[[bytes], list[bytes]]
_EMPTY = b"", False
_MAPS_OF_LONGS = 4
# Compiling takes as much time as it saves for so many pairs, which are read one by one.
_COMPILING_COSTS = 30_000
# And one more pattern as much as it saves for so many maps.
_MAPS_A_PATTERN = 1_000


def _map(pairs: bytes) -> bytes:
    """Match a map of one block. Its groups: present, how many pairs if plain or else if sized, the
    size, the pairs, and those of the pairs."""
    parts = (EVEN, ODD, SIZE, pairs)
    return rb"(?:\x00|(\x02)(?:\x00|(?:(%b)|(%b)(%b))(%b)\x00))" % parts


_LONG_ID = rb"[\x80-\xff](?:[\x80-\xff]{0,2}+[\x01-\x7f]|[\x80-\xff]{3}[\x01-\x0f])"
_ANY_ID = one_of((SHORT_ID, _LONG_ID))
# The group in it: pairs from the first long id on.
_COUNTS = b"(?:%b%b)*+((?:%b%b)*+)" % (SHORT_ID, COUNT, _ANY_ID, COUNT)
_GROUPS = 6
_NOT_LAST = bytes(range(128, 256))
_ASCII = bytes(range(128))


@cache
def _four_maps() -> _Match:
    return re.compile(_MAPS_OF_LONGS * _map(_COUNTS), re.DOTALL).match


@cache
def _ids_of_counts() -> _FindAll:
    return re.compile(b"(%b)%b" % (_ANY_ID, COUNT), re.DOTALL).findall


def read_counts(raw: bytes, position: int) -> tuple[list[MapLayout], int] | None:
    """Return how four maps of counts are laid out, and where they end;
    None where only a decoder can tell."""
    match = _four_maps()(raw, position)
    if match is None:
        return None
    found = list[MapLayout]()
    for present, plain, sized, size, body, long_ones in zip(
        *_GROUPS * [iter(match.groups())], strict=True
    ):
        if body is None:
            found.append(None if present is None else _EMPTY)
            continue
        # The last byte of each number; that of a short id is all of it.
        lasts = body.translate(None, _NOT_LAST)
        count = len(lasts) >> 1
        ids = lasts[::2]
        if long_ones:
            each = _ids_of_counts()(body)
            ids, differ = b"".join(each), len(set(each)) == count
        else:
            differ = len(_ASCII.translate(None, ids)) == len(_ASCII) - count
        if not differ or not _says(plain, sized, size, count, body):
            return None
        found.append((ids, plain is None))
    return found, match.end()


def _says(plain: bytes | None, sized: bytes | None, size: bytes, count: int, body: bytes) -> bool:
    """Return whether a map says that it has so many pairs, and how many bytes these take."""
    return plain == LONGS[count] or (sized == LONGS[-count] and size == LONGS[len(body)])


class BoundMaps:
    """Reads maps of bounds of one table's columns. Mutable; may be shared by threads, which at
    worst compile a pattern twice."""

    __slots__ = ("_beyond_ascii", "_forms", "_is_beyond_ascii", "_pairs", "_patterns")

    def __init__(self, forms: BoundForms) -> None:
        self._forms, self._pairs = forms, 0
        self._patterns: _Patterns | None = None
        # How many maps had texts beyond ASCII, and whether the next one is taken for such a map.
        self._beyond_ascii, self._is_beyond_ascii = 0, False

    def read(self, raw: bytes, position: int, texts: list[bytes]) -> tuple[MapLayout, int] | None:
        """Return how a map of bounds is laid out that have their columns' forms, and where it ends;
        None where no pattern can tell.

        Adds to `texts` those that have yet to be proven to be text, in pieces that begin with a
        byte of ASCII.
        """
        if self._patterns is None:
            if self._pairs < _COMPILING_COSTS:
                return None
            self._patterns = _Patterns(self._forms)
        patterns = self._patterns
        match = (patterns.any_texts if self._is_beyond_ascii else patterns.map)(raw, position)
        if match is None:
            return None
        present, plain, sized, size, body, text = match.groups()
        if body is None:
            return None if present is None else _EMPTY, match.end()
        found = patterns.ids(body)
        count = len(found)
        if len(set(found)) != count or not _says(plain, sized, size, count, body):
            return None
        if text is not None:
            pieces = patterns.texts(body)
            texts += pieces
            self._expect(is_ascii=b"".join(pieces).isascii())
        return (b"".join(found), plain is None), match.end()

    def _expect(self, *, is_ascii: bool) -> None:
        """Have the next map matched by the pattern that suits one with such texts."""
        self._beyond_ascii += not is_ascii
        self._is_beyond_ascii = not is_ascii and self._beyond_ascii > _MAPS_A_PATTERN

    def learn(self, pairs: int) -> None:
        """Note that so many pairs were read one by one."""
        self._pairs += pairs


class _Patterns:
    """`map` matches a map of bounds, and in its last group a text beyond ASCII, if it has any.
    `any_texts` has any text there, and is faster where some are beyond ASCII, as it tries each
    once. `texts` and `ids` find those of its pairs."""

    def __init__(self, forms: BoundForms) -> None:
        columns, texts = defaultdict[BoundForm, list[int]](list), list[int]()
        for column, form in forms.columns_below(ID_LIMIT):
            (texts if form.is_text else columns[form]).append(column)
        others = one_of(ids(columns[form]) + _bound(form) for form in columns)
        ascii_text = ids(texts) + _bound(ANY_BYTES, ASCII)
        text = ids(texts) + _bound(ANY_BYTES)
        pairs = b"(?:%b|%b|(%b))*+" % (others, ascii_text, text)
        piece = rb"%b*+(?:%b%b|\Z)" % (others, ID, text_piece())
        is_wide = any(column >= SHORT_ID_LIMIT for column, _ in forms.columns_below(ID_LIMIT))
        self.map = re.compile(_map(pairs), re.DOTALL).match
        self._any_pairs = b"(?:%b|(%b))*+" % (others, text)
        self.texts = re.compile(piece, re.DOTALL).findall
        self.ids = _ids_of_bounds(ID if is_wide else SHORT_ID)

    @cached_property
    def any_texts(self) -> _Match:
        return re.compile(_map(self._any_pairs), re.DOTALL).match


def _bound(form: BoundForm, byte: bytes = ANY_BYTE) -> bytes:
    return bound(form, byte, limit=LENGTH_LIMIT)


@cache
def _ids_of_bounds(any_id: bytes) -> _FindAll:
    return re.compile(b"(%b)%b" % (any_id, _bound(ANY_BYTES)), re.DOTALL).findall
