"""Publishes what an operator asks for as a request, so that a committer does it in its turn, and
waits for its end.

Each request is of a producer of its own that never publishes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from committer.errors import (
    InvalidRequestError,
    NotFoundError,
    PublishError,
    QueueUnavailableError,
    TransientError,
)
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import Doorbell, Queue
from committer.ports.world import World
from committer.request.alterations import TableChange
from committer.request.attempt import attempt_of, timed_nonce
from committer.request.commit_request import CommitRequest, Fingerprint, Producer
from committer.request.needs import Needs, Operation
from committer.request.receipt_model import Receipt, ReceiptState
from committer.request.request_format import EncodedRequest, line_digest, seal_request
from committer.request.signature import VALID_MS, choose_key, sign_request
from committer.request.transaction import TableName
from committer.storage.inbox.inbox import Inbox, Quarantine
from committer.storage.inbox.key_file import SETTING, KeyFile

_POLL_S = 0.2
_POLL_WITH_QUEUE_S = 2.0
_KEYS_S_MAX = 60.0
PRODUCER_PREFIX = "frazil-operator-"


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
    """Publishes to the committer of one catalog."""

    catalog_name: str
    inbox: Inbox
    quarantine: Quarantine
    queue: Queue | None
    key_file: KeyFile | None
    world: World

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
        table_uuid, world = table.metadata.require_uuid(), self.world
        nonce = timed_nonce(world.now_ms(), world.uuid())
        producer = f"{PRODUCER_PREFIX}{nonce}"
        identifier = table.identifier
        request = CommitRequest(
            catalog=self.catalog_name,
            table=TableName(namespace=identifier.namespace, name=identifier.name),
            table_uuid=table_uuid,
            branch=branch,
            producer=Producer(id=producer, name="an operator", one_shot=True),
            epoch=0,
            nonce=nonce,
            attempt=attempt_of(table_uuid, branch, producer, 0, nonce),
            fingerprint=Fingerprint(kind="operator", value=str(nonce)),
            published_at_ms=world.now_ms(),
            operation=operation,
            needs=needs,
            changes=tuple(changes),
        )
        sealed = await self._sealed(request)
        await self.inbox.put(sealed)
        return Published(request, await self._announce(sealed))

    async def _sealed(self, request: CommitRequest) -> EncodedRequest:
        if self.key_file is None:
            return seal_request(request)
        key = choose_key(await self.key_file.keys(age_s_max=_KEYS_S_MAX), request)
        if key is None:
            raise PublishError(
                f"no key of the file that `{SETTING}` names is for table `{request.identifier}`,"
                f" producer `{request.producer.id}` and operation `{request.operation}`"
            )
        time = {"not_after_ms": request.published_at_ms + VALID_MS}
        return sign_request(request.model_copy(update=time), key)

    async def _announce(self, sealed: EncodedRequest) -> str | None:
        """Ring the doorbell. Without one the committer finds the request by itself, later."""
        if self.queue is None:
            return None
        reply_to, request = str(self.world.uuid()), sealed.request
        doorbell = Doorbell(
            request.table_uuid,
            request.inbox_key,
            line_digest(sealed.content),
            sealed.content,
            reply_to,
        )
        try:
            await self.queue.announce((doorbell,))
        except QueueUnavailableError:
            return None
        return reply_to

    async def wait(self, published: Published, *, timeout_s: float) -> Receipt | None:
        """Return how the request ended; None if it waits still after this time."""
        end_s = self.world.monotonic_s() + timeout_s
        reply_to = published.reply_to
        while True:
            left_s = max(0.0, end_s - self.world.monotonic_s())
            try:
                receipt = await self._receipt(published, reply_to, left_s)
            except QueueUnavailableError:
                reply_to, receipt = None, None
            receipt = receipt or await self._looked_up(published)
            if receipt is not None or self.world.monotonic_s() >= end_s:
                return receipt

    async def _receipt(
        self, published: Published, reply_to: str | None, left_s: float
    ) -> Receipt | None:
        if reply_to is None or self.queue is None:
            await self.world.sleep(min(left_s, _POLL_S))
            return None
        wait_s = min(left_s, _POLL_WITH_QUEUE_S)
        for receipt in await self.queue.wait_for_receipts(reply_to, wait_s=wait_s):
            is_own = receipt.attempt == str(published.request.attempt)
            if is_own and receipt.state is not ReceiptState.DURABLE:
                return receipt
        return None

    async def _looked_up(self, published: Published) -> Receipt | None:
        """Look where the request is: in neither inbox nor quarantine, it has landed."""
        key = published.request.inbox_key
        try:
            if await self.inbox.contains(key):
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
