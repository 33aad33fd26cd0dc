"""Changes a table's metadata beside the commits of requests: for an operator, one at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import assert_never

from committer.errors import CatalogUnavailableError, UnsupportedError
from committer.iceberg.updates.metadata_update import Update
from committer.iceberg.updates.requirement import AssertTableUUID
from committer.plan.backoff import backoff_s
from committer.plan.swap import plan_swap
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import Committed, Conflict, LoadedTable, Rejected, Unknown
from committer.ports.storage import Storage
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier
from committer.service.tasks.steps import create_all, finish

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
    for attempt in range(ATTEMPTS_MAX):
        table = await catalog.load(identifier)
        updates = await decide(table)
        if not updates:
            return table
        requirements = (AssertTableUUID(table.metadata.require_uuid()),)
        swap = plan_swap(table, requirements, updates, uuid=world.uuid(), now_ms=world.now_ms())
        await create_all(storage, catalog.objects_before(swap))
        match await finish(catalog.swap(swap)):
            case Committed(changed):
                return changed
            case Conflict() | Unknown():
                await world.sleep(backoff_s(min(attempt, 4), world.jitter()))
            case Rejected(reason):
                raise UnsupportedError(f"the catalog refused to change {identifier}: {reason}")
            case answer:
                assert_never(answer)
    raise CatalogUnavailableError(
        f"table {identifier} is committed to so often, or its answers get lost so often, that it"
        f" was not changed in {ATTEMPTS_MAX} attempts: try again, and look first whether it was"
    )
