"""A process of the simulation, its lives, and what may befall it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.simulation.chance import draws
from tests.simulation.faults import Fault, Faults
from tests.simulation.history import History
from tests.simulation.loop import PROCESS, SimLoop
from tests.simulation.trace import Trace
from tests.simulation.world import SimWorld

PAUSE_S = 12.0  # longer than a lease of `base_settings`
CLOCK_JUMP_MS = 7_200_000
RESTART_S_MAX = 8.0


@dataclass(slots=True)
class Stage:
    """Shared by all processes of a run: chance, faults, and onlookers.

    `slowness` stretches every way on the wire. `outages`: ports whose server is away, and tables
    that their catalog cannot reach. `late`: effects that are still to come, long after their call.
    """

    seed: int
    loop: SimLoop
    faults: Faults
    trace: Trace
    history: History
    slowness: float = 1.0
    outages: set[str] = field(default_factory=set)
    late: int = 0
    # Of the servers: what they do belongs to no process.
    context: Context = field(default_factory=copy_context)

    def later(self, delay_s: float, act: Callable[..., None], *args: object) -> None:
        """Schedule an act of the servers or of fate."""
        # As `call_later` does it, which asks for the time: half of what it takes.
        loop = self.loop
        loop.call_at(loop.clock.now_s + delay_s, act, *args, context=self.context)


class Body(Protocol):
    """The program of a process, run in each of its lives."""

    async def run(self, life: Life) -> None:
        """Work until the end; a crash starts a new life. Any exception ends the life."""

    def stop(self) -> None:
        """End soon, in order (SIGTERM)."""

    def ended(self) -> None:
        """Reset after a life, even one that never ran: a stop was meant for that life only."""

    def restart_otherwise(self, chance: float) -> None:
        """Change the settings of the next life."""


class Life:
    """One life of a process: what it awaits ends with it."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.has_ended = False
        name = f"{process.name}/{process.lives}"
        self.world = SimWorld(process.stage.seed, name, skew_ms=process.skew_ms)
        self.awaited: dict[asyncio.Future[Any], None] = {}

    def end(self) -> None:
        """End this life: nothing of it has an effect any more, except calls on their way."""
        self.has_ended = True
        awaited, self.awaited = self.awaited, {}
        for future in awaited:
            future.cancel()

    def context(self) -> Context:
        """Return a context for the tasks of this life."""
        context = copy_context()
        context.run(PROCESS.set, self.process.name)
        return context


class Process:
    """Runs a body, life after life, until the body returns by itself."""

    def __init__(self, name: str, body: Body, stage: Stage, *, skew_ms: int = 0) -> None:
        self.name = name
        self.body = body
        self.stage = stage
        self.skew_ms = skew_ms
        self.calls: Counter[str] = Counter()
        self.lives = 0
        self.is_done = False
        self.life: Life | None = None
        self._task: asyncio.Task[None] | None = None
        self.comes_back = False

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Begin a life, unless there is one, or none is wanted any more."""
        if self.is_running or self.is_done:
            return
        self.lives += 1
        self.life = life = Life(self)
        self.comes_back = False
        self.stage.trace.add(self.name, "starts", f"life {self.lives}")
        work: Coroutine[Any, Any, None] = self.body.run(life)
        self._task = self.stage.loop.create_task(work, name=self.name, context=life.context())
        self._task.add_done_callback(self._ended, context=self.stage.context)

    def crash(self) -> None:
        """End at once, as by SIGKILL, and come back later."""
        if not self.is_running or self.life is None:
            return
        self.stage.trace.add(self.name, "crashes")
        self.comes_back = True
        self.stage.loop.resume(self.name)
        self.life.end()
        self._cancel()

    def stop_for_good(self) -> None:
        """End in order, and stay down."""
        self.comes_back = False
        self.body.stop()

    def kill(self) -> None:
        """End for good."""
        self.crash()
        self.is_done = True

    def pause(self, chance: float) -> None:
        """Pause for about the time of a lease, as by SIGSTOP."""
        self.stage.loop.pause(self.name)
        self.stage.later(PAUSE_S * (0.5 + chance), self.stage.loop.resume, self.name)

    def befall(self, fault: Fault, chance: float) -> None:
        """Apply a fault of the process itself; `chance` in [0, 1) decides its extent."""
        if not self.is_running:
            return
        match fault:
            case Fault.CRASH_BEFORE | Fault.CRASH_AFTER:
                self.crash()
            case Fault.CANCEL:
                self.comes_back = True
                self._cancel()
            case Fault.DRAIN:
                self.comes_back = True
                self.body.stop()
            case Fault.RESTART:
                self.comes_back = True
                self.body.restart_otherwise(chance)
                self.body.stop()
            case Fault.PAUSE:
                self.pause(chance)
            case Fault.CLOCK_JUMP:
                jump_ms = CLOCK_JUMP_MS if chance < 0.5 else -CLOCK_JUMP_MS
                # Back and forth, so that clocks stay within hours of one another.
                self.skew_ms = 0 if self.skew_ms * jump_ms > 0 else self.skew_ms + jump_ms
                if self.life is not None:
                    self.life.world.skew_ms = self.skew_ms
            case _:
                raise ValueError(f"{fault} befalls a call, not a process")

    def come_back(self) -> None:
        """Run again, whatever has befallen the process; its clock is right from now on."""
        self.stage.loop.resume(self.name)
        self.skew_ms = 0
        if self.life is not None:
            self.life.world.skew_ms = 0
        self.start()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        assert self.life is not None
        self.life.end()
        self.body.ended()
        self.stage.loop.resume(self.name)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.stage.history.violated("crash", f"{self.name} ended by {error!r}")
        elif not self.comes_back:
            self.is_done = True
            self.stage.trace.add(self.name, "is done")
        else:
            chance = draws(self.stage.seed, f"restart {self.name} {self.lives}")[0]
            self.stage.later(RESTART_S_MAX * chance**2, self.start)
