"""A `World` for each process: a clock that is skewed and may jump, ids and chance from the seed."""

from __future__ import annotations

import asyncio
from uuid import UUID

from tests.simulation.chance import rng

START_MS = 1_800_000_000_000


class SimWorld:
    """The `World` port of one life of a process. `skew_ms` may be changed at any time."""

    def __init__(self, seed: int, name: str, *, skew_ms: int = 0) -> None:
        self._chance = rng(seed, f"world {name}")
        self.skew_ms = skew_ms

    def now_ms(self) -> int:
        return START_MS + self.skew_ms + int(self.monotonic_s() * 1000)

    def monotonic_s(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)

    def uuid(self) -> UUID:
        return UUID(int=self._chance.getrandbits(128), version=4)

    def jitter(self) -> float:
        return self._chance.random()
