"""Damage to bytes, to JSON and to Avro files, as chance has it. One seed, one damage.

Damage below the compression and below the JSON syntax gets further than bits that flip anywhere.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from copy import deepcopy
from random import Random
from typing import Any

from committer.iceberg.avro.container import encode_container, encode_header, iter_raw_blocks
from committer.iceberg.avro.container import read_header as read_avro_header

_SYNC = bytes(range(16))
_EDITS_MAX = 4
# Lengths and counts that lie: as zigzag numbers of Avro, and as plain ones.
_LYING = (
    *(b"\xff" * 9 + b"\x01", b"\xfe" * 9 + b"\x01", b"\xff" * 12, b"\x01", b"\x00", b"\x80" * 11),
    *(b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\x00\x00\x00\x80", b"\xfe\xff\xff\xff\x0f"),
)
_HOSTILE: tuple[object, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63, 2**64, -(2**63) - 1),
    *(10**400, 0.5, -0.0, 1e308, "", "x", "\u0000", "\ud800", "é" * 2000, "1" * 5000, "-1", "NaN"),
    *([], {}, [[]], [{}], {"type": "struct"}, {"": ""}, [None], "struct<>", "decimal(99,99)"),
    *("fixed[999999999]", "bucket[0]", "truncate[-1]", "bucket[99999999999]", "list", "map"),
)


def flipped(content: bytes, chance: Random) -> bytes:
    """Flip some bits, or cut out, repeat or replace bytes by numbers that lie."""
    found = bytearray(content)
    for _ in range(chance.randint(1, _EDITS_MAX)):
        place = chance.randrange(len(found) + 1)
        size = chance.choice((1, 1, 2, 8, 64))
        match chance.randrange(6):
            case 0 if place < len(found):
                found[place] ^= 1 << chance.randrange(8)
            case 1:
                del found[place : place + size]
            case 2:
                found[place:place] = found[place : place + size] * chance.randint(1, 20)
            case 3:
                found[place:place] = chance.choice(_LYING)
            case 4:
                lying = chance.choice(_LYING)
                found[place : place + len(lying)] = lying
            case _:
                del found[place:]
    return bytes(found)


# --- JSON ----------------------------------------------------------------------------------------


def json_damaged(content: bytes, chance: Random) -> bytes:
    """Replace values by hostile ones, drop or exchange keys, or damage the text itself."""
    if chance.random() < 0.1:
        return flipped(content, chance)
    try:
        return printed(damaged_value(json.loads(content), chance))
    except RecursionError:
        return b'{"":' * 1000 + content + b"}" * 1000


def printed(document: object) -> bytes:
    # A lone surrogate has no UTF-8: some writers put it there all the same.
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def damaged_value(document: Any, chance: Random) -> Any:
    """Return the document with some values exchanged."""
    damaged = {"": document}
    for _ in range(chance.randint(1, _EDITS_MAX)):
        holder, key = _place(damaged, chance)
        match chance.randrange(5):
            case 0 if holder is not damaged:
                del holder[key]
            case 1:
                holder[key] = _nested(holder[key], chance)
            case 2:
                other, other_key = _place(damaged, chance)
                holder[key] = json.loads(printed(other[other_key]))
            case 3 if isinstance(holder, dict) and holder is not damaged:
                holder[chance.choice(("type", "id", "x", "fields"))] = holder.pop(key)
            case _:
                holder[key] = deepcopy(chance.choice(_HOSTILE))
        if "" not in damaged:
            return None
    return damaged[""]


def _place(document: dict[str, Any], chance: Random) -> tuple[Any, Any]:
    """Choose a place in the document, deep ones as likely as the top."""
    holder: Any = document
    key: Any = ""
    while chance.random() < 0.8:
        inner = holder[key]
        if isinstance(inner, dict) and inner:
            holder, key = inner, chance.choice(list(inner))
        elif isinstance(inner, list) and inner:
            holder, key = inner, chance.randrange(len(inner))
        else:
            break
    return holder, key


def _nested(value: object, chance: Random) -> object:
    """Return the value at the bottom of a tower."""
    for _ in range(chance.choice((1, 3, 40, 300))):
        value = chance.choice(
            (
                [value],
                {"type": "list", "element-id": 1, "element": value, "element-required": False},
                {"type": "not", "child": value},
                {"type": "and", "left": value, "right": value}
                if chance.random() < 0.02
                else [value],
            )
        )
    return value


# --- Avro ----------------------------------------------------------------------------------------


def avro_damaged(content: bytes, chance: Random) -> bytes:
    """Damage the file, its header's JSON, or the records below the compression."""
    kind = chance.randrange(4)
    if kind == 0:
        return flipped(content, chance)
    header, blocks = _opened(content)
    if kind == 1:
        key = chance.choice(list(header))
        damage = json_damaged if header[key][:1] in (b"{", b"[") else flipped
        return _closed(header | {key: damage(header[key], chance)}, blocks)
    changed = [
        (_count(count, chance), flipped(raw, chance)) if chance.random() < 0.7 else (count, raw)
        for count, raw in blocks
    ]
    return _closed(header, changed)


def _count(count: int, chance: Random) -> int:
    return chance.choice((count, count, count, 0, 1, count + 1, -count, 2**31, 2**62))


def _opened(content: bytes) -> tuple[dict[str, bytes], list[tuple[int, bytes]]]:
    header = read_avro_header(content)
    blocks = [(block.count, raw) for block, raw in iter_raw_blocks(content, header)]
    return dict(header.metadata), blocks


def _closed(header: Mapping[str, bytes], blocks: list[tuple[int, bytes]]) -> bytes:
    metadata = {**header, "avro.codec": b"null"}
    return encode_container(encode_header(metadata, _SYNC), blocks, _SYNC)


def vector_damaged(content: bytes, chance: Random) -> bytes:
    """Damage a deletion vector, and mostly correct its length and checksum."""
    if chance.random() < 0.1:
        return flipped(content, chance)
    covered = content[4:8] + flipped(content[8:-4], chance)
    return len(covered).to_bytes(4, "big") + covered + zlib.crc32(covered).to_bytes(4, "big")


def gzip_or_plain(damage: Callable[[bytes, Random], bytes]) -> Callable[[bytes, Random], bytes]:
    """Return the damage below gzip, or to the compressed bytes."""
    import gzip

    def damaged(content: bytes, chance: Random) -> bytes:
        if content[:2] != b"\x1f\x8b":
            return damage(content, chance)
        if chance.random() < 0.5:
            return flipped(content, chance)
        return gzip.compress(damage(gzip.decompress(content), chance), mtime=0)

    return damaged
