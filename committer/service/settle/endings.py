"""Reports the end of each request to the settler, the circuit breakers and the metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from committer.ledger_entry import Landed
from committer.plan.commit.landed_commit import LandedCommit
from committer.plan.commit.table_facts import TableFacts, changed_facts, table_facts
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
from committer.storage.inbox.audit_log import AuditEntry
from committer.storage.inbox.inbox import QuarantineRecord


@dataclass(eq=False)
class Endings:
    """Ends requests that are in memory no more."""

    settler: Settler
    breakers: CircuitBreakers
    recently_quarantined: RecentlyQuarantined
    metrics: Metrics

    def landed(
        self,
        ended: Sequence[tuple[Pending, Landed]],
        seen: HighWaterMark,
        commit: LandedCommit | None = None,
    ) -> None:
        """Settle requests that have landed, as the high-water mark proves;
        by a commit just now, or (`commit`: None) earlier."""
        self.breakers.landed(pending.sealed.request for pending, _ in ended)
        are_audited = [_is_audited(pending, landed) for pending, landed in ended]
        effect = _effect(commit) if commit is not None and any(are_audited) else None
        now_ms = self.settler.world.now_ms()
        self.settler.settle(
            [
                Outcome(
                    pending.key,
                    pending.waiters,
                    _committed(pending.sealed.request, landed),
                    seen,
                    _audit_entry(pending, landed, effect, now_ms) if is_audited else None,
                )
                for (pending, landed), is_audited in zip(ended, are_audited, strict=True)
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


def _is_audited(pending: Pending, landed: Landed) -> bool:
    """Return whether the audit has an entry of a request: it may alter or delete, and has landed
    itself. A plain append has none.
    """
    request = pending.sealed.request
    is_plain = request.operation == "append" and not request.changes
    return not is_plain and landed.attempt == request.attempt


def _effect(commit: LandedCommit) -> tuple[TableFacts, TableFacts]:
    """Return what a commit has changed of its table, as it was before and as it is after."""
    before = table_facts(commit.plan.swap.base)
    return changed_facts(before, table_facts(commit.state.table))


def _audit_entry(
    pending: Pending, landed: Landed, effect: tuple[TableFacts, TableFacts] | None, now_ms: int
) -> AuditEntry:
    """Build the entry of a landed request. `effect`: of its whole commit; None if the request was
    found to have landed earlier.
    """
    request = pending.sealed.request
    before, after = effect or (None, {})
    changes = [one.model_dump(mode="json", by_alias=True) for one in request.changes]
    return AuditEntry(
        # A request that is replayed or found again has the same.
        entry_id=request.inbox_key,
        at_ms=now_ms,
        phase="landed",
        who=f"producer {request.producer.id}",
        action=request.operation,
        table=str(request.identifier),
        table_uuid=str(request.table_uuid),
        branch=request.branch,
        producer=request.producer.id,
        epoch=request.epoch,
        key=pending.key,
        key_id=request.key_id,
        before=before,
        after={
            **after,
            **({"changes": changes} if changes else {}),
            "snapshot_id": landed.snapshot_id,
            "sequence_number": landed.sequence_number,
        },
    )


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
