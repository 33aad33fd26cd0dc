"""The attempt of a request: the uuid that its key, its receipt and its file names carry. Pure.

It is computed from everything that distinguishes requests, so no two share one. A file belongs to
the attempt that stands last in its name (`committer.plan.data_locations`), and so to one request.
Spark's executors compute it too: this module needs the standard library only.
"""

from __future__ import annotations

from uuid import UUID, uuid5


def attempt_of(table_uuid: UUID, branch: str, producer: str, epoch: int, nonce: UUID) -> UUID:
    """`UUIDv5(table uuid, branch ⏎ producer ⏎ epoch ⏎ nonce)`, the four joined by line feeds.

    Neither a branch nor a producer's id can hold a line feed, so the name is unambiguous.
    """
    return uuid5(table_uuid, "\n".join((branch, producer, str(epoch), str(nonce))))


def timed_nonce(now_ms: int, random: UUID) -> UUID:
    """A UUIDv7 (RFC 9562) of this time, with the chance of a random uuid."""
    low = random.int & (2**62 - 1) | 0b10 << 62
    high = now_ms << 16 | 0x7000 | random.int >> 112 & 0xFFF
    return UUID(int=(high << 64 | low) & (2**128 - 1))


def nonce_ms(nonce: UUID) -> int | None:
    """When a UUIDv7 was made, in milliseconds since 1970 UTC; None for any other uuid."""
    return nonce.int >> 80 if nonce.version == 7 else None
