"""Steps over the six maps of metrics of an added file, and proves that they are what they must be.

Pairs end where the size of their map says, counts are not negative, and each bound is one that
readers can decode. Known are the ways in which writers lay maps out; what is not recognised is left
to the decoder of whole entries: nothing is refused here.
"""

from __future__ import annotations

from committer.iceberg.avro_binary import read_long
from committer.iceberg.bound_forms import BoundForms
from committer.iceberg.bound_values import Bound, read_bound_pairs
from committer.iceberg.entry_parts import Unexpected
from committer.iceberg.manifest_layout import PAIRS_MAX
from committer.iceberg.map_patterns import MapPatterns
from committer.iceberg.map_skeleton import Skeletons
from committer.iceberg.sized_maps import SizedBounds, holds_counts

_MAPS_OF_LONGS = 4
_SIX = range(6)
_MAP_BYTES_MAX = 4096


class AdditionMaps:
    """The ways in which the maps of one writer's entries, for one table, were laid out. Mutable;
    may be shared by threads, which at worst learn a way twice."""

    __slots__ = ("_bounds", "_counts", "_forms", "_patterns", "_skeletons", "match")

    def __init__(self, forms: BoundForms) -> None:
        self._forms = forms
        self._patterns = MapPatterns(forms)
        self._bounds = SizedBounds(forms, self._patterns)
        self._skeletons = Skeletons(forms)
        # The latest maps of counts, which are most often those of the entry before.
        self._counts = [b""] * _MAPS_OF_LONGS
        self.match = self._skeletons.match

    def step(self, raw: bytes, start: int) -> int:
        """Where six maps end that `match` did not recognise.

        Errors: `Unexpected`; `InvalidMetadataError`, IndexError.
        """
        position = start
        for place in _SIX:
            branch = raw[position]
            known = self._counts[place] if place < _MAPS_OF_LONGS else b""
            if known and raw.startswith(known, position):
                position += len(known)
            elif not branch:
                position += 1
            elif branch != 2:
                raise Unexpected
            elif not raw[position + 1]:
                position += 2
            elif raw[position + 1] & 1:
                before, position = position, self._step_sized(raw, position + 1, place)
                if 0 < place < _MAPS_OF_LONGS and position - before <= _MAP_BYTES_MAX:
                    self._counts[place] = raw[before:position]
            else:
                position = self._step_plain(raw, start)
                break
        self._skeletons.learn(raw, start, position)
        return position

    def _step_sized(self, raw: bytes, position: int, place: int) -> int:
        number = raw[position]
        position += 1
        if number > 127:
            if raw[position] > 127:
                raise Unexpected
            number = number & 127 | raw[position] << 7
            position += 1
        length, position = read_long(raw, position)
        stop = position + length
        if length < 0 or raw[stop]:
            raise Unexpected
        holds = holds_counts if place < _MAPS_OF_LONGS else self._bounds.hold
        if not holds(raw[position:stop], number + 1 >> 1):
            raise Unexpected
        return stop + 1

    def _step_plain(self, raw: bytes, start: int) -> int:
        stop = self._patterns.match_six(raw, start)
        return stop if stop >= 0 else self._learn_plain(raw, start)

    def _learn_plain(self, raw: bytes, position: int) -> int:
        """Step over six plain maps pair by pair, and note which pairs they have."""
        counts: list[int | None] = []
        bounds: list[tuple[int, ...] | None] = []
        for place in _SIX:
            is_null, count, position = _plain_count(raw, position)
            if place < _MAPS_OF_LONGS:
                counts.append(None if is_null else count)
                position = _step_counts(raw, position, count)
            else:
                found: list[Bound] = []
                position = read_bound_pairs(raw, position, count, self._forms, found)
                bounds.append(None if is_null else tuple(one.field_id for one in found))
            if count:
                if raw[position]:
                    raise Unexpected
                position += 1
        self._patterns.learn_six(tuple(counts), *bounds)
        return position


def _plain_count(raw: bytes, position: int) -> tuple[bool, int, int]:
    """Whether a map is null, how many pairs it has, and where these start."""
    branch = raw[position]
    position += 1
    if branch not in (0, 2):
        raise Unexpected
    if not branch:
        return True, 0, position
    count, position = read_long(raw, position)
    if not 0 <= count <= PAIRS_MAX:
        raise Unexpected
    return False, count, position


def _step_counts(raw: bytes, position: int, count: int) -> int:
    for _ in range(count):
        _, position = read_long(raw, position)
        value, position = read_long(raw, position)
        if value < 0:
            raise Unexpected
    return position
