"""Worlds for tests: time that passes only when told to, ids in ascending order, no chance."""

from __future__ import annotations

import asyncio
from uuid import UUID

from committer.real_world import RealWorld


class ManualWorld:
    """A clock that stands still until `advance`; `sleep` advances it and yields once."""

    def __init__(self, *, now_ms: int = 1_800_000_000_000) -> None:
        self._now_s = now_ms / 1_000
        self._started_s = self._now_s
        self._ids = 0

    def advance(self, delay_s: float) -> None:
        self._now_s += delay_s

    def put_back(self, by_s: float) -> None:
        """Put the wall clock back; the event loop's clock goes on."""
        self._now_s -= by_s
        self._started_s -= by_s

    def now_ms(self) -> int:
        return round(self._now_s * 1_000)

    def monotonic_s(self) -> float:
        return self._now_s - self._started_s

    async def sleep(self, delay_s: float) -> None:
        self.advance(delay_s)
        await asyncio.sleep(0)

    def uuid(self) -> UUID:
        self._ids += 1
        return UUID(int=self._ids, version=4)

    def jitter(self) -> float:
        return 0.5


class WrongWorld(RealWorld):
    """The real world, but for a clock that is ahead by this much."""

    def __init__(self) -> None:
        self.ahead_s = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_s * 1000
