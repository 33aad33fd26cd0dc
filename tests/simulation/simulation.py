"""One run of a scenario: servers, committers and actors on one loop, faults, and the judgment."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.simulation.actor import ActorBody
from tests.simulation.chance import draws
from tests.simulation.faults import Fault, Faults
from tests.simulation.forgetting import forgetting
from tests.simulation.history import History, Violation
from tests.simulation.invariants import Invariants
from tests.simulation.liveness import Liveness
from tests.simulation.loop import SimLoop, StuckError
from tests.simulation.observed import ObservedCatalog
from tests.simulation.process import Process, Stage
from tests.simulation.quiet import logs_noted
from tests.simulation.replica import Replica
from tests.simulation.scenario import Event, Fate, Scenario
from tests.simulation.servers import INBOX, Servers
from tests.simulation.trace import Trace
from tests.simulation.version_before import two_versions
from tests.simulation.world import START_MS

SETTLE_S_MAX = 400.0
DRAIN_TIMEOUT_S = 60.0
LOOK_S = 0.5
OUTAGE_S_MAX = 20.0
REPLICATE_S = 3.0
# Of the committers: begin as the version before.
BEFORE_SHARE = 0.15


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run."""

    scenario: Scenario
    violations: tuple[Violation, ...]
    trace: Trace
    faults: Faults
    events: tuple[Event, ...]
    commits: int
    requests: int
    landed: Counter[str]
    conflicts: Counter[tuple[str, str]]
    virtual_s: float
    steps: int
    longest_s: float = 0.0
    longest: str = ""

    @property
    def kind(self) -> str | None:
        """The invariant that was violated first, if any."""
        return self.violations[0].invariant if self.violations else None


class Simulation:
    """A run of a scenario. `with_notes`: what committers log is noted in the trace."""

    def __init__(self, scenario: Scenario, *, with_notes: bool = False) -> None:
        self._scenario = scenario
        self._with_notes = with_notes
        self.loop = SimLoop(scenario.seed)
        self.trace = Trace(self.loop.time)
        self.history = History(now_ms=lambda: START_MS + int(self.loop.time() * 1000))
        self.faults = Faults(
            scenario.seed,
            rate=scenario.rate,
            focus=scenario.focus,
            weights=scenario.weights,
            script=scenario.script,
            spared=scenario.spared,
        )
        self.stage = Stage(
            scenario.seed,
            self.loop,
            self.faults,
            self.trace,
            self.history,
            slowness=scenario.slowness,
        )
        self.servers = Servers(scenario.seed, scenario.catalog)
        self.invariants = Invariants(
            self.servers.storage,
            self.servers.catalog,
            self.history,
            INBOX,
            breaker_threshold=scenario.settings.service.breaker_threshold,
        )
        self.replicas: list[Process] = []
        self.liveness = Liveness(
            self.invariants,
            self.stage,
            self.replicas,
            interval_s=_interval_s(scenario),
            transaction_wait_s=scenario.settings.commit.transaction_wait_s,
        )
        self.actors: list[Process] = []
        self._happened: list[Event] = []

    def run(self) -> Outcome:
        """Play to the end, or to the first violation."""
        asyncio.set_event_loop(self.loop)
        with (
            logs_noted(self.trace, is_wanted=self._with_notes),
            two_versions(),
            forgetting(soon=self._scenario.forgets_soon),
        ):
            try:
                self.loop.run_until_complete(self._play())
            except StuckError as error:
                self.history.violated("I15", str(error))
            finally:
                violations = tuple(self.history.violations)
                self._close()
        return Outcome(
            self._scenario,
            violations,
            self.trace,
            self.faults,
            tuple(self._happened),
            self.invariants.commits,
            len(self.invariants.published),
            self.invariants.landed,
            self.invariants.conflicts,
            self.loop.time(),
            self.loop.steps,
            self.liveness.longest_s,
            self.liveness.longest,
        )

    # --- The play --------------------------------------------------------------------------------

    async def _play(self) -> None:
        await self._set_up()
        for process in (*self.replicas, *self.actors):
            process.start()
        for event in self._scenario.events:
            self.stage.later(event.at_s, self._happen, event)
        self._replicate()
        await self._play_on()
        self._calm_down()
        await self._until(self._is_quiet, SETTLE_S_MAX, self._what_is_left)
        if not self.history.violations:
            self.invariants.at_quiescence()
        await self._stop_in_order()

    async def _set_up(self) -> None:
        scenario, stage = self._scenario, self.stage
        catalog = ObservedCatalog(self.servers.catalog, self.history, "fate")
        for table in scenario.tables:
            await catalog.create_namespace(table.identifier.namespace)
            await catalog.create_table(table)
        for number in range(scenario.replicas):
            name = f"committer-{number}"
            body = Replica(
                self.servers,
                scenario.settings,
                with_queue=scenario.with_queue,
                is_before=draws(scenario.seed, f"version of {name}")[0] < BEFORE_SHARE,
            )
            skew_ms = scenario.skews_ms[number % len(scenario.skews_ms)]
            self.replicas.append(Process(name, body, stage, skew_ms=skew_ms))
        for role in scenario.roles:
            actor = role.make(scenario.seed, scenario.tables)
            self.actors.append(Process(role.name, ActorBody(actor, self.servers), stage))
            if role.is_foreign:
                self.history.foreign.add(role.name)

    async def _play_on(self) -> None:
        """Run until every actor has done its part. An actor that takes too long is stopped."""
        while not self.history.violations and self.loop.time() < self._scenario.play_s:
            if all(actor.is_done for actor in self.actors):
                return
            await asyncio.sleep(LOOK_S)
            self.liveness.look()
        for actor in self.actors:
            actor.kill()

    def _calm_down(self) -> None:
        self.trace.add("fate", "faults end")
        self.faults.is_on = False
        self.stage.outages.clear()
        self.liveness.disturbed()
        for process in self.replicas:
            process.come_back()

    def _is_quiet(self) -> bool:
        """Return whether inbox and queue hold no work, and no late call is on its way."""
        return not self.stage.late and not self._waiting() and not self._ringing()

    def _waiting(self) -> list[str]:
        """Return the requests that should have ended."""
        return [key for key in self.invariants.backlog() if not self.invariants.may_wait(key)]

    def _ringing(self) -> dict[str, str]:
        """Return the doorbells that should have been acknowledged."""
        if not self._scenario.with_queue:
            return {}
        return {
            bell: key
            for bell, key in self.servers.doorbells.items()
            if not self.invariants.may_wait(key)
        }

    def _what_is_left(self) -> str:
        return f"requests {self._waiting()}, doorbells {self._ringing()} still wait"

    async def _stop_in_order(self) -> None:
        """Stop all committers; an idle one must end at once."""
        for process in self.replicas:
            process.stop_for_good()
        await self._until(
            lambda: not any(one.is_running for one in self.replicas),
            DRAIN_TIMEOUT_S,
            lambda: "committers that have nothing to do do not stop",
        )

    async def _until(
        self, is_reached: Callable[[], bool], limit_s: float, why_not: Callable[[], str]
    ) -> None:
        end_s = self.loop.time() + limit_s
        while not self.history.violations and not is_reached():
            if self.loop.time() > end_s:
                self.history.violated("I15", f"after {limit_s:.0f} s: {why_not()}")
                return
            await asyncio.sleep(LOOK_S)
            self.liveness.look()

    # --- Fate ------------------------------------------------------------------------------------

    def _happen(self, event: Event) -> None:
        if not self.faults.is_on:
            return
        self.trace.add("fate", event.fate.value)
        self._happened.append(event)
        self.liveness.disturbed()
        queue = self.servers.queue
        replica = self.replicas[int(event.chance * len(self.replicas))]
        match event.fate:
            case Fate.QUEUE_LOST:
                queue.flush()
                queue.wake()
            case Fate.QUEUE_FAILS_OVER:
                queue.fail_over()
            case Fate.QUEUE_TRIMMED:
                queue.trim()
            case Fate.QUEUE_AWAY:
                self._outage("queue", event.chance)
            case Fate.STORAGE_AWAY:
                self._outage("storage", event.chance)
            case Fate.CATALOG_AWAY:
                self._outage("catalog", event.chance)
            case Fate.TABLE_AWAY:
                number, share = divmod(event.chance * len(self._scenario.tables), 1.0)
                self._outage(str(self._scenario.tables[int(number)].identifier), share)
            case Fate.COMMITTER_CRASHES:
                replica.crash()
            case Fate.COMMITTER_PAUSES:
                replica.pause(event.chance)
            case Fate.COMMITTER_DRAINS:
                replica.befall(Fault.DRAIN, event.chance)

    def _outage(self, port: str, chance: float) -> None:
        self.stage.outages.add(port)
        self.stage.later(OUTAGE_S_MAX * chance, partial(self.stage.outages.discard, port))

    def _replicate(self) -> None:
        """Replicate a queue that fails over now and then: the last seconds are lost."""
        if any(event.fate is Fate.QUEUE_FAILS_OVER for event in self._scenario.events):
            self.servers.queue.replicate()
            if self.faults.is_on:
                self.stage.later(REPLICATE_S, self._replicate)

    # --- The end ---------------------------------------------------------------------------------

    def _close(self) -> None:
        """Close the loop, and leave no task that would wait forever."""
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


def _interval_s(scenario: Scenario) -> float:
    """Return the longest that a committer lets pass between two commits of a table, with the gap
    that it leaves to other engines.
    """
    # A committer that restarts otherwise takes one a second where its batches are small.
    intervals_ms = [1_000, scenario.settings.commit.min_interval_ms]
    for table in scenario.tables:
        own = table.metadata.properties.get("frazil.commit.min-interval-ms", "0")
        intervals_ms.append(int(own))
    return (max(intervals_ms) + scenario.settings.commit.yield_to_others_ms) / 1000
