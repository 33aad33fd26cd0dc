"""Waits for the end of a durable request. Reads only.

The queue carries receipts faster, but may lose them; the truth is the ledger in the table metadata.
So both are asked: the queue while it answers, and the table's pointer again and again, with jitter,
so that many waiting writers do not ask at one moment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from committer.errors import (
    InvalidRequestError,
    NoSuchTableError,
    NotFoundError,
    QueueUnavailableError,
    TransientError,
)
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.ledger_entry import (
    Landed,
    ProducerEntry,
    parse_entry,
    property_key,
    short_fingerprint,
)
from committer.ports.world import World, spread_s
from committer.request.commit_request import CommitRequest
from committer.request.receipt_model import Receipt, ReceiptState
from committer.storage.inbox.inbox import Inbox, Quarantine
from workers.requests.mailbox import Mailbox
from workers.requests.table_cache import TableCache
from workers.requests.written_epoch import WrittenEpoch

_POLL_S = 0.5
_POLL_WITH_QUEUE_S = 3.0


@dataclass(frozen=True, slots=True)
class Target:
    """The request that is waited for. `mailbox`: where its doorbell says that receipts go to."""

    request: CommitRequest
    mailbox: Mailbox | None

    def receipt(self, state: ReceiptState) -> Receipt:
        request = self.request
        return Receipt(request.producer.id, request.epoch, str(request.attempt), state)


@dataclass(eq=False)
class ReceiptWaiter:
    """Waits for requests, of one producer for one at a time."""

    tables: TableCache
    inbox: Inbox
    quarantine: Quarantine
    world: World

    async def wait(self, target: Target, *, timeout_s: float) -> Receipt | None:
        """Return the final receipt; None if there is none within `timeout_s`."""
        end_s = self.world.monotonic_s() + timeout_s
        mailbox = target.mailbox
        while (left_s := end_s - self.world.monotonic_s()) > 0:
            try:
                receipt = await self._from_queue(mailbox, target.request, left_s)
            except QueueUnavailableError:
                mailbox, receipt = None, None
            receipt = receipt or await self._from_table(target)
            if receipt:
                return receipt
        return None

    async def _from_queue(
        self, mailbox: Mailbox | None, request: CommitRequest, left_s: float
    ) -> Receipt | None:
        """Wait for a while, at the queue if there is one."""
        if mailbox is None:
            await self.world.sleep(min(left_s, spread_s(_POLL_S, self.world)))
            return None
        wait_s = min(left_s, spread_s(_POLL_WITH_QUEUE_S, self.world))
        return await mailbox.take(request, wait_s=wait_s)

    async def _from_table(self, target: Target) -> Receipt | None:
        """Look the outcome up in ledger and quarantine. An unavailable one is asked again later."""
        try:
            request = target.request
            # Asked first: a request that is in neither inbox nor quarantine has landed.
            has_left = request.producer.one_shot and not await self.inbox.contains(
                request.inbox_key
            )
            table = await self.tables.current(request.identifier)
            entry = _entry(table.metadata, request)
            if entry is not None and request.epoch in entry.epochs:
                landed = _landed_receipt(entry, target)
                if landed:
                    return landed
                # Which the committer may prove to be the same write, or refuse.
                has_left = not await self.inbox.contains(request.inbox_key)
            return await self._settled(target, has_left=has_left)
        except (TransientError, NoSuchTableError):
            return None

    async def _settled(self, target: Target, *, has_left: bool) -> Receipt | None:
        try:
            record, _ = await self.quarantine.get(target.request.inbox_key)
        except NotFoundError:
            # The ledger has forgotten a one-shot producer, or the epoch's fingerprint.
            if has_left and not await self._is_replayed(target.request.inbox_key):
                return target.receipt(ReceiptState.COMMITTED)
            return None
        except InvalidRequestError as error:
            return _quarantined(target, error.reason, str(error))
        return _quarantined(target, record.reason, record.message, record.conflict)

    async def _is_replayed(self, key: str) -> bool:
        """Return whether an operator has replayed it from quarantine and it has not landed yet."""
        return await self.inbox.holds(key) or await self.quarantine.holds(key)


# An epoch of a producer: a request of it, or the files that one will name.
PublishedEpoch = CommitRequest | WrittenEpoch


def landed_before(metadata: TableMetadata, epoch: PublishedEpoch) -> Landed | None:
    """Return where an epoch has landed, if the ledger proves that it was this very content."""
    entry = _entry(metadata, epoch)
    if entry is None or epoch.epoch not in entry.epochs:
        return None
    return next((one for one in entry.latest if _is_same(one, epoch)), None)


def _entry(metadata: TableMetadata, request: PublishedEpoch) -> ProducerEntry | None:
    """Return the producer's entry in this table's ledger."""
    text = metadata.properties.get(property_key(request.producer.id, request.branch))
    entry = parse_entry(text) if text is not None else None
    return entry if entry and entry.table_uuid == request.table_uuid else None


def _landed_receipt(entry: ProducerEntry, target: Target) -> Receipt | None:
    """Return the receipt of the landed epoch; None if nothing here proves equal content."""
    request = target.request
    landed = next((one for one in entry.latest if _is_same(one, request)), None)
    if landed is None:
        return None
    if request.stage_only:
        # The ledger names the head of the branch for what is staged.
        is_other = landed.attempt != request.attempt
        return replace(target.receipt(ReceiptState.COMMITTED), duplicate=is_other)
    return replace(
        target.receipt(ReceiptState.COMMITTED),
        snapshot_id=landed.snapshot_id,
        sequence_number=landed.sequence_number,
        duplicate=landed.attempt != request.attempt,
    )


def _is_same(landed: Landed, request: PublishedEpoch) -> bool:
    """Return whether the landed epoch has the request's content, compared as the committer does."""
    fingerprint = request.fingerprint
    if landed.epoch != request.epoch:
        return False
    if landed.fingerprint_kind != fingerprint.kind:
        return request.producer.sequential or landed.attempt == request.attempt
    return landed.fingerprint == short_fingerprint(fingerprint.value)


def _quarantined(target: Target, reason: str, message: str, conflict: str | None = None) -> Receipt:
    receipt = target.receipt(ReceiptState.QUARANTINED)
    return replace(receipt, reason=reason, message=message, conflict=conflict)
