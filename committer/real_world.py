"""The real `World`: the one place that asks the machine for time, ids and chance."""

from __future__ import annotations

import asyncio
import random
import time
from uuid import UUID, uuid4


class RealWorld:
    """Wall clock, the running loop's clock, the operating system's randomness."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)

    def uuid(self) -> UUID:
        return uuid4()

    def jitter(self) -> float:
        return random.random()
