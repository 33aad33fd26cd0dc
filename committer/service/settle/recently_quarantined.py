"""The requests that this process has quarantined in the last minutes.

The client of such a request may ring a second time, late, and the cause of the refusal may be gone
by then. Only the inbox object proves that the request is still wanted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from committer.ports.world import World

# A doorbell's copy is trusted from 60 s before its publication to 60 s after it, which allows for
# clock skew in either direction (`TRUSTED_MS` in `intake.py`).
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
