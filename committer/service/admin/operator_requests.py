"""Publishes what an operator asks for as a request, so that a committer does it in its turn, and
waits for its end.

Each request is of a producer of its own that never publishes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from committer.errors import (
    AccessError,
    InvalidRequestError,
    NotFoundError,
    QueueUnavailableError,
    TransientError,
)
from committer.ledger_entry import OPERATOR_PREFIX
from committer.ports.pointer_swap import LoadedTable
from committer.request.alterations import TableChange
from committer.request.commit_request import CommitRequest
from committer.request.needs import Needs, Operation
from committer.request.receipt_model import Receipt, ReceiptState
from committer.service.upkeep.own_requests import Author, OwnRequests
from committer.storage.inbox.inbox import Quarantine

_POLL_S = 0.2
_POLL_WITH_QUEUE_S = 2.0
_AUTHOR = Author(OPERATOR_PREFIX, "an operator", "operator")


@dataclass(frozen=True, slots=True)
class Published:
    """A durable request. `reply_to`: where its receipt comes, None if no committer was told."""

    request: CommitRequest
    reply_to: str | None

    def ended(
        self, state: ReceiptState, *, reason: str | None = None, message: str | None = None
    ) -> Receipt:
        request = self.request
        attempt = str(request.attempt)
        return Receipt(
            request.producer.id, request.epoch, attempt, state, reason=reason, message=message
        )


@dataclass(frozen=True, slots=True)
class OperatorRequests:
    """Publishes to the committers of one catalog, by `own`."""

    own: OwnRequests
    quarantine: Quarantine

    async def publish(
        self,
        table: LoadedTable,
        *,
        operation: Operation,
        branch: str = "main",
        changes: Sequence[TableChange] = (),
        needs: Needs,
    ) -> Published:
        """Return once the request is durable. Errors: `PublishError` where no key may sign it;
        those of the inbox.
        """
        request = self.own.draft(
            _AUTHOR, table, operation=operation, branch=branch, needs=needs, changes=changes
        )
        return Published(request, await self.own.publish(request))

    async def wait(self, published: Published, *, timeout_s: float) -> Receipt | None:
        """Return how the request ended; None if it waits still after this time."""
        world, reply_to = self.own.world, published.reply_to
        end_s = world.monotonic_s() + timeout_s
        while True:
            left_s = max(0.0, end_s - world.monotonic_s())
            try:
                receipt = await self._receipt(published, reply_to, left_s)
            except (QueueUnavailableError, AccessError):
                reply_to, receipt = None, None
            receipt = receipt or await self._looked_up(published)
            if receipt is not None or world.monotonic_s() >= end_s:
                return receipt

    async def _receipt(
        self, published: Published, reply_to: str | None, left_s: float
    ) -> Receipt | None:
        queue = self.own.queue
        if reply_to is None or queue is None:
            await self.own.world.sleep(min(left_s, _POLL_S))
            return None
        wait_s = min(left_s, _POLL_WITH_QUEUE_S)
        for receipt in await queue.wait_for_receipts(reply_to, wait_s=wait_s):
            is_own = receipt.attempt == str(published.request.attempt)
            if is_own and receipt.state is not ReceiptState.DURABLE:
                return receipt
        return None

    async def _looked_up(self, published: Published) -> Receipt | None:
        """Look where the request is: in neither inbox nor quarantine, it has landed."""
        key = published.request.inbox_key
        try:
            if await self.own.inbox.contains(key):
                return None
            record = await self.quarantine.record(key)
        except NotFoundError:
            return published.ended(ReceiptState.COMMITTED)
        except InvalidRequestError as error:
            return published.ended(
                ReceiptState.QUARANTINED, reason=error.reason, message=str(error)
            )
        except TransientError:
            return None
        return published.ended(
            ReceiptState.QUARANTINED, reason=record.reason, message=record.message
        )
