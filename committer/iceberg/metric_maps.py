"""Encodes the maps of metrics in manifest entries, fast where they resemble those before them.

The files of a table have metrics of the same columns, and bounds of mostly the same lengths. So the
bytes around the values are put together once, as a template, and the map of one more file costs
looking up its values and formatting them. Each map is one block with its size in front (a negative
count, then the length: plain Avro), so that whoever checks the entry skips it in one jump. Pairs
are in the order of their field ids, so equal maps give equal bytes.
Source: the specification, "Appendix A", maps whose keys are no strings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any

from committer.iceberg.avro_binary import LONGS

LongMapEncoder = Callable[[Mapping[int, int] | None], bytes]
BytesMapEncoder = Callable[[Mapping[int, bytes] | None], bytes]
# Of longs or of bytes, as the map is: the one thing that both kinds share.
_Values = tuple[Any, ...]

_NULL = b"\0"
_EMPTY = b"\x02\0"
_long = LONGS.__getitem__
_COLUMNS_KEPT = 256
_MAPS_KEPT = 1024


class _Columns:
    """What the maps of these columns share.

    `pick` takes a map's values in the order of `field_ids`. `pairs` is the template of the pairs of
    longs. `maps` holds whole maps of longs by their values, `templates` those of maps of bytes by
    the lengths of the bytes.
    """

    __slots__ = ("count", "field_ids", "maps", "pairs", "pick", "templates")

    def __init__(self, field_ids: tuple[int, ...]) -> None:
        self.field_ids, self.count = field_ids, len(field_ids)
        self.pick = _picker(field_ids)
        self.pairs = b"".join(_literal(LONGS[field_id]) + b"%b" for field_id in field_ids)
        self.maps: dict[_Values, bytes] = {}
        self.templates: dict[_Values, bytes] = {}


def _picker(field_ids: tuple[int, ...]) -> Callable[[Mapping[int, Any]], _Values]:
    if len(field_ids) > 1:
        return itemgetter(*field_ids)
    return lambda pairs: tuple(pairs[field_id] for field_id in field_ids)


_columns = lru_cache(maxsize=_COLUMNS_KEPT)(_Columns)


def _literal(content: bytes) -> bytes:
    return content.replace(b"%", b"%%")


def long_map_encoder() -> LongMapEncoder:
    """A function that encodes an optional map of longs. It remembers the columns of the latest."""
    return _map_encoder(_long_map)


def repeated_map_encoder() -> LongMapEncoder:
    """As `long_map_encoder`, for values that many files share."""
    return _map_encoder(_repeated_map)


def bytes_map_encoder() -> BytesMapEncoder:
    """As `long_map_encoder`, of bytes."""
    return _map_encoder(_bytes_map)


def _map_encoder(
    encode: Callable[[_Columns, _Values], bytes],
) -> Callable[[Mapping[int, Any] | None], bytes]:
    latest = _columns(())

    def encode_map(pairs: Mapping[int, Any] | None) -> bytes:
        nonlocal latest
        if not pairs:
            return _NULL if pairs is None else _EMPTY
        columns = latest
        # A Counter, say, would answer for columns that it does not have.
        if columns.count == len(pairs) and type(pairs) is dict:
            try:
                return encode(columns, columns.pick(pairs))
            except KeyError:
                pass
        latest = columns = _columns(tuple(sorted(pairs)))
        return encode(columns, columns.pick(pairs))

    return encode_map


def _long_map(columns: _Columns, values: _Values) -> bytes:
    pairs = columns.pairs % tuple(map(_long, values))
    return b"\x02%b%b%b\0" % (_long(-columns.count), _long(len(pairs)), pairs)


def _repeated_map(columns: _Columns, values: _Values) -> bytes:
    known = columns.maps.get(values)
    if known is None:
        if len(columns.maps) >= _MAPS_KEPT:
            columns.maps.clear()
        known = columns.maps[values] = _long_map(columns, values)
    return known


def _bytes_map(columns: _Columns, values: _Values) -> bytes:
    lengths = tuple(map(len, values))
    template = columns.templates.get(lengths)
    if template is None:
        if len(columns.templates) >= _MAPS_KEPT:
            columns.templates.clear()
        template = columns.templates[lengths] = _template(columns.field_ids, lengths)
    return template % values


def _template(field_ids: tuple[int, ...], lengths: tuple[int, ...]) -> bytes:
    heads = [LONGS[one] + LONGS[length] for one, length in zip(field_ids, lengths, strict=True)]
    size = sum(map(len, heads)) + sum(lengths)
    start = b"\x02" + LONGS[-len(field_ids)] + LONGS[size]
    return _literal(start) + b"".join(_literal(head) + b"%b" for head in heads) + b"\0"
