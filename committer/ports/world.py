"""The port `World`: time, ids and chance. Each docstring is a contract."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID


class World(Protocol):
    """The one door for time, ids and chance. A simulation replays a seed through it."""

    def now_ms(self) -> int:
        """Return the wall clock, milliseconds since 1970 UTC. May jump."""

    def monotonic_s(self) -> float:
        """Return the event loop's clock, in seconds."""

    async def sleep(self, delay_s: float) -> None:
        """Wait on the event loop's clock."""

    def uuid(self) -> UUID:
        """Return a fresh random (version 4) uuid."""

    def jitter(self) -> float:
        """Return a uniform number in [0, 1)."""


def spread_s(delay_s: float, world: World) -> float:
    """Return a delay times a factor in [0.5, 1.5), so that many clients do not act at once."""
    return delay_s * (0.5 + world.jitter())
