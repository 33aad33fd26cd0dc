"""Deletion vectors: the deleted positions of one data file, and their bytes inside a Puffin file.

The only module that knows the bitmap library. Puffin files are `puffin.py` and
`deletion_vector_file.py`. Source: the Puffin specification, "deletion-vector-v1";
docs/reference/iceberg-notes.md 6.7.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator
from zlib import crc32

from pyroaring import BitMap64

from committer.errors import InvalidMetadataError, InvariantError
from committer.iceberg.deletes.roaring_check import check_roaring_bitmap

# The reference keeps a bitmap for every upper half in an array, whose length is a signed int.
POSITION_MAX = 0x7FFFFFFE_80000000
_MAGIC = b"\xd1\xd3\x39\x64"
_LENGTH_BYTES = 4
_CRC_BYTES = 4
_COUNT = struct.Struct("<Q")
_KEY = struct.Struct("<I")
_KEY_MAX = 0x7FFFFFFF
# Key, cookie, and no containers.
_BITMAP_BYTES_MIN = 12


class DeletionVector:
    """An immutable set of row positions, from 0. Iterates in ascending order."""

    __slots__ = ("_bitmap",)

    def __init__(self, positions: Iterable[int] = ()) -> None:
        """Hold these positions.
        Errors: `InvariantError` for a position below 0 or above `POSITION_MAX`."""
        try:
            bitmap = BitMap64(positions)
        except OverflowError:
            bitmap = None
        if bitmap is None or (bitmap and bitmap.max() > POSITION_MAX):
            raise InvariantError(f"a deleted position that is not within 0 and {POSITION_MAX}")
        self._bitmap = bitmap

    @classmethod
    def _of(cls, bitmap: BitMap64) -> DeletionVector:
        vector = cls.__new__(cls)
        vector._bitmap = bitmap
        return vector

    @classmethod
    def of_range(cls, start: int, stop: int) -> DeletionVector:
        """Return the positions from `start` up to `stop`, which is not one of them."""
        bitmap = BitMap64()
        bitmap.add_range(start, stop)
        return cls._of(bitmap)

    @property
    def cardinality(self) -> int:
        """How many rows are deleted."""
        return len(self._bitmap)

    def __len__(self) -> int:
        return len(self._bitmap)

    def __contains__(self, position: object) -> bool:
        return (
            isinstance(position, int) and 0 <= position <= POSITION_MAX and position in self._bitmap
        )

    def __iter__(self) -> Iterator[int]:
        return iter(self._bitmap)

    def to_array(self) -> array[int]:
        """Return the positions in ascending order, as unsigned integers of 8 bytes."""
        found: array[int] = self._bitmap.to_array()
        return found

    def __or__(self, other: DeletionVector) -> DeletionVector:
        """Return the union: a new vector must contain the one that it replaces."""
        return self._of(self._bitmap | other._bitmap)

    def __and__(self, other: DeletionVector) -> DeletionVector:
        """Return the positions that both have."""
        return self._of(self._bitmap & other._bitmap)

    def __sub__(self, other: DeletionVector) -> DeletionVector:
        """Return the positions that the other one does not have."""
        return self._of(self._bitmap - other._bitmap)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeletionVector) and self._bitmap == other._bitmap

    def __hash__(self) -> int:
        return hash((self.cardinality, self._bitmap.max() if self._bitmap else None))

    def __repr__(self) -> str:
        return f"DeletionVector(cardinality={self.cardinality})"


def encode_deletion_vector(vector: DeletionVector) -> bytes:
    """Encode the blob: length, magic, bitmaps, checksum. Equal vectors have equal bytes.

    Only upper halves that have a position get a bitmap; Iceberg Java writes an empty one for each
    lower upper half too. Both read either.
    """
    bitmap = vector._bitmap.copy()
    bitmap.run_optimize()
    covered = _MAGIC + bitmap.serialize()
    return b"".join(
        (
            len(covered).to_bytes(_LENGTH_BYTES, "big"),
            covered,
            crc32(covered).to_bytes(_CRC_BYTES, "big"),
        )
    )


def decode_deletion_vector(
    blob: bytes | memoryview, *, cardinality: int | None = None, where: str = "deletion vector"
) -> DeletionVector:
    """Read a blob. `cardinality` is what the manifest entry says (its `record_count`).

    Errors: `InvalidMetadataError` naming `where`; memory is bounded by a multiple of the blob.
    """
    content = bytes(blob)
    covered = _covered(content, where)
    found = _check_bitmaps(covered, where)
    if cardinality is not None and found != cardinality:
        raise InvalidMetadataError(
            f"{where}: the vector has {found} positions, expected {cardinality}"
        )
    try:
        bitmap = BitMap64.deserialize(covered[len(_MAGIC) :])
    except ValueError as error:
        raise InvalidMetadataError(f"{where}: the bitmaps are damaged") from error
    return DeletionVector._of(bitmap)


def _covered(content: bytes, where: str) -> bytes:
    """Return the bytes that the checksum covers: the magic and the bitmaps."""
    length = int.from_bytes(content[:_LENGTH_BYTES], "big")
    if length + _LENGTH_BYTES + _CRC_BYTES != len(content):
        raise InvalidMetadataError(
            f"{where}: {len(content)} bytes, but its length says"
            f" {length + _LENGTH_BYTES + _CRC_BYTES}"
        )
    covered = content[_LENGTH_BYTES:-_CRC_BYTES]
    if not covered.startswith(_MAGIC):
        raise InvalidMetadataError(f"{where}: expected the magic bytes {_MAGIC.hex()}")
    if crc32(covered) != int.from_bytes(content[-_CRC_BYTES:], "big"):
        raise InvalidMetadataError(f"{where}: a wrong checksum")
    return covered


def _check_bitmaps(covered: bytes, where: str) -> int:
    """Walk the bitmaps: how many positions they have."""
    position = len(_MAGIC) + _COUNT.size
    if len(covered) < position:
        raise InvalidMetadataError(f"{where}: expected a number of bitmaps")
    (count,) = _COUNT.unpack_from(covered, len(_MAGIC))
    if count * _BITMAP_BYTES_MIN > len(covered) - position:
        raise InvalidMetadataError(f"{where}: {count} bitmaps in {len(covered) - position} bytes")
    cardinality, last = 0, -1
    for _ in range(count):
        if len(covered) - position < _KEY.size:
            raise InvalidMetadataError(f"{where}: expected the key of a bitmap")
        (key,) = _KEY.unpack_from(covered, position)
        if not last < key <= _KEY_MAX:
            raise InvalidMetadataError(
                f"{where}: a bitmap for key {key} behind one for {last}, expected keys to ascend"
            )
        last = key
        position, values = check_roaring_bitmap(covered, position + _KEY.size, where)
        cardinality += values
    if position != len(covered):
        raise InvalidMetadataError(f"{where}: bytes behind the last bitmap")
    return cardinality
