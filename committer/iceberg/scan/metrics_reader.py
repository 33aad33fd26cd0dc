"""Reads of the six metrics maps of an entry what a filter asks for, and steps over the rest.

The maps of one table's files look alike: which columns there are, and in which order. A pattern
that was made of one entry reads the next ones at once. Other maps are read pair by pair.
Nothing here knows where an entry's maps begin.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from typing import Any, ClassVar, Protocol

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.binary import LONGS, TruncatedAvroError, read_bytes, read_long
from committer.iceberg.entry.entry_layout import BOUND, FIELD_ID, PAIRS_MAX, VARINT, pairs

# column_sizes comes first: no filter asks for it. The last two hold bounds.
_PLACES = range(6)
_BOUNDS = 4
# A wider table is read pair by pair: to make its pattern takes longer than to read thousands so.
_PAIRS_MAX = 128
# Of such bounds the length takes one byte.
_LENGTH_MAX = 63


@dataclass(frozen=True, slots=True)
class MapShape:
    """A map of one block: the field ids in their order, of bounds the length of each (None: any),
    and whether the block says its size."""

    field_ids: tuple[int, ...]
    lengths: tuple[int | None, ...]
    is_sized: bool


# One of each map; None: it is null.
Shape = tuple[MapShape | None, ...]


class ColumnMetrics(Protocol):
    """The input of a filter: the metrics of a data file, or of some of its columns."""

    @property
    def record_count(self) -> int: ...
    @property
    def value_counts(self) -> Mapping[int, int] | None: ...
    @property
    def null_value_counts(self) -> Mapping[int, int] | None: ...
    @property
    def nan_value_counts(self) -> Mapping[int, int] | None: ...
    @property
    def lower_bounds(self) -> Mapping[int, bytes] | None: ...
    @property
    def upper_bounds(self) -> Mapping[int, bytes] | None: ...


@dataclass(slots=True)
class Metrics:
    """Metrics of the wanted columns, read pair by pair."""

    record_count: int
    value_counts: dict[int, int] | None = None
    null_value_counts: dict[int, int] | None = None
    nan_value_counts: dict[int, int] | None = None
    lower_bounds: dict[int, bytes] | None = None
    upper_bounds: dict[int, bytes] | None = None

    # For messages. Which file it is has not been read yet.
    file_path: ClassVar[str] = "a data file"


class MatchedMetrics:
    """Metrics of the wanted columns as a pattern found them, decoded where they are asked for: a
    filter mostly knows by one bound."""

    __slots__ = ("_encoded", "_groups", "record_count")
    file_path = Metrics.file_path

    def __init__(self, groups: Groups, encoded: tuple[bytes, ...], record_count: int) -> None:
        self._groups = groups
        self._encoded = encoded
        self.record_count = record_count

    @property
    def value_counts(self) -> dict[int, int] | None:
        return self._counts(1)

    @property
    def null_value_counts(self) -> dict[int, int] | None:
        return self._counts(2)

    @property
    def nan_value_counts(self) -> dict[int, int] | None:
        return self._counts(3)

    @property
    def lower_bounds(self) -> dict[int, bytes] | None:
        return self._bounds(4)

    @property
    def upper_bounds(self) -> dict[int, bytes] | None:
        return self._bounds(5)

    def _counts(self, place: int) -> dict[int, int] | None:
        groups, encoded = self._groups[place], self._encoded
        if groups is None:
            return None
        return {field_id: read_long(encoded[at], 0)[0] for field_id, at in groups}

    def _bounds(self, place: int) -> dict[int, bytes] | None:
        groups, encoded = self._groups[place], self._encoded
        if groups is None:
            return None
        # Behind the length.
        return {field_id: encoded[at][1:] for field_id, at in groups}


# For each map the wanted field ids with the numbers of their groups; None: it is null.
Groups = tuple[tuple[tuple[int, int], ...] | None, ...]


@dataclass(frozen=True, slots=True)
class MetricsPattern:
    """Matches six maps of one shape, and captures what is wanted."""

    pattern: re.Pattern[bytes]
    groups: Groups

    def metrics(self, match: re.Match[bytes], record_count: int) -> MatchedMetrics:
        """Return the values that the groups captured."""
        return MatchedMetrics(self.groups, match.groups(), record_count)


@lru_cache(maxsize=256)
def metrics_pattern(shape: Shape, wanted: frozenset[int]) -> MetricsPattern:
    """Compile the pattern of a shape, which captures the wanted columns."""
    counter = count()
    groups = tuple(
        None
        if one is None
        else tuple((key, next(counter)) for key in one.field_ids if place and key in wanted)
        for place, one in enumerate(shape)
    )
    parts = (_map(one, wanted if place else frozenset()) for place, one in enumerate(shape))
    return MetricsPattern(re.compile(b"".join(parts), re.DOTALL), groups)


def _map(shape: MapShape | None, wanted: frozenset[int]) -> bytes:
    if shape is None:
        return rb"\x00"
    pairs_count = len(shape.field_ids)
    if not pairs_count:
        return rb"\x02\x00"
    values = [_bound(length) for length in shape.lengths] or [VARINT] * pairs_count
    head = LONGS[-pairs_count] if shape.is_sized else LONGS[pairs_count]
    size = VARINT if shape.is_sized else b""
    pairs = (
        re.escape(LONGS[field_id]) + (b"(%b)" % value if field_id in wanted else value)
        for field_id, value in zip(shape.field_ids, values, strict=True)
    )
    return rb"\x02%b%b%b\x00" % (re.escape(head), size, b"".join(pairs))


def _bound(length: int | None) -> bytes:
    return BOUND if length is None else re.escape(LONGS[length]) + b".{%d}" % length


def widened(shape: Shape, before: Shape) -> Shape:
    """Return a shape that fits both, if only lengths of bounds differ; else the first."""
    if [one and one.field_ids for one in shape] != [one and one.field_ids for one in before]:
        return shape
    return tuple(
        one and other and replace(one, lengths=_common(one.lengths, other.lengths))
        for one, other in zip(shape, before, strict=True)
    )


def _common(
    lengths: tuple[int | None, ...], others: tuple[int | None, ...]
) -> tuple[int | None, ...]:
    pairs = zip(lengths, others, strict=True)
    return tuple(length if length == other else None for length, other in pairs)


# --- Pair by pair --------------------------------------------------------------------------------


def read_metrics(
    raw: bytes, position: int, wanted: frozenset[int], record_count: int
) -> tuple[Metrics, int, Shape | None]:
    """Read the wanted metrics of the six maps at a position, where they end, and their shape (None
    if no pattern can express it).

    Errors: `InvalidMetadataError`.
    """
    maps: list[Any] = []
    shapes: list[MapShape | None] = []
    is_plain = True
    for place in _PLACES:
        branch = raw[position : position + 1]
        position += 1
        if branch == b"\0":
            maps.append(None)
            shapes.append(None)
        elif branch == b"\x02":
            found, position, shape = _read_map(raw, position, place, wanted)
            maps.append(found)
            shapes.append(shape)
            is_plain = is_plain and shape is not None
        else:
            raise InvalidMetadataError("manifest entry: expected a map of metrics or null")
    metrics = Metrics(record_count, *maps[1:])
    return metrics, position, tuple(shapes) if is_plain else None


def _read_map(
    raw: bytes, position: int, place: int, wanted: frozenset[int]
) -> tuple[dict[int, object], int, MapShape | None]:
    values: dict[int, object] = {}
    field_ids: list[int] = []
    lengths: list[int] = []
    blocks: list[int] = []
    while True:
        pairs, position = read_long(raw, position)
        if pairs == 0:
            break
        blocks.append(pairs)
        if pairs < 0:
            _, position = read_long(raw, position)
        if abs(pairs) > len(raw) - position:
            raise TruncatedAvroError("manifest entry: a map with more pairs than bytes")
        for _ in range(abs(pairs)):
            field_id, position = read_long(raw, position)
            field_ids.append(field_id)
            value: object
            if place < _BOUNDS:
                value, position = read_long(raw, position)
            else:
                value, position = read_bytes(raw, position)
                lengths.append(len(value))
            if field_id in wanted:
                values[field_id] = value
    if len(blocks) > 1 or len(field_ids) > _PAIRS_MAX or max(lengths, default=0) > _LENGTH_MAX:
        return values, position, None
    return values, position, MapShape(tuple(field_ids), tuple(lengths), blocks[:1] < [0])


# --- Map by map ----------------------------------------------------------------------------------


def search_metrics(
    raw: bytes, position: int, wanted: frozenset[int], record_count: int
) -> tuple[Metrics, int]:
    """Read as `read_metrics` without the shape, several times as fast: for files of which each has
    its own columns, so that no pattern fits for long."""
    maps: list[Any] = []
    for place in _PLACES:
        branch = raw[position : position + 1]
        if branch not in (b"\0", b"\x02"):
            raise InvalidMetadataError("manifest entry: expected a map of metrics or null")
        position += 1
        found: dict[int, Any] | None = None
        if branch == b"\x02":
            found, position = _search_map(raw, position, place, wanted)
        maps.append(found)
    return Metrics(record_count, *maps[1:]), position


def _search_map(
    raw: bytes, position: int, place: int, wanted: frozenset[int]
) -> tuple[dict[int, Any], int]:
    pairs_count, start = read_long(raw, position)
    if pairs_count < 0:
        _, start = read_long(raw, start)
    of_bytes = place >= _BOUNDS
    is_known = 0 < abs(pairs_count) <= PAIRS_MAX
    match = pairs(abs(pairs_count), of_bytes).match(raw, start) if is_known else None
    stop = 0 if match is None else match.end()
    if raw[stop : stop + 1] != b"\0" or not stop:
        values, position, _ = _read_map(raw, position, place, wanted)
        return values, position
    found = {}
    for field_id in wanted if place else ():
        pair = _finder(field_id, of_bytes).match(raw, start, stop)
        if pair is not None:
            encoded = pair[1]
            found[field_id] = encoded[1:] if of_bytes else read_long(encoded, 0)[0]
    return found, stop + 1


@lru_cache(maxsize=256)
def _finder(field_id: int, of_bytes: bool) -> re.Pattern[bytes]:
    """Return a pattern of pairs up to the one of a field. No integer's encoding begins with
    another's, so the first bytes distinguish fields.
    """
    key, value = re.escape(LONGS[field_id]), BOUND if of_bytes else VARINT
    others = b"(?:(?!%b)%b%b)*+" % (key, FIELD_ID, value)
    return re.compile(b"%b%b(%b)" % (others, key, value), re.DOTALL)
