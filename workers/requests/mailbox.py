"""Receipts of one publisher: one address for all of them, and one reader at a time.

One of the waiting publishers reads for all, until it has its own receipt. So nothing runs while
none waits: Spark's workers stop their event loop between micro-batches.
"""

from __future__ import annotations

import asyncio

from committer.errors import AccessError, QueueUnavailableError
from committer.ports.queue import Queue
from committer.ports.world import World
from committer.request.commit_request import CommitRequest
from committer.request.receipt_model import Receipt, ReceiptState

# Receipts that arrived while their waiter read elsewhere.
_KEPT_MAX = 1_024
_Key = tuple[str, int, str]


class Mailbox:
    """Takes receipts. Each request is waited for by one caller at a time.

    A receipt names no table, but its attempt is that of one.
    """

    def __init__(self, queue: Queue, world: World, address: str) -> None:
        self._queue = queue
        self._world = world
        self.address = address
        self._waiting: dict[_Key, asyncio.Future[QueueUnavailableError | None]] = {}
        self._kept: dict[_Key, Receipt] = {}
        self._reader: _Key | None = None

    async def take(self, request: CommitRequest, *, wait_s: float) -> Receipt | None:
        """Return the final receipt; None if it does not come within `wait_s`.

        Errors: `QueueUnavailableError`, also where the server denies access: the request is
        durable, and the ledger answers for it.
        """
        key = request.producer.id, request.epoch, str(request.attempt)
        end_s = self._world.monotonic_s() + wait_s
        try:
            while key not in self._kept:
                left_s = end_s - self._world.monotonic_s()
                if left_s <= 0:
                    return None
                if self._reader in (None, key):
                    self._reader = key
                    if not await self._read(left_s):
                        return None
                else:
                    await self._wait(key, left_s)
            return self._kept.pop(key)
        finally:
            if self._reader == key:
                self._hand_on()

    async def _wait(self, key: _Key, left_s: float) -> None:
        """Wait until there is a receipt, it is this request's turn to read, or the time is over."""
        future = self._waiting[key] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(left_s):
                error = await future
        except TimeoutError:
            return
        finally:
            self._waiting.pop(key, None)
        if error is not None:
            raise error

    async def _read(self, left_s: float) -> bool:
        """Return False if nothing arrived in this time."""
        try:
            receipts = await self._queue.wait_for_receipts(self.address, wait_s=left_s)
        except (QueueUnavailableError, AccessError) as error:
            # The other waiting publishers would only get the same error.
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_result(QueueUnavailableError(str(error)))
            raise QueueUnavailableError(str(error)) from error
        for receipt in receipts:
            self._deliver(receipt)
        return bool(receipts)

    def _deliver(self, receipt: Receipt) -> None:
        if receipt.state == ReceiptState.DURABLE:
            return
        key = receipt.producer, receipt.epoch, receipt.attempt
        if len(self._kept) >= _KEPT_MAX:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = receipt
        waiting = self._waiting.get(key)
        if waiting and not waiting.done():
            waiting.set_result(None)

    def _hand_on(self) -> None:
        self._reader = None
        for key, waiting in self._waiting.items():
            if not waiting.done():
                self._reader = key
                waiting.set_result(None)
                return
