"""The SQL catalog on a real MariaDB, behind a proxy that loses answers at COMMIT."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pymysql
from pymysql.constants import CLIENT
from sqlalchemy import event

from committer.catalog.sql import SchemaVersion, SqlCatalog
from committer.catalog.sql_engine import open_engine
from committer.ports.catalog import Catalog
from tests.contract.interfered_storage import InterferedStorage
from tests.contract.plain_namespaces import PlainNamespaces
from tests.support.faults.fault_proxy import Fault as NetworkFault
from tests.support.faults.fault_proxy import FaultProxy
from tests.support.faults.faulty_catalog import Fault
from tests.support.servers.mariadb_server import USER, MariaDbServer

REFUSE = (
    "CREATE TRIGGER refuse BEFORE UPDATE ON iceberg_tables FOR EACH ROW"
    " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused by the test'"
)
ALLOW = "DROP TRIGGER refuse"
# As it is sent: a query, and nothing behind it. `READ COMMITTED` is none.
COMMIT = b"\x03COMMIT"
# Before it is sent nothing is applied, also if the UPDATE itself was.
_FAULTS = {
    Fault.LOST_REPLY: (COMMIT, NetworkFault.CUT_ANSWER),
    Fault.REQUEST_LOST: (COMMIT, NetworkFault.CUT_REQUEST),
    Fault.LANDS_LATE: (COMMIT, NetworkFault.CUT_REQUEST),
    Fault.UNAVAILABLE: (b"UPDATE iceberg_tables", NetworkFault.CUT_ANSWER),
}


class MariaDbHarness(PlainNamespaces):
    """A database of its own on a server, and a client that alone goes through the proxy."""

    def __init__(self, server: MariaDbServer, proxy: FaultProxy, database: str) -> None:
        self.server = server
        self.proxy = proxy
        self.database = database
        self.storage = InterferedStorage()
        self.catalog: SqlCatalog
        self._others: list[SqlCatalog] = []
        self._update: tuple[str, Any] | None = None
        self._held: list[tuple[str, Any]] = []

    @property
    def uri(self) -> str:
        return self.server.uri(self.database)

    @classmethod
    async def open(
        cls,
        server: MariaDbServer,
        *,
        schema_version: SchemaVersion = "V1",
        answer_s_max: float = 20.0,
    ) -> MariaDbHarness:
        proxy = await FaultProxy(server.address).__aenter__()
        harness = cls(server, proxy, server.new_database())
        proxied = server.uri(harness.database, port=proxy.port)
        engine = open_engine(proxied, answer_s_max=answer_s_max)
        event.listen(engine, "before_cursor_execute", harness._remember)
        harness.catalog = await SqlCatalog.on_engine(
            engine=engine, name="frazil", storage=harness.storage, schema_version=schema_version
        )
        return harness

    @contextmanager
    def befall(self, fault: Fault) -> Iterator[None]:
        if fault is Fault.REJECTED:
            self.execute(REFUSE)
            yield
            self.execute(ALLOW)
            return
        planned = self.proxy.spoil(*_FAULTS[fault])
        yield
        assert not planned.times, "the fault met no swap"
        if fault is Fault.LANDS_LATE:
            assert self._update is not None
            self._held.append(self._update)

    async def land_late(self) -> None:
        """Run the transactions that were held back, as a network that delivers them now."""
        held, self._held = self._held, []
        host, port = self.server.address
        for statement, parameters in held:
            with closing(
                pymysql.connect(
                    host=host,
                    port=port,
                    user=USER,
                    database=self.database,
                    autocommit=True,
                    client_flag=CLIENT.FOUND_ROWS,
                )
            ) as connection:
                connection.cursor().execute(statement, parameters)

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements in this database, past the catalog."""
        return self.server.execute(self.database, *statements)

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
            self._update = (statement, parameters)
