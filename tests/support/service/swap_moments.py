"""Everything that can befall the swap of one commit, one by one, on any catalog adapter.

A commit before, the commit that the fault meets, and one after it: each of the three requests is in
the table once, whatever the catalog's answers were, and no attempt lands behind another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from committer.errors import CatalogUnavailableError, StorageUnavailableError
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import LoadedTable, Swap, SwapAnswer
from committer.ports.storage import Storage
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.service.telemetry.instrumented_ports import InstrumentedStorage
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_table
from tests.support.clock.virtual_time import LoopWorld
from tests.support.faults.counting_storage import CountingStorage
from tests.support.faults.faulty_catalog import Fault, FaultyCatalog
from tests.support.service.service_harness import ServiceHarness

SETTLE_S_MAX = 60.0
POLL_S = 0.02


class Death(Enum):
    """The moment in which the committer ends, as by SIGKILL."""

    BEFORE_THE_SWAP = "before the swap is sent"
    WITHIN_THE_SWAP = "before the answer is heard"
    AFTER_THE_ANSWER = "after the answer"


class Landing(Enum):
    """When a request that was held back arrives."""

    BEFORE_THE_NEXT_ATTEMPT = "before the next attempt"
    AFTER_THE_NEXT_ATTEMPT = "after the next attempt"


@dataclass(frozen=True, slots=True)
class Moment:
    """One cell of the matrix."""

    fault: Fault | None = None
    death: Death | None = None
    landing: Landing | None = None

    def __str__(self) -> str:
        fault = self.fault.name.lower() if self.fault else ""
        arrives = f"arrives {self.landing.value}" if self.landing else ""
        dies = f"dies {self.death.value}" if self.death else ""
        return ", ".join(filter(None, (fault, arrives, dies)))


def moments(faults: frozenset[Fault]) -> Iterator[Moment]:
    """Yield all moments, with those of the faults that the back end can have."""
    yield from (Moment(death=one) for one in Death)
    for fault in sorted(faults, key=lambda one: one.value):
        deaths: tuple[Death | None, ...] = (None, Death.AFTER_THE_ANSWER)
        if fault is Fault.REJECTED:  # the answer is all that there is
            deaths = (None,)
        landings: tuple[Landing | None, ...] = (None,)
        if fault is Fault.LANDS_LATE:
            landings = tuple(Landing)
        for landing in landings:
            for death in deaths:
                yield Moment(fault, death, landing)


class Backend(Protocol):
    """The part of `CatalogHarness` that is used here."""

    @property
    def warehouse(self) -> str: ...

    @property
    def catalog(self) -> Catalog: ...

    @property
    def storage(self) -> Storage: ...

    def befall(self, fault: Fault) -> AbstractContextManager[None]: ...

    async def land_late(self) -> None: ...

    async def another(self) -> Catalog: ...


class Mortality:
    """Whether the process that makes the calls has ended. `release` ends calls that wait since."""

    def __init__(self) -> None:
        self.dead = asyncio.Event()
        self._released = asyncio.Event()

    async def end(self) -> None:
        """End the process in this call, which never returns to it."""
        self.dead.set()
        await self._released.wait()

    def release(self) -> None:
        self._released.set()


class MortalStorage(InstrumentedStorage):
    """The `Storage` port of a process: once that has ended, no call has an effect."""

    def __init__(self, inner: Storage, mortality: Mortality) -> None:
        super().__init__(inner, CountingStorage(inner))
        self._mortality = mortality

    def __getattribute__(self, name: str) -> Any:
        if name in _EFFECTS and object.__getattribute__(self, "_mortality").dead.is_set():
            return object.__getattribute__(self, "_ended")
        return object.__getattribute__(self, name)

    async def _ended(self, *_: object, **__: object) -> Any:
        await self._mortality.end()
        raise StorageUnavailableError("the process has ended")


_EFFECTS = frozenset({"create", "replace", "delete"})


class WatchedCatalog(FaultyCatalog):
    """Notes the answer to each swap. `death`: of the next swap; `on_answer` acts before the next
    answer is told.
    """

    def __init__(self, inner: Catalog, mortality: Mortality) -> None:
        super().__init__(inner)
        self.answers: list[SwapAnswer | CatalogUnavailableError] = []
        self.has_answered = asyncio.Event()
        self.death: Death | None = None
        self.on_answer: Callable[[], Awaitable[None]] | None = None
        self._mortality = mortality

    async def swap(self, swap: Swap) -> SwapAnswer:
        death, self.death = self.death, None
        if death is Death.BEFORE_THE_SWAP:
            await self._mortality.end()
            raise CatalogUnavailableError("the process has ended")
        try:
            answer = await super().swap(swap)
        except CatalogUnavailableError as error:
            self._note(error)
            raise
        finally:
            act, self.on_answer = self.on_answer, None
            if act is not None:
                await act()
            if death is Death.AFTER_THE_ANSWER:
                self._mortality.dead.set()
        if death is Death.WITHIN_THE_SWAP:
            await self._mortality.end()
            raise CatalogUnavailableError("the process has ended")
        self._note(answer)
        return answer

    def _note(self, answer: SwapAnswer | CatalogUnavailableError) -> None:
        self.answers.append(answer)
        self.has_answered.set()


class SwapMoment:
    """One moment at one table of a back end. `start_ms`: the time at which the loop's was 0."""

    def __init__(
        self, backend: Backend, name: str, moment: Moment, *, start_ms: int = 1_800_000_000_000
    ) -> None:
        self._backend = backend
        self._start_ms = start_ms
        self._name = f"db.{name}"
        self._moment = moment
        self._mortality = Mortality()
        self._root = f"{backend.warehouse}-requests/{name}"
        self._harness = self._process(MortalStorage(backend.storage, self._mortality), seed=1)
        self._catalog = WatchedCatalog(backend.catalog, self._mortality)
        self._harness.catalog = self._catalog

    async def play(self) -> SwapAnswer | CatalogUnavailableError | None:
        """Play it, check the table, and return what the swap that it met was answered."""
        table = build_table(self._name, warehouse=self._backend.warehouse)
        await self._backend.catalog.create_namespace(table.identifier.namespace)
        await self._backend.catalog.create_table(table)
        # Where the catalog has put it.
        table = await self._backend.catalog.load(table.identifier)
        async with self._harness.running():
            await self._commit(table, 0)
            met = await self._meet(table)
        if self._moment.death is not None:
            await self._live_again()
        async with self._harness.running(reconcile_interval_s=0.1):
            await self._settle()
            if self._moment.landing is Landing.AFTER_THE_NEXT_ATTEMPT:
                await self._backend.land_late()
            await self._commit(table, 2)
        await self._check(table)
        return met

    async def _commit(self, table: LoadedTable, epoch: int) -> None:
        await self._harness.publish(build_request(table, epoch=epoch))
        await self._settle()

    async def _settle(self) -> None:
        for _ in range(int(SETTLE_S_MAX / POLL_S)):
            if not await self._harness.outstanding():
                return
            await asyncio.sleep(POLL_S)
        raise AssertionError(f"{self._moment}: requests wait, {self._catalog.answers}")

    async def _meet(self, table: LoadedTable) -> SwapAnswer | CatalogUnavailableError | None:
        """Publish a request, and wait until its swap has met what is to befall it."""
        moment, catalog = self._moment, self._catalog
        befalls = self._backend.befall(moment.fault) if moment.fault else nullcontext()
        known = len(catalog.answers)
        catalog.has_answered.clear()
        if moment.landing is Landing.BEFORE_THE_NEXT_ATTEMPT:
            catalog.on_answer = self._backend.land_late
        catalog.death = moment.death
        with befalls:
            await self._harness.publish(build_request(table, epoch=1))
            async with asyncio.timeout(SETTLE_S_MAX):
                if moment.death is not None:
                    await self._mortality.dead.wait()
                if moment.fault is not None:
                    await catalog.has_answered.wait()
        if moment.death is not None:
            # Behind the cancellation of every task: a swap that is sent is awaited even then.
            asyncio.get_running_loop().call_soon(self._mortality.release)
        else:
            await self._settle()
        return catalog.answers[known] if len(catalog.answers) > known else None

    async def _live_again(self) -> None:
        """Replace the client of the process that has ended, whose knowledge ends with it."""
        self._harness = self._next_harness()
        self._catalog = WatchedCatalog(await self._backend.another(), Mortality())
        self._harness.catalog = self._catalog

    def _process(self, storage: Storage, *, seed: int) -> ServiceHarness:
        world = LoopWorld(start_ms=self._start_ms, seed=seed)
        return ServiceHarness(wrap=lambda _: storage, root=self._root, world=world)

    def _next_harness(self) -> ServiceHarness:
        after = self._process(self._backend.storage, seed=2)
        # The queue's server outlives its clients.
        after.server.shards = self._harness.server.shards
        after.server.mailboxes = self._harness.server.mailboxes
        return after

    async def _check(self, table: LoadedTable) -> None:
        harness, is_rejected = self._harness, self._moment.fault is Fault.REJECTED
        epochs = (0, 2) if is_rejected else (0, 1, 2)
        metadata = await harness.load(self._name)
        files = [file.file_path for file in await harness.live_files(self._name)]
        assert len(files) == len(set(files)) == len(epochs)
        snapshots = sorted(metadata.snapshots, key=lambda one: one.sequence_number)
        assert len(snapshots) == len(epochs)
        parents = [None, *(one.snapshot_id for one in snapshots)]
        assert [one.parent_snapshot_id for one in snapshots] == parents[:-1]
        reasons = [record.reason for record in await harness.quarantined()]
        assert reasons == [Reason.COMMIT_REJECTED] * is_rejected
        told = {one.epoch: one for one in await harness.receipts()}
        for number, epoch in enumerate(epochs):
            assert told[epoch].state is ReceiptState.COMMITTED
            assert told[epoch].snapshot_id == snapshots[number].snapshot_id
        assert await harness.outstanding() == []
