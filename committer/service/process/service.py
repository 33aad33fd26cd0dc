"""Starts the parts of the service, and stops them without leaving work half done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from importlib.metadata import version
from typing import TypeVar

from committer.errors import StorageUnavailableError, TransientError
from committer.place_threads import unanswered
from committer.plan.scheduling.backoff import retry_s
from committer.ports.catalog import Catalog
from committer.service.checks.checks import Checks
from committer.service.ingest.catalog_probe import ASKED, keep_asking
from committer.service.ingest.committer_pool import TableCommitters
from committer.service.ingest.poller import Poller
from committer.service.ingest.resolved_refusals import ResolvedRefusals
from committer.service.process.composition import (
    RequestParts,
    installation_of,
    member_name,
    status_url,
)
from committer.service.process.process_wiring import ProcessWiring, WorkWiring
from committer.service.process.table_wiring import TableWiring
from committer.service.sharding.shard_leases import ShardLeases
from committer.service.telemetry.health import Health
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics
from committer.service.telemetry.place_watch import CATALOG, INBOX, STORAGE, PlaceWatch
from committer.service.transactions.transaction_room import TransactionRoom
from committer.settings.setting_names import named_setting
from committer.storage.inbox.inbox_identity import NAME

# Beside the inbox and the quarantine.
_SMALL_FOLDERS = ("upkeep", "witness")


class Service:
    """One committer process: consumer, reconciler, settler, and a task for each table. `work`: None
    before it has started.
    """

    def __init__(
        self,
        parts: RequestParts,
        health: Health,
        metrics: Metrics,
        places: PlaceWatch | None = None,
    ) -> None:
        self._parts = parts
        self._places = places or PlaceWatch(parts.world, health)
        self.health = health
        self.metrics = metrics
        self.work: WorkWiring | None = None
        self._shards = ShardLeases(
            leases=parts.leases,
            member=member_name(parts.settings),
            installation=installation_of(parts.settings),
            world=parts.world,
            health=health,
            metrics=metrics,
            lease_s=parts.settings.service.lease_s,
            status_url=status_url(parts.settings),
            places=self._places,
        )
        self._wiring = ProcessWiring(parts, health, metrics, self._shards)

    async def run(self, catalog: Catalog, stop: asyncio.Event, checks: Checks) -> None:
        """Work until `stop`, then drain.

        Errors: `SettingsError` for an unsafe back end, found by the probes; whatever else escapes
        is a bug and comes as it is.
        """
        async with asyncio.TaskGroup() as tasks:
            heart = tasks.create_task(self.health.beat(self._note_beat), name="heartbeat")
            await self._probe(catalog, stop)
            if stop.is_set():
                heart.cancel()
                return
            room = self._wiring.transaction_room(catalog, tasks)
            make_table = TableWiring(self._wiring, catalog, checks, room).table
            work = self.work = WorkWiring(self._wiring, make_table, checks, tasks)
            settler = tasks.create_task(self._wiring.settler.run(), name="settler")
            shards = tasks.create_task(
                self._shards.run(work.hand_over.release_shards), name="shards"
            )
            readings = [*work.readers(), *self._probes(catalog)]
            readers = [tasks.create_task(reading, name="reader") for reading in readings]
            self.health.phase = "running"
            self._log_start()
            await stop.wait()
            self.health.phase = "draining"
            await self._drain(work.tables, room, readers, shards)
            settler.cancel()
            heart.cancel()
        log.info("service.stopped")

    def _log_start(self) -> None:
        settings = self._parts.settings
        log.info(
            "service.started",
            version=version("frazil"),
            consumer=member_name(settings),
            http_port=settings.service.http_port,
            catalog=settings.catalog.name,
            catalog_place=settings.catalog.all_properties.shown_place,
            inbox=settings.inbox,
        )

    def _note_beat(self, late_s: float) -> None:
        self.metrics.loop_was_late(late_s)
        self.health.show_unanswered(unanswered())

    def _probes(self, catalog: Catalog) -> list[Coroutine[object, object, None]]:
        """Return the loops that look at what the process depends on."""
        parts, root = self._parts, self._parts.settings.inbox.rstrip("/")
        poller = Poller(
            queue=parts.queue,
            quarantine=parts.quarantine,
            storage=parts.own_storage,
            folders={name: f"{root}/{name}/" for name in _SMALL_FOLDERS},
            resolved_refusals=ResolvedRefusals(catalog, parts.storage, parts.quarantine),
            world=parts.world,
            metrics=self.metrics,
        )
        self._name_questions(catalog)
        asking = keep_asking(catalog, self.health)
        return [poller.run(), asking, self._wiring.signatures.run(), self._places.run()]

    def _name_questions(self, catalog: Catalog) -> None:
        """Name what each place is asked when a call of it has no answer."""
        own, root = self._parts.own_storage, self._parts.settings.inbox.rstrip("/")
        self._places.ask_by(STORAGE, self._head_last)
        self._places.ask_by(INBOX, lambda: own.head(f"{root}/{NAME}"))
        self._places.ask_by(CATALOG, lambda: catalog.current_location(ASKED))

    async def _head_last(self) -> None:
        """Ask for the object of a table that was called last: tables may be in several buckets.
        Before the first, ask for one in the place of new tables, if the settings name it.
        """
        place = self._parts.settings.catalog.all_properties.place.rstrip("/")
        location = self._places.location(STORAGE) or (place and f"{place}/{ASKED.name}")
        if location:
            await self._parts.storage.head(location)

    async def _probe(self, catalog: Catalog, stop: asyncio.Event) -> None:
        """Refuse back ends that do not enforce conditions; wait for those that do not answer."""
        probes: list[tuple[str, Callable[[], Awaitable[object]]]] = [
            ("storage", self._probe_inbox),
            ("catalog", catalog.probe),
            ("keys", self._wiring.signatures.load),
        ]
        for component, probe in probes:
            await until_answered(component, probe, stop, self.health)

    async def _probe_inbox(self) -> None:
        with named_setting("inbox"):
            await self._parts.own_storage.probe(self._parts.settings.inbox)

    async def _drain(
        self,
        tables: TableCommitters,
        room: TransactionRoom,
        readers: list[asyncio.Task[None]],
        shards: asyncio.Task[None],
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
                await self._wiring.settler.flush()
        except TimeoutError:
            log.warning("service.drain_exceeded", deadline_s=deadline_s)
            shards.cancel()
            room.abandon()
            tables.abandon()
            await self._release_in_time()

    async def _release_in_time(self) -> None:
        """Release shards, if the server answers in the time that is left to close."""
        try:
            async with asyncio.timeout(RELEASE_S_MAX):
                await self._shards.abandon()
        except TimeoutError:
            log.info("shards.release_failed", error=f"no answer for {RELEASE_S_MAX:g} s")


T = TypeVar("T")

# How long the release of shards may take after the drain: less than the time to close.
RELEASE_S_MAX = 1.0
# How long a question of the start may go on behind the stop.
CUT_OFF_S = 5.0


async def until_answered(
    component: str, ask: Callable[[], Awaitable[T]], stop: asyncio.Event, health: Health
) -> T | None:
    """Ask until the component answers, with back-off.
    None if stopped before, also while a question gets no answer.

    A storage that the question needs is reported as what it is.
    """
    failures = 0
    while not stop.is_set():
        try:
            answer = await _unless(stop, ask())
        except TransientError as error:
            is_storage = isinstance(error, StorageUnavailableError)
            health.unavailable("storage" if is_storage else component, error, mitigation="retrying")
            failures += 1
            await _pause(retry_s(failures, health.world.jitter()), stop)
        else:
            for one in {component, "storage"}:
                health.recovered(one)
            return answer
    return None


async def _unless(stop: asyncio.Event, question: Awaitable[T]) -> T | None:
    """Return the answer, or None once `stop` has been set for a while: a probe that is cut off
    leaves objects behind, but a server that does not answer must not hold up the end.
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
