"""The commit of several tables together, and what each answer to it means.

The answer to a success has no body, so every table is loaded behind it. A server that applies the
tables one by one may leave some of them changed: this is only asked of one that its operator calls
atomic, and even so a table that has what was sent is never called refused.

| answer                                          | outcome                                        |
|-------------------------------------------------|------------------------------------------------|
| 2xx, and every table has our snapshots          | `GroupCommitted`, with the tables as loaded    |
| 2xx, and a table is without them                | `Unknown`                                      |
| 404, 409, and 400 (405, 406, 412, 413, 422) of  | every table has this attempt → as 2xx;         |
| the protocol                                    | one has → `Unknown`; one moved →               |
|                                                 | `GroupConflict`; none, 400: our clock is far   |
|                                                 | ahead → raise, else `Rejected`; else `Unknown` |
| any of these, and a load fails                  | `Unknown`                                      |
| any but 2xx to a request sent again by its key  | `Unknown`                                      |
| 5xx, a lost answer, a timeout                   | `Unknown`                                      |
| the rest (`rest_swap`)                          | raise: surely not applied                      |
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from committer.catalog.namespaces import found_or_none
from committer.catalog.refused_swap import Load
from committer.catalog.rest.client.rest_answer import Answer, LostAnswerError
from committer.catalog.rest.client.rest_client import RestClient
from committer.catalog.rest.rest_swap import (
    JUDGED,
    commit_body,
    has_landed,
    holds,
    require_right_clock,
)
from committer.errors import FrazilError
from committer.ports.pointer_swap import (
    GroupAnswer,
    GroupCommitted,
    GroupConflict,
    LoadedTable,
    Rejected,
    Swap,
    Unknown,
)


async def send_group(client: RestClient, swaps: Sequence[Swap], *, load: Load) -> GroupAnswer:
    """Commit several tables. Errors: as `Catalog.swap_together`."""
    body = {"table-changes": [commit_body(swap) for swap in swaps]}
    try:
        answer = await client.send("POST", client.paths.transactions(), body)
    except LostAnswerError as error:
        return Unknown(str(error))
    if answer.is_resent and not answer.is_success:
        return Unknown(f"{answer}, to the same request once more: the first answer is lost")
    if answer.status >= 500:
        return Unknown(str(answer))
    is_judged = answer.status in (404, 409, *JUDGED) and answer.error is not None
    if not answer.is_success and not is_judged:
        raise answer.as_error()
    try:
        current = await _load_all(swaps, load)
    except FrazilError as error:
        return Unknown(f"{answer}; reading the tables: {error}")
    if answer.is_success:
        return _committed(answer, swaps, current)
    return _judge_refused(answer, swaps, current)


async def _load_all(swaps: Sequence[Swap], load: Load) -> list[LoadedTable | None]:
    return await asyncio.gather(*(found_or_none(load(swap.base.identifier)) for swap in swaps))


def _committed(
    answer: Answer, swaps: Sequence[Swap], current: Sequence[LoadedTable | None]
) -> GroupAnswer:
    found = tuple(table for table in current if table is not None)
    pairs = zip(found, swaps, strict=False)
    if len(found) == len(swaps) and all(holds(table.metadata, swap) for table, swap in pairs):
        return GroupCommitted(found)
    return Unknown(f"{answer.what}: a table lacks what was committed")


def _judge_refused(
    answer: Answer, swaps: Sequence[Swap], current: Sequence[LoadedTable | None]
) -> GroupAnswer:
    pairs = list(zip(current, swaps, strict=True))
    landed = [table for table, swap in pairs if table and has_landed(table.metadata, swap)]
    if len(landed) == len(swaps):
        return GroupCommitted(tuple(landed))
    if landed:
        return Unknown(f"{answer}: some of the tables have what was sent")
    moved = [
        swap.base.identifier
        for table, swap in pairs
        if table is None or table.metadata_location != swap.base.metadata_location
    ]
    if moved:
        return GroupConflict(tuple(moved))
    if answer.status not in JUDGED:
        return Unknown(str(answer))
    require_right_clock(str(answer), answer.clock_ahead_s)
    return Rejected(str(answer))
