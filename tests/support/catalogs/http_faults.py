"""The faults of a swap as those of the HTTP request that it is, and the harness of a back end that
meets them behind a proxy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from typing import Generic, TypeVar

from committer.ports.catalog import Catalog
from tests.support.catalogs.interfered_storage import InterferedFiles, InterferedStorage
from tests.support.faults.faulty_catalog import Fault
from tests.support.servers.http_proxy import Answer, HttpProxy
from tests.support.servers.http_proxy import Fault as HttpFault

# Of back ends of AWS.
HTTP_FAULTS: dict[Fault, HttpFault | Answer] = {
    Fault.LOST_REPLY: HttpFault.CUT_ANSWER,
    Fault.REQUEST_LOST: HttpFault.CUT_REQUEST,
    Fault.LANDS_LATE: HttpFault.LANDS_LATE,
    Fault.RESENT: HttpFault.SENT_TWICE,
    Fault.UNAVAILABLE: Answer.aws_error(400, "ThrottlingException"),
}

C = TypeVar("C", bound=Catalog)
S = TypeVar("S", InterferedStorage, InterferedFiles)


class ProxiedHarness(Generic[C, S]):
    """A back end at `url`, behind a proxy that only `catalog` and impatient clients go through.
    `swap_mark`: what the request of a swap has, and no other one.
    """

    swap_mark: bytes
    faults: Mapping[Fault, HttpFault | Answer] = HTTP_FAULTS

    def __init__(self, *, url: str, proxy: HttpProxy, storage: S) -> None:
        self.proxy = proxy
        self.storage: S = storage
        self.catalog: C
        self._url = url
        self._others: list[C] = []

    async def client(self, url: str, *, read_timeout_s: float = 20.0) -> C:
        """Open a client of the back end at this address."""
        raise NotImplementedError

    @contextmanager
    def befall(self, fault: Fault) -> Iterator[None]:
        self.proxy.plan(self.swap_mark, self.faults[fault])
        yield
        assert not self.proxy.is_planned, "the fault met no swap"

    async def land_late(self) -> None:
        await self.proxy.land_late()

    async def another(self) -> C:
        return await self._opened(self.client(self._url))

    async def impatient(self) -> C:
        """Open a client behind the proxy with a short read timeout."""
        return await self._opened(self.client(self.proxy.url, read_timeout_s=0.5))

    async def _opened(self, opening: Awaitable[C]) -> C:
        other = await opening
        self._others.append(other)
        return other

    async def close(self) -> None:
        for catalog in (*self._others, self.catalog):
            await catalog.close()
        await self.proxy.__aexit__(None, None, None)
        await self.storage.close()
