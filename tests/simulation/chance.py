"""Chance by name: what befalls a call depends on the seed and on the name of the call alone.

So a fault that is left out, or an actor less, changes nothing of what is drawn for the others:
failing seeds can be shrunk.
"""

from __future__ import annotations

import random
from hashlib import blake2b

_BITS = 1 << 32


def draws(seed: int, name: str) -> tuple[float, float, float, float]:
    """Four numbers in [0, 1), the same for the same seed and name."""
    drawn = blake2b(name.encode(), digest_size=16, key=seed.to_bytes(8)).digest()
    return (
        int.from_bytes(drawn[0:4]) / _BITS,
        int.from_bytes(drawn[4:8]) / _BITS,
        int.from_bytes(drawn[8:12]) / _BITS,
        int.from_bytes(drawn[12:16]) / _BITS,
    )


def rng(seed: int, name: str) -> random.Random:
    """A source of its own for whatever has this name."""
    key = seed.to_bytes(8)
    return random.Random(blake2b(name.encode(), digest_size=16, key=key).digest())
