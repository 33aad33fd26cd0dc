"""Changes a table's metadata beside the commits of requests: for an operator, one at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import assert_never

from committer.errors import CatalogUnavailableError, UnsupportedError
from committer.iceberg.updates.metadata_update import Update
from committer.plan.commit.commit import NeedsObjects
from committer.plan.commit.head_move import HeadMove, branch_to_move, move_head
from committer.plan.commit.swap import plan_swap
from committer.plan.ledger.state import TableState
from committer.plan.operations.head import ObjectRange, Objects
from committer.plan.scheduling.backoff import backoff_s
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import Committed, Conflict, LoadedTable, Rejected, Unknown
from committer.ports.storage import Storage
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier
from committer.service.tasks.steps import create_all, send_swap

# Against a committer that swaps as fast as it can.
ATTEMPTS_MAX = 30

Decide = Callable[[LoadedTable], Awaitable[Sequence[Update]]]


async def change_table(
    catalog: Catalog,
    storage: Storage,
    world: World,
    identifier: TableIdentifier,
    decide: Decide,
) -> LoadedTable:
    """Apply what is decided on freshly read metadata; nothing decided is nothing to do (any more).

    After a conflict or a lost answer it is decided anew, so a change that has landed after all must
    leave nothing to decide. Errors: those of `decide` and of the ports; `UnsupportedError` where
    the catalog refuses the change; `CatalogUnavailableError` after many attempts.
    """
    lost_base = None
    for attempt in range(ATTEMPTS_MAX):
        table = await catalog.load(identifier)
        updates = await decide(table)
        if not updates:
            return table
        move = await _head_move(catalog, storage, world, table, updates)
        swap = plan_swap(table, (*move.updates, *updates), uuid=world.uuid(), now_ms=world.now_ms())
        await create_all(storage, (*move.objects, *catalog.objects_before(swap)))
        match await send_swap(catalog, swap):
            case Committed(changed):
                return changed
            case Conflict():
                reason = "another commit came first"
            case Unknown(cause):
                lost_base, reason = table.metadata_location, f"the answer was lost: {cause}"
            case Rejected(reason):
                # An earlier attempt, whose answer was lost, may land on this base yet.
                if table.metadata_location != lost_base:
                    raise UnsupportedError(f"the catalog refused to change {identifier}: {reason}")
            case answer:
                assert_never(answer)
        await world.sleep(backoff_s(min(attempt, 4), world.jitter()))
    raise CatalogUnavailableError(
        f"table {identifier} was not seen to change in {ATTEMPTS_MAX} attempts (in the last one,"
        f" {reason}): try again, and look first whether it was"
    )


async def _head_move(
    catalog: Catalog, storage: Storage, world: World, table: LoadedTable, updates: Sequence[Update]
) -> HeadMove:
    """Return what a change of properties needs beside itself: nothing, or a move of a head."""
    state = TableState.of(table)
    branch = None
    if catalog.capabilities.condition == "requirements":
        branch = branch_to_move(state, updates)
    if branch is None:
        return HeadMove((), ())
    read: dict[ObjectRange, bytes] = {}
    while True:
        move = move_head(
            state,
            branch,
            random=world.uuid(),
            uuid=world.uuid(),
            now_ms=world.now_ms(),
            objects=Objects(read),
        )
        if not isinstance(move, NeedsObjects):
            return move
        read |= {one: await storage.get(one.location) for one in move.ranges}
