"""Recognizes maps of metrics that are laid out byte for byte as those of an entry before.

A few bytes of a map determine its end: counts, sizes, ids, lengths, and of every number the bits
that say whether it continues. Files of one table agree in most of them. Two stretches of bytes that
agree in all of them end alike, so once the maps of one entry were stepped over, the next ones are
compared with it as one large number under a mask, in a tenth of the time.
"""

from __future__ import annotations

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.binary import read_long
from committer.iceberg.entry.bound_values import (
    Bound,
    Numbers,
    Texts,
    numbers_of,
    text_bits,
    texts_of,
)
from committer.iceberg.schema.bound_forms import BoundForms, is_utf8

_MAPS = 6
_MAPS_OF_LONGS = 4
_ALL = 0xFF
_GOES_ON = 0x80
_SIGN = 0x01
_LENGTH_BYTES_MAX = 16 * 1024
_KEPT = 3
# Learning takes the time that is saved by recognizing a dozen entries. So these pay for it, after a
# first credit; once that is used up without repeats, learning pauses for a while.
_LEARNING_COSTS = 12
_CREDIT = 32
_CREDIT_MAX = 128
_PAUSE_ENTRIES = 1_000
# Named here, because it is looked up for every entry.
_number = int.from_bytes


# Length in bytes, mask, what a layout has under its mask, and values that no mask says enough of:
# decimals, and texts, which are left to the caller.
Skeleton = tuple[int, int, int, Numbers | None, Texts | None]


class Skeletons:
    """The layouts that the maps of one writer's entries have had. Mutable; may be shared by
    threads, which at worst learn a layout twice.

    With `forms` maps are recognized only if they hold what those of an addition may: counts that
    are not negative, and bounds of these forms, as the ones did that were learned. But the
    extracted texts are not yet proven to be text.
    """

    __slots__ = ("_credit", "_forms", "_known", "_pause")

    def __init__(self, forms: BoundForms | None = None) -> None:
        self._forms = forms
        # The latest in front.
        self._known: tuple[Skeleton, ...] = ()
        self._credit, self._pause = _CREDIT, 0

    def match(self, raw: bytes, start: int) -> Skeleton | None:
        """Return the layout of the six maps at `start`, if earlier maps were laid out so.

        Bytes that are missing at the end of `raw` may count as zeros. Errors: struct.error where a
        bound's are missing.
        """
        known = self._known
        for one in known:
            length, mask, bits, numbers, _ = one
            if _number(raw[start : start + length], "little") & mask == bits and (
                numbers is None or numbers.fit(raw, start)
            ):
                if one is not known[0]:
                    self._known = (one, *(other for other in known if other is not one))
                if self._credit < _CREDIT_MAX:
                    self._credit += 1
                return one
        return None

    def learn(self, raw: bytes, start: int, stop: int) -> None:
        """Note six maps that were not recognized, and that fill these bytes as was proven."""
        if self._pause:
            self._pause -= 1
            return
        self._credit -= 1
        if self._credit <= 0:
            self._known, self._credit, self._pause = (), _CREDIT, _PAUSE_ENTRIES
        elif self._credit > _LEARNING_COSTS and stop - start <= _LENGTH_BYTES_MAX:
            self._credit -= _LEARNING_COSTS
            skeleton = _skeleton(raw[start:stop], self._forms, self._known)
            if skeleton is not None:
                self._known = (skeleton, *self._known[: _KEPT - 1])


def _skeleton(
    maps: bytes, forms: BoundForms | None, known: tuple[Skeleton, ...]
) -> Skeleton | None:
    """Learn the layout of these maps; None for maps of several blocks."""
    found: list[Bound] | None = None if forms is None else []
    mask = _mask(maps, forms, found)
    if mask is None:
        return None
    bounds, content = found or (), int.from_bytes(maps, "little")
    texts = [one for one in bounds if one.form.is_text]
    number = int.from_bytes(mask, "little")
    is_new = not any(one[0] == len(maps) and one[2] & number == content & number for one in known)
    if is_new and all(is_utf8(maps[one.start : one.stop]) for one in texts):
        # A few bits of each byte say that a text is one.
        for one in texts:
            mask[one.start : one.stop] = text_bits(maps[one.start : one.stop])
        number, taken = int.from_bytes(mask, "little"), None
    else:
        # Where letters take other bytes than in maps before, all texts are looked at.
        taken = texts_of(maps, bounds)
    return len(maps), number, content & number, numbers_of(bounds), taken


def _mask(raw: bytes, forms: BoundForms | None, found: list[Bound] | None) -> bytearray | None:
    """Return the bits that decide where the maps end, and of which forms they are; add their bounds
    to `found`. None for maps of several blocks."""
    mask = bytearray(len(raw))
    position = 0

    def number(bits: int) -> int:
        nonlocal position
        before = position
        value, position = read_long(raw, before)
        mask[before:position] = bytes((bits,)) * (position - before)
        return value

    try:
        for place in range(_MAPS):
            if not number(_ALL):
                continue
            count = number(_ALL)
            if count < 0:
                number(_ALL)
            for _ in range(abs(count)):
                field_id, before = number(_ALL), position
                if place < _MAPS_OF_LONGS:
                    number(_GOES_ON)
                    if forms is not None:
                        mask[before] |= _SIGN
                    continue
                length = number(_ALL)
                if forms is not None and found is not None:
                    found.append(Bound(forms.of(field_id), position, position + length))
                position += length
            if count and number(_ALL):
                return None
    except (InvalidMetadataError, IndexError):
        return None
    return mask if position == len(raw) else None
