"""A store that lets in only some keys, and the catalog that vends them: for the vended storage."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager

from committer.errors import AccessError, CatalogUnavailableError, FrazilError
from committer.ports.skips import Skips
from committer.ports.storage import ObjectInfo, Storage
from committer.ports.table_credentials import VendedCredential
from committer.request.table_identifier import TableIdentifier
from committer.service.telemetry.instrumented_ports import InstrumentedStorage
from committer.storage.vending.vended import VendedStorage
from tests.support.clock.worlds import ManualWorld
from tests.support.memory.memory_storage import MemoryStorage

FLIGHTS = TableIdentifier(("db",), "flights")
FOLDER = "memory://bucket/db/flights"
KEY = "s3.access-key-id"
OWN = "own"


class Session(InstrumentedStorage):
    """One client of the store, with its key; a call with a key that is not let in is refused."""

    def __init__(self, inner: Storage, key: str, let_in: set[str]) -> None:
        super().__init__(inner, self)
        self.key = key
        self.calls: list[str] = []
        self.is_closed = False
        self._let_in = let_in

    @contextmanager
    def timed(self, call: str, location: str = "") -> Iterator[None]:
        self.calls.append(call)
        if self.key not in self._let_in:
            raise AccessError(f"{call}: the key `{self.key}` is not let in")
        yield

    def moved(self, call: str, objects: int, size_bytes: int) -> None:
        """Ignore the objects and bytes."""

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        """List as a store does that is asked for page after page: each may be refused."""
        async for info in super().list(prefix, skips=skips):
            if self.key not in self._let_in:
                raise AccessError(f"list: the key `{self.key}` is not let in")
            yield info

    async def close(self) -> None:
        self.is_closed = True


class Vending:
    """A store, a catalog that vends keys for it, and the storage that is tested."""

    def __init__(self, *, sessions_max: int = 64, tables_max: int = 10_000) -> None:
        self.world = ManualWorld()
        self.memory = MemoryStorage(world=self.world)
        self.let_in = {OWN}
        self.own = Session(self.memory, OWN, self.let_in)
        self.sessions: list[Session] = []
        self.renewals = 0
        self.failure: FrazilError | None = None
        self.life_s: float | None = 3600
        self.storage = VendedStorage(
            self.own,
            self._open,
            world=self.world,
            sessions_max=sessions_max,
            tables_max=tables_max,
        )

    def _open(self, properties: Mapping[str, str]) -> Storage:
        self.sessions.append(Session(self.memory, properties[KEY], self.let_in))
        return self.sessions[-1]

    def credential(self, key: str, prefix: str = "") -> VendedCredential:
        """Return a credential that the store lets in from now on."""
        self.let_in.add(key)
        expires_ms = None if self.life_s is None else self.world.now_ms() + int(self.life_s * 1000)
        return VendedCredential(prefix, {KEY: key}, expires_ms)

    def vend(
        self,
        *credentials: VendedCredential,
        table: TableIdentifier = FLIGHTS,
        folder: str = FOLDER,
    ) -> None:
        """Give the storage these credentials, or one with the key `first`."""
        self.storage.keep(table, (folder,), credentials or (self.credential("first"),), self.renew)

    async def renew(self) -> tuple[VendedCredential, ...]:
        self.renewals += 1
        await self.world.sleep(0)
        if self.failure is not None:
            raise self.failure
        return (self.credential(f"renewed-{self.renewals}"),)

    def go_away(self) -> None:
        self.failure = CatalogUnavailableError("the catalog is down")

    @property
    def keys(self) -> list[str]:
        """Return the keys that were used, each once for the calls in a row."""
        return [session.key for session in self.sessions if session.calls]
