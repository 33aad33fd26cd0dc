"""The way in: doorbells and inbox keys become pending requests of their table's committer.

A doorbell's copy of the request is taken where it may be believed, else the inbox object. Small
requests are read as they come, large ones in turns. A request that has to wait stays in the inbox,
and its doorbell is deferred.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from committer.errors import ObjectTooLargeError
from committer.group_commit import finish_all
from committer.ports.queue import Delivery, Doorbell
from committer.ports.world import World
from committer.request.request_format import EncodedRequest, line_digest, read_request
from committer.service.ingest.arrival_order import Turn, Turns
from committer.service.ingest.committer_pool import TableCommitters
from committer.service.ingest.inbox_reader import InboxReader, Unread
from committer.service.ingest.ownership import QueueProgress
from committer.service.requests.circuit_breakers import CircuitBreakers
from committer.service.requests.deferred_doorbells import (
    NO_WAITERS,
    DeferredDoorbells,
    Surplus,
    Waiters,
)
from committer.service.requests.inbox_keys import InboxKey, folder_of, table_folder_of
from committer.service.requests.large_requests import LARGE_BYTES_MIN, Arrival, LargeRequests
from committer.service.requests.pending import Pending
from committer.service.settle.outcome import Outcome
from committer.service.settle.recently_quarantined import RecentlyQuarantined
from committer.service.settle.settler import Settler
from committer.service.telemetry.lag import Delay, LagCause
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics

# An older request may have ended, and its doorbell may ring again: after lost acknowledgments, or
# when a queue was restored. A producer's clock may be skewed by as much before its requests cost a
# read each.
TRUSTED_MS = 60_000
LARGE_READS_AT_ONCE = 4
DEFERRED_AT_ONCE = 256
# Of each producer in a turn. Before it the queue is read to its end, if that does not take long: it
# has the doorbells of others.
SURPLUS_AT_ONCE = 64
# How often it is looked whether a producer with surplus requests has room again.
SURPLUS_POLL_S = 0.05


@dataclass(eq=False, kw_only=True)
class Intake:
    """Reads requests and submits them to the committers of their tables."""

    tables: TableCommitters
    reader: InboxReader
    large: LargeRequests
    deferred: DeferredDoorbells
    breakers: CircuitBreakers
    recently_quarantined: RecentlyQuarantined
    queue: QueueProgress
    world: World

    def __post_init__(self) -> None:
        self._trusted_ms = 0

    def trust_from_now(self) -> None:
        """Trust only doorbells of requests published from now on. The queue's server is back,
        perhaps another or a restored one, or this committer has acquired shards: another committer
        may have finished earlier requests.
        """
        self._trusted_ms = self.world.now_ms()

    @property
    def is_full(self) -> bool:
        """Whether more has gathered than memory should hold."""
        return self.tables.are_full

    def listed(self, key: str, durable_ms: int) -> bool:
        """Note that a listing shows the inbox object. False for a request that waits neither for
        its verdict nor for being read.
        """
        self.deferred.listed(key, durable_ms)
        is_listed = self.tables.listed(key, durable_ms) or self.large.listed(key, durable_ms)
        return is_listed or self.deferred.is_surplus(key)

    def is_held_back(self, key: InboxKey) -> bool:
        """Return whether a request stays in the inbox: for a pause after it was returned there or
        could not be read, or because its producer's breaker is open.
        """
        is_paused = self.deferred.is_paused(key) or self.reader.unread.is_paused(key)
        return is_paused or self.breakers.holds_key(key)

    def has_to_wait(self, key: InboxKey) -> bool:
        """Return whether a request stays in the inbox for now:
        it is held back, or its stuck table has enough.
        """
        return self.is_held_back(key) or self.tables.has_enough(key)

    def lag_cause(self, key: InboxKey) -> LagCause:
        """Return why a request is not committed that this process does not have in memory."""
        if self.breakers.is_open(key):
            return LagCause.HELD
        if self.reader.unread.is_unread(key):
            return LagCause.UNAVAILABLE
        of_table = self.tables.lag_cause(key)
        if of_table is not None:
            return of_table
        return LagCause.HELD if self.deferred.is_paused(key) else LagCause.WAITING

    def is_surplus(self, folder: str) -> bool:
        """Return whether further requests of the producer of this folder wait in the inbox until it
        has room again: it has its next batch in memory, or others of it wait so already, and none
        overtakes those.
        """
        return self.deferred.has_surplus_of(folder) or self.tables.has_next_batch(folder)

    def add_surplus(self, arrival: Arrival, doorbell: Doorbell | None = None) -> None:
        """Have a request wait in the inbox until its producer has room again. `doorbell`: with a
        copy of it that may be believed.
        """
        surplus = Surplus(arrival.durable_ms, doorbell)
        self.deferred.add_surplus(arrival.key, arrival.waiters, surplus)

    def announced(
        self, key: InboxKey, waiters: Waiters, arrived_ms: int, request: EncodedRequest
    ) -> Arrival:
        """Return the arrival of a request as its doorbell carries it: a shared one if the doorbell
        may have rung before.
        """
        published_ms = request.request.published_at_ms
        is_old = published_ms < self._trusted_ms or abs(arrived_ms - published_ms) > TRUSTED_MS
        is_shared = is_old or key in self.recently_quarantined
        return Arrival(key, waiters, arrived_ms, is_shared=is_shared, announced=request)

    async def take_all(self, arrivals: Sequence[Arrival]) -> Sequence[bool]:
        """Take requests by their inbox keys, all read at once, and hand those of one table over in
        this order. For each, False if it has to wait, or reading it failed. The turn of a large one
        comes later.
        """
        turns = Turns()
        return await finish_all(self._take(one, turns.next_of(one.key)) for one in arrivals)

    async def _take(self, arrival: Arrival, turn: Turn) -> bool:
        try:
            return await self._take_in_turn(arrival, turn)
        finally:
            turn.end()

    async def _take_in_turn(self, arrival: Arrival, turn: Turn) -> bool:
        key = arrival.key
        if arrival.announced is not None:
            await turn.wait()
            self.submit(arrival, arrival.announced, is_inline=True)
            return True
        delay = self.deferred.delay(key)
        arrival.join(self.deferred.take(key), delay)
        if self.tables.has_its_share(key):
            self.add_surplus(arrival)
            return False
        if self.has_to_wait(key):
            return self._defer(arrival)
        if arrival.size_bytes <= LARGE_BYTES_MIN and self.large.find(key) is None:
            try:
                found = await self.reader.read(arrival, is_large=False)
                await turn.wait()
                return self._took(arrival, found)
            except ObjectTooLargeError as error:
                arrival.size_bytes = error.size_bytes
        self.large.add(arrival)
        return True

    def _took(self, arrival: Arrival, found: EncodedRequest | Unread) -> bool:
        if found is Unread.FAILED:
            return self._defer(arrival)
        if isinstance(found, EncodedRequest):
            self.submit(arrival, found)
        return True

    def _defer(self, arrival: Arrival) -> bool:
        self.breakers.held(arrival.key)
        delay = Delay(arrival.durable_ms, self.lag_cause(arrival.key))
        self.deferred.add(arrival.key, arrival.waiters, delay)
        return False

    async def take_deferred(self, now_ms: int) -> None:
        """Retry the deferred doorbells. Their requests could not be read; if one has left the inbox
        since, no listing finds it. Skips those that have to wait.
        """
        free = iter(
            [
                key
                for key in self.deferred
                if not (self.deferred.is_surplus(key) or self.has_to_wait(key))
            ]
        )
        while not self.is_full and (some := list(islice(free, DEFERRED_AT_ONCE))):
            await self.take_all([Arrival(key, NO_WAITERS, now_ms) for key in some])

    def submit(self, arrival: Arrival, sealed: EncodedRequest, *, is_inline: bool = False) -> None:
        """Hand a request to its table's committer."""
        if self.tables.is_stopping:
            return
        load = arrival.seen_after
        if load is not None and load != self.tables.load_of(arrival.key):
            load = None
        self.tables.submit(
            Pending(
                arrival.key,
                sealed,
                arrival.durable_ms,
                arrival.waiters,
                is_inline=is_inline,
                is_shared=arrival.is_shared,
                present_in=None if load is None else load.generation,
            )
        )

    # --- Large requests ---

    async def _read_surplus(self) -> None:
        """Read the surplus requests of producers that have room again, in turns, for ever."""
        while True:
            await self.deferred.has_surplus.wait()
            await self.queue.wait_until_empty()
            is_idle = True
            for folder in self.deferred.surplus_producers:
                count_max = min(self.tables.room_of(folder), SURPLUS_AT_ONCE)
                if count_max > 0 and not self.is_full:
                    is_idle = False
                    taken = self.deferred.take_surplus(folder, count_max)
                    arrivals = [self._surplus_arrival(*each) for each in taken]
                    await self._look_for(folder, arrivals)
                    await self.take_all(arrivals)
            await self.world.sleep(SURPLUS_POLL_S if is_idle else 0.0)

    def _surplus_arrival(self, key: InboxKey, surplus: Surplus) -> Arrival:
        waiters = self.deferred.take(key) or NO_WAITERS
        if surplus.doorbell is not None and not self.has_to_wait(key):
            request = _read_inline(surplus.doorbell)
            if request is not None:
                return self.announced(key, waiters, surplus.durable_ms, request)
        return Arrival(key, waiters, surplus.durable_ms)

    async def _look_for(self, folder: str, arrivals: Sequence[Arrival]) -> None:
        """Look for the shared requests of one producer where they wait. Else a round of their table
        would do so, and the requests of others would wait for that.
        """
        load = self.tables.load_of(folder)
        shared = [arrival for arrival in arrivals if arrival.is_shared]
        if load is None or not shared:
            return
        are_waiting = await finish_all(map(self.reader.is_waiting, shared))
        for arrival, is_waiting in zip(shared, are_waiting, strict=True):
            arrival.seen_after = load if is_waiting else None

    async def run(self) -> None:
        """Read large requests, a few at once, and surplus ones, in their turns until canceled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read_surplus(), name="surplus requests")
            for _ in range(LARGE_READS_AT_ONCE):
                tasks.create_task(self._read_large_requests(), name="large requests")

    async def _read_large_requests(self) -> None:
        while True:
            async with self.large.turn() as arrival:
                await self._take_large(arrival)

    async def _take_large(self, arrival: Arrival) -> None:
        """Take a large request, unless its table or its producer has to wait."""
        key = arrival.key
        if self.tables.is_stuck(key) or self.has_to_wait(key):
            self._defer(arrival)
            return
        found = await self.reader.read(arrival, is_large=True)
        # Its shard may have been released meanwhile.
        if found is Unread.FAILED or self.large.find(key) is arrival:
            self._took(arrival, found)


@dataclass(eq=False, kw_only=True)
class Doorbells:
    """Turns doorbells into requests for the intake."""

    intake: Intake
    deferred: DeferredDoorbells
    settler: Settler
    world: World
    metrics: Metrics

    def trust_from_now(self) -> None:
        """Trust only doorbells of requests published from now on: as `Intake.trust_from_now`."""
        self.intake.trust_from_now()

    @property
    def is_full(self) -> bool:
        """Whether the intake has more than memory should hold."""
        return self.intake.is_full

    async def take_deferred(self) -> None:
        """Retry the deferred doorbells."""
        await self.intake.take_deferred(self.world.now_ms())

    def without_early(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        """Leave out copies that came ahead of their turn and have lower epochs of their producer
        before them.
        """
        if not any(delivery.is_ahead for delivery in deliveries):
            return deliveries
        folders = [folder_of(delivery.doorbell.inbox_key) for delivery in deliveries]
        in_turn = {
            folder
            for folder, delivery in zip(folders, deliveries, strict=True)
            if not delivery.is_ahead
        }
        return [
            delivery
            for folder, delivery in zip(folders, deliveries, strict=True)
            if not delivery.is_ahead or not (folder in in_turn or self.intake.is_surplus(folder))
        ]

    async def take(self, deliveries: Sequence[Delivery]) -> None:
        """Take doorbells, those of one table in this order. One that fails for a passing reason
        stays unacknowledged.
        """
        rest: list[Arrival] = []
        tables: set[str] = set()
        for delivery in deliveries:
            key = InboxKey(delivery.doorbell.inbox_key)
            waiters = Waiters.of(delivery)
            if not delivery.doorbell.asks_for_turn and self.intake.is_surplus(key.folder):
                # Its copy is not parsed yet: doorbells of others wait after it.
                copy = delivery.doorbell if delivery.deliveries == 1 else None
                self.intake.add_surplus(Arrival(key, waiters, self.world.now_ms()), copy)
                continue
            arrival = self._arrival(key, waiters, delivery)
            if arrival is None:
                continue
            table = table_folder_of(arrival.key)
            if arrival.announced is not None and table not in tables:
                self.intake.submit(arrival, arrival.announced, is_inline=True)
                continue
            tables.add(table)
            # Until the turn of an announced one comes, its shard may be released.
            waits = arrival.announced is not None
            rest.append(replace(arrival, is_shared=True) if waits else arrival)
        if rest:
            await self.intake.take_all(rest)

    def _arrival(self, key: InboxKey, waiters: Waiters, delivery: Delivery) -> Arrival | None:
        """Return the request of a doorbell, as the doorbell carries it if that is to be believed.
        None of what is no inbox key, or asks for a turn: that is acknowledged.
        """
        now_ms = self.world.now_ms()
        if delivery.doorbell.asks_for_turn:
            self.intake.tables.yield_turn(delivery.doorbell.table_uuid)
            self.settler.settle([Outcome(None, waiters)])
            return None
        request = self._announced(key, delivery)
        if request is not None:
            return self.intake.announced(key, waiters, now_ms, request)
        is_shared = delivery.deliveries > 1
        if is_shared:
            self.metrics.redelivered(1)
        if key.parts is None:
            log.warning("doorbell.unreadable", key=key[:200])
            self.settler.settle([Outcome(None, waiters)])
            return None
        return Arrival(key, waiters, now_ms, is_shared=is_shared)

    def _announced(self, key: InboxKey, delivery: Delivery) -> EncodedRequest | None:
        """Return a request as its doorbell carries it. None where the inbox has to be read.

        A redelivered doorbell may belong to a request that has ended since (quarantined and
        discarded, say): only the inbox object shows that the request is still wanted. The same
        holds for an old doorbell and for one from before an outage of the server: a restored queue
        has forgotten its deliveries. A client may also ring twice. The inbox is asked for many such
        requests at once, when they are about to land.
        """
        if delivery.deliveries != 1 or key in self.deferred or self.intake.has_to_wait(key):
            return None
        return _read_inline(delivery.doorbell)


def _read_inline(bell: Doorbell) -> EncodedRequest | None:
    """Return the request as the doorbell carries it, if it arrived whole. A doorbell is not the
    truth: if its copy cannot be read, the inbox object decides.
    """
    content = bell.content
    if content is None or len(content) > LARGE_BYTES_MIN or line_digest(content) != bell.digest:
        return None
    try:
        return read_request(content, key=bell.inbox_key)
    except Exception:  # noqa: BLE001  # whatever is wrong with it, the object decides
        return None
