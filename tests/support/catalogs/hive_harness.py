"""A Hive metastore, emptied for each test, behind a proxy that only this client goes through."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from committer.catalog.hive.hive_catalog import HiveCatalog
from committer.catalog.hive.thrift_connection import Connection
from committer.catalog.hive.thrift_values import boolean, get_texts, text
from committer.ports.pointer_swap import LoadedTable, Swap
from committer.real_world import RealWorld
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.catalogs.interfered_storage import InterferedStorage
from tests.support.catalogs.plain_namespaces import PlainNamespaces
from tests.support.faults.fault_proxy import Fault as TcpFault
from tests.support.faults.fault_proxy import FaultProxy
from tests.support.faults.faulty_catalog import Fault
from tests.support.servers.hive_server import HiveServer

ALTER = b"alter_table_with_environment_context"
_FAULTS = {
    Fault.LOST_REPLY: (ALTER, TcpFault.CUT_ANSWER),
    Fault.REQUEST_LOST: (ALTER, TcpFault.CUT_REQUEST),
    Fault.LANDS_LATE: (ALTER, TcpFault.LANDS_LATE),
    Fault.RESENT: (ALTER, TcpFault.SENT_TWICE),
    # The read before the swap: nothing was sent that changes anything.
    Fault.UNAVAILABLE: (b"get_table_req", TcpFault.CUT_REQUEST),
}


class HiveHarness(PlainNamespaces):
    """Tables without the metastore's lock, unless a test asks for it.

    `unfenced`: the metastore has nothing but locks, so all clients hold them.
    """

    def __init__(self, server: HiveServer, proxy: FaultProxy, *, unfenced: bool) -> None:
        self.server = server
        self.proxy = proxy
        self.unfenced = unfenced
        # The metastore makes the folders of tables, so it must know their file system.
        self.storage = InterferedStorage(server.warehouse)
        self.warehouse = server.warehouse
        self.catalog: HiveCatalog
        self._others: list[HiveCatalog] = []

    @classmethod
    async def open(cls, server: HiveServer, *, unfenced: bool = False) -> HiveHarness:
        empty(server)
        proxy = await FaultProxy(server.address).__aenter__()
        harness = cls(server, proxy, unfenced=unfenced)
        harness.catalog = await harness.client(f"thrift://{proxy.host}:{proxy.port}")
        return harness

    async def client(
        self,
        uri: str = "",
        *,
        locks: bool = False,
        unfenced: bool = False,
        read_timeout_s: float = 30.0,
        lock_wait_s_max: float = 30.0,
    ) -> HiveCatalog:
        client = await HiveCatalog.open(
            uri=uri or self.server.uri,
            storage=self.storage,
            world=RealWorld(),
            locks_by_default=locks or self.unfenced,
            allow_unfenced_locks=unfenced or self.unfenced,
            answer_s_max=read_timeout_s,
            lock_wait_s_max=lock_wait_s_max,
        )
        self._others.append(client)
        return client

    async def create(self, **properties: str) -> LoadedTable:
        """Make the table `db.flights`."""
        table = build_table(warehouse=self.warehouse, properties=properties)
        await self.catalog.create_namespace(("db",))
        await self.catalog.create_table(table)
        return table

    async def written(self, base: LoadedTable, **properties: str) -> Swap:
        """Build a swap whose metadata file is durable."""
        swap = build_swap(base, properties=properties or None)
        await self.storage.create(self.catalog.objects_before(swap))
        return swap

    @contextmanager
    def befall(self, fault: Fault) -> Iterator[None]:
        match, kind = _FAULTS[fault]
        planned = self.proxy.spoil(match, kind)
        yield
        assert not planned.times, "the fault met no swap"

    async def land_late(self) -> None:
        await self.proxy.land_late()

    def default_location(self, namespace: str) -> str | None:
        return f"{self.warehouse}/{namespace}.db"

    async def another(self) -> HiveCatalog:
        return await self.client()

    async def close(self) -> None:
        for catalog in self._others:
            await catalog.close()
        await self.proxy.__aexit__(None, None, None)
        await self.storage.close()


def empty(server: HiveServer) -> None:
    """Drop everything but the metastore's own database."""
    connection = Connection(*server.address, connect_timeout_s=10, read_timeout_s=60)
    for name in get_texts(connection.call("get_all_databases", {}), 0):
        if name != "default":
            arguments = {1: text(name), 2: boolean(False), 3: boolean(True)}
            connection.call("drop_database", arguments)
    connection.close()
