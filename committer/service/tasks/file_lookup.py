"""Looks whether files exist, some at once: for requests that are replayed, and for those that prove
no origin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from committer.ports.storage import Storage, exists


async def first_absent(
    storage: Storage, paths: Sequence[str], *, at_once_max: int = 32
) -> str | None:
    """Return a file of these that does not exist; None if all do.

    Errors: `FrazilError` where that cannot be found out.
    """
    for start in range(0, len(paths), at_once_max):
        some = paths[start : start + at_once_max]
        are_there = await asyncio.gather(*(exists(storage, path) for path in some))
        if not all(are_there):
            return some[are_there.index(False)]
    return None
