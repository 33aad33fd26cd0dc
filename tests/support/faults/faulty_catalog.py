"""A catalog before a real adapter, which misbehaves when told to and counts calls.

Each planned fault befalls one swap, alone or a group. Everything else passes through, so the inner
catalog stays the judge of every condition.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from enum import Enum, auto
from typing import Any, TypeVar

from committer.errors import CatalogUnavailableError, StorageUnavailableError
from committer.ports.catalog import Catalog
from committer.ports.catalog_capabilities import CatalogCapabilities
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
from committer.ports.storage import NewObject
from committer.request.table_identifier import TableIdentifier

T = TypeVar("T")
C = TypeVar("C", Conflict, GroupConflict)
Refused = Rejected | Unknown


class Fault(Enum):
    """A fault of one swap."""

    LOST_REPLY = auto()  # applied if the base is current; the answer is lost
    REQUEST_LOST = auto()  # never applied; the answer is lost too
    LANDS_LATE = auto()  # the answer is lost; applied at `land_late`, if the base is current then
    RESENT = auto()  # sent again by a layer below; the answer is that to the second
    REJECTED = auto()  # refused for what it says
    CONFLICT = auto()  # refused for its timing
    CRASHED = auto()  # applied if the base is current; then raises a bug of the adapter
    UNAVAILABLE = auto()  # raises; surely nothing applied


class FaultyCatalog:
    """The `Catalog` port around `inner`. `calls` counts by method name. `swap_s`: how long a swap
    of this table is on its way. `unavailable`: the tables that cannot be loaded or swapped;
    `unwritable`: those whose metadata files cannot be written.
    """

    def __init__(self, inner: Catalog) -> None:
        self.inner = inner
        self.calls: Counter[str] = Counter()
        self.swap_s: dict[str, float] = {}
        self.unavailable: set[str] = set()
        self.unwritable: set[str] = set()
        self._planned: deque[Fault] = deque()
        self._in_flight: deque[Callable[[], Awaitable[Any]]] = deque()

    @property
    def capabilities(self) -> CatalogCapabilities:
        return self.inner.capabilities

    def plan(self, *faults: Fault) -> None:
        """Fail the next swaps with these faults, in order."""
        self._planned.extend(faults)

    def recover(self) -> None:
        """Forget the faults that are still planned."""
        self._planned.clear()

    async def land_late(self) -> list[SwapAnswer | GroupAnswer]:
        """Deliver every swap that was held back, oldest first; tell what became of each."""
        answers: list[SwapAnswer | GroupAnswer] = []
        while self._in_flight:
            answers.append(await self._in_flight.popleft()())
        return answers

    async def swap(self, swap: Swap) -> SwapAnswer:
        self.calls["swap"] += 1
        await self._delay((swap,))
        return await self._befall(lambda: self.inner.swap(swap), Conflict())

    async def swap_together(self, swaps: Sequence[Swap]) -> GroupAnswer:
        self.calls["swap_together"] += 1
        await self._delay(swaps)
        return await self._befall(lambda: self.inner.swap_together(swaps), GroupConflict())

    async def _delay(self, swaps: Sequence[Swap]) -> None:
        if delay_s := max(self.swap_s.get(str(one.base.identifier), 0.0) for one in swaps):
            await asyncio.sleep(delay_s)
        self._require_available(*(one.base.identifier for one in swaps))

    def _require_available(self, *identifiers: TableIdentifier) -> None:
        if self.unavailable.intersection(map(str, identifiers)):
            raise CatalogUnavailableError("the test keeps the table away")

    async def _befall(self, apply: Callable[[], Awaitable[T]], conflict: C) -> T | C | Refused:
        match self._planned.popleft() if self._planned else None:
            case None:
                return await apply()
            case Fault.LOST_REPLY:
                await apply()
            case Fault.RESENT:
                await apply()
                answer = await apply()
                return answer if not isinstance(answer, type(conflict)) else Unknown("sent twice")
            case Fault.REQUEST_LOST:
                pass
            case Fault.LANDS_LATE:
                self._in_flight.append(apply)
            case Fault.REJECTED:
                return Rejected("refused by the test")
            case Fault.CONFLICT:
                return conflict
            case Fault.CRASHED:
                await apply()
                raise RuntimeError("a bug of the adapter")
            case Fault.UNAVAILABLE:
                raise CatalogUnavailableError("the test keeps the catalog away")
        return Unknown("the test lost the answer")

    async def load(self, identifier: TableIdentifier) -> LoadedTable:
        self.calls["load"] += 1
        self._require_available(identifier)
        return await self.inner.load(identifier)

    async def current_location(self, identifier: TableIdentifier) -> str:
        self.calls["current_location"] += 1
        self._require_available(identifier)
        return await self.inner.current_location(identifier)

    def objects_before(self, swap: Swap) -> tuple[NewObject, ...]:
        if str(swap.base.identifier) in self.unwritable:
            raise StorageUnavailableError("the test lets nothing be written")
        return self.inner.objects_before(swap)

    async def create_table(self, table: LoadedTable) -> None:
        self.calls["create_table"] += 1
        await self.inner.create_table(table)

    async def drop_table(self, identifier: TableIdentifier) -> str | None:
        self.calls["drop_table"] += 1
        return await self.inner.drop_table(identifier)

    async def rename_table(self, identifier: TableIdentifier, to: TableIdentifier) -> None:
        self.calls["rename_table"] += 1
        await self.inner.rename_table(identifier, to)

    async def register_table(
        self, identifier: TableIdentifier, metadata_location: str
    ) -> LoadedTable:
        self.calls["register_table"] += 1
        return await self.inner.register_table(identifier, metadata_location)

    async def list_tables(self, namespace: tuple[str, ...]) -> list[TableIdentifier]:
        self.calls["list_tables"] += 1
        return await self.inner.list_tables(namespace)

    async def create_namespace(self, namespace: tuple[str, ...]) -> None:
        self.calls["create_namespace"] += 1
        await self.inner.create_namespace(namespace)

    async def drop_namespace(self, namespace: tuple[str, ...]) -> None:
        self.calls["drop_namespace"] += 1
        await self.inner.drop_namespace(namespace)

    async def namespace_properties(self, namespace: tuple[str, ...]) -> dict[str, str]:
        self.calls["namespace_properties"] += 1
        return await self.inner.namespace_properties(namespace)

    async def set_namespace_properties(
        self,
        namespace: tuple[str, ...],
        properties: Mapping[str, str],
        *,
        removed: Collection[str] = (),
    ) -> None:
        self.calls["set_namespace_properties"] += 1
        await self.inner.set_namespace_properties(namespace, properties, removed=removed)

    async def list_namespaces(self) -> list[tuple[str, ...]]:
        self.calls["list_namespaces"] += 1
        return await self.inner.list_namespaces()

    async def default_location(self, namespace: tuple[str, ...]) -> str | None:
        self.calls["default_location"] += 1
        return await self.inner.default_location(namespace)

    async def probe(self) -> None:
        await self.inner.probe()

    async def close(self) -> None:
        await self.inner.close()
