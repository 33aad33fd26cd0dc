"""Reads the queue: new doorbells, and those that another consumer left behind."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from committer.errors import AccessError, QueueUnavailableError
from committer.plan.scheduling.backoff import retry_s
from committer.ports.queue import Delivery, Queue, shard_of
from committer.ports.world import World
from committer.service.ingest.intake import Doorbells
from committer.service.ingest.ownership import QueueProgress
from committer.service.sharding.shard_leases import ShardLeases
from committer.service.telemetry.health import Component, Health
from committer.service.telemetry.log import log

# Of each of 64 shards, inline copies of 64 KiB at most: 128 MiB if all came at once. More are read
# while what comes is small, and then more of the shards with long queues: 64 MiB at most.
READ_COUNT_MIN = 32
READ_COUNT_MAX = 128
READ_MORE_MAX = 1_024
READ_BYTES_SMALL = 32 * 1024
READ_WAIT_S = 2.0
FULL_PAUSE_S = 0.05


@dataclass(eq=False, kw_only=True)
class Consumer:
    """Hands over what its own shards bring, until canceled, and keeps `progress`."""

    queue: Queue
    doorbells: Doorbells
    shards: ShardLeases
    progress: QueueProgress
    world: World
    health: Health
    reclaim_idle_s: float

    def __post_init__(self) -> None:
        self._read_of: frozenset[int] = frozenset()
        self._reclaimed_at_s = float("-inf")
        self._failures = 0
        self._count_max = READ_COUNT_MIN
        self._more_max = 0
        self._is_proven = False
        self._shown_taken: set[str] = set()

    def _release_shards(self, shards: frozenset[int]) -> None:
        self._read_of -= shards
        self.queue.release_shards(shards)

    async def run(self) -> None:
        """Read for ever; wait with back-off while the server is away."""
        while True:
            try:
                await self._read_once()
                self._recovered()
            except (QueueUnavailableError, AccessError) as error:
                await self._went_away(error)

    async def _read_once(self) -> None:
        if self.doorbells.is_full:
            await self.world.sleep(FULL_PAUSE_S)
            return
        if not self._is_proven:
            # Probed again after each outage: another server may have taken its place.
            await self.queue.probe()
            self.doorbells.trust_from_now()
            self._is_proven = True
        if not await self._has_taken_over():
            return
        await self._reclaim_sometimes()
        owned = self.shards.owned
        if not owned:
            await self._wait_for_shards()
            return
        wait_s = READ_WAIT_S if self.progress.has_caught_up.is_set() else 0.0
        count_max = self._count_max
        deliveries = await self.shards.while_unchanged(
            self.queue.read(
                count_max=count_max, wait_s=wait_s, shards=owned, more_max=self._more_max
            )
        )
        if deliveries is None:
            return
        self._adapt(deliveries)
        await self._take(deliveries)
        self.progress.has_read(all_there_was=len(deliveries) < count_max)

    def _adapt(self, deliveries: Sequence[Delivery]) -> None:
        """Double the next read as long as doorbells are small: the queue tells no sizes."""
        size_bytes = sum(len(delivery.doorbell.content or b"") for delivery in deliveries)
        is_small = size_bytes <= len(deliveries) * READ_BYTES_SMALL
        self._count_max = min(2 * self._count_max, READ_COUNT_MAX) if is_small else READ_COUNT_MIN
        self._more_max = READ_MORE_MAX if self._count_max == READ_COUNT_MAX else 0

    async def _wait_for_shards(self) -> None:
        """Wait for shards, and raise the failure of the last exchange: no other part notices an
        outage now.
        """
        if self.shards.failure is not None:
            raise self.shards.failure
        await self.shards.while_unchanged(self.world.sleep(READ_WAIT_S))

    async def _has_taken_over(self) -> bool:
        """Return whether this committer has taken all deliveries that others held of its shards:
        the others released the shards, or are gone. A lost shard that is back is taken over again.
        """
        self._release_shards(self.shards.take_lost())
        owned = self.shards.owned
        fresh = owned - self._read_of if self.shards.is_shared else frozenset()
        if fresh:
            self.doorbells.trust_from_now()
            if await self._reclaim(0.0, fresh):
                return False
        if fresh == owned:
            self._reclaimed_at_s = self.world.monotonic_s()
        self._read_of = owned & self.shards.owned
        return True

    async def _reclaim_sometimes(self) -> None:
        now_s = self.world.monotonic_s()
        if now_s - self._reclaimed_at_s < self.reclaim_idle_s / 4:
            return
        if owned := self.shards.owned:
            await self._reclaim(self.reclaim_idle_s, owned)
            self._reclaimed_at_s = now_s
        await self.doorbells.take_deferred()

    async def _reclaim(self, idle_s: float, shards: Collection[int]) -> int:
        reclaimed = await self.queue.reclaim(idle_s=idle_s, shards=shards)
        if reclaimed:
            log.info("queue.reclaimed", requests=len(reclaimed))
            await self._take(reclaimed)
        return len(reclaimed)

    async def _take(self, deliveries: Sequence[Delivery]) -> None:
        """Hand over doorbells, a few at a time: parsing them takes the loop's time."""
        deliveries = self.doorbells.without_early(deliveries)
        for start in range(0, len(deliveries), READ_COUNT_MAX):
            await self._take_some(deliveries[start : start + READ_COUNT_MAX])
            await self.world.sleep(0.0)

    async def _take_some(self, deliveries: Sequence[Delivery]) -> None:
        """Hand over the doorbells of owned shards; the next owner reads those of released ones."""
        owned = self.shards.owned
        mine = [one for one in deliveries if shard_of(one.doorbell.table_uuid) in owned]
        if len(mine) < len(deliveries):
            self._release_shards(
                frozenset(shard_of(one.doorbell.table_uuid) for one in deliveries) - owned
            )
        await self.doorbells.take(mine)

    def _recovered(self) -> None:
        self._failures = 0
        self._show_taken()
        self.progress.is_away.clear()
        self.health.recovered("queue")

    def _show_taken(self) -> None:
        """Show each key that another program has taken as a condition with its remedy."""
        taken = self.queue.taken_keys()
        for key, why in taken.items():
            if self.health.degraded(_component(key), why):
                log.warning("queue.key_taken", key=key, error=why, mitigation="listing the inbox")
        for key in self._shown_taken - taken.keys():
            self.health.healthy(_component(key))
            log.warning("queue.key_recovered", key=key)
        self._shown_taken = set(taken)

    async def _went_away(self, error: Exception) -> None:
        self._failures += 1
        self._is_proven = False
        self.progress.went_away()
        self.health.unavailable("queue", error, mitigation="listing the inbox")
        await self.world.sleep(retry_s(self._failures, self.world.jitter()))


def _component(key: str) -> Component:
    return Component(f"queue key {key}", kind="queue key")
