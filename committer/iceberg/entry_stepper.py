"""Steps over the entries of one inflated block: the inner loop of `manifest_walk.py`.

Knows bytes and where fields lie, nothing of containers. What it cannot step over it hands to a
decoder; it never refuses anything itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from committer.errors import InvalidMetadataError
from committer.iceberg.avro_binary import read_bytes, read_long
from committer.iceberg.entry_check import FILE_FORMATS
from committer.iceberg.manifest_layout import PAIRS_MAX, Layout, Skip, plain_maps
from committer.iceberg.map_skeleton import Skeletons
from committer.iceberg.sized_maps import holds_bounds, holds_longs

_FORMATS = tuple(bytes((2 * len(name),)) + name.encode() for name in FILE_FORMATS)
_SIX = range(6)
# How many different combinations of counts are worth a pattern in one manifest; a pattern costs
# as much time as some hundred entries.
_PATTERNS_MAX = 16
_TAIL_BYTES_MAX = 64
_MAP_BYTES_MAX = 4096


class _Unexpected(Exception):
    """The bytes are not what the fast way knows. The decoder decides."""


@dataclass(slots=True)
class Walk:
    """What is gathered over the blocks of one manifest.

    `decode_entry` checks the entry at a position, adds it to the totals and returns where it ends;
    `decode_partition` turns the bytes of one partition tuple into its values. Both raise on what
    is wrong. `ends`: where each entry of the latest block ended.
    """

    layout: Layout | None
    decode_entry: Callable[[bytes, int], int]
    decode_partition: Callable[[bytes], tuple[object, ...]]
    skeletons: Skeletons
    paths: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    rows: int = 0
    size_bytes: int = 0
    partitions: dict[bytes, tuple[object, ...]] = field(default_factory=dict)
    # Formats with partitions, as they lie in entries.
    middles: set[bytes] = field(default_factory=set)
    maps: list[bytes] = field(default_factory=lambda: [b""] * 6)
    map_counts: tuple[int | None, ...] | None = None
    patterns: int = 0


def walk_block(raw: bytes, count: int, walk: Walk) -> None:
    """Check `count` entries, which must fill the block.

    Errors: those of `walk.decode_entry`; `InvalidMetadataError` for bytes left over.
    """
    walk.ends.clear()
    position = 0
    if walk.layout is None:
        for _ in range(count):
            position = walk.decode_entry(raw, position)
            walk.ends.append(position)
    else:
        while len(walk.ends) < count:
            try:
                position = _step(raw, position, count, walk, walk.layout)
            except (_Unexpected, IndexError, InvalidMetadataError):
                # The entry behind the last good one. Nothing of it has been added yet.
                start = walk.ends[-1] if walk.ends else 0
                position = walk.decode_entry(raw, start)
                walk.ends.append(position)
    if position != len(raw):
        raise InvalidMetadataError("manifest: bytes behind the last entry of a block")


def _step(raw: bytes, position: int, count: int, walk: Walk, layout: Layout) -> int:
    """Step over entries as long as they look as expected; written out, because it is the one place
    where a call per field would double the time of a commit."""
    head, head_bytes, row_id = layout.head, len(layout.head), layout.row_id
    has_block_size = layout.counts == 3
    partitions, ends, paths = walk.partitions, walk.ends, walk.paths
    middles, middle_bytes, tail = walk.middles, 0, None
    match_maps = walk.skeletons.match
    while len(ends) < count:
        if not raw.startswith(head, position):
            raise _Unexpected
        # path
        position += head_bytes
        number = raw[position]
        position += 1
        if number > 127:
            number = number & 127 | raw[position] << 7
            position += 1
        if number & 1 or not number or number > 16383:
            raise _Unexpected
        path_start = position
        path_stop = position = position + (number >> 1)
        # format and partition: most are as long as those before, and none begins with another
        if raw[position : position + middle_bytes] in middles:
            position += middle_bytes
        else:
            start, position = position, position + len(_format_at(raw, position))
            partition_start = position
            position = _skip_optional(raw, position, layout.partition)
            partition = raw[partition_start:position]
            if partition and partition not in partitions:
                partitions[partition] = walk.decode_partition(partition)
            middles.add(raw[start:position])
            middle_bytes = position - start
        # record count
        rows = raw[position]
        position += 1
        if rows > 127:
            rows &= 127
            shift = 7
            while (byte := raw[position]) > 127 and shift < 56:
                rows |= (byte & 127) << shift
                shift += 7
                position += 1
            rows |= byte << shift
            position += 1
            if byte > 127:
                raise _Unexpected
        # file size
        size = raw[position]
        position += 1
        if size > 127:
            size &= 127
            shift = 7
            while (byte := raw[position]) > 127 and shift < 56:
                size |= (byte & 127) << shift
                shift += 7
                position += 1
            size |= byte << shift
            position += 1
            if byte > 127:
                raise _Unexpected
        if (rows | size) & 1:
            raise _Unexpected
        if has_block_size:
            _, position = read_long(raw, position)
        # six maps: all at once if they are laid out as others before
        known = match_maps(raw, position)
        position = _skip_maps(raw, position, walk) if known is None else position + known[0]
        # tail
        if tail is not None and raw.startswith(tail, position):
            position += len(tail)
        else:
            start = position
            position = _skip_tail(raw, position, layout.tail, row_id)
            tail = raw[start:position] if position - start <= _TAIL_BYTES_MAX else None
        if position > len(raw):
            raise _Unexpected
        paths.append(raw[path_start:path_stop])
        walk.rows += rows >> 1
        walk.size_bytes += size >> 1
        ends.append(position)
    return position


def _skip_maps(raw: bytes, start: int, walk: Walk) -> int:
    """Step over six maps by their sizes, or all at once by the pattern of those before."""
    position = start
    for place in _SIX:
        # The same counts as those of the entry before: most often of nulls and NaNs.
        if (known := walk.maps[place]) and raw.startswith(known, position):
            position += len(known)
        elif not raw[position]:
            position += 1
        elif raw[position] != 2:
            raise _Unexpected
        elif not raw[position + 1]:
            position += 2
        elif raw[position + 1] & 1:
            before, position = position, _skip_sized_map(raw, position + 1, place)
            if 0 < place < 4 and position - before <= _MAP_BYTES_MAX:
                walk.maps[place] = raw[before:position]
        else:
            position = _skip_plain_maps(raw, start, walk)
            break
    walk.skeletons.learn(raw, start, position)
    return position


def _skip_sized_map(raw: bytes, position: int, place: int) -> int:
    number = raw[position]
    position += 1
    if number > 127:
        if raw[position] > 127:
            raise _Unexpected
        number = number & 127 | raw[position] << 7
        position += 1
    length, position = read_long(raw, position)
    stop = position + length
    if length < 0 or raw[stop]:
        raise _Unexpected
    holds = holds_longs if place < 4 else holds_bounds
    if not holds(raw[position:stop], number + 1 >> 1):
        raise _Unexpected
    return stop + 1


def _skip_plain_maps(raw: bytes, start: int, walk: Walk) -> int:
    if walk.map_counts is not None:
        match = plain_maps(walk.map_counts).match(raw, start)
        if match is not None:
            return match.end()
    return _learn_maps(raw, start, walk)


def _format_at(raw: bytes, position: int) -> bytes:
    for encoded in _FORMATS:
        if raw.startswith(encoded, position):
            return encoded
    raise _Unexpected


def _skip_tail(raw: bytes, position: int, tail: tuple[int, ...], row_id: int) -> int:
    for place, skip in enumerate(tail):
        if place == row_id and raw[position]:
            raise _Unexpected
        position = _skip_optional(raw, position, (skip,))
    return position


def _skip_optional(raw: bytes, position: int, skips: tuple[int, ...]) -> int:
    """Step over values that are each null or not."""
    for skip in skips:
        branch = raw[position]
        position += 1
        if not branch:
            continue
        if branch != 2:
            raise _Unexpected
        if skip > 0:
            position += skip
        elif skip == Skip.VARINT:
            _, position = read_long(raw, position)
        elif skip == Skip.PREFIXED:
            number, position = read_long(raw, position)
            if number < 0:
                raise _Unexpected
            position += number
        else:
            position = _skip_varints(raw, position)
    return position


def _skip_varints(raw: bytes, position: int) -> int:
    """Step over an array of integers, item by item: they are few, and tails repeat."""
    stop = None
    while True:
        if stop is not None and position != stop:
            raise _Unexpected
        count, position = read_long(raw, position)
        if count == 0:
            return position
        stop = None
        if count < 0:
            size, position = read_long(raw, position)
            stop = position + size
        # Each takes a byte at least, so running out of bytes ends this.
        for _ in range(abs(count)):
            _, position = read_long(raw, position)


def _learn_maps(raw: bytes, position: int, walk: Walk) -> int:
    """Step over six plain maps pair by pair, and note how many pairs each has."""
    counts: list[int | None] = []
    for place in _SIX:
        branch = raw[position]
        position += 1
        if branch not in (0, 2):
            raise _Unexpected
        if not branch:
            counts.append(None)
            continue
        count, position = read_long(raw, position)
        if not 0 <= count <= PAIRS_MAX:
            raise _Unexpected
        for _ in range(count):
            _, position = read_long(raw, position)
            _, position = read_long(raw, position) if place < 4 else read_bytes(raw, position)
        if count:
            if raw[position]:
                raise _Unexpected
            position += 1
        counts.append(count)
    if tuple(counts) != walk.map_counts and walk.patterns < _PATTERNS_MAX:
        walk.map_counts = tuple(counts)
        walk.patterns += 1
    return position
