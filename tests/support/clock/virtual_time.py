"""An event loop whose time passes only when nothing is left to do: waits take no real time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from hashlib import blake2b
from typing import TypeVar
from uuid import UUID

T = TypeVar("T")


class _NeverBlocks(selectors.DefaultSelector):
    """Turns "wait that long" into "it is that much later"."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("deadlock: every task waits, and no timer is left to end it")
            self.now_s += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Deterministic as far as the tasks are: the same callbacks in the same order."""

    def __init__(self) -> None:
        self.clock = _NeverBlocks()
        super().__init__(self.clock)

    def time(self) -> float:
        return self.clock.now_s

    def run_in_executor(
        self, executor: Executor | None, work: Callable[..., T], *args: object
    ) -> asyncio.Future[T]:
        """Run the work at once and here: a thread would take real time, not virtual time."""
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(work(*args))
        except Exception as error:  # noqa: BLE001  # the waiter's to handle
            done.set_exception(error)
        return done


class LoopWorld:
    """A `World` on the running loop's clock, with ids from a seed and a fixed chance."""

    def __init__(
        self, *, start_ms: int = 1_800_000_000_000, chance: float = 0.5, seed: int = 0
    ) -> None:
        self._seed = seed
        self._start_ms = start_ms
        self._ids = 0
        self._chance = chance
        self.skew_ms = 0

    def now_ms(self) -> int:
        return self._start_ms + self.skew_ms + int(self.monotonic_s() * 1000)

    def monotonic_s(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)

    def uuid(self) -> UUID:
        self._ids += 1
        name = f"{self._seed}/{self._ids}".encode()
        return UUID(bytes=blake2b(name, digest_size=16).digest(), version=4)

    def jitter(self) -> float:
        return self._chance
