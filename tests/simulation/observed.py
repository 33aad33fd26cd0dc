"""Ports that pass everything through and note each effect: one for each process and server.

They stand between the faults of a process and the servers, so that an effect that comes late or
twice is seen when it takes place.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from committer.ports.catalog import Catalog
from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.ports.pointer_swap import (
    Committed,
    GroupAnswer,
    GroupCommitted,
    LoadedTable,
    Swap,
    SwapAnswer,
)
from committer.ports.queue import ALL_SHARDS, Delivery, Doorbell, Queue, QueueDepth
from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo, Storage
from committer.request.receipt_model import Receipt
from committer.request.table_identifier import TableIdentifier
from tests.simulation.history import History, Listener


class _Observed:
    def __init__(self, history: History, process: str) -> None:
        self._history = history
        self._process = process

    @property
    def _listener(self) -> Listener | None:
        return self._history.listener


class ObservedStorage(_Observed):
    """The `Storage` port around `inner`."""

    def __init__(self, inner: Storage, history: History, process: str) -> None:
        super().__init__(history, process)
        self.inner = inner

    async def create(self, objects: Sequence[NewObject]) -> None:
        # One by one: if one exists, it is known which others were created.
        for created in objects:
            await self.inner.create((created,))
            if self._listener:
                self._listener.created(self._process, created)

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        new = await self.inner.replace(location, content, etag=etag)
        if self._listener:
            self._listener.created(self._process, NewObject(location, content))
        return new

    async def delete(self, locations: Sequence[str]) -> None:
        if self._listener:
            self._listener.deleting(self._process, locations)
        await self.inner.delete(locations)

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        return await self.inner.get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )

    async def head(self, location: str) -> ObjectInfo:
        return await self.inner.head(location)

    def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        return self.inner.list(prefix, skips=skips)

    async def names(self, folder: str, *, starts_with: str = "") -> Sequence[str]:
        return await self.inner.names(folder, starts_with=starts_with)

    async def probe(self, prefix: str) -> None:
        await self.inner.probe(prefix)

    async def close(self) -> None:
        """Do nothing: the server outlives its clients."""


class ObservedCatalog(_Observed):
    """The `Catalog` port around `inner`."""

    def __init__(self, inner: Catalog, history: History, process: str) -> None:
        super().__init__(history, process)
        self.inner = inner

    @property
    def capabilities(self) -> CatalogCapabilities:
        return self.inner.capabilities

    async def swap(self, swap: Swap) -> SwapAnswer:
        answer = await self.inner.swap(swap)
        if isinstance(answer, Committed) and self._listener:
            self._listener.swapped(self._process, swap)
        return answer

    async def swap_together(self, swaps: Sequence[Swap]) -> GroupAnswer:
        answer = await self.inner.swap_together(swaps)
        if isinstance(answer, GroupCommitted) and self._listener:
            self._listener.swapped_together(self._process, swaps)
        return answer

    async def create_table(self, table: LoadedTable) -> None:
        await self.inner.create_table(table)
        # A catalog may have named the first file itself.
        location = await self.inner.current_location(table.identifier)
        if self._listener:
            self._listener.pointed(self._process, replace(table, metadata_location=location))

    async def register_table(
        self, identifier: TableIdentifier, metadata_location: str
    ) -> LoadedTable:
        table = await self.inner.register_table(identifier, metadata_location)
        if self._listener:
            self._listener.pointed(self._process, table)
        return table

    async def drop_table(self, identifier: TableIdentifier) -> str | None:
        last = await self.inner.drop_table(identifier)
        if self._listener:
            self._listener.dropped(self._process, identifier)
        return last

    async def rename_table(self, identifier: TableIdentifier, to: TableIdentifier) -> None:
        await self.inner.rename_table(identifier, to)
        table = await self.inner.load(to)
        if self._listener:
            self._listener.dropped(self._process, identifier)
            self._listener.pointed(self._process, table)

    async def load(self, identifier: TableIdentifier) -> LoadedTable:
        return await self.inner.load(identifier)

    async def current_location(self, identifier: TableIdentifier) -> str:
        return await self.inner.current_location(identifier)

    def objects_before(self, swap: Swap) -> tuple[NewObject, ...]:
        return self.inner.objects_before(swap)

    async def list_tables(self, namespace: tuple[str, ...]) -> list[TableIdentifier]:
        return await self.inner.list_tables(namespace)

    async def create_namespace(self, namespace: tuple[str, ...]) -> None:
        await self.inner.create_namespace(namespace)

    async def drop_namespace(self, namespace: tuple[str, ...]) -> None:
        await self.inner.drop_namespace(namespace)

    async def namespace_properties(self, namespace: tuple[str, ...]) -> dict[str, str]:
        return await self.inner.namespace_properties(namespace)

    async def set_namespace_properties(
        self,
        namespace: tuple[str, ...],
        properties: Mapping[str, str],
        *,
        removed: Collection[str] = (),
    ) -> None:
        await self.inner.set_namespace_properties(namespace, properties, removed=removed)

    async def list_namespaces(self) -> list[tuple[str, ...]]:
        return await self.inner.list_namespaces()

    async def default_location(self, namespace: tuple[str, ...]) -> str | None:
        return await self.inner.default_location(namespace)

    async def probe(self) -> None:
        await self.inner.probe()

    async def close(self) -> None:
        """Do nothing: the server outlives its clients."""


class ObservedQueue(_Observed):
    """The `Queue` port around `inner`, one client of the server."""

    def __init__(self, inner: Queue, history: History, process: str) -> None:
        super().__init__(history, process)
        self.inner = inner

    async def announce(self, doorbells: Sequence[Doorbell]) -> int:
        return await self.inner.announce(doorbells)

    async def backlog(self, table_uuid: UUID) -> int:
        return await self.inner.backlog(table_uuid)

    async def read(
        self,
        *,
        count_max: int,
        wait_s: float,
        shards: Collection[int] = ALL_SHARDS,
        more_max: int = 0,
    ) -> Sequence[Delivery]:
        taken = await self.inner.read(
            count_max=count_max, wait_s=wait_s, shards=shards, more_max=more_max
        )
        return self._noted(taken)

    async def reclaim(
        self, *, idle_s: float, shards: Collection[int] = ALL_SHARDS
    ) -> Sequence[Delivery]:
        return self._noted(await self.inner.reclaim(idle_s=idle_s, shards=shards))

    def _noted(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        for delivery in deliveries:
            # One that asks for a turn ends with the question, not with its request.
            if not delivery.doorbell.asks_for_turn:
                self._history.tokens[delivery.token] = delivery.doorbell.inbox_key
        return deliveries

    def release_shards(self, shards: Collection[int]) -> None:
        self.inner.release_shards(shards)

    async def acknowledge(self, tokens: Sequence[str]) -> None:
        await self.inner.acknowledge(tokens)
        for token in tokens:
            key = self._history.tokens.get(token)
            if key is not None and self._listener:
                self._listener.acknowledged(self._process, key)

    def taken_keys(self) -> Mapping[str, str]:
        return self.inner.taken_keys()

    async def reply(self, receipts: Sequence[tuple[str, Receipt]]) -> None:
        await self.inner.reply(receipts)
        for _, receipt in receipts:
            if self._listener:
                self._listener.replied(self._process, receipt)

    async def wait_for_receipts(self, reply_to: str, *, wait_s: float) -> Sequence[Receipt]:
        return await self.inner.wait_for_receipts(reply_to, wait_s=wait_s)

    async def depth(self) -> QueueDepth:
        return await self.inner.depth()

    async def probe(self) -> None:
        await self.inner.probe()

    async def close(self) -> None:
        """Do nothing: the server outlives its clients."""
