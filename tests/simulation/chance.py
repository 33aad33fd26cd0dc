"""Chance by name: what befalls a call depends on the seed and on the name of the call alone.

So a fault that is left out, or an actor less, changes nothing of what is drawn for the others:
failing seeds can be shrunk.
"""

from __future__ import annotations

import random
from functools import lru_cache
from hashlib import blake2b
from struct import Struct

_BITS = 1 << 32
_FOUR = Struct(">4I")


def draws(seed: int, name: str) -> tuple[float, float, float, float]:
    """Draw four numbers in [0, 1), the same for the same seed and name."""
    keyed = _keyed(seed).copy()
    keyed.update(name.encode())
    first, second, third, fourth = _FOUR.unpack(keyed.digest())
    return first / _BITS, second / _BITS, third / _BITS, fourth / _BITS


def rng(seed: int, name: str) -> random.Random:
    """Return the random source that belongs to this name."""
    keyed = _keyed(seed).copy()
    keyed.update(name.encode())
    return random.Random(keyed.digest())


@lru_cache(maxsize=1)
def _keyed(seed: int) -> blake2b:
    """Return the seeded hash, to be copied: seeding takes as long as hashing a name."""
    return blake2b(digest_size=16, key=seed.to_bytes(8))
