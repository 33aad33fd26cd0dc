"""The pattern of one layout of the six maps of metrics of an entry.

It names each column once, in the order in which a writer had them: what it matches has no column
twice. It is total: what it does not match (bounds of 64 bytes, integers in more bytes than they
take, columns in another order) may still be right.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

from committer.iceberg.avro.binary import LONGS, read_long
from committer.iceberg.schema.bound_forms import ANY_BYTES, BoundForms
from committer.iceberg.splice.pair_patterns import (
    COUNT,
    COUNT_OF_PAIRS,
    SHORT_ID_LIMIT,
    SIZE,
    bound,
    long,
)

_MAPS_OF_LONGS = 4
_NULL, _EMPTY, _START, _END = rb"\x00", rb"\x02\x00", rb"\x02", rb"\x00"
# So many bytes are compiled in 20 to 45 ms: an event loop may have to wait for it.
_PIECE_BYTES_MAX = 24_000

# The ids of a map's columns as they follow one another, and whether it says its size. None: the map
# is null.
MapLayout = tuple[bytes, bool] | None
_Groups = tuple[bytes | None, ...]


@dataclass(frozen=True, slots=True)
class MapColumns:
    """The layout of a map: its columns in their order, and whether it says its size. `is_partial`:
    any but not all of the columns may be missing.
    """

    columns: tuple[int, ...]
    is_sized: bool = False
    is_partial: bool = False

    @classmethod
    def of(cls, ids: bytes, is_sized: bool) -> MapColumns:
        """Read the ids as they follow one another."""
        columns, position = list[int](), 0
        while position < len(ids):
            column, position = read_long(ids, position)
            columns.append(column)
        return cls(tuple(columns), is_sized)


# None: the map is null.
SixMaps = tuple[MapColumns | None, ...]


class MapPattern:
    """Matches six maps with these columns, in pieces that are compiled one by one. Mutable."""

    __slots__ = ("_pieces", "_sources", "maps")

    def __init__(self, maps: SixMaps, forms: BoundForms) -> None:
        self.maps = maps
        self._pieces: tuple[_Piece, ...] = ()
        self._sources = [_Source(forms)]
        for place, one in enumerate(maps):
            size_bytes = self._sources[-1].size_bytes
            source = _Source(forms)
            source.add_map(one, of_longs=place < _MAPS_OF_LONGS)
            if size_bytes + source.size_bytes > _PIECE_BYTES_MAX:
                self._sources.append(source)
            else:
                self._sources[-1].add_map(one, of_longs=place < _MAPS_OF_LONGS)

    @property
    def is_short(self) -> bool:
        """Whether no piece takes too long to compile."""
        return all(one.size_bytes <= _PIECE_BYTES_MAX for one in self._sources)

    def compile_piece(self) -> bool:
        """Compile the next piece. Returns whether it was the last one."""
        # Another thread may do the same: each sets what follows from what it saw.
        pieces = self._pieces
        if len(pieces) < len(self._sources):
            self._pieces = (*pieces, _Piece(self._sources[len(pieces)]))
        return self.is_whole

    @property
    def is_whole(self) -> bool:
        return len(self._pieces) == len(self._sources)

    def end(self, raw: bytes, position: int, texts: list[bytes]) -> int:
        """Return where a match at a position ends, else -1. Adds to `texts` what has yet to be
        proven to be text: each piece begins with the last byte of a length, which is ASCII."""
        for piece in self._pieces:
            position = piece.end(raw, position, texts)
            if position < 0:
                break
        return position


class _Piece:
    """Matches some of the maps that follow one another."""

    __slots__ = ("_match", "_parts", "_sizes", "_texts")

    def __init__(self, source: _Source) -> None:
        self._match = re.compile(b"".join(source.pieces), re.DOTALL).match
        self._sizes, self._parts = source.sizes, source.parts
        self._texts = _getter(source.texts)

    def end(self, raw: bytes, position: int, texts: list[bytes]) -> int:
        """Return where a match of this piece ends, as `MapPattern.end`."""
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
        found = self._texts(groups)
        # Only where columns may be missing a text may be None.
        texts += filter(None, found) if self._parts else found  # type: ignore[arg-type]
        return match.end()


@dataclass(frozen=True, slots=True)
class _Part:
    """A map of which columns may be missing: the groups of its count and of each missing one."""

    count: int
    missing: Callable[[_Groups], _Groups]
    columns: int
    is_sized: bool

    def has_all(self, groups: _Groups) -> bool:
        """Return whether there are as many pairs as the map says."""
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

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.pieces))

    def add_map(self, one: MapColumns | None, *, of_longs: bool) -> None:
        if one is None or not one.columns:
            self.pieces.append(_NULL if one is None else _EMPTY)
            return
        self.pieces.append(_START)
        count = self._add_count(one)
        if one.is_sized:
            self.sizes.append((self._open(), self._groups))
            self.pieces += (SIZE, b")(")
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
            self.pieces.append(long(-len(one.columns) if one.is_sized else len(one.columns)))
            return -1
        count = self._open()
        self.pieces.append(COUNT_OF_PAIRS + b")")
        return count

    def _add_pair(self, column: int, one: MapColumns, *, of_longs: bool) -> int:
        """Add a pair, and return the place of the group that is empty where the pair is missing."""
        form = ANY_BYTES if of_longs else self._forms.of(column)
        if not (form.is_text and column < SHORT_ID_LIMIT):
            self._end_texts()
        self.pieces.append(b"(?>" + long(column) if one.is_partial else long(column))
        if of_longs:
            self.pieces.append(COUNT)
        else:
            if form.is_text and not self._is_in_texts:
                # Neighbors are one group: their ids and lengths are ASCII.
                self.texts.append(self._open())
                self._is_in_texts = True
            self.pieces.append(bound(form))
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


def _getter(places: list[int]) -> Callable[[_Groups], _Groups]:
    """Return a getter of the groups at these places."""
    if len(places) > 1:
        found: Callable[[_Groups], _Groups] = itemgetter(*places)
        return found
    return itemgetter(slice(places[0], places[0] + 1) if places else slice(0, 0))
