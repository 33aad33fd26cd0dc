"""Murmur3 (32 bit, x86, seed 0) of many values at once, in numpy. The hash of bucket transforms.

Only hashing; the caller knows the bytes of a value. Source: docs/reference/iceberg-notes.md 1.7.
One value at a time: `committer.iceberg.values.transforms.bucket_hash`, which also takes over here
for the few values that are so long that a pass over all rows per four bytes would be slower.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from committer.iceberg.values.transforms import bucket_hash
from committer.iceberg.values.types import BinaryType

Hashes = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_ADD = np.uint32(0xE6546B64)
_FIVE = np.uint32(5)

_BLOCKS_MAX = 64


def hash_longs(values: Longs) -> Hashes:
    """Hash each value as eight little-endian bytes."""
    words = np.ascontiguousarray(values, "<i8").view("<u4")
    hashes = np.zeros(len(values), np.uint32)
    for half in (0, 1):
        hashes = _mix(hashes, words[half::2])
    return _finish(hashes, np.uint32(8))


def hash_ranges(content: Bytes, starts: Longs, lengths: Longs) -> Hashes:
    """Hash each `content[start : start + length]`."""
    blocks = lengths >> 2
    by_blocks = np.argsort(-blocks, kind="stable")
    blocks, starts, lengths = blocks[by_blocks], starts[by_blocks], lengths[by_blocks]
    hashes = np.zeros(len(starts), np.uint32)
    _hash_blocks(hashes, content, starts, blocks)
    tail = _tail(content, starts + 4 * blocks, lengths & 3)
    hashes = _finish(hashes ^ _scramble(tail), lengths.astype(np.uint32))
    _hash_long_ones(hashes, content, starts, lengths)
    ordered = np.empty_like(hashes)
    ordered[by_blocks] = hashes
    return ordered


def _hash_blocks(hashes: Hashes, content: Bytes, starts: Longs, blocks: Longs) -> None:
    """Mix the n-th four bytes of all rows that have so many. Rows come longest first."""
    if not len(blocks) or not blocks[0]:
        return
    words = np.ndarray((len(content) - 3,), "<u4", content, strides=(1,))
    for block in range(min(int(blocks[0]), _BLOCKS_MAX)):
        rows = int(np.searchsorted(-blocks, -block, "left"))
        hashes[:rows] = _mix(hashes[:rows], words[starts[:rows] + 4 * block])


def _tail(content: Bytes, starts: Longs, lengths: Longs) -> Hashes:
    """Return the last zero to three bytes of each row as a little-endian number."""
    tail = np.zeros(len(starts), np.uint32)
    for byte in range(3):
        rows = np.flatnonzero(lengths > byte)
        tail[rows] |= content[starts[rows] + byte].astype(np.uint32) << np.uint32(8 * byte)
    return tail


def _hash_long_ones(hashes: Hashes, content: Bytes, starts: Longs, lengths: Longs) -> None:
    hash_of = bucket_hash(BinaryType())
    for row in np.flatnonzero(lengths >= 4 * _BLOCKS_MAX + 4):
        value = content[starts[row] : starts[row] + lengths[row]].tobytes()
        hashes[row] = hash_of(value) & 0xFFFFFFFF


def _scramble(words: Hashes) -> Hashes:
    return _rotate(words * _C1, 15) * _C2


def _mix(hashes: Hashes, words: Hashes) -> Hashes:
    return _rotate(hashes ^ _scramble(words), 13) * _FIVE + _ADD


def _rotate(words: Hashes, bits: int) -> Hashes:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def _finish(hashes: Hashes, lengths: Hashes | np.uint32) -> Hashes:
    hashes = hashes ^ lengths
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return hashes ^ (hashes >> np.uint32(16))
