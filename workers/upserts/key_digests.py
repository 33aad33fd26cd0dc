"""Detects a key that two tasks have rows of, by a digest of each key.

Two rows of one key in one snapshot would both live: an equality delete applies to older data only.
So tasks tell the commit which keys they have, in eight bytes each. Keys of one task never collide
with one another here, so only two tasks can raise a false alarm: below one in 100,000 for ten
million keys, and the next run has another salt.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from workers.arrow.arrow_values import physical

_DIGEST_BYTES = 8


def digests_of(keys: pa.RecordBatch, salt: bytes) -> bytes:
    """Return the digests of distinct keys, one after another. `salt`: the same in all tasks of a
    write, up to 64 bytes."""
    columns = [physical(column).to_pylist() for column in keys.columns]
    return b"".join(
        blake2b(repr(key).encode(), digest_size=_DIGEST_BYTES, key=salt).digest()
        for key in zip(*columns, strict=True)
    )


def shared_by(tasks: Sequence[bytes]) -> tuple[int, int] | None:
    """Return two tasks that have a key in common, by their place; None if no two have."""
    digests = [np.frombuffer(one, np.uint64) for one in tasks]
    together = np.concatenate(digests) if digests else np.empty(0, np.uint64)
    owners = np.repeat(np.arange(len(digests)), [len(one) for one in digests])
    order = np.argsort(together, kind="stable")
    ordered = together[order]
    for place in np.flatnonzero(ordered[1:] == ordered[:-1]):
        first, second = owners[order[place]], owners[order[place + 1]]
        if first != second:
            return int(first), int(second)
    return None
