"""One run: servers, committers and actors on one loop, faults, and the judgement at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from committer.ports import LoadedTable
from committer.settings import Settings
from tests.simulation.actor import Actor, ActorBody
from tests.simulation.faults import Faults
from tests.simulation.history import History, Violation
from tests.simulation.invariants import Invariants
from tests.simulation.loop import SimLoop, StuckError
from tests.simulation.observed import ObservedCatalog
from tests.simulation.process import Process, Stage
from tests.simulation.quiet import logs_noted
from tests.simulation.replica import Replica, base_settings
from tests.simulation.servers import INBOX, Servers
from tests.simulation.trace import Trace
from tests.simulation.world import START_MS

PLAY_S_MAX = 3_600.0
SETTLE_S_MAX = 1_800.0
LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run."""

    violations: tuple[Violation, ...]
    trace: Trace
    faults: Faults
    commits: int
    virtual_s: float
    steps: int


@dataclass(slots=True)
class Cast:
    """Who takes part."""

    tables: Sequence[LoadedTable]
    actors: Sequence[Actor]
    replicas: int = 1
    settings: Settings = field(default_factory=base_settings)


class Simulation:
    """A run of a cast. `with_notes`: what committers log is noted in the trace."""

    def __init__(self, seed: int, faults: Faults, cast: Cast, *, with_notes: bool = False) -> None:
        self._with_notes = with_notes
        self.loop = SimLoop(seed)
        self.trace = Trace(self.loop.time)
        self.history = History(now_ms=lambda: START_MS + int(self.loop.time() * 1000))
        self.stage = Stage(seed, self.loop, faults, self.trace, self.history)
        self.servers = Servers(seed)
        self.invariants = Invariants(
            self.servers.storage, self.servers.catalog, self.history, INBOX
        )
        self.cast = cast
        self.replicas: list[Process] = []
        self.actors: list[Process] = []

    def run(self) -> Outcome:
        """Play to the end, or to the first violation."""
        loop = self.loop
        asyncio.set_event_loop(loop)
        with logs_noted(self.trace, is_wanted=self._with_notes):
            try:
                loop.run_until_complete(self._play())
            except StuckError as error:
                self.history.violated("I15", str(error))
            finally:
                self._close()
        return Outcome(
            tuple(self.history.violations),
            self.trace,
            self.stage.faults,
            self.invariants.commits,
            loop.time(),
            loop.steps,
        )

    def _close(self) -> None:
        """Leave nothing behind that would wait for ever."""
        try:
            self.loop.run_until_complete(self._cancel_all())
        finally:
            asyncio.set_event_loop(None)
            self.loop.close()

    async def _cancel_all(self) -> None:
        for process in (*self.replicas, *self.actors):
            process.kill()
        for _ in range(3):
            own = asyncio.current_task()
            left = [task for task in asyncio.all_tasks() if task is not own]
            for task in left:
                task.cancel()
            if not left:
                return
            await asyncio.wait(left)

    async def _play(self) -> None:
        await self._set_up()
        for process in (*self.replicas, *self.actors):
            process.start()
        await self._until(lambda: all(actor.is_done for actor in self.actors), PLAY_S_MAX, "actors")
        self._calm_down()
        await self._until(self._is_quiet, SETTLE_S_MAX, "backlog")
        if not self.history.violations:
            self.invariants.at_quiescence()
        await self._stop_in_order()

    async def _set_up(self) -> None:
        catalog = ObservedCatalog(self.servers.catalog, self.history, "fate")
        for table in self.cast.tables:
            await catalog.create_namespace(table.identifier.namespace)
            await catalog.create_table(table)
        for number in range(self.cast.replicas):
            body = Replica(self.servers, self.cast.settings)
            self.replicas.append(Process(f"committer-{number}", body, self.stage))
        for actor in self.cast.actors:
            self.actors.append(Process(actor.name, ActorBody(actor, self.servers), self.stage))

    def _calm_down(self) -> None:
        self.trace.add("fate", "faults end")
        self.stage.faults.is_on = False
        self.stage.outages.clear()
        for process in self.replicas:
            process.come_back()

    async def _stop_in_order(self) -> None:
        """Nothing keeps an idle committer from ending at once."""
        for process in self.replicas:
            process.body.stop()
        await self._until(
            lambda: not any(one.is_running for one in self.replicas), 60.0, "drain of the idle"
        )

    async def _is_quiet(self) -> bool:
        if self.stage.travelling > 100:
            return False
        if not all(map(self.invariants.may_wait, self.invariants.backlog())):
            return False
        depth = await self.servers.queue_depth()
        return not depth.waiting

    async def _until(self, reached: Callable[[], object], limit_s: float, what: str) -> None:
        end_s = self.loop.time() + limit_s
        while not self.history.violations:
            done = reached()
            if asyncio.iscoroutine(done):
                done = await done
            if done:
                return
            if self.loop.time() > end_s:
                self.history.violated("I15", f"{what}: not at an end after {limit_s:.0f} s")
                return
            await asyncio.sleep(LOOK_S)
