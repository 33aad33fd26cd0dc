"""Patterns of maps of metrics, of the columns and the forms of bounds that one table's files have.

A pattern is total: what it does not match (bounds of 64 bytes, integers in more bytes than they
take) may still be right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from committer.iceberg.avro_binary import LONGS
from committer.iceberg.bound_forms import BoundForm, BoundForms, is_below, is_utf8
from committer.iceberg.manifest_layout import FIELD_ID, VARINT

# Of up to 63 bits, and not negative: a decoder decides about others.
_COUNT = b"(?=[%b])" % b"".join(b"\\x%02x" % even for even in range(0, 256, 2)) + VARINT
_UNROLLED_MAX = 64
_LENGTHS = (8, 4, 16, 1, 12, *(n for n in range(64) if n not in (8, 4, 16, 1, 12)))
# Compiling a pattern takes as much time as some hundred entries. So it is paid by these, on a first
# credit.
_COMPILING_COSTS = 500
_CREDIT = 16 * _COMPILING_COSTS
_KEPT_MAX = 64
_END = rb"\x00"


def count_pairs(count: int) -> bytes:
    """The source of a pattern of so many pairs of field id and a long that is not negative."""
    # Written out it matches half again as fast, and takes the longer to compile.
    if count <= _UNROLLED_MAX:
        return (FIELD_ID + _COUNT) * count
    return b"(?:%b%b){%d}" % (FIELD_ID, _COUNT, count)


# The source of a pattern, or a column and the form of its bound.
Piece = bytes | tuple[int, BoundForm]


class MapPattern:
    """Matches pieces in turn. Most texts are ASCII, which a pattern can say itself: so there is one
    for these, and where it does not match, one for all."""

    __slots__ = ("_pieces", "_ways")

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self._pieces = tuple(pieces)
        # The one that matched last in front.
        self._ways: tuple[_Compiled, ...] = (_Compiled(self._pieces, is_ascii=True),)

    def end(self, raw: bytes, position: int) -> int:
        """Where what is matched at a position ends, with bounds of their forms; else -1."""
        ways = self._ways
        stop = ways[0].end(raw, position)
        if stop >= 0:
            return stop
        if len(ways) == 1:
            ways = (ways[0], _Compiled(self._pieces, is_ascii=False))
        stop = ways[1].end(raw, position)
        self._ways = ways if stop < 0 else ways[::-1]
        return stop


class _Compiled:
    __slots__ = ("_limits", "_match", "_numbers", "_texts")

    def __init__(self, pieces: Iterable[Piece], *, is_ascii: bool) -> None:
        sources: list[bytes] = []
        self._texts: tuple[int, ...] = ()
        self._numbers: tuple[int, ...] = ()
        self._limits: list[int] = []
        for piece in pieces:
            if isinstance(piece, bytes):
                sources.append(piece)
                continue
            field_id, form = piece
            sources += (re.escape(LONGS[field_id]), _bound(form, is_ascii=is_ascii))
            group = len(self._texts) + len(self._numbers) + 1
            if form.limit:
                self._numbers += (group,)
                self._limits.append(form.limit)
            elif form.is_text and not is_ascii:
                self._texts += (group,)
        self._match = re.compile(b"".join(sources), re.DOTALL).match

    def end(self, raw: bytes, position: int) -> int:
        match = self._match(raw, position)
        if match is None:
            return -1
        if match.lastindex is None:
            return match.end()
        # The group in front, which is the whole, makes a tuple of the answer to one group, too.
        if self._texts and not is_utf8(b"".join(match.group(0, *self._texts)[1:])):
            return -1
        if self._numbers:
            numbers = match.group(0, *self._numbers)[1:]
            for number, limit in zip(numbers, self._limits, strict=True):
                if number is not None and not is_below(number, limit):
                    return -1
        return match.end()


def _bound(form: BoundForm, *, is_ascii: bool) -> bytes:
    """The source of a pattern of a bound with its length. Texts that may be anything are a group
    with it: these lengths are ASCII, and keep halves of two texts from making one letter."""
    lengths = [length for length in _LENGTHS if length in form.lengths]
    if form.limit:
        short = [_bytes(length) for length in lengths if length < form.limited_length]
        full = re.escape(LONGS[form.limited_length]) + b"(.{%d})" % form.limited_length
        return b"(?:%b)" % b"|".join((*short, full))
    if form.is_text and is_ascii:
        return b"(?:%b)" % b"|".join(_bytes(length, rb"[\x00-\x7f]") for length in lengths)
    alternatives = b"|".join(map(_bytes, lengths))
    if form.is_text:
        return b"(%b)" % alternatives
    # Without a length nothing matches.
    return b"(?:%b)" % alternatives if lengths else b"(?!)"


def _bytes(length: int, one: bytes = b".") -> bytes:
    return re.escape(LONGS[length]) + b"%b{%d}" % (one, length)


_NOTHING = MapPattern((b"(?!)",))


class MapPatterns:
    """The patterns of maps of one table's columns. Mutable; may be shared by threads, which at
    worst compile one twice."""

    __slots__ = ("_credit", "_forms", "_known", "_latest", "_latest_six")

    def __init__(self, forms: BoundForms) -> None:
        self._forms = forms
        self._known: dict[object, MapPattern] = {}
        self._latest: dict[int, MapPattern] = {}
        self._latest_six = _NOTHING
        self._credit = _CREDIT

    def match_bounds(self, body: bytes, count: int) -> bool:
        """Whether the latest pattern of so many bounds matches these bytes as a whole."""
        pattern = self._latest.get(count)
        if pattern is None or pattern.end(body, 0) != len(body):
            return False
        self._credit = min(self._credit + 1, _CREDIT)
        return True

    def match_six(self, raw: bytes, position: int) -> int:
        """Where six maps without sizes end, if the latest pattern matches them; else -1."""
        stop = self._latest_six.end(raw, position)
        if stop >= 0:
            self._credit = min(self._credit + 1, _CREDIT)
        return stop

    def learn_bounds(self, field_ids: tuple[int, ...]) -> None:
        """Note the columns of bounds, which the latest pattern of so many did not match."""
        pattern = self._compiled((field_ids,))
        if pattern is not None:
            if len(self._latest) >= _KEPT_MAX:
                self._latest.clear()
            self._latest[len(field_ids)] = pattern

    def learn_six(self, counts: tuple[int | None, ...], *bounds: tuple[int, ...] | None) -> None:
        """Note six maps of one plain block each: how many pairs those of longs have, and of which
        columns the bounds are. None: the map is null."""
        pattern = self._compiled((*map(_long_map, counts), *bounds))
        if pattern is not None:
            self._latest_six = pattern

    def _compiled(self, maps: tuple[bytes | tuple[int, ...] | None, ...]) -> MapPattern | None:
        """The pattern of these maps; None where there is no credit to compile it."""
        pattern = self._known.get(maps)
        if pattern is None and self._credit >= _COMPILING_COSTS:
            self._credit -= _COMPILING_COSTS
            if len(self._known) >= _KEPT_MAX:
                self._known.clear()
            pattern = self._known[maps] = MapPattern(self._pieces(maps))
        return pattern

    def _pieces(self, maps: tuple[bytes | tuple[int, ...] | None, ...]) -> Iterator[Piece]:
        """Bounds that stand alone are those of a body, without what is around the pairs."""
        for one in maps:
            if isinstance(one, bytes):
                yield one
                continue
            is_whole = len(maps) > 1
            if is_whole:
                yield _start(None if one is None else len(one))
            yield from ((field_id, self._forms.of(field_id)) for field_id in one or ())
            if is_whole and one:
                yield _END


def _long_map(count: int | None) -> bytes:
    return _start(count) + (count_pairs(count) + _END if count else b"")


def _start(count: int | None) -> bytes:
    """The source of what is in front of a map's pairs; all of a map without pairs."""
    return rb"\x00" if count is None else rb"\x02" + re.escape(LONGS[count])
