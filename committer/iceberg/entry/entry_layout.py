"""The layout of a writer's manifest entries in bytes, compiled for fast checking.

Only what `manifest_walk.py` needs to step over an entry. A schema that this cannot express has no
layout: its entries are decoded one by one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from committer.iceberg.avro.binary import LONGS
from committer.iceberg.avro.shapes import ArrayShape, RecordShape, Shape, UnionShape, schema_shape

_METRICS = (108, 109, 110, 137, 125, 128)
_HEADS = {(0, 1, 2): b"\x02\0", (0, 1, 3, 4, 2): b"\x02\0\0\0"}
_PLAIN = {100: "string", 101: "string", 103: "long", 104: "long", 105: "long", 134: "int"}


class Skip(IntEnum):
    """The ways to step over a value that is not null. A fixed one has its (positive) length
    instead.
    """

    VARINT = 0
    PREFIXED = -1
    VARINTS = -2


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of fields of one writer schema.

    `head`: the bytes of an added data entry up to its path, nothing but constants. Then follow
    path, format, partition (`partition`: one skip per field, each optional), `counts` varints
    (record_count, file_size_in_bytes and perhaps block_size_in_bytes), six maps, and the optional
    values `tail` of the fields `tail_ids`.
    """

    head: bytes
    partition: tuple[int, ...]
    counts: int
    tail: tuple[int, ...]
    tail_ids: tuple[int, ...]


@lru_cache(maxsize=64)
def layout_of(schema_text: bytes) -> Layout | None:
    """Return the layout of a manifest's writer schema; None if only a decoder can follow it.

    Errors: `InvalidMetadataError` for what is no schema of records.
    """
    entry = schema_shape(schema_text)
    file = entry.get(2)
    head = _HEADS.get(tuple(field_id or 0 for field_id, _ in entry.fields))
    if head is None or not isinstance(file, RecordShape) or not _ids_are_optional(entry):
        return None
    order = tuple(field_id for field_id, _ in file.fields)
    if order[:1] == (134,):
        head, order = head + b"\0", order[1:]
    counts = 3 if order[5:6] == (105,) else 2
    known = ((100, 101, 102, 103, 104, 105)[: 3 + counts]) + _METRICS
    partition = file.get(102)
    if (
        order[: len(known)] != known
        or not isinstance(partition, RecordShape)
        or not all(_is_known(field_id, shape) for field_id, shape in file.fields)
    ):
        return None
    rest = order[len(known) :]
    partition_skips = _skips(partition.fields)
    tail_skips = _skips(file.fields[-len(rest) :] if rest else ())
    if partition_skips is None or tail_skips is None:
        return None
    return Layout(head, partition_skips, counts, tail_skips, tuple(each or 0 for each in rest))


def _ids_are_optional(entry: RecordShape) -> bool:
    ids = [shape for field_id, shape in entry.fields if field_id in (1, 3, 4)]
    return entry.get(0) == "int" and all(shape == UnionShape(("null", "long")) for shape in ids)


def _is_known(field_id: int | None, shape: Shape) -> bool:
    if field_id in _PLAIN:
        return shape == _PLAIN[field_id]
    if field_id not in _METRICS:
        return True
    match shape:
        case UnionShape(("null", ArrayShape(RecordShape(((_, "int"), (_, value))), True))):
            return value == ("long" if field_id in _METRICS[:4] else "bytes")
        case _:
            return False


def _skips(fields: tuple[tuple[int | None, Shape], ...]) -> tuple[int, ...] | None:
    skips = [_optional_skip(shape) for _, shape in fields]
    return None if None in skips else tuple(skip for skip in skips if skip is not None)


_SKIPS: dict[Shape, int] = {
    "boolean": 1,
    "float": 4,
    "double": 8,
    "int": Skip.VARINT,
    "long": Skip.VARINT,
    "string": Skip.PREFIXED,
    "bytes": Skip.PREFIXED,
    ArrayShape("int", False): Skip.VARINTS,
    ArrayShape("long", False): Skip.VARINTS,
}


def _optional_skip(shape: Shape) -> int | None:
    match shape:
        case UnionShape(("null", str(kind))) if kind.startswith("fixed"):
            size = kind.removeprefix("fixed").partition("<")[0]
            is_number = size.isascii() and size.isdigit() and len(size) < 7
            return int(size) or None if is_number else None
        case UnionShape(("null", kind)):
            return _SKIPS.get(kind)
        case _:
            return None


# --- Maps without sizes --------------------------------------------------------------------------

# Of up to 63 bits: a decoder decides about more.
VARINT = rb"[\x80-\xff]{0,8}+[\x00-\x7f]"
FIELD_ID = rb"[\x80-\xff]?+[\x00-\x7f]"
_LENGTHS = (8, 4, 16, 1, 12, *(n for n in range(64) if n not in (8, 4, 16, 1, 12)))
BOUND = b"(?:%b)" % b"|".join(re.escape(LONGS[length]) + b".{%d}" % length for length in _LENGTHS)
PAIRS_MAX = 1000
_UNROLLED_MAX = 64


@lru_cache(maxsize=256)
def plain_maps(counts: tuple[int | None, ...]) -> re.Pattern[bytes]:
    """Return a pattern of six maps, each of one plain block with so many pairs (None: null).

    Files of one table have the same columns, so counts repeat. The pattern is total: what it does
    not match (bounds of 64 bytes, field ids over 16383) may still be right, a decoder decides.
    """
    maps = (_map(count, place > 3) for place, count in enumerate(counts))
    return re.compile(b"".join(maps), re.DOTALL)


def _map(count: int | None, of_bytes: bool) -> bytes:
    if count is None:
        return rb"\x00"
    if count == 0:
        return rb"\x02\x00"
    return rb"\x02%b%b\x00" % (re.escape(LONGS[count]), _pairs(count, of_bytes))


@lru_cache(maxsize=256)
def pairs(count: int, of_bytes: bool) -> re.Pattern[bytes]:
    """Return a pattern of the pairs of one map, of longs or of bytes. As total as `plain_maps`."""
    return re.compile(_pairs(count, of_bytes), re.DOTALL)


def _pairs(count: int, of_bytes: bool) -> bytes:
    if of_bytes:
        return b"(?:%b%b){%d}" % (FIELD_ID, BOUND, count)
    # Written out it matches half again as fast, and takes the longer to compile.
    if count <= _UNROLLED_MAX:
        return (FIELD_ID + VARINT) * count
    return b"(?:%b%b){%d}" % (FIELD_ID, VARINT, count)
