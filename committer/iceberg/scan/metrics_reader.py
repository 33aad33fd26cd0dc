"""Reads of the six metrics maps of an entry what a filter asks for, and steps over the rest.

The maps of one table's files look alike: which columns there are, and in which order. A pattern
that was made of one entry reads the next ones at once. What no pattern fits is read pair by pair.
Nothing here knows where an entry's maps begin.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from committer.errors import InvalidMetadataError
from committer.iceberg.avro_binary import LONGS, TruncatedAvroError, read_bytes, read_long
from committer.iceberg.manifest_layout import BOUND, VARINT

# column_sizes comes first: no filter asks for it. The last two hold bounds.
_PLACES = range(6)
_BOUNDS = 4
# A wider table is read pair by pair: to make its pattern takes longer than to read thousands so.
_PAIRS_MAX = 256
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


class Metrics:
    """What was read: column metrics as a data file has them, of the wanted columns only."""

    # For messages. Which file it is has not been read yet.
    file_path = "a data file"
    __slots__ = (
        "lower_bounds",
        "nan_value_counts",
        "null_value_counts",
        "record_count",
        "upper_bounds",
        "value_counts",
    )

    def __init__(
        self,
        record_count: int,
        value_counts: dict[int, int] | None,
        null_value_counts: dict[int, int] | None,
        nan_value_counts: dict[int, int] | None,
        lower_bounds: dict[int, bytes] | None,
        upper_bounds: dict[int, bytes] | None,
    ) -> None:
        self.record_count = record_count
        self.value_counts = value_counts
        self.null_value_counts = null_value_counts
        self.nan_value_counts = nan_value_counts
        self.lower_bounds = lower_bounds
        self.upper_bounds = upper_bounds


def no_metrics(record_count: int) -> Metrics:
    """What a file without metrics has."""
    return Metrics(record_count, None, None, None, None, None)


@dataclass(frozen=True, slots=True)
class MetricsPattern:
    """Matches six maps of one shape. `groups`: of each group that it captures the place of its map
    and its field id; `present`: which maps are not null."""

    pattern: re.Pattern[bytes]
    groups: tuple[tuple[int, int], ...]
    present: tuple[bool, ...]

    def metrics(self, match: re.Match[bytes], record_count: int) -> Metrics:
        """The values that the groups captured."""
        maps: list[Any] = [{} if present else None for present in self.present]
        for (place, field_id), encoded in zip(self.groups, match.groups(), strict=True):
            low = encoded[0]
            if place >= _BOUNDS:
                # Behind the length.
                maps[place][field_id] = encoded[1:]
            elif low < 128:
                maps[place][field_id] = (low >> 1) ^ -(low & 1)
            else:
                maps[place][field_id] = read_long(encoded, 0)[0]
        return Metrics(record_count, *maps[1:])


@lru_cache(maxsize=256)
def metrics_pattern(shape: Shape, wanted: frozenset[int]) -> MetricsPattern:
    """The pattern of a shape, which captures the wanted columns."""
    groups = tuple(
        (place, field_id)
        for place, one in enumerate(shape)
        if place and one is not None
        for field_id in one.field_ids
        if field_id in wanted
    )
    parts = (_map(one, wanted if place else frozenset()) for place, one in enumerate(shape))
    pattern = re.compile(b"".join(parts), re.DOTALL)
    return MetricsPattern(pattern, groups, tuple(one is not None for one in shape))


def _map(shape: MapShape | None, wanted: frozenset[int]) -> bytes:
    if shape is None:
        return rb"\x00"
    count = len(shape.field_ids)
    if not count:
        return rb"\x02\x00"
    values = [_bound(length) for length in shape.lengths] or [VARINT] * count
    head = LONGS[-count] if shape.is_sized else LONGS[count]
    size = VARINT if shape.is_sized else b""
    pairs = (
        re.escape(LONGS[field_id]) + (b"(%b)" % value if field_id in wanted else value)
        for field_id, value in zip(shape.field_ids, values, strict=True)
    )
    return rb"\x02%b%b%b\x00" % (re.escape(head), size, b"".join(pairs))


def _bound(length: int | None) -> bytes:
    return BOUND if length is None else re.escape(LONGS[length]) + b".{%d}" % length


def widened(shape: Shape, before: Shape) -> Shape:
    """A shape that fits both, if only lengths of bounds differ; else the first."""
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
    """The wanted metrics of the six maps at a position, where they end, and their shape (None where
    no pattern could say it).

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
        count, position = read_long(raw, position)
        if count == 0:
            break
        blocks.append(count)
        if count < 0:
            count = -count
            _, position = read_long(raw, position)
        if count > len(raw) - position:
            raise TruncatedAvroError("manifest entry: a map with more pairs than bytes")
        for _ in range(count):
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
