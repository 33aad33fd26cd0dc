"""Reads the six maps of metrics of a manifest entry, all at once where they are laid out as before.

Which layout the maps have is known by their skeleton (`map_skeleton.py`): where it agrees, every
field id, length and end of a number does, so that all values are extracted in one step. Maps of no
known layout are read one by one, by the decoders of whole entries.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, cast

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.binary import read_long
from committer.iceberg.avro.decoder import read_bytes_map, read_long_map
from committer.iceberg.avro.map_reader import narrow_longs
from committer.iceberg.entry.map_skeleton import Skeleton, Skeletons

# column_sizes, value_counts, null_value_counts, nan_value_counts, lower_bounds, upper_bounds.
Maps = tuple[
    Mapping[int, int] | None,
    Mapping[int, int] | None,
    Mapping[int, int] | None,
    Mapping[int, int] | None,
    Mapping[int, bytes] | None,
    Mapping[int, bytes] | None,
]
_READERS = (*4 * [read_long_map], *2 * [read_bytes_map])
_MAPS_OF_LONGS = 4
_KEPT_MAX = 64
_CODES = {1: "B", 2: "H"}
_Values = tuple[Any, ...]


class MapLayouts:
    """Mutable; may be shared by threads. Remembers the layouts that maps of one schema have had."""

    __slots__ = ("_known", "_skeletons")

    def __init__(self) -> None:
        self._skeletons = Skeletons()
        self._known: dict[Skeleton, _Layout] = {}

    def read(self, raw: bytes, position: int) -> tuple[Maps, int]:
        """Read the maps at a position, and where they stop: perhaps behind the end of `raw`.

        Errors: `InvalidMetadataError`, IndexError and struct.error where a decoder is to say what
        is wrong.
        """
        skeleton = self._skeletons.match(raw, position)
        if skeleton is None:
            return self._read_each(raw, position)
        layout = self._known.get(skeleton)
        if layout is None:
            layout = _Layout(raw, position)
            if len(self._known) >= _KEPT_MAX:
                self._known.clear()
            self._known[skeleton] = layout
        return layout.read(raw, position), position + skeleton[0]

    def _read_each(self, raw: bytes, start: int) -> tuple[Maps, int]:
        maps: list[Any] = []
        position = start
        for read in _READERS:
            branch = raw[position]
            position += 1
            pairs = None
            if branch == 2:
                pairs, position = read(raw, position)
            elif branch:
                raise InvalidMetadataError("manifest entry: expected a map of metrics or null")
            maps.append(pairs)
        self._skeletons.learn(raw, start, position)
        return cast("Maps", tuple(maps)), position


class _Layout:
    """Made of maps that were read in full, reads those of the same skeleton."""

    __slots__ = ("_are_narrow", "_longs", "_maps", "_unpack")

    def __init__(self, raw: bytes, position: int) -> None:
        # For each map: one of its field ids, to be filled, for that takes less time than a new one,
        # and where its values start and stop. None: it is null.
        self._maps: list[tuple[dict[int, Any], int, int] | None] = []
        layout, self._longs, widths = ["<"], 0, set[int]()
        values, start = 0, position
        for place in range(len(_READERS)):
            branch, position = read_long(raw, position)
            if not branch:
                self._maps.append(None)
                continue
            field_ids = []
            count, position = read_long(raw, position)
            if count < 0:
                _, position = read_long(raw, position)
            for _ in range(abs(count)):
                field_id, at = read_long(raw, position)
                number, position = read_long(raw, at)
                if place < _MAPS_OF_LONGS:
                    width = position - at
                    widths.add(width)
                else:
                    at, width, position = position, number, position + number
                layout.append(f"{at - start}x{_code(width, place)}")
                start = position
                field_ids.append(field_id)
            # The empty block at the end.
            position += 1 if count else 0
            self._maps.append((dict.fromkeys(field_ids), values, values + len(field_ids)))
            values += len(field_ids)
            if place < _MAPS_OF_LONGS:
                self._longs = values
        self._unpack: Callable[[bytes, int], _Values] = struct.Struct("".join(layout)).unpack_from
        self._are_narrow = widths <= _CODES.keys() and self._longs > 1

    def read(self, raw: bytes, position: int) -> Maps:
        """Read the maps of this layout. Errors: struct.error where the bytes end before."""
        values, longs = self._unpack(raw, position), self._longs
        if self._are_narrow:
            numbers: _Values = itemgetter(*values[:longs])(narrow_longs())
        else:
            numbers = tuple(map(_long, values[:longs]))
        values = numbers + values[longs:]
        maps: list[Any] = []
        for one in self._maps:
            pairs = None
            if one is not None:
                keys, start, stop = one
                pairs = keys.copy()
                pairs.update(zip(keys, values[start:stop], strict=True))
            maps.append(pairs)
        return cast("Maps", tuple(maps))


def _code(width: int, place: int) -> str:
    return _CODES.get(width, f"{width}s") if place < _MAPS_OF_LONGS else f"{width}s"


def _long(value: int | bytes) -> int:
    return narrow_longs()[value] if isinstance(value, int) else read_long(value, 0)[0]
