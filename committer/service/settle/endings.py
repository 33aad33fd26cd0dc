"""Reports the end of each request to the settler, the circuit breakers and the metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from committer.ledger_entry import Landed
from committer.plan.ledger.high_water_mark import HighWaterMark
from committer.request.commit_request import CommitRequest
from committer.request.receipt_model import Receipt, ReceiptState
from committer.service.requests.circuit_breakers import CircuitBreakers
from committer.service.requests.deferred_doorbells import Waiters
from committer.service.requests.inbox_keys import InboxKey, printable
from committer.service.requests.pending import Pending
from committer.service.settle.outcome import Outcome
from committer.service.settle.recently_quarantined import RecentlyQuarantined
from committer.service.settle.settler import Settler
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics
from committer.storage.inbox.inbox import QuarantineRecord


@dataclass(eq=False)
class Endings:
    """Ends requests that are in memory no more."""

    settler: Settler
    breakers: CircuitBreakers
    recently_quarantined: RecentlyQuarantined
    metrics: Metrics

    def landed(self, ended: Sequence[tuple[Pending, Landed]], seen: HighWaterMark) -> None:
        """Settle requests that have landed, as the high-water mark proves;
        by a commit just now, or earlier."""
        self.breakers.landed(pending.sealed.request for pending, _ in ended)
        self.settler.settle(
            [
                Outcome(
                    pending.key,
                    pending.waiters,
                    _committed(pending.sealed.request, landed),
                    seen,
                )
                for pending, landed in ended
            ]
        )

    def duplicates(self, ended: Sequence[tuple[Pending, Landed]], seen: HighWaterMark) -> None:
        """Settle requests whose epochs had landed before, by the same attempt or another."""
        for pending, landed in ended:
            request = pending.sealed.request
            is_own = landed.attempt == request.attempt
            count = self.metrics.recovered if is_own else self.metrics.duplicated
            count(request.identifier)
        self.landed(ended, seen)

    def left_before(self, ended: Sequence[Pending]) -> None:
        """Settle requests that ended before: their inbox objects are not there."""
        self.settler.settle([Outcome(None, pending.waiters) for pending in ended])

    def quarantined(self, pending: Pending, record: QuarantineRecord) -> None:
        """Settle a request that is in quarantine by a verdict of this committer. A conflict says
        nothing against its producer."""
        is_kept = not record.is_told_only
        self.metrics.quarantined(record.reason, record.table, is_kept=is_kept)
        if record.conflict is None:
            self.breakers.quarantined(pending.sealed.request, record.reason)
        self.quarantined_before(pending, record)

    def quarantined_before(self, pending: Pending, record: QuarantineRecord) -> None:
        """Settle a request that is in quarantine by the verdict of another process."""
        self.recently_quarantined.add(pending.key)
        receipt = _quarantined(pending.key, record)
        self.settler.settle([Outcome(pending.key, pending.waiters, receipt)])

    def unreadable(self, key: InboxKey, waiters: Waiters, record: QuarantineRecord) -> None:
        """Settle an inbox object that cannot be read and is in quarantine by this record."""
        table = {} if record.table is None else {"table": record.table}
        log.warning(
            "request.quarantined",
            key=printable(key),
            reason=record.reason,
            message=record.message,
            **table,
        )
        self.metrics.quarantined(record.reason, record.table)
        self.recently_quarantined.add(key)
        if key.parts is not None:
            self.breakers.unreadable(key.parts, record.reason)
        receipt = _quarantined(key, record)
        self.settler.settle([Outcome(key, waiters, receipt)])

    def unread(self, key: InboxKey, waiters: Waiters, record: QuarantineRecord | None) -> None:
        """Settle a key without a request to read; `record`: as it is in quarantine."""
        receipt = None if record is None else _quarantined(key, record)
        self.settler.settle([Outcome(None, waiters, receipt)])


def _committed(request: CommitRequest, landed: Landed) -> Receipt:
    """Build the answer to a request whose epoch has landed, by this attempt or another."""
    return Receipt(
        request.producer.id,
        request.epoch,
        str(request.attempt),
        ReceiptState.COMMITTED,
        snapshot_id=landed.snapshot_id,
        sequence_number=landed.sequence_number,
        duplicate=landed.attempt != request.attempt,
    )


def _quarantined(key: InboxKey, record: QuarantineRecord) -> Receipt | None:
    """Build the answer to a request in quarantine, of which only the key may be readable; None for
    what is no inbox key.
    """
    parts = key.parts
    if parts is None:
        return None
    return Receipt(
        parts.producer,
        parts.epoch,
        str(parts.attempt),
        ReceiptState.QUARANTINED,
        reason=record.reason,
        message=record.message,
        conflict=record.conflict,
    )
