"""The table committers of a process: made on demand, removed when idle, stopped shard by shard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from uuid import UUID

from committer.place_threads import caller
from committer.plan.batch.batch_policy import PRODUCER_REQUESTS_MAX
from committer.ports.queue import shard_of
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier
from committer.service.requests.inbox_keys import InboxKey, table_folder_of
from committer.service.requests.large_requests import TableLoad
from committer.service.requests.pending import Pending
from committer.service.requests.settled_requests import SettledByTable
from committer.service.table.table_committer import TableCommitter
from committer.service.telemetry.lag import LagCause
from committer.service.telemetry.shown_tables import ShownTables
from committer.service.upkeep.ledger_upkeep import IdleTableUpkeep, LedgerUpkeep

MakeTable = Callable[[TableIdentifier, UUID, LedgerUpkeep | None], TableCommitter]
"""Makes a table's committer. The upkeep: its previous committer's, if that ended idle."""

# Above this no more requests are read until the committers have caught up.
PENDING_REQUESTS_MAX = 50_000
PENDING_WEIGHT_BYTES_MAX = 160 * 1024 * 1024
# A producer with less than this always has room; one with more as much as is left free.
PRODUCER_WEIGHT_BYTES_MIN = 8 * 1024 * 1024
# More than the next two batches of one producer need not be in memory.
PRODUCER_READY_MAX = 2 * PRODUCER_REQUESTS_MAX
# The share of that which one stuck table may use: the other tables need the room.
STUCK_REQUESTS_MAX = 1_000
STUCK_BYTES_MAX = 16 * 1024 * 1024


class TableCommitters:
    """One committer and one task for each table (name and uuid) that has something to do."""

    def __init__(
        self, make_table: MakeTable, settled: SettledByTable, tasks: asyncio.TaskGroup, world: World
    ) -> None:
        self._make_table = make_table
        self._settled = settled
        self._tasks = tasks
        self._known: dict[tuple[TableIdentifier, UUID], TableCommitter] = {}
        self._by_uuid: dict[str, dict[TableIdentifier, TableCommitter]] = {}
        self._running: dict[asyncio.Task[None], TableCommitter] = {}
        self._shown = ShownTables(world)
        self._idle_upkeep = IdleTableUpkeep()
        self.is_stopping = False

    @property
    def shown(self) -> set[str]:
        """The names of the tables whose numbers are shown."""
        return self._shown.names(identifier for identifier, _ in self._known)

    @property
    def all(self) -> Sequence[TableCommitter]:
        return tuple(self._known.values())

    @property
    def are_full(self) -> bool:
        """Whether more has gathered than memory should hold."""
        known = self._known.values()
        return (
            sum(len(table.waiting) for table in known) >= PENDING_REQUESTS_MAX
            or sum(table.waiting.weight_bytes for table in known) >= PENDING_WEIGHT_BYTES_MAX
        )

    def listed(self, key: str, durable_ms: int) -> bool:
        """Note that a listing shows the inbox object. False for a request that does not wait."""
        return any(table.waiting.listed(key, durable_ms) for table in self._of_key(key))

    def load_of(self, key: str) -> TableLoad | None:
        """Return the last load of a key's table; None if it has none, or is here by two names."""
        tables = [*self._of_key(key)]
        if len(tables) != 1 or tables[0].state is None:
            return None
        return TableLoad(tables[0], tables[0].generation)

    def name_of(self, key: str) -> str | None:
        """Return the name of a key's table, if it has a committer here that has seen it."""
        names = [str(table.identifier) for table in self._of_key(key) if table.is_in_catalog]
        return names[0] if len(names) == 1 else None

    def large_bytes(self) -> int:
        """Return the size of all large requests that wait for their verdict."""
        return sum(table.waiting.large_bytes for table in self._known.values())

    def is_stuck(self, key: str) -> bool:
        """Return whether a request's table is stuck: it takes no large request then."""
        return any(table.is_stuck for table in self._of_key(key))

    def has_enough(self, key: str) -> bool:
        """Return whether a request's table is stuck and has used up its share of memory: further
        requests wait in the inbox.
        """
        return any(
            table.is_stuck
            and (
                len(table.waiting) >= STUCK_REQUESTS_MAX
                or table.waiting.size_bytes >= STUCK_BYTES_MAX
            )
            for table in self._of_key(key)
        )

    def lag_cause(self, key: str) -> LagCause | None:
        """Return why no request of a key's table lands; None if nothing is known against that."""
        causes = (table.condition.lag_cause for table in self._of_key(key))
        return next((cause for cause in causes if cause is not None), None)

    def names(self) -> Mapping[str, str]:
        """Return the names of tables that the catalog has shown, by their folders in the inbox."""
        working = (key for key, table in self._known.items() if table.state is not None)
        tables = (*self._shown.tables(), *working)
        return {str(table_uuid): str(identifier) for identifier, table_uuid in tables}

    def yield_turn(self, table_uuid: UUID) -> None:
        """Let another committer's transaction commit to a table, if it has a committer here."""
        for table in self._by_uuid.get(str(table_uuid), {}).values():
            table.yield_turn()

    def has_its_share(self, key: InboxKey) -> bool:
        """Return whether the producer of a request has used up its share of memory: its further
        requests wait in the inbox, so that those of others find room.
        """
        return self.room_of(key.folder) <= 0

    def has_next_batch(self, folder: str) -> bool:
        """Return whether the producer of this folder has as many requests in memory as its next
        batch may have, or its share."""
        return self.room_of(folder) <= PRODUCER_READY_MAX // 2

    def room_of(self, folder: str) -> int:
        """Return how many more requests the producer of this folder may have ready."""
        requests = weight_bytes = 0
        for table in self._of_key(folder):
            in_table = table.waiting.ready_of(folder)
            requests, weight_bytes = requests + in_table[0], weight_bytes + in_table[1]
        room = PRODUCER_READY_MAX - requests
        if weight_bytes < PRODUCER_WEIGHT_BYTES_MIN:
            return room
        used_bytes = sum(table.waiting.weight_bytes for table in self._known.values())
        free_bytes = PENDING_WEIGHT_BYTES_MAX - used_bytes
        return min(room, (free_bytes - weight_bytes) * requests // weight_bytes)

    def _of_key(self, key: str) -> Iterable[TableCommitter]:
        # Of the many keys of a listing none is parsed for this.
        return self._by_uuid.get(table_folder_of(key), {}).values()

    def submit(self, pending: Pending) -> None:
        """Hand a request to its table's committer."""
        request = pending.sealed.request
        self._table(request.identifier, request.table_uuid).submit(pending)

    def _table(self, identifier: TableIdentifier, table_uuid: UUID) -> TableCommitter:
        known = self._known.get((identifier, table_uuid))
        if known is not None:
            return known
        before = self._idle_upkeep.take(identifier, table_uuid)
        table = self._make_table(identifier, table_uuid, before)
        self._known[identifier, table_uuid] = table
        self._by_uuid.setdefault(str(table_uuid), {})[identifier] = table
        task = self._tasks.create_task(self._run(table), name=f"table {identifier}")
        self._running[task] = table
        task.add_done_callback(self._running.pop)
        return table

    async def _run(self, table: TableCommitter) -> None:
        """Run a table's committer until it is idle;
        run it again if a request arrives while it ends.
        """
        caller.set(f"table {table.identifier}")  # of this task, and of those that it starts
        try:
            await table.run()
            while table.waiting and not table.is_stopping:
                await table.run()
        finally:
            self._settled.forget(table.table_uuid)
        if table.state is not None:
            is_ours = not table.is_stopping and not table.is_gone
            self._shown.ended(table.identifier, table.table_uuid, is_ours=is_ours)
            if is_ours:
                self._idle_upkeep.ended(table.identifier, table.table_uuid, table.ledger_upkeep)
        if not self.is_stopping:
            del self._known[table.identifier, table.table_uuid]
            of_uuid = self._by_uuid[str(table.table_uuid)]
            del of_uuid[table.identifier]
            if not of_uuid:
                del self._by_uuid[str(table.table_uuid)]

    async def stop_tables(self, shards: Collection[int]) -> list[TableCommitter]:
        """Stop the tables of these shards after their current attempt, and return them. The next
        owner takes their waiting requests.
        """
        ending = {
            task: table
            for task, table in self._running.items()
            if shard_of(table.table_uuid) in shards
        }
        for table in ending.values():
            table.stop()
        if ending:
            await asyncio.wait(ending)
        self._shown.left(shards)
        self._idle_upkeep.left(shards)
        return list(ending.values())

    async def stop(self) -> None:
        """Stop every table after its current attempt."""
        self.is_stopping = True
        for table in self._known.values():
            table.stop()
        if self._running:
            await asyncio.wait(self._running)

    def abandon(self) -> None:
        """Cancel the tables that still run; a swap that was sent is awaited all the same."""
        for task in self._running:
            task.cancel()
