"""Doorbells whose requests could not be read or are held back, with the waiters for their end."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from committer.ports.queue import Delivery, Doorbell, shard_of
from committer.ports.skips import Skips
from committer.ports.world import World
from committer.service.requests.inbox_keys import InboxKey, table_folder_of
from committer.service.telemetry.lag import Delay, DelayedKeys, LagCause
from committer.storage.inbox.inbox import Inbox

# Above this, redelivery and the reconciler find them.
DEFERRED_MAX = 100_000
# Of the copies of surplus requests, which are not parsed yet.
COPIES_BYTES_MAX = 32 * 1024 * 1024


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


@dataclass(frozen=True, slots=True)
class Surplus:
    """A request that waits in the inbox because its producer has its share of memory.

    `durable_ms`: since when it has been durable. `doorbell`: with a copy of it, if there is room
    for that; else the request is read from the inbox.
    """

    durable_ms: int
    doorbell: Doorbell | None = None

    @property
    def size_bytes(self) -> int:
        return len((self.doorbell and self.doorbell.content) or b"")


class DeferredDoorbells:
    """Inbox keys to read again, in the order in which they were deferred; some not before a pause
    is over.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiters: dict[InboxKey, Waiters] = {}
        self._delays = DelayedKeys()
        self._unlisted = set[str]()
        self._paused_until_s: dict[InboxKey, float] = {}
        # By folder of the producer, its surplus keys as a heap: the lowest epoch first.
        self._surplus: dict[str, list[InboxKey]] = {}
        self._surplus_of_key: dict[str, Surplus] = {}
        self._copies_bytes = 0
        self.has_surplus = asyncio.Event()

    def __contains__(self, key: object) -> bool:
        return key in self._waiters

    def __iter__(self) -> Iterator[InboxKey]:
        return iter(self._waiters)

    def add(self, key: InboxKey, waiters: Waiters, delay: Delay) -> None:
        """Add a key, or join its waiters to those of another copy of the doorbell."""
        if key in self._waiters or len(self._waiters) < DEFERRED_MAX:
            self._waiters[key] = waiters.joined(self._waiters.get(key))
            self._delays.put(table_folder_of(key), key, delay)

    def take(self, key: InboxKey) -> Waiters | None:
        waiters = self._waiters.pop(key, None)
        if waiters is not None:
            self._delays.drop(table_folder_of(key), key)
        return waiters

    def delay(self, key: str) -> Delay | None:
        """Return why a deferred request is not committed; None if it is not deferred."""
        return self._delays.find(table_folder_of(key), key) if key in self._waiters else None

    def begin_listing(self) -> None:
        """Note that a listing of the whole inbox begins: `listed` follows for each of its keys."""
        self._unlisted = set(self._waiters)

    def listed(self, key: str, durable_ms: int) -> None:
        """Note that a listing shows the inbox object of a request that may be deferred."""
        self._unlisted.discard(key)
        delay = self.delay(key)
        if delay is not None and durable_ms < delay.durable_ms:
            self._delays.put(table_folder_of(key), key, Delay(durable_ms, delay.cause))

    def end_listing(self, skips: Skips, inbox: Inbox) -> None:
        """Forget the delays of requests that a complete listing did not show: they are not durable
        any more. Their waiters stay until the next read. `skips`: where the listing could not look.
        """
        for key in self._unlisted:
            if not skips.may_hide(inbox.location(key)):
                self._delays.drop(table_folder_of(key), key)
        self._unlisted = set()

    def oldest(self) -> Iterator[tuple[str, Delay]]:
        """Yield the delay of the oldest of each cause, with the folder of its table."""
        return self._delays.oldest()

    # --- Requests whose producer has its share of memory ---

    def add_surplus(self, key: InboxKey, waiters: Waiters, surplus: Surplus) -> None:
        """Add a key that is not read before its producer has room again."""
        self.add(key, waiters, Delay(surplus.durable_ms, LagCause.WAITING))
        if key not in self._waiters or key in self._surplus_of_key:
            return
        if self._copies_bytes + surplus.size_bytes > COPIES_BYTES_MAX:
            surplus = replace(surplus, doorbell=None)
        self._copies_bytes += surplus.size_bytes
        heappush(self._surplus.setdefault(key.folder, []), key)
        self._surplus_of_key[key] = surplus
        self.has_surplus.set()

    def is_surplus(self, key: str) -> bool:
        return key in self._surplus_of_key

    def has_surplus_of(self, folder: str) -> bool:
        """Return whether the producer of this folder has surplus requests."""
        return folder in self._surplus

    @property
    def surplus_producers(self) -> Collection[str]:
        """The folders of producers with surplus requests."""
        return tuple(self._surplus)

    def take_surplus(self, folder: str, count_max: int) -> list[tuple[InboxKey, Surplus]]:
        """Return a producer's first surplus keys that are still deferred."""
        keys = self._surplus.get(folder, [])
        taken: list[tuple[InboxKey, Surplus]] = []
        while keys and len(taken) < count_max:
            key = heappop(keys)
            surplus = self._surplus_of_key.pop(key)
            self._copies_bytes -= surplus.size_bytes
            if key in self._waiters:
                taken.append((key, surplus))
        if not keys:
            self._surplus.pop(folder, None)
        if not self._surplus:
            self.has_surplus.clear()
        return taken

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
                self.take(key)
        for folder, keys in list(self._surplus.items()):
            if keys[0].shard in shards:
                self.take_surplus(folder, len(keys))
