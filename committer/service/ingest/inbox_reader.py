"""Reads requests from the inbox.

A request that cannot be read goes to quarantine from here; the table committer decides on all
others.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto

from committer.errors import FrazilError, InvalidRequestError, NotFoundError, ObjectTooLargeError
from committer.ports.skips import SkipKind
from committer.ports.world import World
from committer.reason import Reason
from committer.request.request_format import EncodedRequest, read_request
from committer.service.checks.checks import Checks
from committer.service.ingest.unread_objects import UnreadObjects
from committer.service.requests.foreign_entries import ForeignEntries
from committer.service.requests.large_requests import LARGE_BYTES_MIN, Arrival
from committer.service.settle.endings import Endings
from committer.service.telemetry.log import log
from committer.storage.inbox.inbox import Inbox, Quarantine, QuarantineRecord

READS_AT_ONCE = 32


class Unread(Enum):
    """The reason for which there is no request: it has ended, or the read failed and has to be
    repeated.
    """

    ENDED = auto()
    FAILED = auto()


@dataclass(eq=False, kw_only=True)
class InboxReader:
    """Reads the inbox objects of one process. `unread`: those of which the last read failed."""

    inbox: Inbox
    quarantine: Quarantine
    foreign_entries: ForeignEntries
    checks: Checks
    endings: Endings
    unread: UnreadObjects
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
        record = QuarantineRecord(
            key=arrival.key,
            reason=error.reason,
            message=str(error),
            quarantined_at_ms=self.world.now_ms(),
        )
        await self.quarantine.put(record, content)
        self.endings.unreadable(arrival.key, arrival.waiters, record)
        return Unread.ENDED

    def _end(self, arrival: Arrival, record: QuarantineRecord | None) -> Unread:
        self.endings.unread(arrival.key, arrival.waiters, record)
        return Unread.ENDED
