"""Steps over the entries of one inflated block: the inner loop of `manifest_walk.py`.

Knows bytes and where fields lie, nothing of containers. It passes an entry that it cannot step over
to a decoder, and never rejects one itself.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.binary import read_long
from committer.iceberg.entry.entry_layout import Layout
from committer.iceberg.entry.entry_parts import (
    Unexpected,
    read_format,
    skip_optional,
    step_varints,
)
from committer.iceberg.schema.bound_forms import is_utf8
from committer.iceberg.splice.addition_maps import AdditionMaps

_TAIL_BYTES_MAX = 64
# The tail of an addition lacks these: a row id, and the fields of delete files.
_NULL_IN_TAIL = (142, 143, 144, 145)
_SPLIT_OFFSETS = 132
_EQUALITY_IDS = 135
_SORT_ORDER_ID = 140
_EMPTY = b"\x02\0"
# After this many entries texts are checked to be text.
_ENTRIES_A_LOOK = 256


@dataclass(slots=True)
class Walk:
    """The results over the blocks of one manifest.

    `decode_entry` checks the entry at a position, adds it to the totals and returns where it ends;
    `decode_partition` turns the bytes of one partition tuple into its values. Both raise on what
    is wrong. `ends`: where each entry of the latest block ended; `null_orders`: where those without
    a sort order that were stepped over say so.
    """

    layout: Layout | None
    decode_entry: Callable[[bytes, int], int]
    decode_partition: Callable[[bytes], tuple[object, ...]]
    maps: AdditionMaps
    paths: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    rows: int = 0
    size_bytes: int = 0
    partitions: dict[bytes, tuple[object, ...]] = field(default_factory=dict)
    # Formats with partitions, as they lie in entries.
    middles: set[bytes] = field(default_factory=set)
    null_orders: list[int] = field(default_factory=list)
    # Bytes that have yet to be proven to be text, in pieces that begin with a byte of ASCII.
    texts: list[bytes] = field(default_factory=list)


def walk_block(raw: bytes, count: int, walk: Walk) -> None:
    """Check `count` entries, which must fill the block.

    Errors: those of `walk.decode_entry`; `InvalidMetadataError` for bytes left over.
    """
    walk.ends.clear()
    walk.null_orders.clear()
    walk.texts.clear()
    position = 0
    if walk.layout is None:
        for _ in range(count):
            position = walk.decode_entry(raw, position)
            walk.ends.append(position)
    else:
        while len(walk.ends) < count:
            try:
                stop = min(count, len(walk.ends) + _ENTRIES_A_LOOK)
                position = _step(raw, position, stop, walk, walk.layout)
            except (Unexpected, IndexError, InvalidMetadataError, struct.error):
                # The entry behind the last good one. Nothing of it has been added yet.
                start = walk.ends[-1] if walk.ends else 0
                position = walk.decode_entry(raw, start)
                walk.ends.append(position)
            # Not for each entry: that would take a tenth of the time.
            if not is_utf8(b"".join(walk.texts)):
                _refuse_texts(raw, count, walk)
            walk.texts.clear()
    if position != len(raw):
        raise InvalidMetadataError("manifest: bytes behind the last entry of a block")


def _refuse_texts(raw: bytes, count: int, walk: Walk) -> None:
    """Make the decoder name the bound that is no text."""
    position = 0
    for _ in range(count):
        position = walk.decode_entry(raw, position)
    raise RuntimeError("a text of a block is none, but the decoder takes each entry")


def _step(raw: bytes, position: int, count: int, walk: Walk, layout: Layout) -> int:
    """Step over entries as long as they look as expected; written out, because it is the one place
    where a call per field would double the time of a commit."""
    head, head_bytes = layout.head, len(layout.head)
    has_block_size = layout.counts == 3
    partitions, ends, paths = walk.partitions, walk.ends, walk.paths
    middles, middle_bytes, tail, last_split = walk.middles, 0, None, -1
    match_maps, step_maps, texts = walk.maps.match, walk.maps.step, walk.texts
    null_orders, order_place = walk.null_orders, -1
    for _ in range(len(ends), count):
        if not raw.startswith(head, position):
            raise Unexpected
        # path
        position += head_bytes
        number = raw[position]
        position += 1
        if number > 127:
            number = number & 127 | raw[position] << 7
            position += 1
        if number & 1 or not number or number > 16383:
            raise Unexpected
        path_start = position
        path_stop = position = position + (number >> 1)
        # format and partition: most are as long as those before, and none begins with another
        if raw[position : position + middle_bytes] in middles:
            position += middle_bytes
        else:
            start = position
            _, partition_start = read_format(raw, start)
            position = skip_optional(raw, partition_start, layout.partition)
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
                raise Unexpected
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
                raise Unexpected
        if (rows | size) & 1:
            raise Unexpected
        if has_block_size:
            _, position = read_long(raw, position)
        # six maps: all at once if they are laid out as others before
        known = match_maps(raw, position)
        if known is None:
            position = step_maps(raw, position, texts)
        else:
            if known[4] is not None:
                texts += known[4](raw, position)
            position += known[0]
        # tail
        start = position
        if tail is not None and raw.startswith(tail, position):
            position += len(tail)
        else:
            last_split, order_place, position = _step_tail(raw, position, layout)
            tail = raw[start:position] if position - start <= _TAIL_BYTES_MAX else None
        if position > len(raw) or last_split >= size >> 1:
            raise Unexpected
        if order_place >= 0:
            null_orders.append(start + order_place)
        paths.append(raw[path_start:path_stop])
        walk.rows += rows >> 1
        walk.size_bytes += size >> 1
        ends.append(position)
    return position


def _step_tail(raw: bytes, start: int, layout: Layout) -> tuple[int, int, int]:
    """Step over the tail: the last split offset, -1 without one; how far behind its start the tail
    has a null for a sort order, -1 if it has none; and where it ends."""
    last_split, order_place, position = -1, -1, start
    for field_id, skip in zip(layout.tail_ids, layout.tail, strict=True):
        if not raw[position]:
            order_place = position - start if field_id == _SORT_ORDER_ID else order_place
            position += 1
        elif field_id in _NULL_IN_TAIL:
            raise Unexpected
        elif field_id == _EQUALITY_IDS:
            if not raw.startswith(_EMPTY, position):
                raise Unexpected
            position += len(_EMPTY)
        elif field_id == _SPLIT_OFFSETS:
            last_split, position = _step_offsets(raw, position)
        else:
            position = skip_optional(raw, position, (skip,))
    return last_split, order_place, position


def _step_offsets(raw: bytes, position: int) -> tuple[int, int]:
    """Step over ascending offsets: the last, -1 without one, and where they end."""
    offsets: list[int] = []
    stop = step_varints(raw, position + 1, offsets)
    if raw[position] != 2 or offsets != sorted(offsets) or (offsets and offsets[0] < 0):
        raise Unexpected
    return offsets[-1] if offsets else -1, stop
