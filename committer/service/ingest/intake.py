"""The way in: doorbells and inbox objects become pending requests of their table's committer.

A request that cannot be read goes to quarantine from here; the table committer decides on all
others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from itertools import islice

from committer.errors import (
    FrazilError,
    InvalidRequestError,
    NotFoundError,
    ObjectTooLargeError,
)
from committer.ports.queue import Delivery, Doorbell
from committer.ports.skips import SkipKind
from committer.reason import Reason
from committer.request.receipt_model import Receipt
from committer.request.request_format import EncodedRequest, line_digest, read_request
from committer.service.ingest.committer_pool import TableCommitters
from committer.service.requests.circuit_breakers import OpenBreaker
from committer.service.requests.deferred_doorbells import DeferredDoorbells, Waiters
from committer.service.requests.inbox_keys import folder_of, parsed, printable
from committer.service.requests.large_requests import LARGE_BYTES_MIN, LargeRequest, LargeRequests
from committer.service.requests.pending import Outcome, Pending
from committer.service.requests.receipt_builders import quarantined_receipt
from committer.service.table.shop import Shop
from committer.service.table.table_committer import TableCommitter
from committer.service.telemetry.log import log
from committer.storage.inbox import QuarantineRecord

READS_AT_ONCE = 32
LARGE_READS_AT_ONCE = 4
DEFERRED_AT_ONCE = 256
# An older request may have ended, and its doorbell may ring again: after lost acknowledgements, or
# when a queue was restored. A producer's clock may be wrong by as much before its requests cost a
# read each.
TRUSTED_MS = 60_000


class Intake:
    """Reads requests and hands them to one `TableCommitter` a table, made on demand."""

    def __init__(self, shop: Shop, tasks: asyncio.TaskGroup) -> None:
        self._shop = shop
        self._tables = TableCommitters(shop, tasks, self._return_to_inbox)
        self._reads = asyncio.Semaphore(READS_AT_ONCE)
        self._deferred = DeferredDoorbells()
        self._large = LargeRequests(shop.world, self._tables)
        self._trusted_ms = 0
        self.read_failures = 0

    @property
    def tables(self) -> Sequence[TableCommitter]:
        return self._tables.all

    @property
    def shown_tables(self) -> set[str]:
        """The names of the tables whose numbers are shown: ours, and for a while what was ours."""
        return self._tables.shown

    def open_breakers(self) -> Iterable[OpenBreaker]:
        """Return the producers with an open circuit breaker."""
        return self._shop.breakers.open_breakers()

    @property
    def is_full(self) -> bool:
        """Whether more has gathered than memory should hold."""
        return self._tables.are_full

    def find(self, key: str) -> Pending | LargeRequest | None:
        """A request that waits for its verdict, or for being read."""
        return self._tables.find(key) or self._large.find(key)

    @property
    def oldest_large_ms(self) -> int | None:
        """Since when the oldest request that waits for being read has been durable."""
        return self._large.oldest_ms

    def is_held_back(self, key: str) -> bool:
        """Return whether a request stays in the inbox because its producer's breaker is open."""
        if not self._shop.breakers.are_open:
            return False
        parts = parsed(key)
        holds = self._shop.breakers.holds
        return parts is not None and holds(parts.table_uuid, parts.producer, key)

    def trust_from_now(self) -> None:
        """Trust only doorbells of requests published from now on. The queue's server is back,
        perhaps another or a restored one, or this committer has acquired shards: another committer
        may have finished earlier requests.
        """
        self._trusted_ms = self._shop.world.now_ms()

    async def take_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """Take doorbells. One that fails for a passing reason stays unacknowledged."""
        rest = [delivery for delivery in deliveries if not self._take_inline(delivery)]
        if rest:
            await asyncio.gather(*(self._take_delivery(delivery) for delivery in rest))

    async def take_key(self, key: str, durable_ms: int, size_bytes: int = 0) -> bool:
        """Take a request by its inbox key, without a doorbell. False if reading it failed, or if
        its producer's breaker is open. `size_bytes`: 0 if it is not known.
        """
        if self.is_held_back(key):
            return False
        return await self._take(key, Waiters(), durable_ms, size_bytes=size_bytes)

    async def take_deferred(self) -> None:
        """Retry the deferred doorbells. Their requests could not be read; if one has left the inbox
        since, no listing finds it. Skips producers with an open breaker.
        """
        now_ms = self._shop.world.now_ms()
        waits = (self.is_held_back, self._tables.has_enough)
        free = iter([key for key in self._deferred if not any(why(key) for why in waits)])
        while not self.is_full and (some := list(islice(free, DEFERRED_AT_ONCE))):
            await asyncio.gather(*(self._take(key, Waiters(), now_ms) for key in some))

    def _take_inline(self, delivery: Delivery) -> bool:
        """Take a request as its doorbell carries it. False where the inbox has to be read.

        A redelivered doorbell may belong to a request that has ended since (quarantined and
        discarded, say): only the inbox object shows that the request is still wanted. The same
        holds for an old doorbell and for one from before an outage of the server: a restored queue
        has forgotten its deliveries. A client may also ring twice. The inbox is asked for many such
        requests at once, when they are about to land.
        """
        bell = delivery.doorbell
        if delivery.deliveries != 1 or bell.inbox_key in self._deferred:
            return False
        sealed = None if self._tables.has_enough(bell.inbox_key) else _read_inline(bell)
        if sealed is None:
            return False
        now_ms = self._shop.world.now_ms()
        published_ms = sealed.request.published_at_ms
        is_old = published_ms < self._trusted_ms or abs(now_ms - published_ms) > TRUSTED_MS
        is_shared = is_old or bell.inbox_key in self._shop.recently_quarantined
        self._submit(
            bell.inbox_key,
            sealed,
            Waiters.of(delivery),
            now_ms,
            is_inline=True,
            is_shared=is_shared,
        )
        return True

    async def _take_delivery(self, delivery: Delivery) -> None:
        bell, waiters = delivery.doorbell, Waiters.of(delivery)
        if delivery.deliveries > 1:
            self._shop.metrics.redelivered(1)
        if parsed(bell.inbox_key) is None:
            log.warning("doorbell.unreadable", key=bell.inbox_key[:200])
            self._shop.settle([Outcome(None, waiters.tokens)])
            return
        if self.is_held_back(bell.inbox_key):
            self._deferred.add(bell.inbox_key, waiters)
            return
        now_ms = self._shop.world.now_ms()
        await self._take(bell.inbox_key, waiters, now_ms, is_shared=delivery.deliveries > 1)

    async def _take(
        self,
        key: str,
        waiters: Waiters,
        durable_ms: int,
        *,
        is_shared: bool = True,
        size_bytes: int = 0,
    ) -> bool:
        waiters = waiters.joined(self._deferred.take(key))
        if self._tables.has_enough(key):
            self._deferred.add(key, waiters)
            return False
        try:
            if size_bytes > LARGE_BYTES_MIN or self._large.find(key):
                raise ObjectTooLargeError(key, size_bytes, LARGE_BYTES_MIN)
            sealed = await self._read(key, waiters)
        except ObjectTooLargeError as error:
            self._large.add(LargeRequest(key, error.size_bytes, waiters, durable_ms, is_shared))
            return True
        except FrazilError as error:
            self._deferred.add(key, waiters)
            self._unavailable(error)
        except Exception:  # noqa: BLE001  # one object must not end the service, again and again
            self._deferred.add(key, waiters)
            self._crashed(key)
        else:
            if sealed is not None:
                self._submit(key, sealed, waiters, durable_ms, is_shared=is_shared)
            return True
        return False

    def _unavailable(self, error: FrazilError) -> None:
        self.read_failures += 1
        if self._shop.health.degraded("inbox", str(error)):
            log.warning("inbox.unavailable", error=str(error))

    def _crashed(self, key: str) -> None:
        log.exception("intake.crashed", key=ascii(key[:200]))
        self._shop.metrics.crashed("intake")

    def _return_to_inbox(self, pending: Pending) -> None:
        """Keep the waiters of a request that its table evicted; it stays in the inbox."""
        self._deferred.add(pending.key, Waiters(tuple(pending.tokens), frozenset(pending.reply_to)))

    async def _read(self, key: str, waiters: Waiters) -> EncodedRequest | None:
        """Read the inbox object; None if it is not there, or nothing that could be read."""
        try:
            async with self._reads:
                content = await self._shop.inbox.get(key, size_bytes_max=LARGE_BYTES_MIN)
        except NotFoundError:
            await self._ended_before(key, waiters)
            return None
        try:
            return read_request(content, key=key)
        except InvalidRequestError as error:
            await self._quarantine_unreadable(key, content, waiters, error)
            return None

    async def _refer_oversized(self, key: str, waiters: Waiters) -> None:
        record = await self._shop.foreign_entries.refer(
            key, Reason.REQUEST_TOO_LARGE, SkipKind.OVERSIZED.text
        )
        parts = parsed(key)
        receipt = None
        if parts is not None:
            receipt = quarantined_receipt(parts, record.reason, record.message)
        self._shop.settle([Outcome(None, waiters.tokens, waiters.reply_to, receipt)])

    async def _ended_before(self, key: str, waiters: Waiters) -> None:
        """Acknowledge an old doorbell: its request was committed, quarantined or discarded."""
        receipt = await self._quarantined_before(key) if waiters.reply_to else None
        self._shop.settle([Outcome(None, waiters.tokens, waiters.reply_to, receipt)])

    async def run(self) -> None:
        """Read large requests in their turns, a few at once, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(LARGE_READS_AT_ONCE):
                tasks.create_task(self._read_large_requests(), name="large requests")

    async def _read_large_requests(self) -> None:
        while True:
            async with self._large.turn() as request:
                await self._take_large(request)

    async def _take_large(self, request: LargeRequest) -> None:
        """Take a large request whose turn it is, unless its table or its producer has to wait."""
        key = request.key
        if self._tables.has_enough(key) or self._tables.is_stuck(key) or self.is_held_back(key):
            self._deferred.add(key, request.waiters)
            return
        try:
            sealed = await self._read_large(request)
        except FrazilError as error:
            self._deferred.add(key, request.waiters)
            self._unavailable(error)
        except Exception:  # noqa: BLE001  # one object must not end the service, again and again
            self._deferred.add(key, request.waiters)
            self._crashed(key)
        else:
            if sealed is not None and self._large.find(key) is request:
                self._submit(
                    key, sealed, request.waiters, request.durable_ms, is_shared=request.is_shared
                )

    async def _read_large(self, request: LargeRequest) -> EncodedRequest | None:
        """As `_read`, by a worker process."""
        key = request.key
        try:
            content = await self._shop.inbox.get(key)
        except NotFoundError:
            await self._ended_before(key, request.waiters)
            return None
        except ObjectTooLargeError:
            await self._refer_oversized(key, request.waiters)
            return None
        try:
            return await self._shop.checks.read(content, key, folder_of(key))
        except InvalidRequestError as error:
            await self._quarantine_unreadable(key, content, request.waiters, error)
            return None

    async def _quarantined_before(self, key: str) -> Receipt | None:
        try:
            record = await self._shop.quarantine.record(key)
        except (NotFoundError, InvalidRequestError):
            return None
        parts = parsed(key)
        return None if parts is None else quarantined_receipt(parts, record.reason, record.message)

    def _submit(
        self,
        key: str,
        sealed: EncodedRequest,
        waiters: Waiters,
        durable_ms: int,
        *,
        is_inline: bool = False,
        is_shared: bool = False,
    ) -> None:
        if self._tables.is_stopping:
            return
        if self.is_held_back(key):
            self._deferred.add(key, waiters)
            return
        self._tables.submit(
            Pending(
                key,
                sealed,
                durable_ms,
                tokens=list(waiters.tokens),
                reply_to=set(waiters.reply_to),
                is_inline=is_inline,
                is_shared=is_shared,
            )
        )

    async def _quarantine_unreadable(
        self, key: str, content: bytes, waiters: Waiters, error: InvalidRequestError
    ) -> None:
        record = QuarantineRecord(
            key=key,
            reason=error.reason,
            message=str(error),
            quarantined_at_ms=self._shop.world.now_ms(),
        )
        await self._shop.quarantine.put(record, content)
        self._shop.recently_quarantined.add(key)
        log.warning(
            "request.quarantined", key=printable(key), reason=error.reason, message=str(error)
        )
        self._shop.metrics.quarantined(error.reason)
        parts = parsed(key)
        receipt = None
        if parts is not None:
            self._shop.breakers.unreadable(parts, error.reason)
            receipt = quarantined_receipt(parts, error.reason, str(error))
        self._shop.settle([Outcome(key, waiters.tokens, waiters.reply_to, receipt)])

    async def release_shards(self, shards: Collection[int]) -> bool:
        """Stop the tables of these shards after their current attempt. The next owner takes their
        waiting requests. False if there was no such table.
        """
        self._large.release_shards(shards)
        had_some = await self._tables.stop_tables(shards)
        self._deferred.release_shards(shards)
        return had_some

    async def stop(self) -> None:
        """Stop every table after its current attempt."""
        await self._tables.stop()

    def abandon(self) -> None:
        """Cancel the tables that still run; a swap that was sent is awaited all the same."""
        self._tables.abandon()


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
