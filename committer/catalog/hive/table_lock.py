"""The metastore's own lock of a table, for tables that other engines commit to under it.

Iceberg Java takes it unless the table property `engine.hive.lock-enabled` is `false`. Under the
lock Java alters a table without an expected parameter, so a commit beside it that does not hold the
lock could be overwritten. The lock of a holder that died expires after the metastore's
`metastore.txn.timeout` (300 s).
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from committer.catalog.hive import hive_layout as layout
from committer.catalog.hive.metastore import asked
from committer.catalog.hive.pool import ConnectionPool
from committer.catalog.hive.thrift_connection import LostAnswerError, MetastoreError
from committer.catalog.hive.thrift_values import (
    get_number,
    get_struct,
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
_POLL_S = 0.05
_POLL_S_MAX = 1.0


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
    """A lock. `keep`: do not release it, for a call under it may be applied yet."""

    def __init__(self, lock_id: int) -> None:
        self.lock_id = lock_id
        self.is_kept = False

    def keep(self) -> None:
        self.is_kept = True


class TableLocks:
    """Takes locks. One that was kept is taken over by the next swap of its table here."""

    def __init__(self, pool: ConnectionPool, world: World, *, wait_s_max: float) -> None:
        self._pool = pool
        self._world = world
        self._wait_s_max = wait_s_max
        self._kept: dict[tuple[str, str], int] = {}

    @asynccontextmanager
    async def held(
        self, database: str, name: str, *, takes_over: bool = True
    ) -> AsyncIterator[HeldLock]:
        """Hold the lock. Errors: `CatalogUnavailableError` where another holds it for too long."""
        table = (database, name)
        kept = self._kept.get(table)
        if kept is None or not takes_over or not await self._is_held(kept):
            kept = await self._acquire(*table)
        self._kept.pop(table, None)
        lock = HeldLock(kept)
        try:
            yield lock
        finally:
            if lock.is_kept:
                self._kept[table] = lock.lock_id
            else:
                await self._release(lock.lock_id)

    async def _acquire(self, database: str, name: str) -> int:
        component = {1: i32(_EXCLUSIVE), 2: i32(_TABLE), 3: text(database), 4: text(name)}
        request = {
            1: structs((component,)),
            3: text("frazil"),
            4: text(socket.gethostname()),
            5: text(f"Frazil-{self._world.uuid()}"),
        }
        what = f"lock of table {database}.{name}"
        answer = get_struct(await asked(self._pool.call("lock", {1: struct(request)}), what), 0)
        lock_id, state = get_number(answer, 1), get_number(answer, 2)
        ends_s, delay_s = self._world.monotonic_s() + self._wait_s_max, _POLL_S
        try:
            while state == _WAITING and self._world.monotonic_s() < ends_s:
                await self._world.sleep(spread_s(delay_s, self._world))
                delay_s = min(2 * delay_s, _POLL_S_MAX)
                state = await asked(self._check(lock_id), what)
        finally:
            if state != _ACQUIRED:
                await self._release(lock_id)
        if state != _ACQUIRED:
            raise CatalogUnavailableError(
                f"Hive metastore: another engine has held the {what} for more than"
                f" {self._wait_s_max:.0f} s (a lock of an engine that died expires after"
                " `metastore.txn.timeout`)"
            )
        return lock_id

    async def _check(self, lock_id: int) -> int:
        answer = await self._pool.call("check_lock", {1: struct({1: i64(lock_id)})})
        return get_number(get_struct(answer, 0), 2)

    async def _is_held(self, lock_id: int) -> bool:
        try:
            return await self._check(lock_id) == _ACQUIRED
        except (MetastoreError, LostAnswerError):
            return False

    async def _release(self, lock_id: int) -> None:
        # One that cannot be released expires.
        with suppress(MetastoreError, LostAnswerError, CatalogUnavailableError):
            await self._pool.call("unlock", {1: struct({1: i64(lock_id)})})
