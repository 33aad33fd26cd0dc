"""Iceberg's own REST catalog with a client of it, for the contract suite."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress

from committer.catalog.rest.client.rest_options import RestOptions
from committer.catalog.rest.rest_catalog import RestCatalog
from committer.errors import NoSuchNamespaceError
from committer.ports.pointer_swap import LoadedTable
from committer.real_world import RealWorld
from tests.support.catalogs.http_faults import ProxiedHarness
from tests.support.catalogs.interfered_storage import InterferedFiles
from tests.support.faults.faulty_catalog import Fault
from tests.support.servers.http_proxy import Answer, HttpProxy
from tests.support.servers.http_proxy import Fault as HttpFault
from tests.support.servers.rest_server import RestServer


def rest_error(status: int, kind: str) -> Answer:
    """Return an error as the REST protocol words it."""
    error = {"message": "refused by the test", "type": kind, "code": status}
    return Answer(status, json.dumps({"error": error}).encode(), "application/json")


_REST_FAULTS: dict[Fault, HttpFault | Answer] = {
    Fault.LOST_REPLY: HttpFault.CUT_ANSWER,
    Fault.REQUEST_LOST: HttpFault.CUT_REQUEST,
    Fault.LANDS_LATE: HttpFault.LANDS_LATE,
    Fault.RESENT: HttpFault.SENT_TWICE,
    Fault.REJECTED: rest_error(400, "ValidationException"),
    Fault.UNAVAILABLE: rest_error(429, "TooManyRequestsException"),
}


class RestHarness(ProxiedHarness[RestCatalog, InterferedFiles]):
    """Iceberg's own REST catalog, emptied, behind a proxy that only this client goes through."""

    swap_mark = b'"requirements"'
    faults = _REST_FAULTS

    def __init__(self, *, proxy: HttpProxy, server: RestServer) -> None:
        super().__init__(url=server.url, proxy=proxy, storage=InterferedFiles())
        self.warehouse = server.warehouse

    @classmethod
    async def open(cls, server: RestServer) -> RestHarness:
        proxy = await HttpProxy(server.url).__aenter__()
        harness = cls(proxy=proxy, server=server)
        harness.catalog = await harness.client(proxy.url)
        await harness.empty()
        return harness

    async def client(self, url: str, *, read_timeout_s: float = 60.0) -> RestCatalog:
        """Open a client at this address."""
        options = RestOptions(uri=url, read_timeout_s=read_timeout_s)
        # Iceberg's own server checks all tables before it changes one: atomic unless it dies or
        # another client comes in between.
        return await RestCatalog.open(
            options=options, storage=self.storage, world=RealWorld(), atomic_transactions=True
        )

    async def empty(self) -> None:
        """Remove what another test has left."""
        for namespace in reversed(await self.catalog.list_namespaces()):
            for table in await self.catalog.list_tables(namespace):
                await self.catalog.drop_table(table)
            with suppress(NoSuchNamespaceError):  # implied by another one
                await self.catalog.drop_namespace(namespace)
        shutil.rmtree(self.warehouse.removeprefix("file://"), ignore_errors=True)

    def own_properties(self, namespace: str) -> dict[str, str]:
        return {"location": f"{self.warehouse}/{namespace}"}

    def default_location(self, namespace: str) -> str | None:
        return f"{self.warehouse}/{namespace}"

    def first_location(self, table: LoadedTable) -> str:
        return table.metadata_location
