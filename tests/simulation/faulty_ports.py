"""The ports as a process of the simulation sees them: every call goes over the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, NoReturn, TypeVar
from uuid import UUID

from committer.catalog.staging import load_table
from committer.errors import (
    CatalogUnavailableError,
    FrazilError,
    QueueUnavailableError,
    StorageUnavailableError,
)
from committer.ports.catalog import Catalog
from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.ports.leases import Assignment, Leases, Renewal
from committer.ports.pointer_swap import (
    Conflict,
    GroupAnswer,
    GroupConflict,
    LoadedTable,
    Rejected,
    Swap,
    SwapAnswer,
    Unknown,
)
from committer.ports.queue import ALL_SHARDS, Delivery, Doorbell, Queue, QueueDepth
from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo, Storage
from committer.request.receipt_model import Receipt
from committer.request.table_identifier import TableIdentifier
from tests.simulation.process import Life
from tests.simulation.wire import Effect, send

T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, T]]
Unavailable = Callable[[str], FrazilError]


class _Port:
    """Calls of one port, by one life of a process."""

    name: str
    unavailable: Unavailable

    def __init__(self, life: Life) -> None:
        self._life = life

    def _call(
        self, method: str, apply: Work[T], detail: str = "", **more: Any
    ) -> Coroutine[Any, Any, T]:
        more.setdefault("lost", self._lost)
        away = type(self).unavailable
        return send(
            self._life,
            Effect(self.name, f"{self.name}.{method}", apply, away=away, detail=detail, **more),
        )

    def _lost(self, why: str) -> NoReturn:
        raise type(self).unavailable(why)


class FaultyStorage(_Port):
    """The `Storage` port around `inner`, a server."""

    name = "storage"
    unavailable = StorageUnavailableError

    def __init__(self, life: Life, inner: Storage) -> None:
        super().__init__(life)
        self._inner = inner

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        return await self._call(
            "get",
            lambda: self._inner.get(
                location, offset=offset, length=length, size_bytes_max=size_bytes_max
            ),
            short(location),
        )

    async def head(self, location: str) -> ObjectInfo:
        return await self._call("head", lambda: self._inner.head(location), short(location))

    async def create(self, objects: Sequence[NewObject]) -> None:
        some = objects[: len(objects) // 2]
        await self._call(
            "create",
            lambda: self._inner.create(objects),
            ", ".join(short(one.location) for one in objects),
            partly=lambda: self._inner.create(some),
        )

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        return await self._call(
            "replace",
            lambda: self._inner.replace(location, content, etag=etag),
            short(location),
        )

    async def delete(self, locations: Sequence[str]) -> None:
        some = locations[: len(locations) // 2]
        await self._call(
            "delete",
            lambda: self._inner.delete(locations),
            ", ".join(short(location) for location in locations),
            partly=lambda: self._inner.delete(some),
        )

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        async def listed() -> list[ObjectInfo]:
            return [info async for info in self._inner.list(prefix, skips=skips)]

        for info in await self._call("list", listed, short(prefix), partly=listed):
            yield info

    async def names(self, folder: str, *, starts_with: str = "") -> Sequence[str]:
        def listed() -> Coroutine[Any, Any, Sequence[str]]:
            return self._inner.names(folder, starts_with=starts_with)

        return await self._call("names", listed, short(folder))

    async def probe(self, prefix: str) -> None:
        await self._call("probe", lambda: self._inner.probe(prefix))

    async def close(self) -> None:
        """Do nothing: the server outlives its clients."""


class FaultyCatalog(_Port):
    """The `Catalog` port around `inner`, a server that holds pointers.

    A load reads the pointer and then the metadata file, as the real ones do.
    """

    name = "catalog"
    unavailable = CatalogUnavailableError

    def __init__(self, life: Life, inner: Catalog, storage: Storage) -> None:
        super().__init__(life)
        self._inner = inner
        self._storage = storage

    @property
    def capabilities(self) -> CatalogCapabilities:
        return self._inner.capabilities

    async def load(self, identifier: TableIdentifier) -> LoadedTable:
        return await load_table(self._storage, identifier, self.current_location)

    async def current_location(self, identifier: TableIdentifier) -> str:
        return await self._call(
            "current_location",
            lambda: self._inner.current_location(identifier),
            str(identifier),
            tables=(identifier,),
        )

    def objects_before(self, swap: Swap) -> tuple[NewObject, ...]:
        return self._inner.objects_before(swap)

    async def swap(self, swap: Swap) -> SwapAnswer:
        return await self._sent(swap, resent=_resent)

    async def _sent(
        self,
        swap: Swap,
        *,
        resent: Callable[[SwapAnswer], SwapAnswer],
        refused: Callable[[], Rejected] | None = None,
    ) -> SwapAnswer:
        return await self._call(
            "swap",
            lambda: self._inner.swap(swap),
            f"{short(swap.base.metadata_location)} → {short(swap.metadata_location)}",
            lost=Unknown,
            refused=refused or (lambda: self._refused(swap)),
            resent=resent,
            tables=(swap.base.identifier,),
        )

    async def swap_together(self, swaps: Sequence[Swap]) -> GroupAnswer:
        return await self._call(
            "swap_together",
            lambda: self._inner.swap_together(swaps),
            ", ".join(f"{short(one.metadata_location)}" for one in swaps),
            lost=Unknown,
            refused=lambda: [self._refused(swap) for swap in swaps][-1],
            resent=_group_resent,
            tables=[swap.base.identifier for swap in swaps],
        )

    def _refused(self, swap: Swap) -> Rejected:
        process = self._life.process
        process.stage.history.refuse(process.name, swap)
        return Rejected("refused by the simulation")

    async def create_table(self, table: LoadedTable) -> None:
        await self._call(
            "create_table", lambda: self._inner.create_table(table), str(table.identifier)
        )

    async def drop_table(self, identifier: TableIdentifier) -> str | None:
        return await self._call(
            "drop_table", lambda: self._inner.drop_table(identifier), str(identifier)
        )

    async def rename_table(self, identifier: TableIdentifier, to: TableIdentifier) -> None:
        await self._call(
            "rename_table", lambda: self._inner.rename_table(identifier, to), f"{identifier} → {to}"
        )

    async def register_table(
        self, identifier: TableIdentifier, metadata_location: str
    ) -> LoadedTable:
        return await self._call(
            "register_table",
            lambda: self._inner.register_table(identifier, metadata_location),
            f"{identifier} {short(metadata_location)}",
        )

    async def list_tables(self, namespace: tuple[str, ...]) -> list[TableIdentifier]:
        return await self._call("list_tables", lambda: self._inner.list_tables(namespace))

    async def create_namespace(self, namespace: tuple[str, ...]) -> None:
        await self._call("create_namespace", lambda: self._inner.create_namespace(namespace))

    async def drop_namespace(self, namespace: tuple[str, ...]) -> None:
        await self._call("drop_namespace", lambda: self._inner.drop_namespace(namespace))

    async def namespace_properties(self, namespace: tuple[str, ...]) -> dict[str, str]:
        return await self._call(
            "namespace_properties", lambda: self._inner.namespace_properties(namespace)
        )

    async def set_namespace_properties(
        self,
        namespace: tuple[str, ...],
        properties: Mapping[str, str],
        *,
        removed: Collection[str] = (),
    ) -> None:
        await self._call(
            "set_namespace_properties",
            lambda: self._inner.set_namespace_properties(namespace, properties, removed=removed),
        )

    async def list_namespaces(self) -> list[tuple[str, ...]]:
        return await self._call("list_namespaces", self._inner.list_namespaces)

    async def default_location(self, namespace: tuple[str, ...]) -> str | None:
        return await self._call("default_location", lambda: self._inner.default_location(namespace))

    async def probe(self) -> None:
        await self._call("probe", self._inner.probe)

    async def close(self) -> None:
        """Do nothing: the server outlives its clients."""


class FaultyQueue(_Port):
    """The `Queue` port around `inner`, this life's client of the server."""

    name = "queue"
    unavailable = QueueUnavailableError

    def __init__(
        self, life: Life, inner: Queue, unsee: Callable[[Sequence[Delivery]], None]
    ) -> None:
        super().__init__(life)
        self._inner = inner
        self._unsee = unsee

    async def announce(self, doorbells: Sequence[Doorbell]) -> int:
        some = doorbells[: len(doorbells) // 2]
        return await self._call(
            "announce",
            lambda: self._inner.announce(doorbells),
            ", ".join(short(bell.inbox_key) for bell in doorbells),
            partly=lambda: self._inner.announce(some),
        )

    async def read(
        self,
        *,
        count_max: int,
        wait_s: float,
        shards: Collection[int] = ALL_SHARDS,
        more_max: int = 0,
    ) -> Sequence[Delivery]:
        return await self._call(
            "read",
            lambda: self._inner.read(
                count_max=count_max, wait_s=wait_s, shards=shards, more_max=more_max
            ),
            blocks=True,
            unseen=self._unsee,
        )

    async def reclaim(
        self, *, idle_s: float, shards: Collection[int] = ALL_SHARDS
    ) -> Sequence[Delivery]:
        return await self._call(
            "reclaim",
            lambda: self._inner.reclaim(idle_s=idle_s, shards=shards),
            unseen=self._unsee,
        )

    def release_shards(self, shards: Collection[int]) -> None:
        self._inner.release_shards(shards)

    async def acknowledge(self, tokens: Sequence[str]) -> None:
        some = tokens[: len(tokens) // 2]
        await self._call(
            "acknowledge",
            lambda: self._inner.acknowledge(tokens),
            " ".join(tokens),
            partly=lambda: self._inner.acknowledge(some),
        )

    def taken_keys(self) -> Mapping[str, str]:
        return self._inner.taken_keys()

    async def reply(self, receipts: Sequence[tuple[str, Receipt]]) -> None:
        some = receipts[: len(receipts) // 2]
        await self._call(
            "reply",
            lambda: self._inner.reply(receipts),
            ", ".join(f"{to} {one.epoch} {one.state.value}" for to, one in receipts),
            partly=lambda: self._inner.reply(some),
        )

    async def wait_for_receipts(self, reply_to: str, *, wait_s: float) -> Sequence[Receipt]:
        return await self._call(
            "wait_for_receipts",
            lambda: self._inner.wait_for_receipts(reply_to, wait_s=wait_s),
            blocks=True,
        )

    async def backlog(self, table_uuid: UUID) -> int:
        return await self._call("backlog", lambda: self._inner.backlog(table_uuid))

    async def depth(self) -> QueueDepth:
        return await self._call("depth", self._inner.depth)

    async def probe(self) -> None:
        await self._call("probe", self._inner.probe)

    async def close(self) -> None:
        """Do nothing: the server outlives its clients."""


class FaultyLeases(_Port):
    """The `Leases` port around `inner`, this life's client of the server."""

    name = "leases"
    unavailable = QueueUnavailableError

    def __init__(self, life: Life, inner: Leases) -> None:
        super().__init__(life)
        self._inner = inner

    async def renew(self, renewal: Renewal) -> Assignment:
        return await self._call("renew", lambda: self._inner.renew(renewal), _claims(renewal))

    async def look(self) -> Assignment:
        return await self._call("look", self._inner.look)

    async def wait_for_change(self, version: str, *, wait_s: float) -> None:
        await self._call(
            "wait_for_change",
            lambda: self._inner.wait_for_change(version, wait_s=wait_s),
            blocks=True,
        )

    async def leave(self) -> None:
        await self._call("leave", self._inner.leave)

    async def close(self) -> None:
        """Do nothing: the server outlives its clients."""


def _claims(renewal: Renewal) -> str:
    marks = [f"+{len(renewal.claim)}"] if renewal.claim else []
    marks += [f"-{len(renewal.release)}"] if renewal.release else []
    return " ".join([*marks, *(["leaving"] if renewal.is_leaving else [])])


def _resent(answer: SwapAnswer) -> SwapAnswer:
    """Turn a conflict into `Unknown`: the swap was sent twice, and the first one may have won."""
    return Unknown("sent twice, and refused") if isinstance(answer, Conflict) else answer


def _group_resent(answer: GroupAnswer) -> GroupAnswer:
    is_refused = isinstance(answer, GroupConflict)
    return Unknown("sent twice, and refused") if is_refused else answer


def short(location: str) -> str:
    """Return the end of a location or key, long enough to tell it from others."""
    return location[-44:].partition("/")[2] or location[-44:]
