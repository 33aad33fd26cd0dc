"""Calls to an object store over HTTP: one client, the limit of concurrent calls, and retries.

Every call that is sent here may be repeated: reads, deletions, and writes under a condition that
their own first success makes fail. The sender of such a write asks `Tries` afterwards. How a store
words its errors is its adapter's knowledge (`Backend.judge`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from committer.errors import FrazilError, TransientError
from committer.ports.world import World

Client = TypeVar("Client")
T = TypeVar("T")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Sizes and budgets. The defaults suit the real services; tests make them small."""

    listed_max: int = 1_000
    resends_max: int = 2
    """How often a call without an answer, or with "internal error", is sent again."""
    slow_downs_max: int = 8
    """How often a call is sent again that was answered "slow down": some 16 s in all."""


_RESEND_S = 0.05
_SLOW_DOWN_S = 0.2
_DELAY_S_MAX = 5.0


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure of one try of a call."""

    is_passing: bool
    """A retry may succeed without an operator."""
    is_slow_down: bool
    """The store asked to be called less often."""
    is_refusal: bool
    """The store has surely applied nothing. Else it may have, or may still."""


@dataclass(slots=True)
class Tries:
    """The tries of one call so far."""

    resends: int = 0
    slow_downs: int = 0
    in_doubt: bool = False
    """An earlier try of it may have been applied, or may still be."""

    def note(self, failure: Failure, limits: CallLimits, jitter: float) -> float | None:
        """Note a failed try. Return how long to wait before the next, in seconds;
        None if there is none."""
        self.in_doubt = self.in_doubt or not failure.is_refusal
        if not failure.is_passing:
            return None
        if failure.is_slow_down:
            self.slow_downs += 1
            left, delay_s = limits.slow_downs_max - self.slow_downs, _SLOW_DOWN_S
            exponent = self.slow_downs - 1
        else:
            self.resends += 1
            left, delay_s = limits.resends_max - self.resends, _RESEND_S
            exponent = self.resends - 1
        if left < 0:
            return None
        return (0.5 + jitter / 2) * min(_DELAY_S_MAX, delay_s * 2.0**exponent)


@dataclass(frozen=True, slots=True)
class Backend(Generic[Client]):
    """The particulars of a store: its client, and the errors of a call with it."""

    open: Callable[[], Awaitable[Client]]
    close: Callable[[Client], Awaitable[None]]
    errors: tuple[type[Exception], ...]
    judge: Callable[[Exception], Failure]
    calls_at_once_max: int


class RepeatedCalls(Generic[Client]):
    """One client per event loop, opened by the first call. At most `calls_at_once_max` at once.

    A call keeps its place while it waits to be sent again, so a server that is overloaded gets
    fewer calls.
    """

    def __init__(self, backend: Backend[Client], world: World, limits: CallLimits) -> None:
        self._backend = backend
        self._world = world
        self._limits = limits
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = asyncio.Lock()
        self._places = asyncio.Semaphore()
        self._client: Client | None = None

    async def send(
        self,
        call: Callable[[Client], Awaitable[T]],
        tries: Tries | None = None,
        *,
        unless: Callable[[Exception], bool] = lambda _: False,
    ) -> T:
        """Send a call, again while that may help, but not after an error that `unless` names.

        Errors: `SettingsError` where no client can be made; else the last one of the backend's.
        """
        client = await self._open()
        tries = tries or Tries()
        async with self._places:
            while True:
                try:
                    return await call(client)
                except self._backend.errors as error:
                    failure = self._backend.judge(error)
                    delay_s = tries.note(failure, self._limits, self._world.jitter())
                    if delay_s is None or unless(error):
                        raise
                await self._world.sleep(delay_s)

    @property
    def at_once_max(self) -> int:
        return self._backend.calls_at_once_max

    async def close(self) -> None:
        """Release connections; a later call opens them again. Idempotent."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await self._backend.close(client)

    async def _open(self) -> Client:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # Connections of another loop, which has ended, can be neither used nor closed.
            self._loop, self._client = loop, None
            self._opening = asyncio.Lock()
            self._places = asyncio.Semaphore(self._backend.calls_at_once_max)
        async with self._opening:
            if self._client is None:
                self._client = await self._backend.open()
        return self._client


async def for_each(
    items: Sequence[Item], act: Callable[[Item], Awaitable[None]], *, at_once_max: int
) -> None:
    """Act on every item, on some at once. After an error begin no further call, wait for those in
    flight, and raise it: no call may continue after its caller has seen an error.
    """
    if len(items) == 1:
        await act(items[0])
        return
    errors: list[Exception] = []
    waiting = iter(items)
    async with asyncio.TaskGroup() as workers:
        for _ in range(min(at_once_max, len(items))):
            workers.create_task(_work(waiting, act, errors))
    if errors:
        raise errors[0]


# Beyond so many unavailable answers in a row, to different objects, the server is at fault.
UNAVAILABLE_IN_A_ROW_MAX = 32


async def failures_of_each(
    items: Sequence[Item], act: Callable[[Item], Awaitable[None]], *, at_once_max: int
) -> list[tuple[Item, FrazilError]]:
    """Act on every item, on some at once, whatever becomes of the others. Return those that failed.

    While the server is unavailable, the rest fails unasked, with the error of the last one asked.
    """
    failures: list[tuple[Item, FrazilError]] = []
    in_a_row: list[FrazilError] = []

    async def attempt(item: Item) -> None:
        if len(in_a_row) >= UNAVAILABLE_IN_A_ROW_MAX:
            failures.append((item, in_a_row[-1]))
            return
        try:
            await act(item)
        except TransientError as error:
            failures.append((item, error))
            in_a_row.append(error)
            return
        except FrazilError as error:
            failures.append((item, error))
        in_a_row.clear()

    await for_each(items, attempt, at_once_max=at_once_max)
    return failures


async def _work(
    waiting: Iterable[Item], act: Callable[[Item], Awaitable[None]], errors: list[Exception]
) -> None:
    for item in waiting:
        try:
            await act(item)
        except Exception as error:  # noqa: BLE001  # raised by `for_each` when all have ended
            errors.append(error)
        if errors:
            return
