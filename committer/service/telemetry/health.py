"""What the process says of itself: is its loop alive, and may it be relied upon?

Liveness never depends on a server outside: an outage must not become a restart storm. Readiness
depends on what every table needs, never on one table: a rollout waits for readiness, and the
release that repairs a table must not wait for that table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from committer.ports import World

Phase = Literal["starting", "running", "draining"]

# Without these no table gets anywhere. Trouble of any other component shows, and is no more.
REQUIRED = frozenset({"catalog", "storage", "inbox"})
HEARTBEAT_S = 1.0
HEARTBEAT_LATE_S = 30.0


@dataclass(slots=True)
class Health:
    """Troubles by component, and the event loop's last heartbeat."""

    world: World
    troubles: dict[str, str] = field(default_factory=dict)
    phase: Phase = "starting"
    last_beat_s: float | None = None

    @property
    def is_ready(self) -> bool:
        return self.phase == "running" and not self.unreachable

    @property
    def unreachable(self) -> dict[str, str]:
        """The troubles that readiness depends on."""
        return {name: why for name, why in self.troubles.items() if name in REQUIRED}

    @property
    def is_alive(self) -> bool:
        if self.last_beat_s is None:
            return True
        return self.world.monotonic_s() - self.last_beat_s < HEARTBEAT_LATE_S

    def trouble(self, component: str, why: str) -> bool:
        """Note a trouble. True if it is news, so that it is logged once and not on every retry."""
        is_news = component not in self.troubles
        self.troubles[component] = why
        return is_news

    def well(self, component: str) -> bool:
        """Note that a component works. True if it did not before."""
        return self.troubles.pop(component, None) is not None

    async def beat(self, tell_late_s: Callable[[float], None]) -> None:
        """Beat until cancelled, and tell how much too late each beat was."""
        while True:
            self.last_beat_s = self.world.monotonic_s()
            await self.world.sleep(HEARTBEAT_S)
            tell_late_s(max(0.0, self.world.monotonic_s() - self.last_beat_s - HEARTBEAT_S))
