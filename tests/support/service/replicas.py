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
from committer.service.process.composition import RequestParts, Storages, installation_of
from committer.service.process.service import Service
from committer.service.process.startup import instrument, instrument_catalog
from committer.service.process.status_collector import StatusCollector
from committer.service.telemetry.health import Health
from committer.service.telemetry.metrics import Metrics
from committer.service.telemetry.place_watch import PlaceWatch
from committer.settings.service_settings import (
    CatalogSettings,
    CommitSettings,
    QueueSettings,
    SecuritySettings,
    ServiceSettings,
    Settings,
)
from tests.support.faults.cut_off import Links, linked_catalog, linked_storage
from tests.support.memory.memory_queue import MemoryLeases, MemoryQueue
from tests.support.service.checks_here import ChecksHere
from tests.support.service.service_harness import INBOX, ServiceHarness

LEASE_S = 30.0
SOON_S = 1.0


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

    def start(
        self,
        name: str,
        *,
        leases: Leases | None = None,
        catalog_name: str = "frazil",
        links: Links | None = None,
    ) -> Replica:
        harness, world = self.harness, self.harness.world
        links = links or Links()
        storage = harness.storage.inner
        self.started += 1
        metrics = Metrics()
        settings = Settings(
            home=self.folder,
            inbox=INBOX,
            catalog=CatalogSettings(name=catalog_name),
            queue=QueueSettings(consumer=name),
            commit=CommitSettings(min_interval_ms=0),
            service=ServiceSettings(lease_s=LEASE_S, reconcile_age_s=0),
            security=SecuritySettings(unsigned_operations="all"),
        )
        own = MemoryLeases(
            harness.server,
            member=name,
            process=UUID(int=self.started),
            installation=installation_of(settings),
        )
        parts = RequestParts(
            settings=settings,
            world=world,
            storages=Storages(
                linked_storage(storage, links.storage), linked_storage(storage, links.inbox)
            ),
            queue=MemoryQueue(harness.server, consumer=name),
            leases=leases or own,
        )
        stop, health = asyncio.Event(), Health(world)
        places = PlaceWatch(world, health)
        parts = instrument(parts, metrics, places)
        service = Service(parts, health, metrics, places)
        catalog = linked_catalog(harness.catalog, links.catalog)
        counted = instrument_catalog(catalog, world, metrics, places)
        running = asyncio.ensure_future(service.run(counted, stop, ChecksHere()))
        status_collector = StatusCollector(service, catalog=catalog_name, inbox=INBOX)
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


async def settled(*started: Replica) -> None:
    """Wait until they have shared everything; that takes no time that counts."""
    await asyncio.sleep(SOON_S)
    assert sum(replica.owned for replica in started) == 64


async def landed(replicas: Replicas, table: LoadedTable) -> int:
    files = await replicas.harness.live_files(str(table.identifier))
    paths = [file.file_path for file in files]
    assert len(paths) == len(set(paths)), "doubled"
    return len(paths)
