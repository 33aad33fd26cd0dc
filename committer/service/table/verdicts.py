"""Carries out verdicts that need no commit: duplicates, requests that left the inbox, quarantine.

Admission and the commit loop decide them. If one request's record cannot be written, that request
is deferred and the others go on.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from committer.errors import (
    FrazilError,
    InvalidRequestError,
    NotFoundError,
    TransientError,
    reason_of,
)
from committer.group_commit import finish_all
from committer.plan.backoff import backoff_s
from committer.plan.high_water_mark import HighWaterMark
from committer.reason import Reason
from committer.request.receipt_model import Receipt
from committer.request.request_format import read_request
from committer.request.request_key import parse_inbox_key
from committer.service.requests.pending import Outcome, Pending, Waiting
from committer.service.requests.receipt_builders import committed_receipt, quarantined_receipt
from committer.service.table.admission_outcome import (
    AdmissionOutcome,
    AlreadyLanded,
    QuarantineVerdict,
)
from committer.service.table.shop import Shop
from committer.service.telemetry.log import log

RECORDS_AT_ONCE = 32
RECORDS_A_ROUND = 256
RECORDS_BYTES_A_ROUND = 8 * 1024 * 1024
# If the environment is misconfigured, retrying more often does not help.
FAULT_PAUSE_S = 15.0


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Ends the requests of one table."""

    waiting: Waiting
    shop: Shop

    async def conclude(self, outcome: AdmissionOutcome, seen: HighWaterMark) -> None:
        """End the duplicates (`seen` in the table), the requests that left the inbox, and those
        that cannot land.
        """
        self.shop.settle([Outcome.gone(self.waiting.end(gone.key)) for gone in outcome.gone])
        self.shop.settle(
            [
                Outcome.landed(self.waiting.end(one.pending.key), _duplicate(one), seen)
                for one in outcome.duplicates
            ]
        )
        for one in outcome.duplicates:
            request = one.pending.sealed.request
            is_own = one.landed.attempt == request.attempt
            tell = self.shop.metrics.recovered if is_own else self.shop.metrics.duplicated
            tell(request.identifier)
        self.shop.breakers.landed(one.pending.sealed.request for one in outcome.duplicates)
        for pending, error in outcome.failed:
            self.defer(pending, error)
        await finish_all(
            self._finish_quarantining(pending) for pending in outcome.already_quarantined
        )
        await self.quarantine_all(outcome.refused)

    async def quarantine_all(self, refused: Sequence[QuarantineVerdict]) -> None:
        """Write the durable records, then end the requests. Of a producer that fails again and
        again no more than it takes to hold the others; and no more at once than a neighbour can
        wait for: the rest has its turn with the next round.
        """
        limit = asyncio.Semaphore(RECORDS_AT_ONCE)

        async def quarantine(one: QuarantineVerdict) -> None:
            async with limit:
                await self._quarantine(one)

        await finish_all(quarantine(one) for one in _first(self._within_room(refused)))

    def _within_room(self, refused: Sequence[QuarantineVerdict]) -> Iterator[QuarantineVerdict]:
        taken: Counter[str] = Counter()
        for one in refused:
            request = one.pending.sealed.request
            room = self.shop.breakers.room(request)
            if room is None or taken[request.producer.id] < room:
                taken[request.producer.id] += 1
                yield one

    async def _quarantine(self, verdict: QuarantineVerdict) -> None:
        try:
            true = await self._as_in_inbox(verdict)
            if true is None:
                return
            one, content = true
        except FrazilError as error:
            self.defer(verdict.pending, error)
            return
        try:
            await self.shop.quarantine.put(one.record(self.shop.world.now_ms()), content)
        except FrazilError as error:
            # The record may be there, or come yet: the verdict stays, though its reason may go.
            one.pending.suspicion = (one.reason, one.message)
            one.pending.is_shared = True
            self.defer(one.pending, error)
            return
        pending = self.waiting.end(one.pending.key)
        self.shop.recently_quarantined.add(pending.key)
        self.shop.metrics.quarantined(one.reason.value)
        self.shop.breakers.quarantined(pending.sealed.request, one.reason.value)
        self.shop.settle([Outcome.quarantined(pending, _quarantined(one))])

    async def _finish_quarantining(self, pending: Pending) -> None:
        """Finish a quarantine that another process began: it stopped after the record and before
        the delete. Its verdict stands.
        """
        try:
            record = await self.shop.quarantine.record(pending.key)
        except FrazilError as error:
            self.defer(pending, error)
            return
        if record.by_reference:
            await self._discard_stale_record(pending)
            return
        self.shop.recently_quarantined.add(pending.key)
        log.info("inbox.quarantined_before", key=pending.key)
        key = parse_inbox_key(pending.key)
        receipt = quarantined_receipt(key, record.reason, record.message)
        self.shop.settle([Outcome.quarantined(self.waiting.end(pending.key), receipt)])

    async def _discard_stale_record(self, pending: Pending) -> None:
        """Delete a record that is not about this request: a foreign entry had its key before."""
        try:
            await self.shop.quarantine.delete((pending.key,))
        except FrazilError as error:
            self.defer(pending, error)
            return
        self.defer(pending, TransientError("what stood in its place before was no request"))

    async def _as_in_inbox(self, one: QuarantineVerdict) -> tuple[QuarantineVerdict, bytes] | None:
        """Return the verdict on the inbox object, not on the doorbell's copy: write access to the
        queue alone must not remove a request from the inbox. None: the request is not quarantined.
        """
        key, announced = one.pending.key, one.pending.sealed.content
        if not one.pending.is_inline:
            return one, announced
        try:
            content = await self.shop.inbox.get(key)
        except NotFoundError:
            self.shop.settle([Outcome.gone(self.waiting.end(key))])
            return None
        if content == announced:
            return one, announced
        log.warning("doorbell.content_mismatch", key=key)
        try:
            self.waiting.reread(key, read_request(content, key=key))
        except InvalidRequestError as error:
            return replace(one, reason=Reason(error.reason), message=str(error)), content
        return None

    def defer(self, pending: Pending, error: Exception) -> None:
        """Retry a request later that fails for a reason of its own."""
        if pending.deferral_count == 0:
            log.warning("request.deferred", key=pending.key, error=reason_of(error))
        jitter = 0.5 + self.shop.world.jitter() / 2
        is_passing = isinstance(error, TransientError)
        delay_s = backoff_s(pending.deferral_count + 5, jitter) if is_passing else FAULT_PAUSE_S
        pending.deferral_count += 1
        self.waiting.defer(pending.key, self.shop.world.monotonic_s() + delay_s)


def _first(refused: Iterator[QuarantineVerdict]) -> Iterator[QuarantineVerdict]:
    size_bytes = 0
    for one in islice(refused, RECORDS_A_ROUND):
        yield one
        size_bytes += len(one.pending.sealed.content)
        if size_bytes >= RECORDS_BYTES_A_ROUND:
            return


def _duplicate(duplicate: AlreadyLanded) -> Receipt:
    request, landed = duplicate.pending.sealed.request, duplicate.landed
    log.info(
        "request.duplicate",
        table=str(request.identifier),
        producer=request.producer.id,
        epoch=request.epoch,
        **({"warning": duplicate.warning} if duplicate.warning else {}),
    )
    return committed_receipt(request, landed)


def _quarantined(one: QuarantineVerdict) -> Receipt:
    request = one.pending.sealed.request
    log.warning(
        "request.quarantined",
        table=str(request.identifier),
        producer=request.producer.id,
        epoch=request.epoch,
        reason=one.reason.value,
        message=one.message,
    )
    key = parse_inbox_key(one.pending.key)
    return quarantined_receipt(key, one.reason.value, one.message)


def unknown_table(pending: Pending, catalog_name: str) -> QuarantineVerdict:
    """The verdict on a request for a table that the catalog does not have."""
    identifier = pending.sealed.request.identifier
    return QuarantineVerdict(
        pending,
        Reason.TABLE_UNKNOWN,
        f"the catalog `{catalog_name}` has no table `{identifier}`",
    )
