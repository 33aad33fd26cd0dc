"""The ports with a meter before them: adapters know nothing of being counted.

No decision lives here; what a meter does with the numbers is its own affair.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol
from uuid import UUID

from committer.ports.catalog import Catalog
from committer.ports.leases import Assignment, Leases, Renewal
from committer.ports.pointer_swap import LoadedTable, Swap, SwapAnswer
from committer.ports.queue import ALL_SHARDS, Delivery, Doorbell, Queue, QueueDepth
from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo, Storage
from committer.request.receipt_model import Receipt
from committer.request.table_identifier import TableIdentifier


class Meter(Protocol):
    """Is told of every call of one port, by the name of its method."""

    def timed(self, call: str) -> AbstractContextManager[None]:
        """Surrounds one call, and sees its error. Of a listing, also what is done meanwhile."""

    def moved(self, call: str, objects: int, size_bytes: int) -> None:
        """A `create`, `replace`, `get` or `delete` has succeeded for so many objects and bytes."""


class InstrumentedStorage:
    """The `Storage` port around `inner`."""

    def __init__(self, inner: Storage, meter: Meter) -> None:
        self.inner = inner
        self._meter = meter

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        with self._meter.timed("get"):
            content = await self.inner.get(
                location, offset=offset, length=length, size_bytes_max=size_bytes_max
            )
        self._meter.moved("get", 1, len(content))
        return content

    async def head(self, location: str) -> ObjectInfo:
        with self._meter.timed("head"):
            return await self.inner.head(location)

    async def create(self, objects: Sequence[NewObject]) -> None:
        with self._meter.timed("create"):
            await self.inner.create(objects)
        self._meter.moved("create", len(objects), sum(len(one.content) for one in objects))

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        with self._meter.timed("replace"):
            new_etag = await self.inner.replace(location, content, etag=etag)
        self._meter.moved("replace", 1, len(content))
        return new_etag

    async def delete(self, locations: Sequence[str]) -> None:
        with self._meter.timed("delete"):
            await self.inner.delete(locations)
        self._meter.moved("delete", len(locations), 0)

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        with self._meter.timed("list"):
            async for info in self.inner.list(prefix, skips=skips):
                yield info

    async def probe(self, prefix: str) -> None:
        with self._meter.timed("probe"):
            await self.inner.probe(prefix)

    async def close(self) -> None:
        await self.inner.close()


class InstrumentedCatalog:
    """The `Catalog` port around `inner`."""

    def __init__(self, inner: Catalog, meter: Meter) -> None:
        self.inner = inner
        self._meter = meter

    async def load(self, identifier: TableIdentifier) -> LoadedTable:
        with self._meter.timed("load"):
            return await self.inner.load(identifier)

    async def current_location(self, identifier: TableIdentifier) -> str:
        with self._meter.timed("current_location"):
            return await self.inner.current_location(identifier)

    def objects_before(self, swap: Swap) -> tuple[NewObject, ...]:
        return self.inner.objects_before(swap)

    async def swap(self, swap: Swap) -> SwapAnswer:
        with self._meter.timed("swap"):
            return await self.inner.swap(swap)

    async def create_table(self, table: LoadedTable) -> None:
        with self._meter.timed("create_table"):
            await self.inner.create_table(table)

    async def drop_table(self, identifier: TableIdentifier) -> None:
        with self._meter.timed("drop_table"):
            await self.inner.drop_table(identifier)

    async def rename_table(self, identifier: TableIdentifier, to: TableIdentifier) -> None:
        with self._meter.timed("rename_table"):
            await self.inner.rename_table(identifier, to)

    async def register_table(
        self, identifier: TableIdentifier, metadata_location: str
    ) -> LoadedTable:
        with self._meter.timed("register_table"):
            return await self.inner.register_table(identifier, metadata_location)

    async def list_tables(self, namespace: tuple[str, ...]) -> list[TableIdentifier]:
        with self._meter.timed("list_tables"):
            return await self.inner.list_tables(namespace)

    async def create_namespace(self, namespace: tuple[str, ...]) -> None:
        with self._meter.timed("create_namespace"):
            await self.inner.create_namespace(namespace)

    async def list_namespaces(self) -> list[tuple[str, ...]]:
        with self._meter.timed("list_namespaces"):
            return await self.inner.list_namespaces()

    async def default_location(self, namespace: tuple[str, ...]) -> str | None:
        with self._meter.timed("default_location"):
            return await self.inner.default_location(namespace)

    async def probe(self) -> None:
        with self._meter.timed("probe"):
            await self.inner.probe()

    async def close(self) -> None:
        await self.inner.close()


class InstrumentedQueue:
    """The `Queue` port around `inner`. A `read` takes as long as it waits for news."""

    def __init__(self, inner: Queue, meter: Meter) -> None:
        self.inner = inner
        self._meter = meter

    async def announce(self, doorbells: Sequence[Doorbell]) -> int:
        with self._meter.timed("announce"):
            return await self.inner.announce(doorbells)

    async def backlog(self, table_uuid: UUID) -> int:
        with self._meter.timed("backlog"):
            return await self.inner.backlog(table_uuid)

    async def read(
        self, *, count_max: int, wait_s: float, shards: Collection[int] = ALL_SHARDS
    ) -> Sequence[Delivery]:
        with self._meter.timed("read"):
            return await self.inner.read(count_max=count_max, wait_s=wait_s, shards=shards)

    async def reclaim(
        self, *, idle_s: float, shards: Collection[int] = ALL_SHARDS
    ) -> Sequence[Delivery]:
        with self._meter.timed("reclaim"):
            return await self.inner.reclaim(idle_s=idle_s, shards=shards)

    def release_shards(self, shards: Collection[int]) -> None:
        self.inner.release_shards(shards)

    async def acknowledge(self, tokens: Sequence[str]) -> None:
        with self._meter.timed("acknowledge"):
            await self.inner.acknowledge(tokens)

    def taken_keys(self) -> Mapping[str, str]:
        return self.inner.taken_keys()

    async def reply(self, receipts: Sequence[tuple[str, Receipt]]) -> None:
        with self._meter.timed("reply"):
            await self.inner.reply(receipts)

    async def wait_for_receipts(self, reply_to: str, *, wait_s: float) -> Sequence[Receipt]:
        with self._meter.timed("wait_for_receipts"):
            return await self.inner.wait_for_receipts(reply_to, wait_s=wait_s)

    async def depth(self) -> QueueDepth:
        with self._meter.timed("depth"):
            return await self.inner.depth()

    async def probe(self) -> None:
        with self._meter.timed("probe"):
            await self.inner.probe()

    async def close(self) -> None:
        await self.inner.close()


class InstrumentedLeases:
    """The `Leases` port around `inner`. A `wait_for_change` takes as long as it waits."""

    def __init__(self, inner: Leases, meter: Meter) -> None:
        self.inner = inner
        self._meter = meter

    async def renew(self, renewal: Renewal) -> Assignment:
        with self._meter.timed("renew"):
            return await self.inner.renew(renewal)

    async def look(self) -> Assignment:
        with self._meter.timed("look"):
            return await self.inner.look()

    async def wait_for_change(self, version: str, *, wait_s: float) -> None:
        with self._meter.timed("wait_for_change"):
            await self.inner.wait_for_change(version, wait_s=wait_s)

    async def leave(self) -> None:
        with self._meter.timed("leave"):
            await self.inner.leave()

    async def close(self) -> None:
        await self.inner.close()
