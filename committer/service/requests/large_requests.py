"""Requests that are too large to be read at once: they wait for room in memory, in fair turns.

A large request waits in the inbox, known here by its key and size alone, until the large ones in
hand leave room for it. Turns go round the tables and their producers, not by order of arrival.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from committer.plan.scheduling.fair_queue import TableFairQueue
from committer.ports.world import World
from committer.request.request_format import EncodedRequest
from committer.service.requests.deferred_doorbells import Waiters
from committer.service.requests.inbox_keys import InboxKey, table_folder_of
from committer.service.telemetry.lag import Delay

# Requests that no doorbell can carry are read one by one, and checked by worker processes.
LARGE_BYTES_MIN = 64 * 1024
# Of all large requests that are in hand. A lone larger one is taken all the same.
IN_HAND_BYTES_MAX = 48 * 1024 * 1024
_POLL_S = 0.05


class NamedManifests:
    """The bytes in memory of manifests that requests name by path, of the whole process."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._turn = asyncio.Lock()
        self.in_hand_bytes = 0

    async def wait_for_room(self, size_bytes: int) -> None:
        """Reserve this many bytes once they are free. Callers are served in the order of calls."""
        async with self._turn:
            while self.in_hand_bytes and self.in_hand_bytes + size_bytes > IN_HAND_BYTES_MAX:
                await self._world.sleep(_POLL_S)
            self.in_hand_bytes += size_bytes

    def give_back(self, size_bytes: int) -> None:
        self.in_hand_bytes -= size_bytes


@dataclass(frozen=True, slots=True)
class TableLoad:
    """A load of a table by one of its committers, as its `generation` counts them."""

    committer: object
    generation: int


@dataclass(slots=True)
class Arrival:
    """A request in the inbox that is not read yet, and the waiters for its end. `size_bytes`: 0 if
    it is not known. `announced`: as its doorbell carries it, where it need not be read.
    `seen_after`: the load of its table after which its inbox object was seen to exist.
    """

    key: InboxKey
    waiters: Waiters
    durable_ms: int
    is_shared: bool = True
    size_bytes: int = 0
    announced: EncodedRequest | None = None
    seen_after: TableLoad | None = None

    def join(self, waiters: Waiters | None, delay: Delay | None = None) -> None:
        """Let these wait for its end as well. `delay`: as the request was deferred before."""
        self.waiters = self.waiters.joined(waiters)
        if delay is not None:
            self.durable_ms = min(self.durable_ms, delay.durable_ms)


class LargeRequests:
    """Queues large requests and gives each its turn, as soon as there is room for it.
    `in_hand_bytes`: tells the size of those that were read and have no verdict yet.
    """

    def __init__(self, world: World, in_hand_bytes: Callable[[], int]) -> None:
        self._world = world
        self._in_hand_bytes = in_hand_bytes
        self._turns = TableFairQueue[Arrival]()
        self._known: dict[str, Arrival] = {}
        self._reading_bytes = 0
        self._has_some = asyncio.Event()
        self._room = asyncio.Lock()

    def find(self, key: str) -> Arrival | None:
        """Return a request that waits here, or is being read; None if there is none."""
        return self._known.get(key)

    def listed(self, key: str, durable_ms: int) -> bool:
        """Note that a listing shows the inbox object. False for one that does not wait here."""
        request = self._known.get(key)
        if request is not None:
            request.durable_ms = min(request.durable_ms, durable_ms)
        return request is not None

    def oldest_ms(self) -> Mapping[str, int]:
        """Return since when the oldest of each table has been durable, by the table's folder."""
        oldest: dict[str, int] = {}
        for key, request in self._known.items():
            table = table_folder_of(key)
            oldest[table] = min(oldest.get(table, request.durable_ms), request.durable_ms)
        return oldest

    def add(self, request: Arrival) -> None:
        """Queue a request for its turn; another copy of a queued one shares its end."""
        known = self._known.get(request.key)
        if known is not None:
            known.join(request.waiters)
            known.durable_ms = min(known.durable_ms, request.durable_ms)
            known.is_shared = known.is_shared or request.is_shared
            return
        self._known[request.key] = request
        table = table_folder_of(request.key)
        self._turns.add(table, request.key.folder, request.size_bytes, request)
        self._has_some.set()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Arrival]:
        """Wait for the next request in turn, and for room. Inside it is read and handed over."""
        request = await self._next()
        try:
            yield request
        finally:
            self._reading_bytes -= request.size_bytes
            if self._known.get(request.key) is request:
                del self._known[request.key]

    async def _next(self) -> Arrival:
        """Return the next request in turn as soon as there is room; no other overtakes it."""
        async with self._room:
            while True:
                while not len(self._turns):
                    self._has_some.clear()
                    await self._has_some.wait()
                request = self._turns.take()
                if self._known.get(request.key) is not request:
                    continue
                while not self._has_room(request.size_bytes):
                    await self._world.sleep(_POLL_S)
                self._reading_bytes += request.size_bytes
                return request

    def _has_room(self, size_bytes: int) -> bool:
        in_hand = self._reading_bytes + self._in_hand_bytes()
        return in_hand == 0 or in_hand + size_bytes <= IN_HAND_BYTES_MAX

    def release_shards(self, shards: Collection[int]) -> None:
        """Forget the requests of shards that another committer owns now."""
        for key in [one.key for one in self._known.values() if one.key.shard in shards]:
            del self._known[key]
