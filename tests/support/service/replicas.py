"""Several committers on the same servers, in one process and virtual time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from committer.plan.scheduling.shards import ranked
from committer.ports.leases import Leases
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import shard_of
from committer.service.process.composition import RequestParts, Storages
from committer.service.process.service import Service
from committer.service.process.status_collector import StatusCollector
from committer.service.telemetry.health import Health
from committer.service.telemetry.instrumented_ports import instrumented
from committer.service.telemetry.metrics import Metrics
from committer.settings.service_settings import (
    CommitSettings,
    QueueSettings,
    SecuritySettings,
    ServiceSettings,
    Settings,
)
from tests.support.memory.memory_queue import MemoryLeases, MemoryQueue
from tests.support.service.checks_here import ChecksHere
from tests.support.service.service_harness import INBOX, ServiceHarness

LEASE_S = 30.0


@dataclass(slots=True)
class Replica:
    """One committer process, from its start to its end."""

    name: str
    status_collector: StatusCollector
    stop: asyncio.Event
    running: asyncio.Task[None]

    @property
    def metrics(self) -> Metrics:
        return self.status_collector.metrics

    @property
    def conditions(self) -> dict[str, str]:
        return self.status_collector.health.conditions

    @property
    def owned(self) -> int:
        return int(self.number("frazil_shards"))

    def number(self, name: str, **labels: str) -> float:
        samples = self.metrics.instruments.samples()
        return sum(
            one.value
            for one in samples
            if one.name == name and labels.items() <= one.labels.items()
        )

    async def end(self) -> None:
        """Stop as by SIGTERM, and wait for the end."""
        self.stop.set()
        await self.running

    async def crash(self) -> None:
        """Crash: no shard is handed over."""
        self.running.cancel()
        with suppress(asyncio.CancelledError):
            await self.running


@dataclass(slots=True)
class Replicas:
    """`harness` has the servers; its own committer does not run."""

    folder: Path
    harness: ServiceHarness = field(default_factory=ServiceHarness)
    started: int = 0
    tables: int = 0
    used: set[int] = field(default_factory=set)

    def start(self, name: str, *, leases: Leases | None = None) -> Replica:
        harness, world = self.harness, self.harness.world
        storage = harness.storage.inner
        self.started += 1
        metrics = Metrics()
        own = MemoryLeases(harness.server, member=name, process=UUID(int=self.started))
        parts = RequestParts(
            settings=Settings(
                home=self.folder,
                inbox=INBOX,
                queue=QueueSettings(consumer=name),
                commit=CommitSettings(min_interval_ms=0),
                service=ServiceSettings(lease_s=LEASE_S, reconcile_age_s=0),
                security=SecuritySettings(unsigned_operations="all"),
            ),
            world=world,
            storages=Storages(storage, storage),
            queue=MemoryQueue(harness.server, consumer=name),
            leases=instrumented(leases or own, Leases, metrics.meter("leases", world)),
        )
        stop = asyncio.Event()
        service = Service(parts, Health(world), metrics)
        running = asyncio.ensure_future(service.run(harness.catalog, stop, ChecksHere()))
        status_collector = StatusCollector(service, catalog="frazil", inbox=INBOX)
        return Replica(name, status_collector, stop, running)

    async def table_of(self, owner: str, *names: str) -> LoadedTable:
        """Create a table whose shard is `owner`'s among these names, and no other table's."""
        while True:
            self.tables += 1
            table = await self.harness.create_table(f"db.flights_{self.tables}")
            shard = shard_of(table.metadata.require_uuid())
            if shard not in self.used and ranked((owner, *names), shard)[0] == owner:
                self.used.add(shard)
                return table


async def cancel_others() -> None:
    """End all tasks but this one, whatever they are at."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
