"""The event loop of a simulation: virtual time, a seeded order of task wake-ups, no threads.

What was called soon stays first in, first out, as asyncio promises; only tasks that are ready at
one time change places. Tasks of a process that is stopped (SIGSTOP) keep what comes until it goes
on. No sockets, no signals: the ports are the only way out.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, ContextVar
from heapq import heappop, heappush
from typing import Any, TypeVarTuple

from tests.virtual_time import VirtualTimeLoop

_Ts = TypeVarTuple("_Ts")

# In the context of each task and timer: the name of the process that it belongs to.
PROCESS: ContextVar[str | None] = ContextVar("process", default=None)
# Far more than any scenario needs: a loop that makes no progress must end.
STEPS_MAX = 20_000_000
STEPS_AT_ONE_TIME_MAX = 200_000


class StuckError(Exception):
    """Nothing is left that could happen, or no end of what happens at one time."""


class SimTask(asyncio.Task[Any]):
    """A task that knows its place in the order of creation."""

    number: int


class SimLoop(VirtualTimeLoop):
    """`seed` decides in which order tasks that are ready at one time go on."""

    # Of the base class, in all releases of Python that there are: handles and timers. Here with
    # what orders them in front, as handles compare slowly.
    _ready: deque[Any]
    _scheduled: list[Any]

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.steps = 0
        self._rng = random.Random(seed)
        self._tasks_made = 0
        self._timers_made = 0
        self._held: dict[str, list[asyncio.Handle]] = {}
        self._steps_at_this_time = 0
        self.set_task_factory(self._make_task)

    def pause(self, process: str) -> None:
        """Let nothing of a process run until `resume`."""
        self._held.setdefault(process, [])

    def resume(self, process: str) -> None:
        """Let a process go on with what has come meanwhile."""
        self._ready.extend(self._held.pop(process, ()))

    # As the base class does it, without what it checks for those who debug.

    def call_soon(
        self,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer: Any = asyncio.TimerHandle(when, callback, args, self, context)
        # By number where times are equal: what was asked for first is due first.
        self._timers_made += 1
        heappush(self._scheduled, (when, self._timers_made, timer))
        timer._scheduled = True
        made: asyncio.TimerHandle = timer
        return made

    def call_later(
        self,
        delay: float,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._clock.now_s + delay, callback, *args, context=context)

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Generator[Any, None, Any] | Coroutine[Any, Any, Any],
        **named: Any,
    ) -> SimTask:
        self._tasks_made += 1
        task = SimTask(work, loop=loop, **named)
        task.number = self._tasks_made
        return task

    def _run_once(self) -> None:
        self._take_due_timers()
        ready = self._ready
        if len(ready) > 1:
            self._permute()
        held = self._held
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            if held:
                process = handle._context.get(PROCESS)
                if process in held:
                    held[process].append(handle)
                    continue
            self.steps += 1
            handle._run()

    def _take_due_timers(self) -> None:
        ready, timers = self._ready, self._scheduled
        while timers and timers[0][2]._cancelled:
            self._pop_timer()
        if not ready:
            if not timers:
                raise StuckError("every task waits, and no timer is left to end it")
            self._let_time_pass(timers[0][0])
        elif self._steps_at_this_time > STEPS_AT_ONE_TIME_MAX or self.steps > STEPS_MAX:
            raise StuckError("no end of what happens at one time")
        self._steps_at_this_time += len(ready)
        now_s = self._clock.now_s
        while timers and timers[0][0] <= now_s:
            handle = self._pop_timer()
            if not handle._cancelled:
                ready.append(handle)

    def _let_time_pass(self, until_s: float) -> None:
        if until_s > self._clock.now_s:
            self._clock.now_s = until_s
            self._steps_at_this_time = 0

    def _pop_timer(self) -> Any:
        handle = heappop(self._scheduled)[2]
        handle._scheduled = False
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers leave the heap when their time comes."""

    def _permute(self) -> None:
        """By creation first: sets of tasks are walked in the order of their addresses."""
        ready = self._ready
        places = [
            place
            for place, handle in enumerate(ready)
            if type(getattr(handle._callback, "__self__", None)) is SimTask
        ]
        if len(places) < 2:
            return
        wakeups = [ready[place] for place in places]
        wakeups.sort(key=lambda handle: handle._callback.__self__.number)
        self._rng.shuffle(wakeups)
        for place, handle in zip(places, wakeups, strict=True):
            ready[place] = handle
