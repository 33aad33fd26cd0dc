"""The queue inside one process, for tests and simulations: behaves as the Redis one does.

`MemoryServer` is what a Redis server would be for one installation; each `MemoryQueue` on it is one
client with a consumer name, each `MemoryLeases` one process of a member. Idle times and expiry come
from the `World`, waiting uses the event loop's clock, so both may be virtual.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar
from uuid import UUID

from committer.errors import QueueUnavailableError
from committer.ports.installation import Installation
from committer.ports.leases import Assignment, Renewal
from committer.ports.queue import (
    AHEAD_MAX,
    ALL_SHARDS,
    SHARDS,
    Delivery,
    Doorbell,
    QueueDepth,
    shard_of,
)
from committer.ports.world import World
from committer.queue.entry_fields import RECEIPTS_MAX, RECEIPTS_S_MAX, encode_doorbell, inline
from committer.request.receipt_model import Receipt
from tests.support.memory.lease_table import LeaseTable

_Item = TypeVar("_Item")

INSTALLATION = Installation("memory://requests", "frazil")


@dataclass(slots=True)
class _Pending:
    """A doorbell in the hands of a consumer since `since_s`."""

    consumer: str
    since_s: float
    deliveries: int


@dataclass(slots=True)
class _Shard:
    """Doorbells by number; the `fresh` ones were never handed out in their turn, those up to
    `ahead_number` ahead of it, if at all.
    """

    doorbells: dict[int, Doorbell] = field(default_factory=dict)
    pending: dict[int, _Pending] = field(default_factory=dict)
    fresh: deque[int] = field(default_factory=deque)
    ahead_number: int = 0


@dataclass(slots=True)
class _Mailbox:
    receipts: deque[Receipt] = field(default_factory=lambda: deque(maxlen=RECEIPTS_MAX))
    expires_s: float = 0.0


class MemoryServer:
    """The server that clients share. `available = False` makes every call fail, like an outage."""

    def __init__(self, *, world: World) -> None:
        self.world = world
        self.available = True
        self.numbers = 0
        self.shards: list[_Shard] = []
        self.mailboxes: dict[str, _Mailbox] = {}
        self.leases = LeaseTable()
        self._arrived = asyncio.Event()
        self.flush()

    def flush(self) -> None:
        """Drop everything, as FLUSHALL does."""
        self.shards = [_Shard() for _ in range(SHARDS)]
        self.mailboxes = {}
        self.leases.lose()

    def reached(self) -> MemoryServer:
        """Return this server. Errors: `QueueUnavailableError` while it is off."""
        if not self.available:
            raise QueueUnavailableError("the queue in memory is switched off")
        return self

    def waiting(self, table_uuid: UUID) -> int:
        """Return how many doorbells are in the shard of this table."""
        return len(self.shards[shard_of(table_uuid)].doorbells)

    def wake(self) -> None:
        """Wake every waiter to check again."""
        self._arrived.set()
        self._arrived = asyncio.Event()

    async def wait(self, take: Callable[[], list[_Item]], wait_s: float) -> list[_Item]:
        """Call `take` at once and after each arrival, until it has something or time is up."""
        try:
            async with asyncio.timeout(wait_s):
                while not (taken := take()):
                    await self._arrived.wait()
                return taken
        except TimeoutError:
            return []


class MemoryQueue:
    """One client of a `MemoryServer`. Clients of one consumer name are one consumer."""

    def __init__(self, server: MemoryServer, *, consumer: str) -> None:
        self._server = server
        self._consumer = consumer
        self._held: set[str] = set()

    async def announce(self, doorbells: Sequence[Doorbell]) -> int:
        with self._reached() as server:
            for doorbell in doorbells:
                encode_doorbell(doorbell)  # refuses what the wire would refuse
                server.numbers += 1
                shard = server.shards[shard_of(doorbell.table_uuid)]
                shard.doorbells[server.numbers] = replace(doorbell, content=inline(doorbell))
                shard.fresh.append(server.numbers)
            server.wake()
            return max((server.waiting(bell.table_uuid) for bell in doorbells), default=0)

    async def backlog(self, table_uuid: UUID) -> int:
        with self._reached() as server:
            return server.waiting(table_uuid)

    async def read(
        self,
        *,
        count_max: int,
        wait_s: float,
        shards: Collection[int] = ALL_SHARDS,
        more_max: int = 0,
    ) -> Sequence[Delivery]:
        self.release_shards(set(ALL_SHARDS).difference(shards))
        return await self._server.wait(
            lambda: self._take(count_max, sorted(shards), more_max), wait_s
        )

    async def reclaim(
        self, *, idle_s: float, shards: Collection[int] = ALL_SHARDS
    ) -> Sequence[Delivery]:
        with self._reached() as server:
            now_s = server.world.monotonic_s()
            claimed: list[Delivery] = []
            for number in sorted(shards):
                shard = server.shards[number]
                idle = [key for key, p in shard.pending.items() if now_s - p.since_s >= idle_s]
                for key in idle:
                    if _token(number, key) in self._held:
                        shard.pending[key].since_s = now_s
                    else:
                        claimed.append(self._hand_out(number, key))
            return claimed

    def release_shards(self, shards: Collection[int]) -> None:
        if self._held and shards:
            self._held = {token for token in self._held if int(token[:2]) not in shards}

    async def acknowledge(self, tokens: Sequence[str]) -> None:
        wanted = set(tokens)
        self._held -= wanted
        with self._reached() as server:
            for number, shard in enumerate(server.shards):
                ahead = [key for key in shard.fresh if key <= shard.ahead_number]
                for key in [
                    key for key in (*shard.pending, *ahead) if _token(number, key) in wanted
                ]:
                    shard.pending.pop(key, None)
                    del shard.doorbells[key]
                    if key in shard.fresh:
                        shard.fresh.remove(key)

    def taken_keys(self) -> Mapping[str, str]:
        return {}

    async def reply(self, receipts: Sequence[tuple[str, Receipt]]) -> None:
        with self._reached() as server:
            for reply_to, receipt in receipts:
                mailbox = server.mailboxes.setdefault(reply_to, _Mailbox())
                mailbox.receipts.append(receipt)
                mailbox.expires_s = server.world.monotonic_s() + RECEIPTS_S_MAX
            server.wake()

    async def wait_for_receipts(self, reply_to: str, *, wait_s: float) -> Sequence[Receipt]:
        return await self._server.wait(lambda: self._collect(reply_to), wait_s)

    async def depth(self) -> QueueDepth:
        with self._reached() as server:
            return QueueDepth(
                waiting=sum(len(shard.doorbells) for shard in server.shards),
                pending=sum(len(shard.pending) for shard in server.shards),
            )

    async def probe(self) -> None:
        with self._reached():
            return  # memory evicts nothing

    async def close(self) -> None:
        """Do nothing: the doorbells that this consumer holds stay pending."""

    @contextmanager
    def _reached(self) -> Iterator[MemoryServer]:
        yield self._server.reached()

    def _take(self, count_max: int, shards: Sequence[int], more_max: int) -> list[Delivery]:
        """Return doorbells that were delivered to this consumer but lost; else new ones."""
        with self._reached() as server:
            rung = [number for number in shards if server.shards[number].doorbells]
            taken: list[Delivery] = []
            for number in rung:
                if pending := server.shards[number].pending:
                    unseen = [key for key in pending if self._is_unseen(number, key)]
                    taken += (self._hand_out(number, key) for key in unseen[:count_max])
            if taken:
                return taken
            queues = {number: fresh for number in rung if (fresh := server.shards[number].fresh)}
            longer = [number for number, queue in queues.items() if len(queue) > count_max]
            more = more_max // len(longer) if longer else 0
            for number, queue in queues.items():
                count = min(count_max + (more if number in longer else 0), len(queue))
                taken += [self._hand_out(number, queue.popleft()) for _ in range(count)]
            return taken + [copy for number in longer if more for copy in self._look_ahead(number)]

    def _look_ahead(self, number: int) -> list[Delivery]:
        shard = self._server.shards[number]
        newest = [key for key in list(shard.fresh)[-AHEAD_MAX:] if key > shard.ahead_number]
        shard.ahead_number = max([shard.ahead_number, *newest])
        return [
            Delivery(_token(number, key), shard.doorbells[key], 1, is_ahead=True) for key in newest
        ]

    def _is_unseen(self, number: int, key: int) -> bool:
        pending = self._server.shards[number].pending[key]
        return pending.consumer == self._consumer and _token(number, key) not in self._held

    def _hand_out(self, number: int, key: int) -> Delivery:
        shard, token = self._server.shards[number], _token(number, key)
        deliveries = shard.pending[key].deliveries + 1 if key in shard.pending else 1
        now_s = self._server.world.monotonic_s()
        shard.pending[key] = _Pending(self._consumer, now_s, deliveries)
        self._held.add(token)
        return Delivery(token, shard.doorbells[key], deliveries)

    def _collect(self, reply_to: str) -> list[Receipt]:
        with self._reached() as server:
            mailbox = server.mailboxes.pop(reply_to, None)
            if mailbox is None or mailbox.expires_s <= server.world.monotonic_s():
                return []
            return list(mailbox.receipts)


class MemoryLeases:
    """One process of a member, on a `MemoryServer`; the server's clock is the world's."""

    def __init__(
        self,
        server: MemoryServer,
        *,
        member: str,
        process: UUID,
        installation: Installation = INSTALLATION,
    ) -> None:
        self._server = server
        self._member = member
        self._process = process
        self._installation = installation

    async def renew(self, renewal: Renewal) -> Assignment:
        server = self._server.reached()
        version, now_ms = server.leases.version, server.world.now_ms()
        seen = server.leases.renew(
            self._process, self._member, self._installation, renewal, now_ms=now_ms
        )
        if server.leases.version != version:
            server.wake()
        return seen

    async def look(self) -> Assignment:
        server = self._server.reached()
        return server.leases.look(now_ms=server.world.now_ms())

    async def wait_for_change(self, version: str, *, wait_s: float) -> None:
        def news() -> list[str]:
            now = str(self._server.reached().leases.version)
            return [now] if now != version else []

        await self._server.wait(news, wait_s)

    async def leave(self) -> None:
        server = self._server.reached()
        server.leases.leave(self._process)
        server.wake()

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _token(shard: int, number: int) -> str:
    return f"{shard:02d}:{number}"
