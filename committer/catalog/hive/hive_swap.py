"""The answer to an alter whose expected parameter was another when the metastore looked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from committer.catalog.refused_swap import judge_refused
from committer.errors import NoSuchTableError
from committer.ports.pointer_swap import Conflict, LoadedTable, Swap, SwapAnswer, Unknown
from committer.request.table_identifier import TableIdentifier

Load = Callable[[TableIdentifier], Awaitable[LoadedTable]]


async def judge_modified(said: str, swap: Swap, load: Load) -> SwapAnswer:
    """Say what became of an alter whose base was not current when the metastore looked.

    The metastore sends an alter to its database again, so its own success may have refused it.
    """
    try:
        current = await load(swap.base.identifier)
    except NoSuchTableError:
        return Conflict()
    except Exception as failure:  # noqa: BLE001  # whatever it is: nothing is proven
        return Unknown(f"{said}; then: {failure}")
    answer = judge_refused(
        swap,
        said,
        location=current.metadata_location,
        earlier={entry.metadata_file for entry in current.metadata.metadata_log},
    )
    return Conflict(current) if isinstance(answer, Conflict) else answer
