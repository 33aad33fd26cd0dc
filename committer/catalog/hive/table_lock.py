"""The metastore's own lock of a table, for tables that other engines commit to under it.

Iceberg Java takes it unless the table property `engine.hive.lock-enabled` is `false`. Under the
lock Java alters a table without an expected parameter, so a commit beside it that does not hold the
lock could be overwritten. The lock of a holder that died expires after the metastore's
`metastore.txn.timeout` (300 s).
"""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from committer.catalog.hive import hive_layout as layout
from committer.catalog.hive.metastore import asked, frazil_error
from committer.catalog.hive.pool import ConnectionPool
from committer.catalog.hive.thrift_connection import LostAnswerError, MetastoreError
from committer.catalog.hive.thrift_values import (
    Struct,
    get_number,
    get_struct,
    get_structs,
    get_text,
    i32,
    i64,
    struct,
    structs,
    text,
)
from committer.errors import AccessError, CatalogUnavailableError
from committer.ports.world import World, spread_s
from committer.request.table_identifier import TableIdentifier

_EXCLUSIVE, _TABLE = 3, 2
_ACQUIRED, _WAITING = 1, 2
# The field of a lock that is listed.
_AGENT = 13
_POLL_S = 0.05
_POLL_S_MAX = 1.0

_Table = tuple[str, str]


def wants_lock(
    identifier: TableIdentifier, properties: Mapping[str, str], *, by_default: bool, is_needed: bool
) -> bool:
    """Return whether a change of the table holds the lock. `is_needed`: the metastore has no fence.

    Errors: `AccessError` for a table without locks on such a metastore.
    """
    wish = properties.get(layout.LOCK_ENABLED)
    wants = by_default if wish is None else wish.lower() == "true"
    if is_needed and not wants:
        raise AccessError(
            f"table {identifier}: `{layout.LOCK_ENABLED}` is not true, so other engines commit"
            " without the metastore's lock, and `hive.allow-unfenced-locks` says that this"
            " metastore has nothing but locks: set the table property to true in all engines, or"
            " upgrade the metastore to 2.3.10, 4.0.1 or later"
        )
    return wants


class HeldLock:
    """A lock. `agent`: what the metastore knows it by, beside its id. `keep`: do not release it,
    for a call under it may be applied yet."""

    def __init__(self, lock_id: int, agent: str) -> None:
        self.lock_id = lock_id
        self.agent = agent
        self.is_kept = False

    def keep(self) -> None:
        self.is_kept = True


class TableLocks:
    """Takes locks. One that was kept is taken over by the next swap of its table here; one of which
    the metastore's answer was lost is looked for, and released, before the next is taken."""

    def __init__(self, pool: ConnectionPool, world: World, *, wait_s_max: float) -> None:
        self._pool = pool
        self._world = world
        self._wait_s_max = wait_s_max
        self._kept: dict[_Table, HeldLock] = {}
        # The agents of locks that may be left over in the metastore, with no call under them.
        self._left: defaultdict[_Table, set[str]] = defaultdict(set)

    @asynccontextmanager
    async def held(
        self, database: str, name: str, *, takes_over: bool = True
    ) -> AsyncIterator[HeldLock]:
        """Hold the lock. Errors: `CatalogUnavailableError` where another holds it for too long."""
        table = (database, name)
        lock = self._kept.get(table)
        if lock is None or not takes_over or not await self._is_held(lock.lock_id):
            lock = await self._acquire(table)
        self._kept.pop(table, None)
        lock.is_kept = False
        try:
            yield lock
        finally:
            if lock.is_kept:
                self._kept[table] = lock
            else:
                await self._release(table, lock)

    async def _acquire(self, table: _Table) -> HeldLock:
        await self._release_left(table)
        database, name = table
        agent = f"Frazil-{self._world.uuid()}"
        component = {1: i32(_EXCLUSIVE), 2: i32(_TABLE), 3: text(database), 4: text(name)}
        request = {
            1: structs((component,)),
            3: text("frazil"),
            4: text(socket.gethostname()),
            5: text(agent),
        }
        what = f"lock of table {database}.{name}"
        try:
            result = await self._pool.call("lock", {1: struct(request)})
        except (MetastoreError, LostAnswerError) as error:
            self._left[table].add(agent)
            raise frazil_error(error, what) from error
        answer = get_struct(result, 0)
        lock, state = HeldLock(get_number(answer, 1), agent), get_number(answer, 2)
        ends_s, delay_s = self._world.monotonic_s() + self._wait_s_max, _POLL_S
        try:
            while state == _WAITING and self._world.monotonic_s() < ends_s:
                await self._world.sleep(spread_s(delay_s, self._world))
                delay_s = min(2 * delay_s, _POLL_S_MAX)
                state = await asked(self._check(lock.lock_id), what)
        finally:
            if state != _ACQUIRED:
                await self._release(table, lock)
        if state != _ACQUIRED:
            raise CatalogUnavailableError(
                f"Hive metastore: another engine has held the {what} for more than"
                f" {self._wait_s_max:.0f} s (a lock of an engine that died expires after"
                " `metastore.txn.timeout`)"
            )
        return lock

    async def _release_left(self, table: _Table) -> None:
        """Release the locks that may be left over: they would hold us off until they expire."""
        agents = frozenset(self._left[table])
        if not agents:
            return
        request = {1: text(table[0]), 2: text(table[1])}
        what = f"locks of table {table[0]}.{table[1]}"
        answer = await asked(self._pool.call("show_locks", {1: struct(request)}), what)
        for lock in get_structs(get_struct(answer, 0), 1):
            if get_text(lock, _AGENT) in agents:
                # One that has expired meanwhile is gone.
                with suppress(MetastoreError):
                    await self._unlock(get_number(lock, 1), what)
        self._left[table] -= agents

    async def _check(self, lock_id: int) -> int:
        answer = await self._pool.call("check_lock", _by_id(lock_id))
        return get_number(get_struct(answer, 0), 2)

    async def _is_held(self, lock_id: int) -> bool:
        try:
            return await self._check(lock_id) == _ACQUIRED
        except (MetastoreError, LostAnswerError):
            return False

    async def _release(self, table: _Table, lock: HeldLock) -> None:
        try:
            await self._unlock(lock.lock_id, "a lock")
        except (MetastoreError, CatalogUnavailableError):
            self._left[table].add(lock.agent)

    async def _unlock(self, lock_id: int, what: str) -> None:
        """Release a lock by its id. Errors: `MetastoreError`; `CatalogUnavailableError`."""
        try:
            await self._pool.call("unlock", _by_id(lock_id))
        except LostAnswerError as error:
            raise frazil_error(error, what) from error


def _by_id(lock_id: int) -> Struct:
    return {1: struct({1: i64(lock_id)})}
