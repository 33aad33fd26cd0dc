"""The attempt of a request: the uuid that its key, its receipt and its file names carry. Pure.

It is computed from everything that distinguishes requests, so no two share one. A file belongs to
the attempt that stands last in its name (`committer.plan.batch.data_locations`), and so to one
request. Spark's executors compute it too: this module needs the standard library only.
"""

from __future__ import annotations

from hashlib import sha1
from uuid import UUID

# Of a UUIDv5: the bits of the version and the variant, and their values.
_FIXED_BITS = 0xF000 << 64 | 0b11 << 62
_VERSION_5 = 0x5000 << 64 | 0b10 << 62


def attempt_of(table_uuid: UUID, branch: str, producer: str, epoch: int, nonce: UUID) -> UUID:
    """Return `UUIDv5(table uuid, branch ⏎ producer ⏎ epoch ⏎ nonce)`, joined by line feeds.

    Neither a branch nor a producer's id can hold a line feed, so the name is unambiguous.
    """
    return UUID(int=attempt_number(table_uuid, branch, producer, epoch, nonce))


def attempt_number(table_uuid: UUID, branch: str, producer: str, epoch: int, nonce: UUID) -> int:
    """Return `attempt_of(…).int`, in half the time of making uuids."""
    name = f"{branch}\n{producer}\n{epoch}\n{nonce}".encode()
    digest = sha1(table_uuid.bytes + name, usedforsecurity=False).digest()
    return int.from_bytes(digest[:16], "big") & ~_FIXED_BITS | _VERSION_5


def timed_nonce(now_ms: int, random: UUID) -> UUID:
    """Make a UUIDv7 (RFC 9562) of this time, with the chance of a random uuid."""
    low = random.int & (2**62 - 1) | 0b10 << 62
    high = now_ms << 16 | 0x7000 | random.int >> 112 & 0xFFF
    return UUID(int=(high << 64 | low) & (2**128 - 1))


def nonce_ms(nonce: UUID) -> int | None:
    """Return when a UUIDv7 was made, in milliseconds since 1970 UTC; None for any other uuid."""
    return nonce.int >> 80 if nonce.version == 7 else None
