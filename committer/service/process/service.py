"""Starts the parts of the service, and stops them without leaving work half done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TypeVar

from committer.errors import TransientError
from committer.plan.backoff import backoff_s
from committer.service.checks.checks import Checks, ChecksHere
from committer.service.ingest.catalog_probe import CatalogProbe
from committer.service.ingest.consumer import Consumer
from committer.service.ingest.hand_over import TableHandOver
from committer.service.ingest.inbox_scan import InboxScan
from committer.service.ingest.intake import Intake
from committer.service.ingest.ledger_cleanup import LedgerCleanup
from committer.service.ingest.ownership import Ownership, QueueProgress
from committer.service.ingest.poller import Poller
from committer.service.ingest.reconciler import Reconciler
from committer.service.ingest.resolved_refusals import ResolvedRefusals
from committer.service.process.composition import (
    Parts,
    breaker_policy,
    member_name,
    policy,
)
from committer.service.process.status_collector import StatusCollector
from committer.service.requests.circuit_breakers import CircuitBreakers
from committer.service.requests.foreign_entries import ForeignEntries
from committer.service.requests.large_requests import NamedManifests
from committer.service.requests.recently_quarantined import RecentlyQuarantined
from committer.service.requests.settled_requests import SettledByTable
from committer.service.requests.signature_check import Signatures
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from committer.service.settle.settler import Settler
from committer.service.sharding.shard_leases import ShardLeases
from committer.service.table.shop import Shop
from committer.service.telemetry.health import Health
from committer.service.telemetry.log import log
from committer.service.upkeep.table_files import UpkeepParts
from committer.settings.setting_names import named_setting
from committer.storage.high_water_mark_objects import HighWaterMarks
from committer.storage.journal import Journal
from committer.storage.replays import Replays

# Beside the inbox and the quarantine.
_SMALL_FOLDERS = ("replaying", "upkeep", "witness")


class Service:
    """One committer process: consumer, reconciler, settler, and a task for each table."""

    def __init__(
        self, parts: Parts, status_collector: StatusCollector, checks: Checks | None = None
    ) -> None:
        """`checks`: where large requests are checked; without, in the loop."""
        self._parts = parts
        self._status_collector = status_collector
        self.health = status_collector.health
        high_water_marks = HighWaterMarkStore(HighWaterMarks(parts.storage, parts.settings.inbox))
        settled = SettledByTable()
        self._settler = Settler(
            inbox=parts.inbox,
            queue=parts.queue,
            world=parts.world,
            health=self.health,
            high_water_marks=high_water_marks,
            settled=settled,
        )
        self._signatures = Signatures(
            key_file=parts.key_file,
            required=parts.settings.security.require_signature,
            inbox=parts.inbox,
            world=parts.world,
            health=self.health,
        )
        self._shop = Shop(
            catalog_name=parts.settings.catalog.name,
            catalog=parts.catalog,
            storage=parts.storage,
            inbox=parts.inbox,
            quarantine=parts.quarantine,
            world=parts.world,
            health=self.health,
            metrics=status_collector.metrics,
            foreign_entries=ForeignEntries(
                parts.inbox, parts.quarantine, parts.world, status_collector.metrics
            ),
            breakers=CircuitBreakers(breaker_policy(parts.settings), parts.world),
            recently_quarantined=RecentlyQuarantined(parts.world),
            settled=settled,
            policy=policy(parts.settings),
            signatures=self._signatures,
            high_water_marks=high_water_marks,
            upkeep=UpkeepParts(
                catalog=parts.catalog,
                storage=parts.storage,
                journal=Journal(parts.storage, parts.settings.inbox),
                replays=parts.replays,
                world=parts.world,
                metrics=status_collector.metrics,
                is_default=parts.settings.upkeep.expire_snapshots,
            ),
            settle=self._settler.settle,
            named=NamedManifests(parts.world),
            checks=checks or ChecksHere(),
        )

        self._shards = ShardLeases(
            leases=parts.leases,
            member=member_name(parts.settings),
            world=parts.world,
            health=self.health,
            metrics=status_collector.metrics,
            lease_s=parts.settings.service.lease_s,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop`, then drain.

        Errors: `SettingsError` for an unsafe back end, found by the probes; whatever else escapes
        is a bug and comes as it is.
        """
        async with asyncio.TaskGroup() as tasks:
            beating = self.health.beat(self._status_collector.metrics.loop_was_late)
            heart = tasks.create_task(beating, name="heartbeat")
            await self._probe(stop)
            if stop.is_set():
                heart.cancel()
                return
            intake = Intake(self._shop, tasks)
            settler = tasks.create_task(self._settler.run(), name="settler")
            hand_over = TableHandOver(intake, self._settler)
            shards = tasks.create_task(self._shards.run(hand_over), name="shards")
            readers = [tasks.create_task(reader, name="reader") for reader in self._readers(intake)]
            self.health.phase = "running"
            log.info("service.started", inbox=self._parts.settings.inbox)
            await stop.wait()
            self.health.phase = "draining"
            await self._drain(intake, readers, shards)
            settler.cancel()
            heart.cancel()
        log.info("service.stopped")

    def _readers(self, intake: Intake) -> list[Coroutine[object, object, None]]:
        parts, settings = self._parts, self._parts.settings
        readers: list[Coroutine[object, object, None]] = []
        consumer = None
        if parts.queue is not None:
            consumer = Consumer(
                queue=parts.queue,
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
            foreign_entries=self._shop.foreign_entries,
            world=parts.world,
        )
        ledger_cleanup = LedgerCleanup(
            intake=intake,
            quarantine=parts.quarantine,
            replaying=Replays(parts.storage, settings.inbox).copies,
            world=parts.world,
        )
        reconciler = Reconciler(
            scan=scan,
            ledger_cleanup=ledger_cleanup,
            queue=progress,
            world=parts.world,
            health=self.health,
            metrics=self._status_collector.metrics,
            interval_s=settings.service.reconcile_interval_s,
            age_s=age_s,
        )
        readers.append(reconciler.run())
        poller = Poller(
            queue=parts.queue,
            quarantine=parts.quarantine,
            storage=parts.storage,
            folders={name: f"{settings.inbox.rstrip('/')}/{name}/" for name in _SMALL_FOLDERS},
            resolved_refusals=ResolvedRefusals(parts.catalog, parts.storage, parts.quarantine),
            world=parts.world,
            metrics=self._status_collector.metrics,
        )
        readers.append(poller.run())
        catalog_probe = CatalogProbe(catalog=parts.catalog, world=parts.world, health=self.health)
        readers.append(catalog_probe.run())
        readers.append(self._signatures.run())
        self._status_collector.started(intake, reconciler, self._shards)
        return readers

    async def _probe(self, stop: asyncio.Event) -> None:
        """Refuse back ends that do not enforce conditions; wait for those that do not answer."""
        probes: list[tuple[str, Callable[[], Awaitable[object]]]] = [
            ("storage", self._probe_inbox),
            ("catalog", self._parts.catalog.probe),
            ("keys", self._signatures.load),
        ]
        for component, probe in probes:
            await until_answered(component, probe, stop, self.health)

    async def _probe_inbox(self) -> None:
        with named_setting("inbox"):
            await self._parts.storage.probe(self._parts.settings.inbox)

    async def _drain(
        self, intake: Intake, readers: list[asyncio.Task[None]], shards: asyncio.Task[None]
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
                await intake.stop()
                await self._settler.flush()
        except TimeoutError:
            log.warning("service.drain_exceeded", deadline_s=deadline_s)
            shards.cancel()
            intake.abandon()
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
