"""Decides from what age on this committer takes a request that it finds in the inbox.

The owner of a shard has its requests from the queue. While the queue is away, the committers wait
for one another.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from committer.ports.world import World
from committer.service.requests.inbox_keys import InboxKey
from committer.service.requests.large_requests import Arrival
from committer.service.sharding.shard_leases import ShardLeases

# How long a listing, or a long queue, gives way to the doorbells that wait.
EMPTY_WAIT_S = 1.0


class QueueProgress:
    """The state of the queue, set by the consumer: it is away; all that waited there has been read
    for the first time; the last read has left nothing there. Without a queue, it is away for ever.
    """

    def __init__(self, *, has_queue: bool = True) -> None:
        self.is_away = asyncio.Event()
        self.has_caught_up = asyncio.Event()
        self.is_empty = asyncio.Event()
        self.is_empty.set()
        if not has_queue:
            self.is_away.set()

    def has_read(self, *, all_there_was: bool) -> None:
        """Note that a read has ended well."""
        if all_there_was:
            self.has_caught_up.set()
            self.is_empty.set()
        else:
            self.is_empty.clear()

    def went_away(self) -> None:
        """Note that the queue does not answer: there is nothing to read."""
        self.is_away.set()
        self.is_empty.set()

    async def wait_until_empty(self) -> None:
        """Wait until the last read has left nothing there, `EMPTY_WAIT_S` at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(EMPTY_WAIT_S):
                await self.is_empty.wait()


@dataclass(eq=False, kw_only=True)
class Ownership:
    """Decides about the requests that a scan lists. `age_s`: when the owner should have taken one
    by its doorbell.
    """

    shards: ShardLeases
    queue: QueueProgress
    world: World
    age_s: float

    @property
    def is_alone(self) -> bool:
        """Whether there is no queue to bring doorbells."""
        return self.queue.is_away.is_set()

    def is_ours(self, key: InboxKey) -> bool:
        """Return whether this committer may take a request."""
        return self.owns_shard(key.shard)

    def owns_shard(self, shard: int) -> bool:
        """Return whether this committer may decide about the tables of a shard."""
        if self.is_alone:
            return not self.shards.is_refused
        return shard in self.shards.owned

    def is_due(self, found: Arrival, listed_s: float | None, age_s: float) -> bool:
        """Return whether its owner should have taken it by now.
        `listed_s`: since when scans have listed it.
        """
        if self.is_alone:
            age_s = max(age_s, self.shards.patience_s(found.key.shard))
        elif not self.is_ours(found.key):
            age_s = max(age_s, self.age_s)
        # By the clocks of this machine and of the storage; or, as they may be hours apart, by how
        # long it has been listed.
        is_long_listed = listed_s is not None and self.world.monotonic_s() - listed_s >= age_s
        return is_long_listed or found.durable_ms <= self.world.now_ms() - int(age_s * 1000)
