"""Looks at those bounds of which a length does not say everything: texts, and decimals of the full
length. All at once, where they lie as in a map that was looked at one by one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from committer.errors import InvalidMetadataError
from committer.iceberg.avro_binary import read_long
from committer.iceberg.bound_forms import BoundForm, BoundForms, is_below, is_utf8


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a bound lies in some bytes, and the form that it has."""

    field_id: int
    form: BoundForm
    start: int
    stop: int

    @property
    def is_limited(self) -> bool:
        """Whether it is a decimal that could have too many digits for its type."""
        return bool(self.form.limit) and self.stop - self.start == self.form.limited_length


def read_bound_pairs(
    raw: bytes, position: int, count: int, forms: BoundForms, found: list[Bound]
) -> int:
    """Note `count` pairs of field id and bound; returns where they end.

    Errors: `InvalidMetadataError` for a bound of another form, and where the bytes end before.
    """
    for _ in range(count):
        field_id, position = read_long(raw, position)
        length, start = read_long(raw, position)
        position = start + length
        form = forms.of(field_id)
        if length < 0 or position > len(raw) or not form.fits(raw[start:position]):
            raise InvalidMetadataError("manifest entry: a bound of another form than its column's")
        found.append(Bound(field_id, form, start, position))
    return position


class BoundValues:
    """Looks at texts and decimals in bytes where others had them in the same places."""

    __slots__ = ("_limits", "_numbers", "_texts")

    def __init__(self, bounds: Sequence[Bound], *, with_texts: bool = True) -> None:
        texts = [one for one in bounds if one.form.is_text and one.stop > one.start]
        numbers = [one for one in bounds if one.is_limited]
        self._texts = _unpacking(texts) if with_texts and texts else None
        self._numbers = _unpacking(numbers) if numbers else None
        self._limits = [one.form.limit for one in numbers]

    def __bool__(self) -> bool:
        return self._texts is not None or self._numbers is not None

    def fit(self, raw: bytes, start: int) -> bool:
        """Whether those that lie behind `start` have their form. Errors: struct.error where the
        bytes end before."""
        # What lies between them keeps halves of two texts from making one letter.
        if self._texts is not None and not is_utf8(b"\0".join(self._texts(raw, start))):
            return False
        return self._numbers is None or all(map(is_below, self._numbers(raw, start), self._limits))


def _unpacking(bounds: Sequence[Bound]) -> Callable[[bytes, int], tuple[bytes, ...]]:
    layout, position = ["<"], 0
    for one in bounds:
        layout.append(f"{one.start - position}x{one.stop - one.start}s")
        position = one.stop
    return struct.Struct("".join(layout)).unpack_from
