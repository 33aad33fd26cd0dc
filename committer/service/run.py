"""From settings to a running service, and down again without leaving anything half done."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine

from committer.errors import FrazilError, SettingsError, TransientError
from committer.plan.backoff import backoff_s
from committer.service.consumer import Consumer
from committer.service.health import Health
from committer.service.http import serving
from committer.service.intake import Intake
from committer.service.log import log
from committer.service.parts import Parts, open_parts, policy
from committer.service.reconciler import Reconciler
from committer.service.settler import Settler
from committer.service.table_committer import Shop
from committer.settings import Settings


class Service:
    """One committer process: consumer, reconciler, settler, and a task for each table."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.health = Health(parts.world)
        self._settler = Settler(
            inbox=parts.inbox, queue=parts.queue, world=parts.world, health=self.health
        )
        self._shop = Shop(
            catalog_name=parts.settings.catalog.name,
            catalog=parts.catalog,
            storage=parts.storage,
            inbox=parts.inbox,
            quarantine=parts.quarantine,
            world=parts.world,
            health=self.health,
            policy=policy(parts.settings),
            settle=self._settler.settle,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop`, then drain.

        Errors: `SettingsError` for an unsafe back end, found by the probes; whatever else escapes
        is a bug and comes as it is.
        """
        async with asyncio.TaskGroup() as tasks:
            heart = tasks.create_task(self.health.beat(), name="heartbeat")
            await self._probe(stop)
            intake = Intake(self._shop, tasks)
            settler = tasks.create_task(self._settler.run(), name="settler")
            readers = [
                tasks.create_task(reader, name="reader")
                for reader in self._readers(intake)
            ]
            self.health.started = True
            log.info("service.started", inbox=self._parts.settings.inbox)
            await stop.wait()
            self.health.started = False
            await self._drain(intake, readers)
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
                world=parts.world,
                health=self.health,
                reclaim_idle_s=settings.queue.reclaim_idle_s,
            )
            readers.append(consumer.run())
        reconciler = Reconciler(
            inbox=parts.inbox,
            quarantine=parts.quarantine,
            intake=intake,
            world=parts.world,
            health=self.health,
            queue_is_away=consumer.is_away if consumer else None,
            interval_s=settings.service.reconcile_interval_s,
            age_s=settings.service.reconcile_age_s,
        )
        readers.append(reconciler.run())
        return readers

    async def _probe(self, stop: asyncio.Event) -> None:
        """Refuse back ends that do not enforce conditions; wait for those that do not answer."""
        settings = self._parts.settings
        probes: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("storage", lambda: self._parts.storage.probe(settings.inbox)),
            ("catalog", self._parts.catalog.probe),
        ]
        for component, probe in probes:
            await self._until_answered(component, probe, stop)

    async def _until_answered(
        self, component: str, probe: Callable[[], Awaitable[None]], stop: asyncio.Event
    ) -> None:
        failures = 0
        while not stop.is_set():
            try:
                await probe()
            except TransientError as error:
                if self.health.trouble(component, str(error)):
                    log.warning(f"{component}.unavailable", error=str(error))
                failures += 1
                await self._parts.world.sleep(backoff_s(failures + 3, self._parts.world.jitter()))
            else:
                self.health.well(component)
                return

    async def _drain(self, intake: Intake, readers: list[asyncio.Task[None]]) -> None:
        """Stop reading; finish the attempts in hand; tell what is known. The rest comes again."""
        for reader in readers:
            reader.cancel()
        deadline_s = self._parts.settings.service.drain_s_max
        log.info("service.draining", deadline_s=deadline_s)
        try:
            async with asyncio.timeout(deadline_s):
                await intake.stop()
                await self._settler.flush()
        except TimeoutError:
            log.warning("service.drain_exceeded", deadline_s=deadline_s)
            intake.abandon()


async def serve(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT. Errors: `SettingsError`, also from inside the tasks."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    parts = await open_parts(settings)
    service = Service(parts)
    try:
        async with serving(
            service.health, host=settings.service.http_host, port=settings.service.http_port
        ):
            await service.run(stop)
    except* FrazilError as group:
        raise first_error(group) from None
    finally:
        await parts.close()


def first_error(group: BaseExceptionGroup[FrazilError]) -> FrazilError:
    """The error that ended the service; a setting's before any other."""
    errors = list(_leaves(group))
    return next((error for error in errors if isinstance(error, SettingsError)), errors[0])


def _leaves(group: BaseExceptionGroup[FrazilError]) -> list[FrazilError]:
    found: list[FrazilError] = []
    for error in group.exceptions:
        found.extend(_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    return found
