"""Steps over the six maps of metrics of an added file, and proves that they are what they must be.

Pairs end where the size of their map says, no column has two, counts are not negative, and each
bound is one that readers can decode. A map that is not expected is left to the decoder of whole
entries: nothing is refused here.
"""

from __future__ import annotations

from committer.iceberg.avro.binary import LONGS, read_long
from committer.iceberg.entry.entry_layout import PAIRS_MAX
from committer.iceberg.entry.entry_parts import Unexpected
from committer.iceberg.entry.map_skeleton import Skeletons
from committer.iceberg.schema.bound_forms import BoundForms
from committer.iceberg.splice.any_order import BoundMaps, read_counts
from committer.iceberg.splice.layout_pattern import MapLayout
from committer.iceberg.splice.map_patterns import MapPatterns

_READS_A_LESSON = 32
# One byte is the rule for ids and lengths, and a call for each would double the time.
_SIGN_OR_MORE = 0x81


class AdditionMaps:
    """The ways in which the maps of one writer's entries, for one table, were laid out. Mutable;
    may be shared by threads, which at worst learn a way twice."""

    __slots__ = ("_bounds", "_forms", "_patterns", "_reads", "_skeletons", "match")

    def __init__(self, forms: BoundForms) -> None:
        self._forms, self._reads = forms, 0
        self._bounds = BoundMaps(forms)
        self._patterns = MapPatterns(forms)
        self._skeletons = Skeletons(forms)
        self.match = self._skeletons.match

    def step(self, raw: bytes, start: int, texts: list[bytes]) -> int:
        """Return where six maps end that `match` did not recognize. Adds to `texts` what has yet to
        be proven to be text, in pieces that begin with a byte of ASCII.

        Errors: `Unexpected`; `InvalidMetadataError`, IndexError.
        """
        stop = self._patterns.match(raw, start, texts)
        if stop < 0:
            maps, stop = self._read(raw, start, texts)
            self._reads += 1
            # Not from each: that takes longer than reading them, where all have another order.
            if not self._reads % _READS_A_LESSON:
                self._patterns.learn(maps)
        self._skeletons.learn(raw, start, stop)
        return stop

    def _read(self, raw: bytes, position: int, texts: list[bytes]) -> tuple[list[MapLayout], int]:
        """Read six maps: how they are laid out, and where they end."""
        found = read_counts(raw, position)
        if found is None:
            raise Unexpected
        maps, position = found
        for _ in range(2):
            one = self._bounds.read(raw, position, texts) or self._read_map(raw, position, texts)
            maps.append(one[0])
            position = one[1]
        return maps, position

    def _read_map(self, raw: bytes, position: int, texts: list[bytes]) -> tuple[MapLayout, int]:
        """Read a map of bounds of one block, pair by pair."""
        branch = raw[position]
        if branch != 2:
            if branch:
                raise Unexpected
            return None, position + 1
        count, position = read_long(raw, position + 1)
        is_sized = count < 0
        size, position = read_long(raw, position) if is_sized else (0, position)
        if not count:
            return (b"", False), position
        if abs(count) > PAIRS_MAX:
            raise Unexpected
        start = position
        ids, position = self._read_bounds(raw, position, abs(count), texts)
        self._bounds.learn(abs(count))
        if raw[position] or (is_sized and position - start != size):
            raise Unexpected
        return (ids, is_sized), position + 1

    def _read_bounds(
        self, raw: bytes, position: int, count: int, texts: list[bytes]
    ) -> tuple[bytes, int]:
        """Read pairs one by one: those that no pattern knows."""
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
        if len(set(columns)) != count:
            raise Unexpected
        return b"".join(map(LONGS.__getitem__, columns)), position
