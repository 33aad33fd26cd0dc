"""The SQL catalog on a real server, behind a proxy that loses answers at COMMIT."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from sqlalchemy import event

from committer.catalog.sql.sql_catalog import SchemaVersion, SqlCatalog
from committer.catalog.sql.sql_engine import open_engine
from committer.ports.catalog import Catalog
from tests.support.catalogs.interfered_storage import InterferedStorage
from tests.support.catalogs.plain_namespaces import PlainNamespaces
from tests.support.faults.fault_proxy import Fault as NetworkFault
from tests.support.faults.fault_proxy import FaultProxy
from tests.support.faults.faulty_catalog import Fault


class SqlServerHarness(PlainNamespaces, ABC):
    """A place of its own at `uri` on the server at `address`, and a client that alone goes through
    the proxy. `commit`: a COMMIT as it is sent.
    """

    commit: bytes

    def __init__(self, address: tuple[str, int], proxy: FaultProxy, uri: str) -> None:
        self.address = address
        self.proxy = proxy
        self.uri = uri
        self.storage = InterferedStorage()
        self.catalog: SqlCatalog
        self._others: list[SqlCatalog] = []
        self._updates: list[tuple[str, Any]] = []
        self._held: list[list[tuple[str, Any]]] = []

    async def connect(self, schema_version: SchemaVersion, answer_s_max: float) -> Self:
        """Open the client behind the proxy."""
        proxied = self.uri.replace(f":{self.address[1]}/", f":{self.proxy.port}/")
        engine = open_engine(proxied, answer_s_max=answer_s_max)
        event.listen(engine, "before_cursor_execute", self._remember)
        event.listen(engine, "begin", self._forget)
        self.catalog = await SqlCatalog.on_engine(
            engine=engine, name="frazil", storage=self.storage, schema_version=schema_version
        )
        return self

    @abstractmethod
    def refuse(self) -> None:
        """Have the server refuse every change of a pointer."""

    @abstractmethod
    def allow(self) -> None:
        """Undo `refuse`."""

    @abstractmethod
    def run(self, updates: Sequence[tuple[str, Any]]) -> None:
        """Run UPDATEs in a transaction of the driver, unless one finds its row changed."""

    @contextmanager
    def befall(self, fault: Fault) -> Iterator[None]:
        if fault is Fault.REJECTED:
            self.refuse()
            yield
            self.allow()
            return
        planned = self.proxy.spoil(*self._spoilt(fault))
        yield
        assert not planned.times, "the fault met no swap"
        if fault is Fault.LANDS_LATE:
            assert self._updates
            self._held.append(self._updates)

    def _spoilt(self, fault: Fault) -> tuple[bytes, NetworkFault]:
        # Before COMMIT is sent nothing is applied, also if the UPDATE itself was.
        return {
            Fault.LOST_REPLY: (self.commit, NetworkFault.CUT_ANSWER),
            Fault.REQUEST_LOST: (self.commit, NetworkFault.CUT_REQUEST),
            Fault.LANDS_LATE: (self.commit, NetworkFault.CUT_REQUEST),
            Fault.UNAVAILABLE: (b"UPDATE iceberg_tables", NetworkFault.CUT_ANSWER),
        }[fault]

    async def land_late(self) -> None:
        """Run the transactions that were held back, as a network that delivers them now."""
        held, self._held = self._held, []
        for updates in held:
            self.run(updates)

    async def another(self) -> Catalog:
        other = await SqlCatalog.open(uri=self.uri, name="frazil", storage=self.storage)
        self._others.append(other)
        return other

    async def close(self) -> None:
        for catalog in (*self._others, self.catalog):
            await catalog.close()
        await self.proxy.__aexit__(None, None, None)
        await self.storage.close()

    def _remember(self, *arguments: Any) -> None:
        statement, parameters = arguments[2], arguments[3]
        if statement.startswith("UPDATE iceberg_tables"):
            self._updates.append((statement, parameters))

    def _forget(self, *_: Any) -> None:
        self._updates = []
