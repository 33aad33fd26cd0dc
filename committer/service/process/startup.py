"""From settings to a process that serves until it is told to end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial

from committer.errors import FrazilError, SettingsError
from committer.ports.catalog import Catalog
from committer.ports.leases import Leases
from committer.ports.queue import Queue
from committer.ports.world import World
from committer.service.checks.check_process import CheckProcess
from committer.service.checks.checks import Checks
from committer.service.checks.process_reports import ProcessReports
from committer.service.process.composition import (
    RequestParts,
    open_known_catalog,
    open_request_parts,
)
from committer.service.process.http import serving
from committer.service.process.redis_server import RedisServer, keep_running
from committer.service.process.service import Service, until_answered
from committer.service.process.status_collector import StatusCollector
from committer.service.telemetry.health import Health
from committer.service.telemetry.instrumented_ports import InstrumentedStorage, instrumented
from committer.service.telemetry.metrics import Metrics
from committer.service.telemetry.place_watch import CATALOG, INBOX, STORAGE, PlaceWatch
from committer.settings.service_settings import Settings
from committer.stop_signals import StopRequest

# With fewer there is one process for large requests, else there are two.
_PROCESSORS_MIN = 4
# Behind the drain: to let go of servers, and to end.
CLOSING_S_MAX = 5.0


async def serve(
    settings: Settings,
    told: StopRequest,
    *,
    opened: Callable[[], None] = lambda: None,
    queue_server: RedisServer | None = None,
    end_by: Callable[[float], None] = lambda _: None,
) -> None:
    """Run until told to stop. `opened` is called once the port and the catalog are open. `end_by`
    is called with the seconds that are left, once the service is to end, by the thread that has
    heard the signal: the loop, or a thread, may be stuck. A private queue server is started again
    if it dies.

    Errors: `FrazilError`, also from inside the tasks.
    """
    stop = asyncio.Event()
    told.set_on(stop, partial(end_by, settings.service.drain_timeout_s + CLOSING_S_MAX))
    parts = open_request_parts(settings)
    try:
        async with kept_running(queue_server, parts.world):
            await serve_parts(parts, stop, opened=opened)
    except BaseExceptionGroup as group:
        expected, rest = group.split(FrazilError)
        if expected is None or rest is not None:
            raise
        raise first_error(expected) from group
    finally:
        end_by(CLOSING_S_MAX)
        await parts.close()


@asynccontextmanager
async def kept_running(server: RedisServer | None, world: World) -> AsyncIterator[None]:
    """Keep the server running while the block runs."""
    keeper = asyncio.create_task(keep_running(server, world)) if server else None
    try:
        yield
    finally:
        if keeper is not None:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper


async def serve_parts(
    parts: RequestParts, stop: asyncio.Event, *, opened: Callable[[], None] = lambda: None
) -> None:
    """Serve with these parts until `stop`: endpoints first, then the catalog, then the work.

    Errors: those of the tasks, as groups.
    """
    settings, metrics, health = parts.settings, Metrics(), Health(parts.world)
    places = PlaceWatch(parts.world, health)
    parts = instrument(parts, metrics, places)
    service = Service(parts, health, metrics, places)
    status_collector = StatusCollector(service, catalog=settings.catalog.name, inbox=settings.inbox)
    async with serving(
        status_collector,
        host=settings.service.http_host,
        port=settings.service.http_port,
        names=settings.service.http_names,
    ):
        catalog = await until_answered("catalog", lambda: open_known_catalog(parts), stop, health)
        if catalog is None:
            return
        processes = [CheckProcess() for _ in range(_processes())]
        checks = Checks(processes, CheckProcess(), ProcessReports(health, metrics))
        try:
            opened()
            counted = instrument_catalog(catalog, parts.world, metrics, places)
            await service.run(counted, stop, checks)
        finally:
            await checks.close()
            await catalog.close()


def _processes() -> int:
    """Return how many processes to start beside the loop:
    a second if there are processors for it."""
    return 1 if (os.cpu_count() or 1) < _PROCESSORS_MIN else 2


def instrument_catalog(
    catalog: Catalog, world: World, metrics: Metrics, places: PlaceWatch
) -> Catalog:
    """Instrument every call of the catalog."""
    return instrumented(catalog, Catalog, metrics.meter(CATALOG, world, places.calls(CATALOG)))


def instrument(parts: RequestParts, metrics: Metrics, places: PlaceWatch) -> RequestParts:
    """Instrument every call of these parts: calls for requests apart from those for tables."""
    world = parts.world
    of_tables = metrics.meter(STORAGE, world, places.calls(STORAGE))
    own = metrics.meter(INBOX, world, places.calls(INBOX))
    return replace(
        parts,
        storages=replace(
            parts.storages,
            of_tables=InstrumentedStorage(parts.storage, of_tables),
            own=InstrumentedStorage(parts.own_storage, own),
        ),
        queue=parts.queue and instrumented(parts.queue, Queue, metrics.meter("queue", world)),
        leases=parts.leases and instrumented(parts.leases, Leases, metrics.meter("leases", world)),
    )


def first_error(group: BaseExceptionGroup[FrazilError]) -> FrazilError:
    """Return the error that ended the service; a setting's before any other."""
    errors = list(_leaves(group))
    return next((error for error in errors if isinstance(error, SettingsError)), errors[0])


def _leaves(group: BaseExceptionGroup[FrazilError]) -> list[FrazilError]:
    found: list[FrazilError] = []
    for error in group.exceptions:
        found.extend(_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    return found
