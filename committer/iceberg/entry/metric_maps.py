"""Encodes the maps of metrics in manifest entries, fast where they resemble those before them.

The files of a table have metrics of the same columns, and bounds of mostly the same lengths. So the
bytes around the values are assembled once, as a template, and the map of one more file costs
looking up its values and formatting them. Each map is one block with its size in front (a negative
count, then the length: plain Avro), so that a check of the entry skips it in one jump. Pairs are in
the order of their field ids, so equal maps give equal bytes. Source: the specification, "Appendix
A", maps whose keys are no strings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any

from committer.iceberg.avro.binary import LONGS, SMALL_LONGS

LongMapEncoder = Callable[[Mapping[int, int] | None], bytes]
BoundsEncoder = Callable[[Mapping[int, bytes] | None, Mapping[int, bytes] | None], bytes]
_Values = tuple[Any, ...]
_Picker = Callable[[Mapping[int, Any]], _Values]

_NULL = b"\0"
_EMPTY = b"\x02\0"
_COLUMNS_KEPT = 256
_MAPS_KEPT = 1024
_TEMPLATES_KEPT = 1024


class _Columns:
    """The templates and caches that maps of these columns share.

    `pick` takes a map's values in the order of `field_ids`. `longs` is the template of the pairs of
    longs, `bounds` has a place for the length and the bytes behind each id. `maps` holds whole maps
    of longs by their values, `templates` those of lower and upper bounds by their lengths (empty
    where these were seen once only).
    """

    __slots__ = ("bounds", "count", "field_ids", "longs", "maps", "pick", "start", "templates")

    def __init__(self, field_ids: tuple[int, ...]) -> None:
        self.field_ids, self.count = field_ids, len(field_ids)
        self.pick = _picker(field_ids)
        self.start = b"\x02" + LONGS[-len(field_ids)]
        self.longs = b"".join(_literal(LONGS[field_id]) + b"%b" for field_id in field_ids)
        self.bounds = [part for field_id in field_ids for part in (LONGS[field_id], b"", b"")]
        self.maps: dict[_Values, bytes] = {}
        self.templates: dict[_Values, bytes] = {}


def _picker(field_ids: tuple[int, ...]) -> _Picker:
    # The fastest look-up of many values at once, but a tuple only of two or more.
    if len(field_ids) > 1:
        return itemgetter(*field_ids)
    return lambda pairs: tuple(pairs[field_id] for field_id in field_ids)


_columns = lru_cache(maxsize=_COLUMNS_KEPT)(_Columns)


def _columns_of(pairs: Mapping[int, object]) -> _Columns:
    return _columns(tuple(sorted(pairs)))


def _literal(content: bytes) -> bytes:
    return content.replace(b"%", b"%%")


# --- Maps of longs -------------------------------------------------------------------------------


def long_map_encoder(*, repeated: bool = False) -> LongMapEncoder:
    """Return a function that encodes an optional map of longs; it remembers the latest columns.

    `repeated`: many files share the values.
    """
    latest = _columns(())

    def encode_map(pairs: Mapping[int, int] | None) -> bytes:
        nonlocal latest
        if not pairs:
            return _NULL if pairs is None else _EMPTY
        columns = latest
        try:
            # Other mappings than dicts may answer for columns that they do not have.
            if columns.count != len(pairs) or type(pairs) is not dict:
                raise KeyError
            values = columns.pick(pairs)
        except KeyError:
            latest = columns = _columns_of(pairs)
            values = columns.pick(pairs)
        if not repeated:
            return _long_map(columns, values)
        return columns.maps.get(values) or _kept_long_map(columns, values)

    return encode_map


def _long_map(columns: _Columns, values: _Values) -> bytes:
    try:
        longs = itemgetter(*values)(SMALL_LONGS) if columns.count > 1 else (LONGS[values[0]],)
    except KeyError:
        longs = tuple(map(LONGS.__getitem__, values))
    pairs = columns.longs % longs
    return b"%b%b%b\0" % (columns.start, LONGS[len(pairs)], pairs)


def _kept_long_map(columns: _Columns, values: _Values) -> bytes:
    if len(columns.maps) >= _MAPS_KEPT:
        columns.maps.clear()
    columns.maps[values] = encoded = _long_map(columns, values)
    return encoded


# --- Bounds --------------------------------------------------------------------------------------


def bounds_encoder() -> BoundsEncoder:
    """Return a function that encodes optional lower and upper bounds, one map behind the other."""
    latest = _columns(())

    def encode_bounds(
        lower: Mapping[int, bytes] | None, upper: Mapping[int, bytes] | None
    ) -> bytes:
        nonlocal latest
        if not lower or not upper:
            return _bytes_map(lower) + _bytes_map(upper)
        columns = latest
        try:
            if not columns.count == len(lower) == len(upper) or not (
                type(lower) is type(upper) is dict
            ):
                raise KeyError
            bounds = columns.pick(lower) + columns.pick(upper)
        except KeyError:
            latest = _columns_of(lower)
            return _bytes_map(lower) + _bytes_map(upper)
        lengths = tuple(map(len, bounds))
        template = columns.templates.get(lengths) or _template(columns, lengths)
        return template % bounds if template else _bytes_map(lower) + _bytes_map(upper)

    return encode_bounds


def _bytes_map(pairs: Mapping[int, bytes] | None) -> bytes:
    if not pairs:
        return _NULL if pairs is None else _EMPTY
    columns = _columns_of(pairs)
    bounds = columns.pick(pairs)
    parts = columns.bounds.copy()
    parts[1::3] = [LONGS[len(bound)] for bound in bounds]
    parts[2::3] = bounds
    body = b"".join(parts)
    return b"%b%b%b\0" % (columns.start, LONGS[len(body)], body)


def _template(columns: _Columns, lengths: tuple[int, ...]) -> bytes:
    """Return both maps with a place for each bound, once lengths have repeated; before that
    nothing, because assembling it takes the time of some ten entries.
    """
    templates = columns.templates
    if lengths not in templates:
        if len(templates) >= _TEMPLATES_KEPT:
            templates.clear()
        templates[lengths] = b""
    else:
        lower, upper = lengths[: columns.count], lengths[columns.count :]
        templates[lengths] = _map_template(columns, lower) + _map_template(columns, upper)
    return templates[lengths]


def _map_template(columns: _Columns, lengths: tuple[int, ...]) -> bytes:
    heads = [LONGS[i] + LONGS[length] for i, length in zip(columns.field_ids, lengths, strict=True)]
    size = sum(map(len, heads)) + sum(lengths)
    pairs = b"".join(_literal(head) + b"%b" for head in heads)
    return b"%b%b%b\0" % (_literal(columns.start), _literal(LONGS[size]), pairs)
