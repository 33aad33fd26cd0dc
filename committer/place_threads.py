"""Threads for blocking calls that may never return, apart for each place that is called.

A call of the system (a mount that does not answer, a database, a name server) cannot be ended from
outside. So each place has threads of its own, which end with the process, and no caller waits for
one without a bound:

* A call without progress for `NAMED_S` is listed by `unanswered`, until it returns.
* A call without progress for `answer_s` fails with `NoAnswerError`. It may still take effect.
* While every thread of a place is in such a call, those that wait for a thread fail within a
  second: nothing of them is begun.

A thread ends after a while without a call. One thread of the process looks at the calls under way.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
# As `socket.getaddrinfo` returns them.
_Addresses = list[Any]

NAMED_S = 5.0
ANSWER_S = 60.0
# Of the process. A place gets its first thread beyond that, too.
THREADS_MAX = 256
_LOOK_S = 1.0
_IDLE_S = 10.0
# Less than the time that a process has to close.
_CLOSE_S = 1.0
# A thread that computes keeps the interpreter so long before the event loop gets it, at each of
# the loop's steps. With Python's own 5 ms ten steps take 70 ms while one such thread computes, and
# 600 ms while six do; with this 20 and 90 ms, and such threads are a few percent slower.
SWITCH_INTERVAL_S = 0.0005

caller: ContextVar[str] = ContextVar("caller", default="")
"""For what a task calls, such as `table db.flights`; empty where that has no name."""


class NoAnswerError(Exception):
    """A place did not answer in time. `is_begun`: the call may have taken effect, or may still."""

    def __init__(self, message: str, *, is_begun: bool) -> None:
        super().__init__(message)
        self.is_begun = is_begun


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A place with calls that have made no progress for a while. `what`: the object of the oldest
    of them. `calls`: all that the place has, those that wait for a thread included.
    """

    place: str
    what: str
    age_s: float
    hung: int
    calls: int

    def __str__(self) -> str:
        return (
            f"no answer for {self.age_s:.0f} s, `{self.what}`: {self.hung} of {self.calls} calls"
            " hang; they are tried again until the place answers"
        )


@dataclass(slots=True, eq=False)
class _Call:
    """A call. `moved_s`: when it began, or made progress last."""

    work: Callable[[], Any]
    what: str
    future: Future[Any] = field(default_factory=Future)
    moved_s: float = 0.0


class PlaceThreads(Executor):
    """The threads of one place. `answer_s`: how long a call may be without progress."""

    def __init__(self, place: str, *, threads_max: int, answer_s: float = ANSWER_S) -> None:
        self.place = place
        self._threads_max = threads_max
        self._answer_s = answer_s
        # Reentrant: a future's callback may call again.
        self._lock = threading.RLock()
        # None ends the thread that takes it. A condition would take half as much time again.
        self._waiting = SimpleQueue[_Call | None]()
        self._running: set[_Call] = set()
        # Those that wait, those that run, and those in between.
        self._calls = 0
        self._threads = 0
        self._is_watched = False
        self._is_closed = False
        self._has_ended = threading.Event()

    @property
    def is_idle(self) -> bool:
        return self._calls == 0

    async def run(self, what: str, work: Callable[[], _T]) -> _T:
        """Return what the work returns. `what` is the object that it is about, as for a person.

        Errors: its own; `NoAnswerError`.
        """
        named = _Named(work, what)
        return await asyncio.get_running_loop().run_in_executor(self, named)

    def submit(self, work: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        what = work.what if isinstance(work, _Named) else self.place
        call = _Call(partial(work, *args, **kwargs) if args or kwargs else work, what)
        with self._lock:
            if self._is_closed:
                raise RuntimeError(f"the threads of `{self.place}` are closed")
            self._calls += 1
            self._waiting.put(call)
            if not self._is_watched:
                self._is_watched = True
                _watcher.watch(self)
            is_short = self._threads < min(self._calls, self._threads_max)
            if is_short and _watcher.has_room(self._threads):
                self._threads += 1
                name = f"{self.place}-{self._threads}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
        return call.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no further call, and wait a moment for those under way. Idempotent."""
        with self._lock:
            self._is_closed = True
            if cancel_futures:
                for call in self._take_waiting():
                    call.future.cancel()
            for _ in range(self._threads):
                self._waiting.put(None)
            if self.is_idle:
                self._has_ended.set()
        if wait:
            self._has_ended.wait(_CLOSE_S)

    def _take_waiting(self) -> Iterator[_Call]:
        with suppress(Empty):
            while True:
                call = self._waiting.get_nowait()
                if call is not None:
                    self._calls -= 1
                    yield call

    # --- A thread of the place -------------------------------------------------------------------

    def _serve(self) -> None:
        while (call := self._next()) is not None:
            _current.call = call
            error, answer = None, None
            try:
                answer = call.work()
            except BaseException as caught:  # noqa: BLE001  # the caller's to handle
                error = caught
            with self._lock:
                self._running.discard(call)
                self._end()
            # Not under the lock: the future wakes the event loop, which may call again.
            if not call.future.done():
                if error is None:
                    call.future.set_result(answer)
                else:
                    call.future.set_exception(error)
            _current.call = None
            del call, error, answer

    def _next(self) -> _Call | None:
        """Wait for a call; None once this thread is to end."""
        while True:
            try:
                call = self._waiting.get(timeout=_IDLE_S)
            except Empty:
                call = None
            with self._lock:
                if call is None:
                    if not self._is_closed and not self._waiting.empty():
                        continue
                    self._threads -= 1
                    _watcher.ended()
                    return None
                if call.future.set_running_or_notify_cancel():
                    call.moved_s = _now_s()
                    self._running.add(call)
                    return call
                self._end()

    def _end(self) -> None:
        self._calls -= 1
        if self._is_closed and self.is_idle:
            self._has_ended.set()

    # --- The watcher -----------------------------------------------------------------------------

    def look(self, now_s: float) -> bool:
        """Fail the calls that have had their time. Return whether there is something to watch."""
        with self._lock:
            for call in self._running:
                if now_s - call.moved_s >= self._answer_s and not call.future.done():
                    message = f"{self.place}: `{call.what}` gave no answer for {self._answer_s:g} s"
                    call.future.set_exception(NoAnswerError(message, is_begun=True))
            if self._all_hang(now_s):
                for call in self._take_waiting():
                    if call.future.set_running_or_notify_cancel():
                        self._refuse(call)
            self._is_watched = not self.is_idle
            return self._is_watched

    def unanswered(self, now_s: float) -> Unanswered | None:
        """Return what hangs, if anything does."""
        with self._lock:
            hung = self._hung(now_s)
            if not hung:
                return None
            oldest = min(hung, key=lambda call: call.moved_s)
            age_s = now_s - oldest.moved_s
            return Unanswered(self.place, oldest.what, age_s, len(hung), self._calls)

    def _hung(self, now_s: float) -> list[_Call]:
        return [call for call in self._running if now_s - call.moved_s >= NAMED_S]

    def _all_hang(self, now_s: float) -> bool:
        is_full = len(self._running) >= self._threads_max
        return is_full and len(self._hung(now_s)) >= self._threads_max

    def _refuse(self, call: _Call) -> None:
        message = f"{self.place}: all {self._threads_max} calls at once hang; `{call.what}` waits"
        call.future.set_exception(NoAnswerError(message, is_begun=False))


class ComputingThreads(ThreadPoolExecutor):
    """The threads of `asyncio.to_thread`, which compute. While one of them does, threads give the
    interpreter away more often; else that would only cost time.
    """

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="computing")
        self._lock = threading.Lock()
        self._computing = 0
        self._usual_s = 0.0

    def submit(self, work: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        return super().submit(self._compute, partial(work, *args, **kwargs))

    def _compute(self, work: Callable[[], _T]) -> _T:
        with self._lock:
            self._computing += 1
            if self._computing == 1:
                self._usual_s = sys.getswitchinterval()
                sys.setswitchinterval(SWITCH_INTERVAL_S)
        try:
            return work()
        finally:
            with self._lock:
                self._computing -= 1
                if self._computing == 0:
                    sys.setswitchinterval(self._usual_s)


class PlaceLoop(asyncio.SelectorEventLoop):
    """An event loop whose own threads compute. It looks up names of servers in threads that the end
    does not wait for: a name server may not answer for minutes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.set_default_executor(ComputingThreads())
        self._names = PlaceThreads("names of servers", threads_max=8)

    async def getaddrinfo(  # type: ignore[override]  # bytes are allowed there
        self,
        host: str,
        port: int | str | None,
        *,
        family: int = 0,
        type: int = 0,  # asyncio's name
        proto: int = 0,
        flags: int = 0,
    ) -> _Addresses:
        look_up = partial(socket.getaddrinfo, host, port, family, type, proto, flags)
        try:
            return await self._names.run(host, look_up)
        except NoAnswerError as error:
            raise socket.gaierror(socket.EAI_AGAIN, str(error)) from error


@dataclass(frozen=True, slots=True)
class _Named:
    work: Callable[[], Any]
    what: str

    def __call__(self) -> Any:
        return self.work()


class _Watcher:
    """Looks at all places that have calls, once a second while there are any."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._places: set[PlaceThreads] = set()
        self._threads = 0
        self._is_started = False

    def watch(self, place: PlaceThreads) -> None:
        with self._changed:
            self._places.add(place)
            if not self._is_started:
                self._is_started = True
                threading.Thread(target=self._run, name="place-watcher", daemon=True).start()
            self._changed.notify()

    def has_room(self, threads: int) -> bool:
        """Count one more thread of a place that has so many; False if there may be none."""
        with self._changed:
            if threads and self._threads >= THREADS_MAX:
                return False
            self._threads += 1
            return True

    def ended(self) -> None:
        with self._changed:
            self._threads -= 1

    @property
    def places(self) -> list[PlaceThreads]:
        with self._changed:
            return list(self._places)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._places)
            threading.Event().wait(_LOOK_S)
            for place in self.places:
                if not place.look(_now_s()):
                    self._leave(place)

    def _leave(self, place: PlaceThreads) -> None:
        """Stop watching a place, unless it was called again meanwhile."""
        with self._changed:
            if not place._is_watched:
                self._places.discard(place)


def unanswered() -> list[Unanswered]:
    """Return the places of this process that have calls without progress, by name."""
    now_s = _now_s()
    found = (place.unanswered(now_s) for place in _watcher.places)
    return sorted((one for one in found if one is not None), key=lambda one: one.place)


def progressed() -> None:
    """Note progress of the call that this thread is in, one of several steps: its time begins anew.
    Elsewhere nothing happens.
    """
    call: _Call | None = getattr(_current, "call", None)
    if call is not None:
        call.moved_s = _now_s()


def _now_s() -> float:
    # Of threads, which have no loop, and no `World`.
    return time.monotonic()  # noqa: TID251


def _begin_anew() -> None:
    """Forget the threads of the parent: a forked process has none of them."""
    global _watcher
    _watcher = _Watcher()


_current = threading.local()
_watcher = _Watcher()
os.register_at_fork(after_in_child=_begin_anew)
