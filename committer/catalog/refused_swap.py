"""The answer for a swap whose condition was refused, by the pointer as it is after that.

A layer below an adapter may have sent the call twice: then the second one is refused because the
first one has won.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from committer.errors import NoSuchTableError
from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    LoadedTable,
    Swap,
    SwapAnswer,
    Unknown,
)
from committer.request.table_identifier import TableIdentifier

Load = Callable[[TableIdentifier], Awaitable[LoadedTable]]


def judge_refused(
    swap: Swap, cause: str, *, location: str | None, earlier: Collection[str] = ()
) -> SwapAnswer:
    """Answer for a swap that was refused for `cause`.

    `location`: where the pointer is now; None where the table is gone. `earlier`: metadata files
    that it is known to have named before.
    """
    if location == swap.metadata_location:
        return Committed(swap.table)
    if location == swap.base.metadata_location:
        return Unknown(cause)
    if swap.metadata_location in earlier:
        return Unknown("the swap was sent twice below us, and others have committed since")
    return Conflict()


async def judge_by_load(swap: Swap, cause: str, load: Load) -> SwapAnswer:
    """Answer for a swap that was refused for `cause`, by the table and its metadata log."""
    try:
        current = await load(swap.base.identifier)
    except NoSuchTableError:
        return Conflict()
    except Exception as failure:  # noqa: BLE001  # whatever it is: nothing is proven
        return Unknown(f"{cause}; then: {failure}")
    answer = judge_refused(
        swap,
        cause,
        location=current.metadata_location,
        earlier={entry.metadata_file for entry in current.metadata.metadata_log},
    )
    return Conflict(current) if isinstance(answer, Conflict) else answer
