"""A request behind its verdict: the receipt, the waiters, and the inbox object to delete."""

from __future__ import annotations

from dataclasses import dataclass

from committer.plan.ledger.high_water_mark import HighWaterMark
from committer.request.receipt_model import Receipt
from committer.service.requests.inbox_keys import InboxKey
from committer.service.requests.pending import Pending


@dataclass(frozen=True, slots=True)
class Outcome:
    """A request with its verdict, or a doorbell without a request.

    `key`: the inbox object to remove, once what proves that it has landed (`seen`) is durable. No
    receipt: the request ended earlier, and its verdict is not known.
    """

    key: InboxKey | None
    tokens: tuple[str, ...]
    reply_to: frozenset[str] = frozenset()
    receipt: Receipt | None = None
    seen: HighWaterMark | None = None

    @classmethod
    def landed(cls, pending: Pending, receipt: Receipt, seen: HighWaterMark) -> Outcome:
        waiters = pending.waiters
        return cls(pending.key, waiters.tokens, waiters.reply_to, receipt, seen)

    @classmethod
    def quarantined(cls, pending: Pending, receipt: Receipt | None) -> Outcome:
        """Return the outcome of a quarantined request: its inbox object may be deleted."""
        return cls(pending.key, pending.waiters.tokens, pending.waiters.reply_to, receipt)

    @classmethod
    def left_before(cls, pending: Pending) -> Outcome:
        """Return the outcome of a request without an inbox object.
        One that appears now is another publication: keep it."""
        return cls(None, pending.waiters.tokens)
