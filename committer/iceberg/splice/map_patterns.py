"""Patterns of the six maps of metrics of an entry, by the columns and forms of bounds of a table.

A pattern names each column once, in the order in which writers had them: what it matches has no
column twice. It is total: what it does not match (bounds of 64 bytes, integers in more bytes than
they take, columns in another order) may still be right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from committer.iceberg.avro.binary import LONGS
from committer.iceberg.entry.entry_layout import VARINT
from committer.iceberg.schema.bound_forms import ANY_BYTES, BoundForm, BoundForms, is_below

_MAPS_OF_LONGS = 4
# Of up to 63 bits, and not negative: a decoder decides about others.
_EVEN = b"".join(re.escape(bytes((even,))) for even in range(0, 256, 2))
_COUNT = b"(?=[%b])%b" % (_EVEN, VARINT)
_SIZE = rb"[\x80-\xff]{0,2}+[\x00-\x7f]"
_PAIRS = rb"[\x80-\xff]?+[\x01-\x7f]"
_LENGTHS = (8, 4, 16, 1, 12, *(n for n in range(64) if n not in (8, 4, 16, 1, 12)))
_NULL, _EMPTY, _START, _END = rb"\x00", rb"\x02\x00", rb"\x02", rb"\x00"
# Compiling a pattern takes as much time as reading the maps of so many entries pair by pair, and
# tenths of a second for entries of hundreds of pairs.
_COMPILING_COSTS = 500
_PAIRS_MAX = 1000
_KEPT = 3
# Ids below it take a byte of ASCII.
_SHORT_ID_LIMIT = 64

_Groups = tuple[bytes | None, ...]


@dataclass(frozen=True, slots=True)
class MapColumns:
    """How a map was written: its columns in their order, and whether it says its size.
    `is_partial`: any but not all of the columns may be missing."""

    columns: tuple[int, ...]
    is_sized: bool = False
    is_partial: bool = False


# None: the map is null.
SixMaps = tuple[MapColumns | None, ...]


class MapPatterns:
    """The patterns of maps of one table's columns. Mutable; may be shared by threads, which at
    worst compile one twice."""

    __slots__ = ("_forms", "_known", "_missed")

    def __init__(self, forms: BoundForms) -> None:
        self._forms = forms
        # The latest in front.
        self._known: tuple[MapPattern, ...] = ()
        # Maps that none matches, and how often there were such.
        self._missed: tuple[tuple[SixMaps, int], ...] = ()

    def match(self, raw: bytes, position: int, texts: list[bytes]) -> int:
        """Where six maps at a position end, if a pattern matches them; else -1. `texts`: see
        `MapPattern.end`."""
        known = self._known
        for one in known:
            stop = one.end(raw, position, texts)
            if stop >= 0:
                if one is not known[0]:
                    self._known = (one, *(other for other in known if other is not one))
                return stop
        return -1

    def learn(self, maps: SixMaps) -> None:
        """Note six maps that were right, and that no pattern matched. They get one after as much
        time without it as it takes.
        """
        times = 0
        missed = self._missed
        for one in missed:
            together = merged(one[0], maps)
            if together is not None:
                maps, times = together, one[1]
                missed = tuple(other for other in missed if other is not one)
                break
        if times < _COMPILING_COSTS:
            self._missed = ((maps, times + 1), *missed[: _KEPT - 1])
        else:
            self._missed = missed
            self._compile(maps)

    def _compile(self, maps: SixMaps) -> None:
        """Add a pattern of these maps, and of those that a known one matches as far as it can."""
        kept = list(self._known)
        for one in self._known:
            together = merged(one.maps, maps)
            if together == one.maps:
                return
            if together is not None:
                maps = together
                kept.remove(one)
                break
        self._known = (MapPattern(maps, self._forms), *kept[: _KEPT - 1])


def merged(first: SixMaps, second: SixMaps) -> SixMaps | None:
    """Maps of which these are two examples; None where no pattern matches both, or takes too long
    to compile."""
    maps = list(first)
    for place, (one, other) in enumerate(zip(first, second, strict=True)):
        if one != other:
            maps[place] = _merged_map(one, other)
            if maps[place] is None:
                return None
    return tuple(maps) if _pairs(maps) <= _PAIRS_MAX else None


def _pairs(maps: Sequence[MapColumns | None]) -> int:
    return sum(len(one.columns) for one in maps if one is not None)


def _merged_map(one: MapColumns | None, other: MapColumns | None) -> MapColumns | None:
    if one is None or other is None or one.is_sized != other.is_sized:
        return None
    if not one.columns or not other.columns:
        return None
    columns = _interleaved(one.columns, other.columns)
    return None if columns is None else MapColumns(columns, one.is_sized, is_partial=True)


def _interleaved(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...] | None:
    """All columns of both, in an order that is that of each."""
    places = {column: place for place, column in enumerate(first)}
    columns, taken = list[int](), 0
    for column in second:
        place = places.get(column)
        if place is None:
            columns.append(column)
        elif place < taken:
            return None
        else:
            columns += first[taken : place + 1]
            taken = place + 1
    return (*columns, *first[taken:])


class MapPattern:
    """Matches six maps with these columns."""

    __slots__ = ("_limits", "_match", "_numbers", "_parts", "_sizes", "_texts", "maps")

    def __init__(self, maps: SixMaps, forms: BoundForms) -> None:
        source = _Source(forms)
        for place, one in enumerate(maps):
            source.add_map(one, of_longs=place < _MAPS_OF_LONGS)
        self.maps = maps
        self._match = re.compile(b"".join(source.pieces), re.DOTALL).match
        self._sizes, self._parts = source.sizes, source.parts
        self._texts = _getter(source.texts)
        self._numbers, self._limits = _getter(source.numbers), source.limits

    def end(self, raw: bytes, position: int, texts: list[bytes]) -> int:
        """Where what is matched at a position ends, else -1. Adds to `texts` what has yet to be
        proven to be text: each piece begins with the last byte of a length, which is ASCII."""
        match = self._match(raw, position)
        if match is None:
            return -1
        groups = match.groups()
        for size, pairs in self._sizes:
            if groups[size] != LONGS[len(groups[pairs] or b"")]:
                return -1
        for one in self._parts:
            if not one.has_all(groups):
                return -1
        numbers = self._numbers(groups)
        if any(numbers) and not _are_below(numbers, self._limits):
            return -1
        # Only where columns are missing texts may be None.
        texts += filter(None, self._texts(groups))
        return match.end()


def _are_below(numbers: _Groups, limits: list[int]) -> bool:
    pairs = zip(numbers, limits, strict=True)
    return all(number is None or is_below(number, limit) for number, limit in pairs)


@dataclass(frozen=True, slots=True)
class _Part:
    """A map of which columns may be missing: the groups of its count and of each missing one."""

    count: int
    missing: Callable[[_Groups], _Groups]
    columns: int
    is_sized: bool

    def has_all(self, groups: _Groups) -> bool:
        """Whether there are as many pairs as the map says."""
        found = self.columns - self.missing(groups).count(b"")
        return groups[self.count] == LONGS[-found if self.is_sized else found]


class _Source:
    """The source of a pattern, and which of its groups are what. Mutable."""

    def __init__(self, forms: BoundForms) -> None:
        self._forms, self._groups, self._is_in_texts = forms, 0, False
        self.pieces: list[bytes] = []
        self.sizes: list[tuple[int, int]] = []
        self.parts: list[_Part] = []
        self.texts: list[int] = []
        self.numbers: list[int] = []
        self.limits: list[int] = []

    def add_map(self, one: MapColumns | None, *, of_longs: bool) -> None:
        if one is None or not one.columns:
            self.pieces.append(_NULL if one is None else _EMPTY)
            return
        self.pieces.append(_START)
        count = self._add_count(one)
        if one.is_sized:
            self.sizes.append((self._open(), self._groups))
            self.pieces += (_SIZE, b")(")
            self._groups += 1
        self._is_in_texts = False
        missing = [self._add_pair(column, one, of_longs=of_longs) for column in one.columns]
        self._end_texts()
        self.pieces.append(b")" + _END if one.is_sized else _END)
        if one.is_partial:
            self.parts.append(_Part(count, _getter(missing), len(missing), one.is_sized))

    def _open(self) -> int:
        """Start a group; returns its place."""
        self.pieces.append(b"(")
        self._groups += 1
        return self._groups - 1

    def _add_count(self, one: MapColumns) -> int:
        if not one.is_partial:
            self.pieces.append(_long(-len(one.columns) if one.is_sized else len(one.columns)))
            return -1
        count = self._open()
        self.pieces.append(_PAIRS + b")")
        return count

    def _add_pair(self, column: int, one: MapColumns, *, of_longs: bool) -> int:
        """Returns the place of the group that is empty where the pair is missing."""
        form = ANY_BYTES if of_longs else self._forms.of(column)
        if not (form.is_text and column < _SHORT_ID_LIMIT):
            self._end_texts()
        self.pieces.append(b"(?>" + _long(column) if one.is_partial else _long(column))
        if of_longs:
            self.pieces.append(_COUNT)
        else:
            self._add_bound(form)
        if not one.is_partial:
            return -1
        self._end_texts()
        self.pieces.append(b"|")
        missing = self._open()
        self.pieces.append(b"))")
        return missing

    def _end_texts(self) -> None:
        if self._is_in_texts:
            self.pieces.append(b")")
        self._is_in_texts = False

    def _add_bound(self, form: BoundForm) -> None:
        lengths = [length for length in _LENGTHS if length in form.lengths]
        if form.is_text:
            # Neighbors are one group: their ids and lengths are ASCII.
            if not self._is_in_texts:
                self.texts.append(self._open())
            self._is_in_texts = True
            self.pieces.append(b"(?:" + b"|".join(map(_bytes, lengths)) + b")")
        elif form.limit:
            short = [_bytes(length) for length in lengths if length < form.limited_length]
            self.pieces.append(b"(?:%b" % b"".join(one + b"|" for one in short))
            self.pieces.append(_long(form.limited_length))
            self.numbers.append(self._open())
            self.limits.append(form.limit)
            self.pieces.append(b".{%d}))" % form.limited_length)
        else:
            # Without a length nothing matches.
            self.pieces.append(b"(?:%b)" % (b"|".join(map(_bytes, lengths)) or b"(?!)"))


def _getter(places: list[int]) -> Callable[[_Groups], _Groups]:
    """The groups at these places."""
    if len(places) > 1:
        found: Callable[[_Groups], _Groups] = itemgetter(*places)
        return found
    return itemgetter(slice(places[0], places[0] + 1) if places else slice(0, 0))


def _long(value: int) -> bytes:
    return re.escape(LONGS[value])


def _bytes(length: int) -> bytes:
    return _long(length) + b".{%d}" % length
