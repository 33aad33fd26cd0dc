"""A whole committer as a process of the simulation: the real service on ports over the wire."""

from __future__ import annotations

import asyncio
import traceback
from functools import cache
from typing import cast

from committer.errors import FrazilError
from committer.service.process.composition import RequestParts, Storages
from committer.service.process.service import Service
from committer.service.telemetry.health import Health
from committer.service.telemetry.instruments import Instruments
from committer.service.telemetry.metrics import Metrics
from committer.settings.service_settings import SecuritySettings, Settings
from tests.simulation.catalogs import WAREHOUSE
from tests.simulation.history import History
from tests.simulation.ports import Ports, open_ports
from tests.simulation.process import Life
from tests.simulation.servers import INBOX, Servers
from tests.simulation.version_before import IS_BEFORE
from tests.support.service.checks_here import ChecksHere


class _Silent:
    """Any metric, and all of them: takes every number and keeps none."""

    def __getattr__(self, name: str) -> _Silent:
        setattr(self, name, self)
        return self

    def __call__(self, *numbers: object) -> _Silent:
        return self


class SimMetrics(Metrics):
    """Metrics of all committers of all runs: they are not counted, which would take time."""

    history: History | None = None

    def __init__(self) -> None:
        super().__init__()
        self.instruments = cast("Instruments", _Silent())

    def crashed(self, where: str) -> None:
        """Record a violation: no injected fault may look like a bug of the service."""
        if self.history is not None:
            self.history.violated("crash", f"`{where}`: {traceback.format_exc(limit=-4)}")


@cache
def shared_metrics() -> SimMetrics:
    return SimMetrics()


@cache
def base_settings() -> Settings:
    """Return settings with which a run of minutes sees everything happen."""
    security = SecuritySettings(unsigned_operations="all")
    settings = Settings(inbox=INBOX, security=security)
    return settings.model_copy(
        update={
            "catalog": settings.catalog.model_copy(update={"warehouse": WAREHOUSE}),
            "queue": settings.queue.model_copy(update={"reclaim_idle_s": 20.0}),
            "commit": settings.commit.model_copy(
                update={
                    "min_interval_ms": 1_000,
                    "yield_to_others_ms": 500,
                    "transaction_wait_s": 60.0,
                }
            ),
            "service": settings.service.model_copy(
                update={
                    "reconcile_interval_s": 10.0,
                    "reconcile_age_s": 3.0,
                    "lease_s": 9.0,
                    "http_port": 0,
                }
            ),
        }
    )


class Replica:
    """The body of a committer. `settings` are those of its next life, and `is_before` tells whether
    it is of the version before then.
    """

    def __init__(
        self,
        servers: Servers,
        settings: Settings,
        *,
        with_queue: bool = True,
        is_before: bool = False,
    ) -> None:
        self._servers = servers
        self.settings = settings
        self.is_before = is_before
        self._with_queue = with_queue
        self._stop = asyncio.Event()

    async def run(self, life: Life) -> None:
        IS_BEFORE.set(self.is_before)
        try:
            metrics = shared_metrics()
            metrics.history = life.process.stage.history
            ports = open_ports(life, self._servers)
            service = Service(self._parts(life, ports), Health(life.world), metrics)
            await service.run(ports.catalog, self._stop, ChecksHere())
        except* FrazilError as group:
            # It ends with a message, and its supervisor starts it again.
            life.process.stage.trace.add(life.process.name, "gives up", str(group.exceptions[0]))
            life.process.comes_back = True

    def stop(self) -> None:
        self._stop.set()

    def ended(self) -> None:
        self._stop = asyncio.Event()

    def restart_otherwise(self, chance: float) -> None:
        """Restart with other settings or as another version; the other replicas keep theirs."""
        self.is_before = not self.is_before and int(chance * 576) % 2 == 0
        batch = (1, 2, 5, 10_000)[int(chance * 4)]
        interval_ms = (0, 200, 1_000, 5_000)[int(chance * 16) % 4]
        commit = self.settings.commit.model_copy(
            update={
                "batch_requests_max": batch,
                # At least one a second, or what waits in the end would outlast the run.
                "min_interval_ms": min(interval_ms, 1_000 * batch),
            }
        )
        upkeep = self.settings.upkeep.model_copy(
            update={"expire_snapshots": not self.settings.upkeep.expire_snapshots}
        )
        service = self.settings.service.model_copy(
            update={
                "lease_s": (3.0, 9.0, 25.0)[int(chance * 48) % 3],
                "reconcile_interval_s": (3.0, 10.0)[int(chance * 144) % 2],
            }
        )
        queue = self.settings.queue.model_copy(
            update={"reclaim_idle_s": (5.0, 20.0, 60.0)[int(chance * 288) % 3]}
        )
        self.settings = self.settings.model_copy(
            update={"commit": commit, "upkeep": upkeep, "service": service, "queue": queue}
        )

    def _parts(self, life: Life, ports: Ports) -> RequestParts:
        queue = self.settings.queue.model_copy(update={"consumer": life.process.name})
        return RequestParts(
            settings=self.settings.model_copy(update={"queue": queue}),
            world=ports.world,
            storages=Storages(ports.storage, ports.storage),
            queue=ports.queue if self._with_queue else None,
            leases=ports.leases if self._with_queue else None,
        )
