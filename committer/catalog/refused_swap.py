"""The answer for a swap whose condition was refused, by the pointer as it is after that. Pure.

A layer below an adapter may have sent the call twice: then the second one is refused because the
first one has won.
"""

from __future__ import annotations

from collections.abc import Collection

from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    LoadedTable,
    Swap,
    SwapAnswer,
    Unknown,
)


def as_committed(swap: Swap) -> Committed:
    """Return the answer for a swap that was applied as it is."""
    return Committed(LoadedTable(swap.base.identifier, swap.metadata, swap.metadata_location))


def judge_refused(
    swap: Swap, cause: str, *, location: str | None, earlier: Collection[str] = ()
) -> SwapAnswer:
    """Answer for a swap that was refused for `cause`.

    `location`: where the pointer is now; None where the table is gone. `earlier`: metadata files
    that it is known to have named before.
    """
    if location == swap.metadata_location:
        return as_committed(swap)
    if location == swap.base.metadata_location:
        return Unknown(cause)
    if swap.metadata_location in earlier:
        return Unknown("the swap was sent twice below us, and others have committed since")
    return Conflict()
