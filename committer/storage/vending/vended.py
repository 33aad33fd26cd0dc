"""The storage of table files: with the credentials that a catalog vends, else with our own.

Only files of tables come here. The inbox, the quarantine and the high-water marks have a storage
of their own, so no catalog decides how they are reached.

* Before it ends, a credential is renewed: 5 minutes before, or after half of a shorter life. Other
  calls for the table wait for the one that renews.
* A renewal that fails is tried again; meanwhile the old credential is used to its end.
* If a call is refused, its credential is renewed once and the call sent again.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager

from committer.errors import (
    AccessError,
    FrazilError,
    SettingsError,
    StorageUnavailableError,
    TransientError,
    UndeletedError,
)
from committer.group_commit import finish_all
from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo, Storage
from committer.ports.table_credentials import Renew, VendedCredential
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier
from committer.storage.routed import RoutedStorage, T, delete_groups
from committer.storage.vending.credential_sessions import CredentialSessions
from committer.storage.vending.vended_scopes import Cover, VendedScopes, VendedTable

_EARLY_MS = 5 * 60 * 1000
_AT_HALF_LIFE_MS = 1 << 62
# A catalog that vends what is refused at once, or vends nothing, is not asked by every call.
_ASKED_AGAIN_S_MIN = 10.0
_SESSIONS_MAX = 64
_TABLES_MAX = 10_000


class VendedStorage(RoutedStorage):
    """The `Storage` port for files of tables, and the `CredentialKeeper` of the catalog.

    `open_with` opens a storage with the given properties laid over the process's own. `close`
    closes `own`, too.
    """

    def __init__(
        self,
        own: Storage,
        open_with: Callable[[Mapping[str, str]], Storage],
        *,
        world: World,
        sessions_max: int = _SESSIONS_MAX,
        tables_max: int = _TABLES_MAX,
    ) -> None:
        self.own = own
        self._world = world
        self._tables_max = tables_max
        self._tables: dict[TableIdentifier, VendedTable] = {}
        self._scopes = VendedScopes()
        self._sessions = CredentialSessions(open_with, sessions_max)

    # --- Keeping ---------------------------------------------------------------------------------

    def keep(
        self,
        table: TableIdentifier,
        folders: tuple[str, ...],
        credentials: tuple[VendedCredential, ...],
        renew: Renew,
    ) -> None:
        known = self._tables.get(table)
        if known is not None and known.credentials == credentials:
            return
        self._forget(table)
        if not credentials:
            return
        now_ms, now_s = self._world.now_ms(), self._world.monotonic_s()
        kept = VendedTable(table, folders, credentials, renew, now_ms, now_s)
        self._tables[table] = kept
        self._scopes.add(kept)
        while len(self._tables) > self._tables_max:
            self._forget(next(iter(self._tables)))

    def _forget(self, identifier: TableIdentifier) -> None:
        known = self._tables.pop(identifier, None)
        if known is not None:
            self._scopes.remove(known)
            for credential in known.credentials:
                self._sessions.retire(credential.properties)

    async def credential(self, location: str) -> VendedCredential | None:
        """Return the credential for a location, to be used elsewhere, where it is not renewed: so
        at least half of its life is left, if the catalog vends another. None: our own.

        Errors: as `get`.
        """
        cover = await self._fresh(location, early_ms=_AT_HALF_LIFE_MS)
        return None if cover is None else cover.credential

    # --- The port --------------------------------------------------------------------------------

    async def create(self, objects: Sequence[NewObject]) -> None:
        own: list[NewObject] = []
        calls: list[Coroutine[object, object, None]] = []
        for created in objects:
            if self._scopes.find(created.location) is None:
                own.append(created)
            else:
                calls.append(self._create(created))
        if own:
            calls.append(self.own.create(own))
        await finish_all(calls)

    async def _create(self, created: NewObject) -> None:
        """Create one object: of several it would not be known which exist after a refusal."""
        await self._call(created.location, lambda storage: storage.create((created,)))

    async def delete(self, locations: Sequence[str]) -> None:
        groups: dict[Cover | None, list[str]] = {}
        for location in locations:
            groups.setdefault(self._scopes.find(location), []).append(location)
        await delete_groups(groups.values(), self._delete)

    async def _delete(self, locations: Sequence[str]) -> None:
        """Delete objects that one credential is for; those that remain once more if it was refused
        for one of them and is renewed.
        """
        cover = await self._fresh(locations[0])
        try:
            await self._act(cover, lambda storage: storage.delete(locations))
        except (AccessError, UndeletedError) as error:
            remaining = _refused(error, locations)
            if not remaining or not await self._is_renewed(cover):
                raise
        else:
            return
        await self._act(self._scopes.find(locations[0]), lambda storage: storage.delete(remaining))

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        last: str | None = None
        is_repeated = False
        while True:
            cover = await self._fresh(prefix)
            try:
                async for info in self._listed(prefix, cover, skips):
                    if last is None or info.location > last:
                        last = info.location
                        yield info
                return
            except AccessError:
                if is_repeated or not await self._is_renewed(cover):
                    raise
                is_repeated = True

    async def _listed(
        self, prefix: str, cover: Cover | None, skips: Skips | None
    ) -> AsyncIterator[ObjectInfo]:
        if cover is None:
            async for info in self.own.list(prefix, skips=skips):
                yield info
            return
        async with self._sessions.use(cover.credential.properties) as storage:
            with _usable(cover.table):
                async for info in storage.list(prefix, skips=skips):
                    yield info

    async def close(self) -> None:
        await self._sessions.close()
        await self.own.close()

    # --- Calls -----------------------------------------------------------------------------------

    async def _call(self, location: str, act: Callable[[Storage], Awaitable[T]]) -> T:
        """Act on the storage of a location, again if its credential is refused and renewed."""
        cover = await self._fresh(location)
        try:
            return await self._act(cover, act)
        except AccessError:
            if not await self._is_renewed(cover):
                raise
        return await self._act(self._scopes.find(location), act)

    async def _act(self, cover: Cover | None, act: Callable[[Storage], Awaitable[T]]) -> T:
        if cover is None:
            return await act(self.own)
        async with self._sessions.use(cover.credential.properties) as storage:
            with _usable(cover.table):
                return await act(storage)

    # --- Renewal ---------------------------------------------------------------------------------

    async def _fresh(self, location: str, *, early_ms: int = _EARLY_MS) -> Cover | None:
        """Return the credential for a location, renewed if it ends soon."""
        cover = self._scopes.find(location)
        if cover is None or not self._is_due(cover, early_ms):
            return cover
        async with cover.table.asking:
            cover = self._scopes.find(location)
            if cover is None or not self._is_due(cover, early_ms):
                return cover
            table = cover.table
            if self._may_ask(table):
                await self._ask(table)
            if table.failure is not None and self._has_ended(cover):
                raise _not_renewed(table, table.failure) from table.failure
        return self._scopes.find(location)

    async def _is_renewed(self, cover: Cover | None) -> bool:
        """Renew a credential that was refused. Return whether there is another one now."""
        if cover is None:
            return False
        table = cover.table
        async with table.asking:
            if self._tables.get(table.identifier) is not table:
                return True
            if not self._may_ask(table):
                return False
            await self._ask(table)
            if table.failure is not None:
                raise _not_renewed(table, table.failure) from table.failure
        return self._tables.get(table.identifier) is not table

    async def _ask(self, table: VendedTable) -> None:
        """Ask for new credentials, and keep them or the failure."""
        table.asked_s = self._world.monotonic_s()
        try:
            credentials = await table.renew()
        except FrazilError as error:
            table.failure = error
        else:
            table.failure = None
            self.keep(table.identifier, table.folders, credentials, table.renew)

    def _is_due(self, cover: Cover, early_ms: int) -> bool:
        ends_ms, kept_ms = cover.credential.expires_ms, cover.table.kept_ms
        if ends_ms is None:
            return False
        return self._world.now_ms() >= ends_ms - min(early_ms, (ends_ms - kept_ms) // 2)

    def _has_ended(self, cover: Cover) -> bool:
        ends_ms = cover.credential.expires_ms
        return ends_ms is not None and self._world.now_ms() >= ends_ms

    def _may_ask(self, table: VendedTable) -> bool:
        return self._world.monotonic_s() - table.asked_s >= _ASKED_AGAIN_S_MIN


def _refused(error: AccessError | UndeletedError, locations: Sequence[str]) -> Sequence[str]:
    """Return the locations that remain after a deletion for which a credential was refused; none
    if it was not.
    """
    if isinstance(error, AccessError):
        return locations
    is_refused = any(isinstance(each, AccessError) for each in error.failures.values())
    return [*error.failures] if is_refused else []


@contextmanager
def _usable(table: VendedTable) -> Iterator[None]:
    """Name the catalog where no client can be made: no setting of ours is to blame."""
    try:
        yield
    except SettingsError as error:
        raise AccessError(
            f"table {table.identifier}: what the catalog vended for its files cannot be used:"
            f" {error}"
        ) from error


def _not_renewed(table: VendedTable, error: FrazilError) -> FrazilError:
    """Return the error of a call whose credential is over: as lasting as the renewal's own."""
    text = (
        f"table {table.identifier}: the credentials that the catalog vended for its files are over,"
        f" and it gave no new ones: {error}"
    )
    return StorageUnavailableError(text) if isinstance(error, TransientError) else AccessError(text)
