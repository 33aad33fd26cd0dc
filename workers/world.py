"""The real `World` of a Spark driver: time, ids and chance. Nothing else of the Spark side asks for
them."""

from __future__ import annotations

import asyncio
import random  # noqa: TID251  # this is the World
import time
from uuid import UUID, uuid4  # noqa: TID251  # this is the World


class DriverWorld:
    """Wall clock, the running loop's clock, the operating system's randomness."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000  # noqa: TID251  # this is the World

    def monotonic_s(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)

    def uuid(self) -> UUID:
        return uuid4()

    def jitter(self) -> float:
        return random.random()  # noqa: S311  # spreads polls, guards nothing
