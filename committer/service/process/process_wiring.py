"""Wires the objects that a process has once: those that need no catalog, and those that work."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from committer.plan.batch.batch_policy import BatchPolicy
from committer.plan.ledger.quiet_gap import GapPolicy
from committer.ports.catalog import Catalog
from committer.service.checks.checks import Checks
from committer.service.ingest.committer_pool import MakeTable, TableCommitters
from committer.service.ingest.consumer import Consumer
from committer.service.ingest.hand_over import TableHandOver
from committer.service.ingest.inbox_reader import InboxReader, UnreadObjects
from committer.service.ingest.inbox_scan import InboxScan
from committer.service.ingest.intake import Doorbells, Intake
from committer.service.ingest.ledger_cleanup import LedgerCleanup
from committer.service.ingest.ownership import Ownership, QueueProgress
from committer.service.ingest.reconciler import Reconciler
from committer.service.process.composition import RequestParts, unsigned_operations
from committer.service.requests.circuit_breakers import BreakerPolicy, CircuitBreakers
from committer.service.requests.deferred_doorbells import DeferredDoorbells
from committer.service.requests.foreign_entries import ForeignEntries
from committer.service.requests.large_requests import LargeRequests, NamedManifests
from committer.service.requests.settled_requests import SettledByTable
from committer.service.requests.signature_check import Signatures
from committer.service.settle.endings import Endings
from committer.service.settle.recently_quarantined import RecentlyQuarantined
from committer.service.settle.settler import Settler
from committer.service.sharding.shard_leases import ShardLeases
from committer.service.table.eviction import HeldRoom
from committer.service.telemetry.health import Health
from committer.service.telemetry.metrics import Metrics
from committer.service.transactions.forwarder import Forwarder
from committer.service.transactions.transaction_committer import (
    TransactionConditions,
    TransactionContext,
)
from committer.service.transactions.transaction_room import TransactionRoom
from committer.settings.service_settings import Settings
from committer.storage.inbox.ended_requests import EndedRequests


class ProcessWiring:
    """The objects that a process has once, as far as they need no catalog."""

    def __init__(
        self, parts: RequestParts, health: Health, metrics: Metrics, shards: ShardLeases
    ) -> None:
        world, settings = parts.world, parts.settings
        self.parts = parts
        self.health = health
        self.metrics = metrics
        self.shards = shards
        self.queue_progress = QueueProgress(has_queue=parts.queue is not None)
        self.ownership = Ownership(
            shards=shards,
            queue=self.queue_progress,
            world=world,
            age_s=settings.service.reconcile_age_s,
        )
        self.policy = _batch_policy(settings)
        breaking = BreakerPolicy(
            settings.service.breaker_threshold, settings.service.breaker_pause_s
        )
        self.breakers = CircuitBreakers(breaking, world)
        self.deferred = DeferredDoorbells(world)
        self.held_room = HeldRoom()
        self.named = NamedManifests(world)
        self.settled = SettledByTable()
        self.foreign_entries = ForeignEntries(parts.inbox, parts.quarantine, world, metrics)
        self.recently_quarantined = RecentlyQuarantined(world)
        self.settler = Settler(
            requests=EndedRequests(parts.inbox, parts.quarantine),
            audit=parts.audit,
            queue=parts.queue,
            world=world,
            health=health,
            high_water_marks=parts.high_water_marks,
            settled=self.settled,
        )
        self.endings = Endings(self.settler, self.breakers, self.recently_quarantined, metrics)
        self.signatures = Signatures(
            key_file=parts.key_file,
            required=settings.security.require_signature,
            unsigned=unsigned_operations(settings),
            inbox=parts.inbox,
            world=world,
            health=health,
        )

    def transaction_room(self, catalog: Catalog, tasks: asyncio.TaskGroup) -> TransactionRoom:
        """Make the room of the transactions, whose tasks run among these."""
        context = TransactionContext(
            catalog=catalog,
            world=self.parts.world,
            metrics=self.metrics,
            owns_shard=self.ownership.owns_shard,
            conditions=TransactionConditions(self.health),
            wait_s_max=self.parts.settings.commit.transaction_wait_s,
        )
        return TransactionRoom(context, Forwarder(self.parts.queue, self.deferred), tasks)


class WorkWiring:
    """The objects of a process that work on requests, between its start and its stop."""

    def __init__(
        self,
        process: ProcessWiring,
        make_table: MakeTable,
        checks: Checks,
        tasks: asyncio.TaskGroup,
    ) -> None:
        parts = process.parts
        self._process = process
        self.shards = process.shards
        self.breakers = process.breakers
        self.tables = TableCommitters(make_table, process.settled, tasks, parts.world)
        self.large = LargeRequests(parts.world, self.tables.large_bytes)
        reader = InboxReader(
            inbox=parts.inbox,
            quarantine=parts.quarantine,
            foreign_entries=process.foreign_entries,
            checks=checks,
            endings=process.endings,
            unread=UnreadObjects(process.health),
            table_name=self.tables.name_of,
            world=parts.world,
        )
        self.intake = Intake(
            tables=self.tables,
            reader=reader,
            large=self.large,
            deferred=process.deferred,
            breakers=process.breakers,
            recently_quarantined=process.recently_quarantined,
            queue=process.queue_progress,
            world=parts.world,
        )
        self.hand_over = TableHandOver(
            tables=self.tables,
            large=self.large,
            deferred=process.deferred,
            unread=reader.unread,
            breakers=process.breakers,
            settler=process.settler,
        )
        self.consumer = self._consumer()
        self.reconciler = self._reconciler()

    def _consumer(self) -> Consumer | None:
        process, parts = self._process, self._process.parts
        if parts.queue is None:
            return None
        doorbells = Doorbells(
            intake=self.intake,
            deferred=process.deferred,
            settler=process.settler,
            world=parts.world,
            metrics=process.metrics,
        )
        return Consumer(
            queue=parts.queue,
            doorbells=doorbells,
            shards=self.shards,
            progress=process.queue_progress,
            world=parts.world,
            health=process.health,
            reclaim_idle_s=parts.settings.queue.reclaim_idle_s,
        )

    def _reconciler(self) -> Reconciler:
        process, parts = self._process, self._process.parts
        settings = parts.settings.service
        scan = InboxScan(
            inbox=parts.inbox,
            intake=self.intake,
            ownership=process.ownership,
            pending_deletes=process.settler.pending_deletes,
            foreign_entries=process.foreign_entries,
            world=parts.world,
        )
        return Reconciler(
            scan=scan,
            ledger_cleanup=LedgerCleanup(
                tables=self.tables, quarantine=parts.quarantine, world=parts.world
            ),
            queue=process.queue_progress,
            world=parts.world,
            health=process.health,
            metrics=process.metrics,
            interval_s=settings.reconcile_interval_s,
            age_s=settings.reconcile_age_s,
        )

    def readers(self) -> list[Coroutine[object, object, None]]:
        """Return the loops that take requests in."""
        consumer = [self.consumer.run()] if self.consumer else []
        return [self.intake.run(), *consumer, self.reconciler.run()]


def _batch_policy(settings: Settings) -> BatchPolicy:
    """Return the batch policy that the settings ask for."""
    commit = settings.commit
    return BatchPolicy(
        min_interval_ms=commit.min_interval_ms,
        files_max=commit.batch_files_max,
        bytes_max=commit.batch_bytes_max,
        requests_max=commit.batch_requests_max,
        gap=GapPolicy(commit.yield_to_others_ms, commit.yield_to_others_period_ms),
    )
