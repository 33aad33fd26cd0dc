"""Doorbells whose requests could not be read or are held back, with the waiters for their end."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from committer.ports.queue import Delivery, shard_of
from committer.ports.world import World
from committer.service.requests.inbox_keys import InboxKey, table_folder_of

# Above this, redelivery and the reconciler find them.
DEFERRED_MAX = 100_000


@dataclass(frozen=True, slots=True)
class Waiters:
    """The waiters for a request's end: queue tokens to acknowledge, addresses to answer. `shards`:
    those by which the doorbells came.
    """

    tokens: tuple[str, ...] = ()
    reply_to: frozenset[str] = frozenset()
    shards: frozenset[int] = frozenset()

    @classmethod
    def of(cls, delivery: Delivery) -> Waiters:
        bell = delivery.doorbell
        reply_to = frozenset((bell.reply_to,)) if bell.reply_to else frozenset[str]()
        return cls((delivery.token,), reply_to, frozenset((shard_of(bell.table_uuid),)))

    def joined(self, other: Waiters | None) -> Waiters:
        if other is None:
            return self
        return Waiters(
            self.tokens + other.tokens,
            self.reply_to | other.reply_to,
            self.shards | other.shards,
        )


NO_WAITERS = Waiters()


class DeferredDoorbells:
    """Inbox keys to read again, in the order in which they were deferred; some not before a pause
    is over.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiters: dict[InboxKey, Waiters] = {}
        self._paused_until_s: dict[InboxKey, float] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._waiters

    def __iter__(self) -> Iterator[InboxKey]:
        return iter(self._waiters)

    def add(self, key: InboxKey, waiters: Waiters) -> None:
        """Add a key, or join its waiters to those of another copy of the doorbell."""
        if key in self._waiters or len(self._waiters) < DEFERRED_MAX:
            self._waiters[key] = waiters.joined(self._waiters.get(key))

    def take(self, key: InboxKey) -> Waiters | None:
        return self._waiters.pop(key, None)

    # --- Requests that are not read again before a pause is over ---

    def pause(self, key: InboxKey, pause_s: float) -> None:
        """Leave a request in the inbox for this long, or until `resume`."""
        now_s = self._world.monotonic_s()
        if len(self._paused_until_s) >= DEFERRED_MAX:
            self._paused_until_s = {
                one: until_s for one, until_s in self._paused_until_s.items() if until_s > now_s
            }
        if len(self._paused_until_s) < DEFERRED_MAX:
            self._paused_until_s[key] = now_s + pause_s

    def is_paused(self, key: InboxKey) -> bool:
        until_s = self._paused_until_s.get(key)
        return until_s is not None and self._world.monotonic_s() < until_s

    def has_paused(self, table: str) -> bool:
        """Return whether a request of this table's folder is paused."""
        return any(
            table_folder_of(key) == table and self.is_paused(key) for key in self._paused_until_s
        )

    def resume(self, producers: Collection[str]) -> None:
        """End the pauses of the requests in these producers' folders."""
        for key in [key for key in self._paused_until_s if key.folder in producers]:
            del self._paused_until_s[key]

    def release_shards(self, shards: Collection[int]) -> None:
        """Forget the doorbells of shards that another committer owns now. One that came by the
        shard of another table of its transaction, which stays, is not delivered to that committer.
        """
        for key in [key for key in self._paused_until_s if key.shard in shards]:
            del self._paused_until_s[key]
        for key, waiters in list(self._waiters.items()):
            if key.shard in shards and waiters.shards.issubset(shards):
                del self._waiters[key]
