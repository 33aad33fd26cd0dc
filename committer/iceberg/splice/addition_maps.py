"""Steps over the six maps of metrics of an added file, and proves that they are what they must be.

Pairs end where the size of their map says, no column has two, counts are not negative, and each
bound is one that readers can decode. A map that is not expected is left to the decoder of whole
entries: nothing is refused here.
"""

from __future__ import annotations

from committer.iceberg.avro.binary import read_long
from committer.iceberg.entry.entry_layout import PAIRS_MAX
from committer.iceberg.entry.entry_parts import Unexpected
from committer.iceberg.entry.map_skeleton import Skeletons
from committer.iceberg.schema.bound_forms import BoundForms
from committer.iceberg.splice.map_patterns import MapColumns, MapPatterns, SixMaps

_MAPS_OF_LONGS = 4
_SIX = range(6)
_ID_LIMIT = 2**31
# One byte is the rule for ids and lengths, and a call for each would double the time.
_SIGN_OR_MORE = 0x81


class AdditionMaps:
    """The ways in which the maps of one writer's entries, for one table, were laid out. Mutable;
    may be shared by threads, which at worst learn a way twice."""

    __slots__ = ("_forms", "_patterns", "_skeletons", "match")

    def __init__(self, forms: BoundForms) -> None:
        self._forms = forms
        self._patterns = MapPatterns(forms)
        self._skeletons = Skeletons(forms)
        self.match = self._skeletons.match

    def step(self, raw: bytes, start: int, texts: list[bytes]) -> int:
        """Where six maps end that `match` did not recognize. Adds to `texts` what has yet to be
        proven to be text, in pieces that begin with a byte of ASCII.

        Errors: `Unexpected`; `InvalidMetadataError`, IndexError.
        """
        stop = self._patterns.match(raw, start, texts)
        if stop < 0:
            maps, stop = self._read(raw, start, texts)
            self._patterns.learn(maps)
        self._skeletons.learn(raw, start, stop)
        return stop

    def _read(self, raw: bytes, position: int, texts: list[bytes]) -> tuple[SixMaps, int]:
        """Read six maps pair by pair: what columns they have, and where they end."""
        maps: list[MapColumns | None] = []
        for place in _SIX:
            branch = raw[position]
            position += 1
            if branch not in (0, 2):
                raise Unexpected
            one = None
            if branch:
                bound_texts = None if place < _MAPS_OF_LONGS else texts
                one, position = self._read_map(raw, position, bound_texts)
            maps.append(one)
        return tuple(maps), position

    def _read_map(
        self, raw: bytes, position: int, texts: list[bytes] | None
    ) -> tuple[MapColumns, int]:
        """Read a map of one block, of bounds if there are `texts`."""
        count, position = read_long(raw, position)
        is_sized = count < 0
        size, position = read_long(raw, position) if is_sized else (0, position)
        if not count:
            return MapColumns(()), position
        if abs(count) > PAIRS_MAX:
            raise Unexpected
        start = position
        if texts is None:
            columns, position = _read_counts(raw, position, abs(count))
        else:
            columns, position = self._read_bounds(raw, position, abs(count), texts)
        if raw[position] or (is_sized and position - start != size):
            raise Unexpected
        if len(set(columns)) != len(columns):
            raise Unexpected
        return MapColumns(tuple(columns), is_sized), position + 1

    def _read_bounds(
        self, raw: bytes, position: int, count: int, texts: list[bytes]
    ) -> tuple[list[int], int]:
        columns, form_of = list[int](), self._forms.of
        for _ in range(count):
            column = raw[position]
            if column & _SIGN_OR_MORE:
                column, position = read_long(raw, position)
            else:
                column, position = column >> 1, position + 1
            length = raw[position]
            if length & _SIGN_OR_MORE:
                length, start = read_long(raw, position)
            else:
                length, start = length >> 1, position + 1
            position = start + length
            form = form_of(column)
            if length < 0 or not (form.is_text or form.fits(raw[start:position])):
                raise Unexpected
            if form.is_text:
                texts.append(raw[start - 1 : position])
            columns.append(column)
        return columns, position


def _read_counts(raw: bytes, position: int, count: int) -> tuple[list[int], int]:
    columns = list[int]()
    for _ in range(count):
        column = raw[position]
        if column & _SIGN_OR_MORE:
            column, position = read_long(raw, position)
        else:
            column, position = column >> 1, position + 1
        value = raw[position]
        if value & _SIGN_OR_MORE:
            value, position = read_long(raw, position)
        else:
            position += 1
        if value < 0 or not -_ID_LIMIT <= column < _ID_LIMIT:
            raise Unexpected
        columns.append(column)
    return columns, position
