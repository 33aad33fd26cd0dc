"""The commit of one table, and what each answer to it means. It is sent once, unless by its key.

The server checks the requirements against whatever is current, then applies the updates and writes
the metadata file itself. So a requirement, not the pointer, is what a late attempt has to meet.

Where the server takes idempotency keys, a request whose answer is lost is sent once more with its
key. A success is the answer to the first; any other answer tells nothing of it, and is `Unknown`.

| answer                                             | outcome                                    |
|----------------------------------------------------|--------------------------------------------|
| 2xx with the table, and our snapshots in it        | `Committed`, with what came back           |
| 2xx that cannot be read, or is without them        | `Unknown`                                  |
| 409                                                | load: our snapshot is there → `Committed`, |
|                                                    | unmoved → `Unknown`, else `Conflict`       |
| 404 of a table or namespace                        | `Conflict`: it was dropped or renamed      |
| 400 (and 405, 406, 412, 413, 422) of the protocol  | load: moved → as after 409; our clock is   |
|                                                    | far ahead → raise; else `Rejected`         |
| 409 or such a 400, and the load fails              | `Unknown`                                  |
| 401 and 419 behind a renewal, 403, 408, 425, 429,  | raise: surely not applied                  |
| 3xx, 4xx without the protocol's error, no connection |                                          |
| 5xx, a lost answer, a timeout                      | `Unknown`                                  |

**400 may be timing.** A snapshot's sequence number or first row id is stale once another branch has
got a snapshot, and older servers say 400 to that where newer ones say 409. A snapshot's time may be
too late for the server's clock: a committer whose clock is wrong must not reject every request.

**409 may be our own success.** A gateway, or the server itself, may send a request again whose
first answer it lost: then the second meets what the first has changed.
"""

from __future__ import annotations

from collections.abc import Callable

from committer.catalog.refused_swap import Load
from committer.catalog.rest.client.rest_answer import CLOCK_AHEAD_S_MAX, Answer, LostAnswerError
from committer.catalog.rest.client.rest_client import RestClient
from committer.catalog.rest.client.rest_paths import identifier_json
from committer.catalog.rest.rest_table import TableAnswer, read_table_answer
from committer.errors import CatalogUnavailableError, FrazilError, NoSuchTableError
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.updates.metadata_update import AddSnapshot, RemoveSnapshots
from committer.iceberg.updates.metadata_update_json import print_requirement, print_update
from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    LoadedTable,
    Rejected,
    Swap,
    SwapAnswer,
    Unknown,
)

Keep = Callable[[TableAnswer], LoadedTable]
_GONE = ("NoSuchTableException", "NoSuchNamespaceException", "NotFoundException")
JUDGED = frozenset((400, 405, 406, 412, 413, 422))
"""Refusals of the change itself, or of its timing."""


def commit_body(swap: Swap) -> dict[str, object]:
    """Return what is sent: the requirements, then the updates."""
    return {
        "identifier": identifier_json(swap.base.identifier),
        "requirements": [print_requirement(one) for one in swap.requirements],
        "updates": [print_update(one) for one in swap.updates],
    }


async def send_commit(client: RestClient, swap: Swap, *, load: Load, keep: Keep) -> SwapAnswer:
    """Commit. `keep`: told of the table that came back. Errors: as `Catalog.swap`."""
    path = client.paths.table(swap.base.identifier)
    try:
        answer = await client.send("POST", path, commit_body(swap))
    except LostAnswerError as error:
        return Unknown(str(error))
    if answer.is_success:
        return await _committed(answer, swap, keep)
    if answer.is_resent:
        return Unknown(f"{answer}, to the same request once more: the first answer is lost")
    if answer.is_error(404, *_GONE):
        return Conflict()
    if answer.status == 409:
        return await judge_conflict(str(answer), swap, load)
    if answer.status >= 500:
        return Unknown(str(answer))
    if answer.status in JUDGED and answer.error is not None:
        return await judge_refusal(str(answer), swap, load, clock_ahead_s=answer.clock_ahead_s)
    raise answer.as_error()


async def _committed(answer: Answer, swap: Swap, keep: Keep) -> SwapAnswer:
    try:
        found = await read_table_answer(answer, swap.base.identifier)
    except FrazilError as error:
        return Unknown(f"{answer.what}: the answer cannot be read: {error}")
    if not holds(found.table.metadata, swap):
        return Unknown(f"{answer.what}: the table in the answer lacks what was committed")
    return Committed(keep(found))


def holds(metadata: TableMetadata, swap: Swap) -> bool:
    """Return whether the table is ours, and has the snapshots that the swap added and kept."""
    if metadata.table_uuid != swap.base.metadata.table_uuid:
        return False
    removed: set[int] = set()
    for update in swap.updates:
        if isinstance(update, RemoveSnapshots):
            removed.update(update.snapshot_ids)
    added = (one.snapshot.snapshot_id for one in swap.updates if isinstance(one, AddSnapshot))
    return all(one in removed or one in metadata.snapshots_by_id for one in added)


async def judge_conflict(said: str, swap: Swap, load: Load) -> SwapAnswer:
    """Tell a conflict with another commit from one with this very request, sent before."""
    return await _judge_moved(said, swap, load) or Unknown(said)


def has_landed(metadata: TableMetadata, swap: Swap) -> bool:
    """Return whether this attempt's snapshot is in the table: another attempt at the same request
    has its id, but another manifest list.
    """
    added = [one.snapshot for one in swap.updates if isinstance(one, AddSnapshot)]
    found = [metadata.snapshots_by_id.get(one.snapshot_id) for one in added]
    lists = [one.manifest_list if one else None for one in found]
    return bool(added) and lists == [one.manifest_list for one in added]


async def judge_refusal(
    said: str, swap: Swap, load: Load, *, clock_ahead_s: float = 0.0
) -> SwapAnswer:
    """Tell a refusal of the timing from one of the change: nothing was applied, unless by this very
    request, sent before. Errors: `CatalogUnavailableError` for a clock that is far ahead.
    """
    if answer := await _judge_moved(said, swap, load):
        return answer
    require_right_clock(said, clock_ahead_s)
    return Rejected(said)


def require_right_clock(said: str, clock_ahead_s: float) -> None:
    """Return if the refusal is not for our clock. Errors: `CatalogUnavailableError` where that is
    far ahead of the server's.
    """
    if clock_ahead_s > CLOCK_AHEAD_S_MAX:
        raise CatalogUnavailableError(
            f"{said}: this machine's clock is {clock_ahead_s:.0f} s ahead of the catalog's, which"
            " may be why; set the clock, and the commit is tried again"
        )


async def _judge_moved(said: str, swap: Swap, load: Load) -> SwapAnswer | None:
    """Answer by the table as it is now; None where it has not moved."""
    try:
        current = await load(swap.base.identifier)
    except NoSuchTableError:
        return Conflict()
    except FrazilError as error:
        return Unknown(f"{said}; reading the table: {error}")
    if current.metadata_location == swap.base.metadata_location:
        return None
    return Committed(current) if has_landed(current.metadata, swap) else Conflict(current)
