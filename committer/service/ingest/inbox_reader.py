"""Reads requests from the inbox.

A request that cannot be read goes to quarantine from here; the table committer decides on all
others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto

from committer.errors import (
    FrazilError,
    InvalidRequestError,
    NotFoundError,
    ObjectTooLargeError,
    reason_of,
)
from committer.ports.skips import SkipKind
from committer.ports.world import World
from committer.reason import Reason
from committer.request.request_format import EncodedRequest, read_request
from committer.service.checks.checks import Checks
from committer.service.requests.foreign_entries import ForeignEntries
from committer.service.requests.inbox_keys import InboxKey, printable
from committer.service.requests.large_requests import LARGE_BYTES_MIN, Arrival
from committer.service.settle.endings import Endings
from committer.service.settle.object_conditions import ObjectConditions
from committer.service.telemetry.health import INBOX_READS, Health
from committer.service.telemetry.log import log
from committer.storage.inbox.inbox import Inbox, Quarantine, QuarantineRecord

READS_AT_ONCE = 32
# The pause after the first failure, doubled by each further one.
PAUSE_FIRST_S = 1.0
PAUSE_S_MAX = 60.0
# From so many tries on, an object counts as a foreign entry.
FOREIGN_TRIES_MIN = 5
# The last objects that were read tell whether the inbox can be read at all. Fewer than so many
# that fail have a fault of their own.
JUDGED_MAX = 64
FAILED_MIN = 16
# Beyond these the others are retried without back-off.
UNREAD_MAX = 100_000


class Unread(Enum):
    """The reason for which there is no request: it has ended, or the read failed and has to be
    repeated.
    """

    ENDED = auto()
    FAILED = auto()


@dataclass(eq=False)
class UnreadObjects:
    """The objects of one process's inbox that could not be read. Each has a condition until it is
    read or gone, its reads back off, and after some tries it counts as a foreign entry. Only when
    most of the objects that were read last have failed, the inbox itself is at fault.
    """

    health: Health

    def __post_init__(self) -> None:
        self._faults = ObjectConditions(self.health, "unread inbox object")
        self._paused_until_s: dict[str, float] = {}
        # The last objects read, the newest last: whether reading each has failed.
        self._judged: dict[str, bool] = {}
        self._failed_count = 0

    def is_paused(self, key: str) -> bool:
        """Return whether an object is not to be read yet."""
        until_s = self._paused_until_s.get(key)
        return until_s is not None and self.health.world.monotonic_s() < until_s

    def failed(self, key: InboxKey, error: Exception) -> None:
        """Note that an object could not be read."""
        if key in self._faults or len(self._faults) < UNREAD_MAX:
            tries = self._faults.failed(key, error).tries
            if tries == 1:
                log.warning("inbox.object_unread", key=printable(key), error=reason_of(error))
            pause_s = min(PAUSE_S_MAX, PAUSE_FIRST_S * 2.0 ** min(tries - 1, 16))
            self._paused_until_s[key] = self.health.world.monotonic_s() + pause_s
        self._judge(key, has_failed=True)
        if self._fails_mostly and self.health.degraded(INBOX_READS, self._text(error)):
            log.warning("inbox.reads_fail", error=reason_of(error))

    def answered(self, key: str) -> None:
        """Note that an object was read, or is gone."""
        self._judge(key, has_failed=False)
        if key in self._faults:
            self._forget(key)
        if not self._fails_mostly and self.health.healthy(INBOX_READS):
            log.warning("inbox.reads_recovered")
            self.retry_all()

    def retry_all(self) -> None:
        """End all pauses: the inbox as a whole has recovered."""
        self._paused_until_s.clear()

    def cause(self, key: str) -> str | None:
        """Return why an object counts as a foreign entry; None: it does not."""
        fault = self._faults.find(key)
        if fault is None or fault.tries < FOREIGN_TRIES_MIN:
            return None
        return fault.cause

    def is_unread(self, key: str) -> bool:
        """Return whether reading an object has failed, and it has not been read since."""
        return key in self._faults

    def listed(self, seen: Collection[str], began_s: float) -> None:
        """Forget the objects that a complete listing, begun then, did not show: they are gone."""
        for key in [key for key in self._faults if key not in seen]:
            fault = self._faults.find(key)
            if fault is not None and fault.since_s < began_s:
                self.answered(key)

    def release_shards(self, shards: Collection[int]) -> None:
        """Forget the objects of shards that another committer owns now."""
        for key in [InboxKey(key) for key in self._faults]:
            if key.shard in shards:
                self.answered(key)

    def _forget(self, key: str) -> None:
        self._faults.cleared(key)
        log.info("inbox.object_read", key=printable(key))
        self._paused_until_s.pop(key, None)

    def _judge(self, key: str, *, has_failed: bool) -> None:
        self._failed_count -= self._judged.pop(key, False)
        self._judged[key] = has_failed
        self._failed_count += has_failed
        if len(self._judged) > JUDGED_MAX:
            self._failed_count -= self._judged.pop(next(iter(self._judged)))

    @property
    def _fails_mostly(self) -> bool:
        return self._failed_count >= FAILED_MIN and 2 * self._failed_count > len(self._judged)

    def _text(self, error: Exception) -> str:
        share = f"{self._failed_count} of the last {len(self._judged)} objects that were read"
        return f"{share} failed: {reason_of(error)}"


@dataclass(eq=False, kw_only=True)
class InboxReader:
    """Reads the inbox objects of one process. `unread`: those of which the last read failed."""

    inbox: Inbox
    quarantine: Quarantine
    foreign_entries: ForeignEntries
    checks: Checks
    endings: Endings
    unread: UnreadObjects
    table_name: Callable[[str], str | None]
    world: World

    def __post_init__(self) -> None:
        self._reads = asyncio.Semaphore(READS_AT_ONCE)

    async def read(self, arrival: Arrival, *, is_large: bool) -> EncodedRequest | Unread:
        """Read a request. Errors: `ObjectTooLargeError` where a small one is large."""
        try:
            request = await (self._read_large(arrival) if is_large else self._read(arrival))
        except ObjectTooLargeError:
            raise
        except FrazilError as error:
            self.unread.failed(arrival.key, error)
            return Unread.FAILED
        except Exception as error:  # noqa: BLE001  # one object must not end the service
            log.exception("intake.crashed", key=ascii(arrival.key[:200]))
            self.endings.metrics.crashed("intake")
            self.unread.failed(arrival.key, error)
            return Unread.FAILED
        self.unread.answered(arrival.key)
        return request

    async def is_waiting(self, arrival: Arrival) -> bool:
        """Return whether a request is in the inbox, if it is not read from there anyway, and not in
        quarantine. False where that cannot be seen: the round of its table looks again, and says
        why.
        """
        try:
            if arrival.announced is not None and not await self.inbox.contains(arrival.key):
                return False
            return not await self.quarantine.contains(arrival.key)
        except FrazilError:
            return False

    async def _read(self, arrival: Arrival) -> EncodedRequest | Unread:
        key = arrival.key
        try:
            async with self._reads:
                content = await self.inbox.get(key, size_bytes_max=LARGE_BYTES_MIN)
        except NotFoundError:
            return await self._ended_before(arrival)
        try:
            return read_request(content, key=key)
        except InvalidRequestError as error:
            return await self._quarantine_unreadable(arrival, content, error)

    async def _read_large(self, arrival: Arrival) -> EncodedRequest | Unread:
        key = arrival.key
        try:
            content = await self.inbox.get(key)
        except NotFoundError:
            return await self._ended_before(arrival)
        except ObjectTooLargeError:
            record = await self.foreign_entries.refer(
                key, Reason.REQUEST_TOO_LARGE, SkipKind.OVERSIZED.text
            )
            return self._end(arrival, record)
        try:
            return await self.checks.read(content, key, key.folder)
        except InvalidRequestError as error:
            return await self._quarantine_unreadable(arrival, content, error)

    async def _ended_before(self, arrival: Arrival) -> Unread:
        """Acknowledge an old doorbell: its request was committed, quarantined or discarded."""
        record = None
        if arrival.waiters.reply_to:
            with suppress(NotFoundError, InvalidRequestError):
                record = await self.quarantine.record(arrival.key)
        return self._end(arrival, record)

    async def _quarantine_unreadable(
        self, arrival: Arrival, content: bytes, error: InvalidRequestError
    ) -> Unread:
        parts, breakers = arrival.key.parts, self.endings.breakers
        if parts is not None and breakers.is_unknown_key(parts):
            table = str(parts.table_uuid)
            await breakers.look_back(table, parts.table_uuid, parts.producer, self.quarantine)
        record = QuarantineRecord(
            key=arrival.key,
            reason=error.reason,
            message=str(error),
            quarantined_at_ms=self.world.now_ms(),
            table=self.table_name(arrival.key),
        )
        await self.quarantine.put(record, content)
        self.endings.unreadable(arrival.key, arrival.waiters, record)
        return Unread.ENDED

    def _end(self, arrival: Arrival, record: QuarantineRecord | None) -> Unread:
        self.endings.unread(arrival.key, arrival.waiters, record)
        return Unread.ENDED
