"""Takes those bounds out of the maps of an entry of which a length does not say everything: texts,
and decimals of the full length. All at once, if they are at the same places as in earlier maps.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from committer.iceberg.schema.bound_forms import BoundForm, is_below

# Bytes of maps, and where these start.
Texts = Callable[[bytes, int], tuple[bytes, ...]]


@dataclass(frozen=True, slots=True)
class Bound:
    """The place of a bound in some bytes, and its form."""

    form: BoundForm
    start: int
    stop: int


def texts_of(maps: bytes, bounds: Sequence[Bound]) -> Texts | None:
    """Return a function that takes the texts out of maps laid out as these; None without texts.

    Each piece begins with the last byte of a length, which is ASCII and keeps halves of two texts
    from making one letter. Texts of neighbors are one piece if ids and lengths are ASCII, too.
    """
    pieces: list[tuple[int, int]] = []
    before = None
    for one in bounds:
        if one.form.is_text:
            start = one.start - 1
            if pieces and before == pieces[-1][1] and maps[before:start].isascii():
                start = pieces.pop()[0]
            pieces.append((start, one.stop))
        before = one.stop
    return _unpacking(pieces) if pieces else None


class Numbers:
    """Checks the decimals of maps with a known layout."""

    __slots__ = ("_limits", "_unpack")

    def __init__(self, bounds: Sequence[Bound]) -> None:
        self._limits = [one.form.limit for one in bounds]
        self._unpack = _unpacking([(one.start, one.stop) for one in bounds])

    def fit(self, raw: bytes, start: int) -> bool:
        """Return whether the numbers behind `start` have no more digits than their types.
        Errors: struct.error where the bytes end before."""
        return all(map(is_below, self._unpack(raw, start), self._limits))


def numbers_of(bounds: Sequence[Bound]) -> Numbers | None:
    """Return the decimals to check; None where none could have too many digits for its type."""
    full = [
        one for one in bounds if one.form.limit and one.stop - one.start == one.form.limited_length
    ]
    return Numbers(full) if full else None


def _unpacking(pieces: Sequence[tuple[int, int]]) -> Texts:
    layout, position = ["<"], 0
    for start, stop in pieces:
        layout.append(f"{start - position}x{stop - start}s")
        position = stop
    return struct.Struct("".join(layout)).unpack_from


# The first bytes of letters in UTF-8, by which bytes may follow; and the second ones, where not all
# that continue a letter may stand.
_FIRST = ((0, 0x7F), (0xC2, 0xDF), (0xE0, 0xE0), (0xE1, 0xEC), (0xED, 0xED), (0xEE, 0xEF))
_FIRST_OF_FOUR = ((0xF0, 0xF0), (0xF1, 0xF3), (0xF4, 0xF4))
_SECOND = {0xE0: (0xA0, 0xBF), 0xED: (0x80, 0x9F), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}
_MORE = (0x80, 0xBF)


def text_bits(text: bytes) -> bytes:
    """Return for each byte of a text the bits that make it text:
    bytes that agree in all of these are text, too."""
    bits = bytearray(text.translate(_BITS))
    for found in _LIMITING.finditer(text):
        bits[found.end()] = _bits(text[found.end()], *_SECOND[found[0][0]])
    return bytes(bits)


def _bits(byte: int, low: int, high: int) -> int:
    """Mask the fewest high bits of a byte: every byte that shares them is from `low` to `high`."""
    bits = 0xFF
    while True:
        fewer = bits << 1 & 0xFF
        if byte & fewer < low or byte | ~fewer & 0xFF > high:
            return bits
        bits = fewer


def _bits_of_any(byte: int) -> int:
    ranges = (*_FIRST, *_FIRST_OF_FOUR, _MORE)
    return next((_bits(byte, *one) for one in ranges if one[0] <= byte <= one[1]), 0xFF)


_BITS = bytes(map(_bits_of_any, range(256)))
_LIMITING = re.compile(b"[%b]" % bytes(_SECOND))
