"""A whole committer in one process on memory adapters and virtual time, with taps for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from uuid import UUID

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_list import decode_manifest_list
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.plan.batch.batch_policy import BatchPolicy
from committer.plan.ledger.state import TableState
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import ALL_SHARDS, Doorbell
from committer.ports.storage import Storage
from committer.request.receipt_model import Receipt
from committer.request.request_format import EncodedRequest, line_digest
from committer.request.table_identifier import TableIdentifier
from committer.service.checks.checks import Checks
from committer.service.ingest.committer_pool import TableCommitters
from committer.service.process.composition import RequestParts, Storages
from committer.service.process.process_wiring import ProcessWiring, WorkWiring
from committer.service.process.status_collector import StatusCollector
from committer.service.process.table_wiring import TableWiring
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from committer.service.sharding.shard_leases import ShardLeases
from committer.service.telemetry.health import Health
from committer.service.telemetry.metrics import Metrics
from committer.service.telemetry.place_watch import PlaceWatch
from committer.settings.service_settings import (
    CatalogSettings,
    SecuritySettings,
    ServiceSettings,
    Settings,
)
from committer.storage.inbox.high_water_mark_objects import HighWaterMarks
from committer.storage.inbox.inbox import Inbox, Quarantine, QuarantineRecord
from committer.storage.inbox.journal import Journal
from tests.support.builders.table_builders import build_table
from tests.support.clock.virtual_time import LoopWorld
from tests.support.faults.counting_storage import CountingStorage
from tests.support.faults.faulty_catalog import FaultyCatalog
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.memory.memory_queue import (
    INSTALLATION,
    MemoryLeases,
    MemoryQueue,
    MemoryServer,
)
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.service.checks_here import ChecksHere

WAREHOUSE = "memory://warehouse"
INBOX = "memory://requests"
KEYS = "memory://secrets/keys.toml"


@cache
def _settings(
    root: str, service: ServiceSettings, security: SecuritySettings, catalog_name: str
) -> Settings:
    """Return the settings of a process: made once, as they look at the environment each time."""
    catalog = CatalogSettings(name=catalog_name)
    return Settings(inbox=root, service=service, security=security, catalog=catalog)


class ServiceHarness:
    """All parts of a service on servers that outlive it: each `running()` is a new process.

    `wrap` puts a storage of the test's own before the memory; `has_keys`: the keys are at `KEYS`;
    `beside`: a service whose storage and clock this one shares.
    """

    def __init__(
        self,
        *,
        min_interval_ms: int = 0,
        with_queue: bool = True,
        seed: int = 0,
        breaker_threshold: int = 0,
        has_keys: bool = False,
        require_signature: bool = False,
        unsigned_operations: str = "all",
        check_unsigned_files: bool = False,
        wrap: Callable[[Storage], Storage] = lambda storage: storage,
        checks: Checks | None = None,
        catalog_name: str = "frazil",
        root: str = INBOX,
        beside: ServiceHarness | None = None,
        world: LoopWorld | None = None,
    ) -> None:
        self.catalog_name = catalog_name
        self.root = root
        self.world: LoopWorld = beside.world if beside else world or LoopWorld(seed=seed)
        memory = beside.storage.inner if beside else wrap(MemoryStorage(world=self.world))
        self.storage: CountingStorage = CountingStorage(memory)
        self.inbox_storage = CountingStorage(self.storage.inner)
        self.catalog = FaultyCatalog(MemoryCatalog(storage=self.storage.inner))
        self.server = MemoryServer(world=self.world)
        self.queue = MemoryQueue(self.server, consumer="committer") if with_queue else None
        self.publisher_queue = MemoryQueue(self.server, consumer="publisher")
        self.inbox = Inbox(self.inbox_storage, root)
        self.quarantine = Quarantine(self.storage.inner, root)
        self.journal = Journal(self.inbox_storage, root)
        self.high_water_marks = HighWaterMarks(self.inbox_storage, root)
        self.health = Health(self.world)
        self.metrics = Metrics()
        self.work: WorkWiring | None = None
        self.status_collector = StatusCollector(self, catalog=catalog_name, inbox=root)
        self.policy = BatchPolicy(min_interval_ms=min_interval_ms)
        self._breaker_threshold = breaker_threshold
        self.has_keys = has_keys
        self._security = SecuritySettings(
            require_signature=require_signature,
            keys=KEYS if has_keys else "",
            unsigned_operations=unsigned_operations,
            check_unsigned_files=check_unsigned_files,
            locations=WAREHOUSE,
        )
        self.checks = checks or ChecksHere()
        self._starts = 0
        self.wiring = ProcessWiring(
            self._parts(1.0, 1.0), self.health, self.metrics, self._shards()
        )

    async def create_table(
        self, name: str = "db.flights", *, properties: Mapping[str, str] | None = None
    ) -> LoadedTable:
        table = build_table(name, warehouse=WAREHOUSE, properties=properties)
        await self.catalog.inner.create_namespace(table.identifier.namespace)
        await self.catalog.inner.create_table(table)
        return table

    async def publish(
        self, sealed: EncodedRequest, *, announce: bool = True, durable: bool = True
    ) -> None:
        """Publish as a producer does: durable first, then the doorbell."""
        if durable:
            await self.inbox.put(sealed)
        if announce:
            await self.publisher_queue.announce([self.doorbell(sealed)])

    def doorbell(self, sealed: EncodedRequest) -> Doorbell:
        request = sealed.request
        return Doorbell(
            request.table_uuid,
            sealed.key,
            line_digest(sealed.content),
            sealed.content,
            request.producer.id,
        )

    async def accept(self, name: str = "db.flights") -> None:
        """Accept the table's state, as `frazil table accept` does."""
        table = await self.catalog.inner.load(TableIdentifier.parse(name))
        keeper = HighWaterMarkStore(self.high_water_marks)
        await keeper.accept(TableState.of(table), now_ms=self.world.now_ms())

    @asynccontextmanager
    async def running(
        self, *, reconcile_interval_s: float = 3600.0, reconcile_age_s: float = 0.0
    ) -> AsyncIterator[None]:
        """Run the service while inside; end it as a crash would (nothing is drained)."""
        shards = self._shards()
        wiring = self.wiring = ProcessWiring(
            self._parts(reconcile_interval_s, reconcile_age_s),
            self.health,
            self.metrics,
            shards,
        )
        wiring.policy = self.policy
        await wiring.signatures.load()
        async with asyncio.TaskGroup() as tasks:
            room = wiring.transaction_room(self.catalog, tasks)
            make_table = TableWiring(wiring, self.catalog, self.checks, room).table
            work = self.work = WorkWiring(wiring, make_table, self.checks, tasks)
            sharing = shards.run(work.hand_over.release_shards)
            loops = (wiring.settler.run(), wiring.signatures.run(), sharing)
            running = [tasks.create_task(loop) for loop in (*loops, *work.readers())]
            try:
                yield
            finally:
                for task in running:
                    task.cancel()
                room.abandon()
                work.tables.abandon()

    def _parts(self, reconcile_interval_s: float, reconcile_age_s: float) -> RequestParts:
        service = ServiceSettings(
            breaker_threshold=self._breaker_threshold,
            reconcile_interval_s=reconcile_interval_s,
            reconcile_age_s=reconcile_age_s,
        )
        parts = RequestParts(
            settings=_settings(self.root, service, self._security, self.catalog_name),
            world=self.world,
            storages=Storages(self.storage, self.inbox_storage),
            queue=self.queue,
        )
        # Tests replace some of these.
        parts.inbox, parts.quarantine, parts.journal = self.inbox, self.quarantine, self.journal
        parts.high_water_marks = HighWaterMarkStore(self.high_water_marks)
        return parts

    def _shards(self) -> ShardLeases:
        leases = None
        if self.queue is not None:
            self._starts += 1
            leases = MemoryLeases(self.server, member="committer", process=UUID(int=self._starts))
        return ShardLeases(
            leases=leases,
            member="committer",
            installation=INSTALLATION,
            world=self.world,
            health=self.health,
            metrics=self.metrics,
            lease_s=30.0,
            places=PlaceWatch(self.world, self.health),
        )

    @property
    def tables(self) -> TableCommitters:
        """The table committers of the service that runs, or ran last."""
        assert self.work is not None
        return self.work.tables

    async def release_shards(self, *shards: int) -> None:
        """Release these shards of the running service; all, if none is named."""
        assert self.work is not None
        await self.work.hand_over.release_shards(frozenset(shards or ALL_SHARDS))

    async def settle(self, seconds: float = 30.0) -> None:
        """Wait that much (virtual) time."""
        await asyncio.sleep(seconds)

    async def run_until_settled(self, *, seconds: float = 30.0) -> None:
        async with self.running():
            await self.settle(seconds)

    async def land_in_turn(self, *requests: EncodedRequest) -> None:
        """Land each in a commit of its own, by one process, which forgets what it need not know."""
        async with self.running():
            for sealed in requests:
                await self.publish(sealed)
                await self.settle(10.0)

    async def receipts(self, producer: str = "query-1") -> list[Receipt]:
        return list(await self.publisher_queue.wait_for_receipts(producer, wait_s=0.0))

    async def load(self, name: str = "db.flights") -> TableMetadata:
        return (await self.catalog.inner.load(TableIdentifier.parse(name))).metadata

    async def live_files(self, name: str = "db.flights") -> list[DataFile]:
        """Return all live data files of main, read back through manifest list and manifests."""
        metadata = await self.load(name)
        head = metadata.current_snapshot
        if head is None or head.manifest_list is None:
            return []
        listed = decode_manifest_list(await self.storage.inner.get(head.manifest_list))
        files: list[DataFile] = []
        for row in listed.rows:
            content = await self.storage.inner.get(row.manifest_path)
            decoded = decode_manifest(content, manifest_file=row)
            files.extend(entry.data_file for entry in decoded.entries if entry.is_live)
        return files

    async def outstanding(self) -> list[str]:
        return [waiting.key async for waiting in self.inbox.list()]

    async def quarantined(self) -> list[QuarantineRecord]:
        return [(await self.quarantine.get(one.key))[0] async for one in self.quarantine.list()]
