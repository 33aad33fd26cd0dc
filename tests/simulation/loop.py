"""The event loop of a simulation: virtual time, a seeded order of task wake-ups, no threads.

Callbacks of `call_soon` stay first in, first out, as asyncio promises; only the order of tasks that
are ready at one time varies. Tasks of a stopped process (SIGSTOP) queue their wake-ups until it
continues. No sockets, no signals: the ports are the only way out.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from typing import Any, TypeVarTuple

from tests.support.clock.virtual_time import VirtualTimeLoop

_Ts = TypeVarTuple("_Ts")

# In the context of each task and timer: the name of the process that it belongs to.
PROCESS: ContextVar[str | None] = ContextVar("process", default=None)
# Far more than any scenario needs: a loop that makes no progress must end.
STEPS_MAX = 20_000_000
STEPS_AT_ONE_TIME_MAX = 200_000


class StuckError(Exception):
    """Nothing is left that could happen, or no end of what happens at one time."""


class SimHandle(asyncio.TimerHandle):
    """A callback, with or without a time, and nothing of what helps those who debug."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[object, ...],
        context: Context | None,
    ) -> None:
        self._when = when
        self._callback: Any = callback
        self._args: Any = args
        self._context = copy_context() if context is None else context
        self._cancelled = False

    def __repr__(self) -> str:
        return f"<SimHandle of {self._callback!r}>"

    def cancel(self) -> None:
        """Mark the handle; it leaves the loop when its time comes."""
        self._cancelled = True
        self._callback = self._args = None


class SimTask(asyncio.Task[Any]):
    """A task that knows its place in the order of creation."""

    number: int


class SimLoop(VirtualTimeLoop):
    """`seed` decides in which order tasks that are ready at one time go on."""

    # Of the base class, in all releases of Python that there are: handles and timers. Here with
    # what orders them in front, as handles compare slowly.
    _ready: deque[Any]
    _scheduled: list[Any]
    _stopping: bool

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.steps = 0
        self._rng = random.Random(seed)
        self._tasks_made = 0
        self._timers_made = 0
        self._held: dict[str, list[asyncio.Handle]] = {}
        self._steps_max = STEPS_AT_ONE_TIME_MAX
        self.set_task_factory(self._make_task)

    def pause(self, process: str) -> None:
        """Hold back every step of a process until `resume`."""
        self._held.setdefault(process, [])

    def resume(self, process: str) -> None:
        """Resume a process with the steps that have come in the meantime."""
        self._ready.extend(self._held.pop(process, ()))

    def is_paused(self, process: str) -> bool:
        return process in self._held

    # As the base class does it, without what it checks for those who debug.

    def call_soon(
        self,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        handle = SimHandle(0.0, callback, args, context)
        self._ready.append(handle)
        return handle

    # Asked once for each future, task and handle: an answer that is no call in Python.
    get_debug = bool

    def call_at(
        self,
        when: float,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = SimHandle(when, callback, args, context)
        # By number where times are equal: what was asked for first is due first.
        self._timers_made += 1
        heappush(self._scheduled, (when, self._timers_made, timer))
        return timer

    def call_later(
        self,
        delay: float,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.clock.now_s + delay, callback, *args, context=context)

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
        """Run until the loop stops: the base class checks for that at each step, slowly."""
        ready, timers, held = self._ready, self._scheduled, self._held
        while True:
            if not ready:
                self._let_time_pass()
            now_s = self.clock.now_s
            while timers and timers[0][0] <= now_s:
                timer = heappop(timers)[2]
                if not timer._cancelled:
                    ready.append(timer)
            if len(ready) > 1:
                self._permute()
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
                try:
                    handle._context.run(handle._callback, *handle._args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # noqa: BLE001  # as the base class does it
                    self.call_exception_handler({"message": f"{handle}", "exception": error})
            if self._stopping:
                return
            if self.steps > self._steps_max:
                raise StuckError("no end of what happens at one time")

    def _let_time_pass(self) -> None:
        """Advance the clock to the first timer that was not cancelled."""
        timers = self._scheduled
        while timers and timers[0][2]._cancelled:
            heappop(timers)
        if not timers:
            raise StuckError("every task waits, and no timer is left to end it")
        if timers[0][0] > self.clock.now_s:
            self.clock.now_s = timers[0][0]
            self._steps_max = min(self.steps + STEPS_AT_ONE_TIME_MAX, STEPS_MAX)

    def _permute(self) -> None:
        """Shuffle the wake-ups of tasks. They are sorted by creation first, since sets of tasks
        iterate in the order of their addresses.
        """
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
