"""Limits the work of a check while other requests wait for it.

A few bytes may inflate to very many, and an entry may have to be decoded, which takes ten times as
long. So the work is counted, not the time: the same manifest always ends in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass

# A partition tuple, which is decoded once, and a block cost as much as so many decoded bytes.
PARTITION_BYTES = 64
_BLOCK_BYTES = 256


class TooMuchWorkError(Exception):
    """A check would take longer than its caller has time for; nothing is known of the request."""


@dataclass(slots=True)
class WorkLeft:
    """The entries that may still be walked, the bytes that may be inflated, and those that may be
    decoded in place of being stepped over. Mutable; each method raises `TooMuchWorkError` where
    more is taken.
    """

    entries: int
    inflated_bytes: int
    decoded_bytes: int

    def within(self, other: WorkLeft) -> WorkLeft:
        """Return what both allow."""
        return WorkLeft(
            min(self.entries, other.entries),
            min(self.inflated_bytes, other.inflated_bytes),
            min(self.decoded_bytes, other.decoded_bytes),
        )

    def spend(self, before: WorkLeft, after: WorkLeft) -> None:
        """Take what a check has taken of a part of this, which was `before` and is `after`."""
        self.entries -= before.entries - after.entries
        self.inflated_bytes -= before.inflated_bytes - after.inflated_bytes
        self.decoded_bytes -= before.decoded_bytes - after.decoded_bytes

    def take_entries(self, count: int) -> None:
        """Take entries that a block announces: so many are walked at most."""
        self.entries -= count
        if self.entries < 0:
            raise TooMuchWorkError

    def take_block(self, size_bytes: int) -> None:
        """Take an inflated block."""
        self.inflated_bytes -= size_bytes
        if self.inflated_bytes < 0:
            raise TooMuchWorkError
        self.take_decoded(_BLOCK_BYTES)

    def take_decoded(self, size_bytes: int) -> None:
        """Take bytes that are decoded."""
        self.decoded_bytes -= size_bytes
        if self.decoded_bytes < 0:
            raise TooMuchWorkError
