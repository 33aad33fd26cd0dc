"""A request behind its verdict: the receipt, the waiters, and the inbox object to delete."""

from __future__ import annotations

from dataclasses import dataclass

from committer.plan.ledger.high_water_mark import HighWaterMark
from committer.request.receipt_model import Receipt
from committer.service.requests.deferred_doorbells import Waiters
from committer.service.requests.inbox_keys import InboxKey
from committer.storage.inbox.audit_log import AuditEntry


@dataclass(frozen=True, slots=True)
class Outcome:
    """A request with its verdict, or a doorbell without a request.

    `key`: the inbox object to remove, once what proves that it has landed (`seen`) is durable; of a
    quarantined request, now. None: there is no inbox object; one that appears is another
    publication, which stays. No receipt: the request ended earlier, and its verdict is not known.
    `audit`: what the audit has to say before the inbox object may go.
    """

    key: InboxKey | None
    waiters: Waiters
    receipt: Receipt | None = None
    seen: HighWaterMark | None = None
    audit: AuditEntry | None = None
