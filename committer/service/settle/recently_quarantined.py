"""Which requests this process has put into quarantine lately.

A client may have rung for one twice, the second time late; and why it was refused may have gone
away since. Whether such a request is still wanted, its inbox object alone tells.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from committer.ports.world import World

# A doorbell is taken for what it says no longer, whichever way a clock is wrong (`intake.py`).
KEPT_S = 120.0
# Beyond this the oldest are forgotten.
JUDGED_MAX = 20_000


class RecentlyQuarantined:
    """Inbox keys, each for two minutes."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._since_s: OrderedDict[str, float] = OrderedDict()

    def __contains__(self, key: object) -> bool:
        return key in self._since_s

    def __iter__(self) -> Iterator[str]:
        young_s = self._world.monotonic_s() - KEPT_S
        return (key for key, since_s in self._since_s.items() if since_s >= young_s)

    def add(self, key: str) -> None:
        now_s = self._world.monotonic_s()
        self._since_s[key] = now_s
        self._since_s.move_to_end(key)
        while len(self._since_s) > JUDGED_MAX or self._oldest_s < now_s - KEPT_S:
            self._since_s.popitem(last=False)

    @property
    def _oldest_s(self) -> float:
        return next(iter(self._since_s.values()))
