"""Reads requests from the inbox.

A request that cannot be read goes to quarantine from here; the table committer decides on all
others.
"""

from __future__ import annotations

import asyncio
from enum import Enum, auto

from committer.errors import (
    FrazilError,
    InvalidRequestError,
    NotFoundError,
    ObjectTooLargeError,
)
from committer.ports.skips import SkipKind
from committer.reason import Reason
from committer.request.receipt_model import Receipt
from committer.request.request_format import EncodedRequest, read_request
from committer.service.requests.inbox_keys import folder_of, parsed, printable
from committer.service.requests.large_requests import LARGE_BYTES_MIN, Arrival
from committer.service.requests.pending import Outcome
from committer.service.requests.receipt_builders import quarantined_receipt
from committer.service.table.shop import Shop
from committer.service.telemetry.log import log
from committer.storage.inbox import QuarantineRecord

READS_AT_ONCE = 32


class Unread(Enum):
    """Why there is no request: it has ended, or the read failed and has to be repeated."""

    ENDED = auto()
    FAILED = auto()


class InboxReader:
    """Reads the inbox objects of one process. `failures`: how many reads the inbox has failed."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._reads = asyncio.Semaphore(READS_AT_ONCE)
        self.failures = 0

    async def read(self, arrival: Arrival) -> EncodedRequest | Unread:
        """Read a small request. Errors: `ObjectTooLargeError` for a large one."""
        return await self._guarded(arrival, is_large=False)

    async def read_large(self, arrival: Arrival) -> EncodedRequest | Unread:
        """Read a large request, by a worker process."""
        return await self._guarded(arrival, is_large=True)

    async def _guarded(self, arrival: Arrival, *, is_large: bool) -> EncodedRequest | Unread:
        try:
            return await (self._read_large(arrival) if is_large else self._read(arrival))
        except ObjectTooLargeError:
            raise
        except FrazilError as error:
            self.failures += 1
            if self._shop.health.degraded("inbox", str(error)):
                log.warning("inbox.unavailable", error=str(error))
        except Exception:  # noqa: BLE001  # one object must not end the service, again and again
            log.exception("intake.crashed", key=ascii(arrival.key[:200]))
            self._shop.metrics.crashed("intake")
        return Unread.FAILED

    async def _read(self, arrival: Arrival) -> EncodedRequest | Unread:
        key = arrival.key
        try:
            async with self._reads:
                content = await self._shop.inbox.get(key, size_bytes_max=LARGE_BYTES_MIN)
        except NotFoundError:
            return await self._ended_before(arrival)
        try:
            return read_request(content, key=key)
        except InvalidRequestError as error:
            return await self._quarantine(arrival, content, error)

    async def _read_large(self, arrival: Arrival) -> EncodedRequest | Unread:
        key = arrival.key
        try:
            content = await self._shop.inbox.get(key)
        except NotFoundError:
            return await self._ended_before(arrival)
        except ObjectTooLargeError:
            record = await self._shop.foreign_entries.refer(
                key, Reason.REQUEST_TOO_LARGE, SkipKind.OVERSIZED.text
            )
            return self._end(arrival, _receipt(key, record.reason, record.message))
        try:
            return await self._shop.checks.read(content, key, folder_of(key))
        except InvalidRequestError as error:
            return await self._quarantine(arrival, content, error)

    async def _ended_before(self, arrival: Arrival) -> Unread:
        """Acknowledge an old doorbell: its request was committed, quarantined or discarded."""
        receipt = None
        if arrival.waiters.reply_to:
            try:
                record = await self._shop.quarantine.record(arrival.key)
                receipt = _receipt(arrival.key, record.reason, record.message)
            except (NotFoundError, InvalidRequestError):
                pass
        return self._end(arrival, receipt)

    async def _quarantine(
        self, arrival: Arrival, content: bytes, error: InvalidRequestError
    ) -> Unread:
        key, message = arrival.key, str(error)
        record = QuarantineRecord(
            key=key,
            reason=error.reason,
            message=message,
            quarantined_at_ms=self._shop.world.now_ms(),
        )
        await self._shop.quarantine.put(record, content)
        self._shop.recently_quarantined.add(key)
        log.warning("request.quarantined", key=printable(key), reason=error.reason, message=message)
        self._shop.metrics.quarantined(error.reason)
        if (parts := parsed(key)) is not None:
            self._shop.breakers.unreadable(parts, error.reason)
        return self._end(arrival, _receipt(key, error.reason, message), key)

    def _end(
        self, arrival: Arrival, receipt: Receipt | None, deletable: str | None = None
    ) -> Unread:
        waiters = arrival.waiters
        self._shop.settle([Outcome(deletable, waiters.tokens, waiters.reply_to, receipt)])
        return Unread.ENDED


def _receipt(key: str, reason: str, message: str) -> Receipt | None:
    parts = parsed(key)
    return None if parts is None else quarantined_receipt(parts, reason, message)
