"""Learns the layouts of maps of metrics that come again and again, and has a pattern for each.

A pattern is the fastest check of maps whose values differ in length, and the costliest to make.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from committer.iceberg.schema.bound_forms import BoundForms
from committer.iceberg.splice.layout_pattern import MapColumns, MapLayout, MapPattern, SixMaps

# Compiling a piece of a pattern takes as much time as it saves for some thousand entries, of which
# so many are lessons.
_COMPILING_COSTS = 25
_ID_BYTES_MAX = 2000
_KEPT = 3


@dataclass(frozen=True, slots=True)
class _Missed:
    """Maps that no pattern matches, how often there were such, and their pattern as far as it is
    compiled."""

    maps: SixMaps
    times: int = 0
    pattern: MapPattern | None = None


class MapPatterns:
    """The patterns of maps of one table's columns. Mutable; may be shared by threads, which at
    worst compile one twice."""

    __slots__ = ("_forms", "_known", "_missed")

    def __init__(self, forms: BoundForms) -> None:
        self._forms = forms
        # The latest in front.
        self._known: tuple[MapPattern, ...] = ()
        self._missed: tuple[_Missed, ...] = ()

    def match(self, raw: bytes, position: int, texts: list[bytes]) -> int:
        """Return where six maps at a position end, if a pattern matches them; else -1.
        `texts`: see `MapPattern.end`."""
        known = self._known
        for one in known:
            stop = one.end(raw, position, texts)
            if stop >= 0:
                if one is not known[0]:
                    self._known = (one, *(other for other in known if other is not one))
                return stop
        return -1

    def learn(self, layouts: Sequence[MapLayout]) -> None:
        """Note how six maps that were right, and that no pattern matched, are laid out. They get a
        piece of one each time that as much time has gone without it as it takes."""
        if sum(len(one[0]) for one in layouts if one is not None) > _ID_BYTES_MAX:
            return
        maps = tuple(None if one is None else MapColumns.of(*one) for one in layouts)
        missed, others = self._take(maps)
        if missed.times < _COMPILING_COSTS:
            missed = replace(missed, times=missed.times + 1)
        else:
            pattern = missed.pattern or self._begin(missed.maps)
            if pattern is not None and pattern.compile_piece():
                self._add(pattern)
            if pattern is None or pattern.is_whole:
                self._missed = others
                return
            missed = _Missed(missed.maps, 0, pattern)
        self._missed = (missed, *others[: _KEPT - 1])

    def _take(self, maps: SixMaps) -> tuple[_Missed, tuple[_Missed, ...]]:
        """Merge these maps with missed ones that one pattern can match too; return the others."""
        for one in self._missed:
            together = merged(one.maps, maps)
            if together is not None:
                others = tuple(other for other in self._missed if other is not one)
                return one if together == one.maps else _Missed(together, one.times), others
        return _Missed(maps), self._missed

    def _begin(self, maps: SixMaps) -> MapPattern | None:
        """Begin a pattern of these maps, and of those that a known one matches as far as it can.
        None where a known one has them all, or where it would take too long."""
        for one in self._known:
            together = merged(one.maps, maps)
            if together == one.maps:
                return None
            if together is not None:
                maps = together
                break
        pattern = MapPattern(maps, self._forms)
        return pattern if pattern.is_short else None

    def _add(self, pattern: MapPattern) -> None:
        """Add a pattern in place of those whose maps it matches, too."""
        kept = [one for one in self._known if merged(one.maps, pattern.maps) != pattern.maps]
        self._known = (pattern, *kept[: _KEPT - 1])


def merged(first: SixMaps, second: SixMaps) -> SixMaps | None:
    """Merge two examples of maps; None where no pattern matches both."""
    maps = list(first)
    for place, (one, other) in enumerate(zip(first, second, strict=True)):
        if one != other:
            maps[place] = _merged_map(one, other)
            if maps[place] is None:
                return None
    return tuple(maps)


def _merged_map(one: MapColumns | None, other: MapColumns | None) -> MapColumns | None:
    if one is None or other is None or one.is_sized != other.is_sized:
        return None
    if not one.columns or not other.columns:
        return None
    columns = _interleaved(one.columns, other.columns)
    return None if columns is None else MapColumns(columns, one.is_sized, is_partial=True)


def _interleaved(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...] | None:
    """Merge all columns of both into an order that is that of each; None if there is none."""
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
