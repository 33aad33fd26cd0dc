"""Starts the parts of the service, and stops them without leaving work half done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TypeVar

from committer.errors import TransientError
from committer.plan.backoff import backoff_s
from committer.ports.catalog import Catalog
from committer.service.checks.checks import Checks, ChecksHere
from committer.service.ingest.catalog_probe import CatalogProbe
from committer.service.ingest.committer_pool import TableCommitters
from committer.service.ingest.consumer import Consumer
from committer.service.ingest.doorbells import Doorbells
from committer.service.ingest.hand_over import TableHandOver
from committer.service.ingest.inbox_reader import InboxReader
from committer.service.ingest.inbox_scan import InboxScan
from committer.service.ingest.intake import Intake
from committer.service.ingest.ledger_cleanup import LedgerCleanup
from committer.service.ingest.ownership import Ownership, QueueProgress
from committer.service.ingest.poller import Poller
from committer.service.ingest.reconciler import Reconciler
from committer.service.ingest.resolved_refusals import ResolvedRefusals
from committer.service.process.composition import (
    RequestParts,
    breaker_policy,
    member_name,
    policy,
)
from committer.service.process.status_collector import Work
from committer.service.requests.circuit_breakers import CircuitBreakers
from committer.service.requests.deferred_doorbells import DeferredDoorbells
from committer.service.requests.foreign_entries import ForeignEntries
from committer.service.requests.large_requests import LargeRequests, NamedManifests
from committer.service.requests.recently_quarantined import RecentlyQuarantined
from committer.service.requests.settled_requests import SettledByTable
from committer.service.requests.signature_check import Signatures
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from committer.service.settle.settler import Settler
from committer.service.sharding.shard_leases import ShardLeases
from committer.service.table.shop import Shop
from committer.service.telemetry.health import Health
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics
from committer.service.upkeep.table_files import UpkeepParts
from committer.settings.setting_names import named_setting
from committer.storage.journal import Journal

# Beside the inbox and the quarantine.
_SMALL_FOLDERS = ("upkeep", "witness")


class Service:
    """One committer process: consumer, reconciler, settler, and a task for each table. `work`: None
    before it has started.
    """

    def __init__(self, parts: RequestParts, health: Health, metrics: Metrics) -> None:
        self._parts = parts
        self.health = health
        self.metrics = metrics
        self.work: Work | None = None
        self._settled = SettledByTable()
        self._high_water_marks = HighWaterMarkStore.at(parts.storage, parts.settings.inbox)
        self._settler = Settler(
            inbox=parts.inbox,
            queue=parts.queue,
            world=parts.world,
            health=health,
            high_water_marks=self._high_water_marks,
            settled=self._settled,
        )
        self._signatures = Signatures(
            key_file=parts.key_file,
            required=parts.settings.security.require_signature,
            inbox=parts.inbox,
            world=parts.world,
            health=health,
        )
        self._shards = ShardLeases(
            leases=parts.leases,
            member=member_name(parts.settings),
            world=parts.world,
            health=health,
            metrics=metrics,
            lease_s=parts.settings.service.lease_s,
        )

    def _shop(self, catalog: Catalog, checks: Checks) -> Shop:
        parts = self._parts
        return Shop(
            catalog_name=parts.settings.catalog.name,
            catalog=catalog,
            storage=parts.storage,
            inbox=parts.inbox,
            quarantine=parts.quarantine,
            world=parts.world,
            health=self.health,
            metrics=self.metrics,
            foreign_entries=ForeignEntries(
                parts.inbox, parts.quarantine, parts.world, self.metrics
            ),
            breakers=CircuitBreakers(breaker_policy(parts.settings), parts.world),
            recently_quarantined=RecentlyQuarantined(parts.world),
            settled=self._settled,
            policy=policy(parts.settings),
            signatures=self._signatures,
            high_water_marks=self._high_water_marks,
            upkeep=UpkeepParts(
                catalog=catalog,
                storage=parts.storage,
                journal=Journal(parts.storage, parts.settings.inbox),
                replays=parts.replays,
                world=parts.world,
                metrics=self.metrics,
                is_default=parts.settings.upkeep.expire_snapshots,
            ),
            settle=self._settler.settle,
            named=NamedManifests(parts.world),
            checks=checks,
        )

    async def run(
        self, catalog: Catalog, stop: asyncio.Event, checks: Checks | None = None
    ) -> None:
        """Work until `stop`, then drain. `checks`: where large requests are checked; without, in
        the loop.

        Errors: `SettingsError` for an unsafe back end, found by the probes; whatever else escapes
        is a bug and comes as it is.
        """
        async with asyncio.TaskGroup() as tasks:
            beating = self.health.beat(self.metrics.loop_was_late)
            heart = tasks.create_task(beating, name="heartbeat")
            await self._probe(catalog, stop)
            if stop.is_set():
                heart.cancel()
                return
            shop = self._shop(catalog, checks or ChecksHere())
            deferred = DeferredDoorbells()
            tables = TableCommitters(shop, tasks, deferred)
            large = LargeRequests(shop.world, tables)
            settler = tasks.create_task(self._settler.run(), name="settler")
            hand_over = TableHandOver(
                tables=tables, large=large, deferred=deferred, settler=self._settler
            )
            shards = tasks.create_task(self._shards.run(hand_over), name="shards")
            readings = self._readers(shop, tables, large, deferred)
            readers = [tasks.create_task(reading, name="reader") for reading in readings]
            self.health.phase = "running"
            log.info("service.started", inbox=self._parts.settings.inbox)
            await stop.wait()
            self.health.phase = "draining"
            await self._drain(tables, readers, shards)
            settler.cancel()
            heart.cancel()
        log.info("service.stopped")

    def _readers(
        self,
        shop: Shop,
        tables: TableCommitters,
        large: LargeRequests,
        deferred: DeferredDoorbells,
    ) -> list[Coroutine[object, object, None]]:
        parts, settings = self._parts, self._parts.settings
        intake = Intake(
            tables=tables,
            reader=InboxReader(shop),
            large=large,
            deferred=deferred,
            breakers=shop.breakers,
        )
        readers: list[Coroutine[object, object, None]] = [intake.run()]
        consumer = None
        if parts.queue is not None:
            consumer = Consumer(
                queue=parts.queue,
                doorbells=Doorbells(
                    intake=intake,
                    deferred=deferred,
                    recently_quarantined=shop.recently_quarantined,
                    settler=self._settler,
                    world=parts.world,
                    metrics=self.metrics,
                ),
                intake=intake,
                shards=self._shards,
                world=parts.world,
                health=self.health,
                reclaim_idle_s=settings.queue.reclaim_idle_s,
            )
            readers.append(consumer.run())
        progress = consumer.progress if consumer else QueueProgress(has_queue=False)
        age_s = settings.service.reconcile_age_s
        scan = InboxScan(
            inbox=parts.inbox,
            intake=intake,
            ownership=Ownership(
                shards=self._shards, queue=progress, world=parts.world, age_s=age_s
            ),
            pending_deletes=self._settler.pending_deletes,
            foreign_entries=shop.foreign_entries,
            world=parts.world,
        )
        ledger_cleanup = LedgerCleanup(
            tables=tables, quarantine=parts.quarantine, world=parts.world
        )
        reconciler = Reconciler(
            scan=scan,
            ledger_cleanup=ledger_cleanup,
            queue=progress,
            world=parts.world,
            health=self.health,
            metrics=self.metrics,
            interval_s=settings.service.reconcile_interval_s,
            age_s=age_s,
        )
        readers.append(reconciler.run())
        poller = Poller(
            queue=parts.queue,
            quarantine=parts.quarantine,
            storage=parts.storage,
            folders={name: f"{settings.inbox.rstrip('/')}/{name}/" for name in _SMALL_FOLDERS},
            resolved_refusals=ResolvedRefusals(shop.catalog, parts.storage, parts.quarantine),
            world=parts.world,
            metrics=self.metrics,
        )
        readers.append(poller.run())
        catalog_probe = CatalogProbe(catalog=shop.catalog, world=parts.world, health=self.health)
        readers.append(catalog_probe.run())
        readers.append(self._signatures.run())
        self.work = Work(tables, large, shop.breakers, reconciler, self._shards)
        return readers

    async def _probe(self, catalog: Catalog, stop: asyncio.Event) -> None:
        """Refuse back ends that do not enforce conditions; wait for those that do not answer."""
        probes: list[tuple[str, Callable[[], Awaitable[object]]]] = [
            ("storage", self._probe_inbox),
            ("catalog", catalog.probe),
            ("keys", self._signatures.load),
        ]
        for component, probe in probes:
            await until_answered(component, probe, stop, self.health)

    async def _probe_inbox(self) -> None:
        with named_setting("inbox"):
            await self._parts.storage.probe(self._parts.settings.inbox)

    async def _drain(
        self, tables: TableCommitters, readers: list[asyncio.Task[None]], shards: asyncio.Task[None]
    ) -> None:
        """Stop reading, finish the current attempts, answer and acknowledge, and release each shard
        as soon as it is done. The other requests are redelivered.
        """
        for reader in readers:
            reader.cancel()
        self._shards.leave()
        deadline_s = self._parts.settings.service.drain_timeout_s
        log.info("service.draining", deadline_s=deadline_s)
        try:
            async with asyncio.timeout(deadline_s):
                await asyncio.wait([shards])
                await tables.stop()
                await self._settler.flush()
        except TimeoutError:
            log.warning("service.drain_exceeded", deadline_s=deadline_s)
            shards.cancel()
            tables.abandon()
            await self._shards.abandon()


T = TypeVar("T")

# How long a question of the start may go on behind the stop.
CUT_OFF_S = 5.0


async def until_answered(
    component: str, ask: Callable[[], Awaitable[T]], stop: asyncio.Event, health: Health
) -> T | None:
    """Ask until the component answers, with back-off. None if stopped before, also while a question
    gets no answer.
    """
    failures = 0
    while not stop.is_set():
        try:
            answer = await _unless(stop, ask())
        except TransientError as error:
            if health.degraded(component, str(error)):
                log.warning(f"{component}.unavailable", error=str(error), now="waiting for it")
            failures += 1
            await _pause(backoff_s(failures + 3, 0.5 + health.world.jitter() / 2), stop)
        else:
            if health.healthy(component):
                log.info(f"{component}.returned")
            return answer
    return None


async def _unless(stop: asyncio.Event, question: Awaitable[T]) -> T | None:
    """The answer, or None when `stop` has been set for a while: a probe that is cut off leaves
    something behind, a server that does not answer must not hold up the end.
    """
    asking, stopping = asyncio.ensure_future(question), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((asking, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not asking.done():
            await asyncio.wait((asking,), timeout=CUT_OFF_S)
        return asking.result() if asking.done() else None
    finally:
        stopping.cancel()
        asking.cancel()
        await asyncio.gather(asking, stopping, return_exceptions=True)


async def _pause(delay_s: float, stop: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(delay_s):
            await stop.wait()
