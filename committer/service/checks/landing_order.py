"""Holds the requests of ordered producers until their lower epochs have landed.

Nothing is asked while epochs follow one another. Where one is missing, it may wait in the inbox
unannounced, or be in quarantine: then the producer has stopped until an operator decides. A source
that has skipped it has left nothing there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from committer.errors import FrazilError, TransientError
from committer.ledger_entry import property_key
from committer.plan.batch.request_check import CheckedRequest
from committer.plan.ledger.ledger import Ledger
from committer.plan.scheduling.epoch_order import blocker, follows_on
from committer.service.requests.inbox_lookup import InboxLookup
from committer.service.telemetry.log import log


@dataclass(eq=False)
class LandingOrder:
    """Orders the requests of one table."""

    lookup: InboxLookup
    _stopped: dict[str, int] = field(default_factory=dict)

    async def held(
        self, candidates: Sequence[CheckedRequest], ledger: Ledger, table_uuid: UUID
    ) -> dict[str, FrazilError]:
        """Return the requests that have to wait, by their key, and why."""
        held: dict[str, FrazilError] = {}
        for requests in _by_producer(candidates):
            try:
                held |= await self._held(requests, ledger, table_uuid)
            except FrazilError as error:
                held |= {one.sealed.key: error for one in requests}
        return held

    async def _held(
        self, requests: Sequence[CheckedRequest], ledger: Ledger, table_uuid: UUID
    ) -> dict[str, FrazilError]:
        first = requests[0].request
        entry = ledger.entries.get(property_key(first.producer.id, first.branch))
        highest = entry.epochs.highest if entry else None
        if not _land_apart(requests) and follows_on(
            highest, (one.request.epoch for one in requests)
        ):
            self._stopped.pop(first.producer.id, None)
            return {}
        known = await self.lookup.outstanding(table_uuid, first.producer.id)
        landed = {epoch for epoch in known if entry is not None and epoch in entry.epochs}
        outstanding = known.keys() - landed
        going: set[int] = set()
        held: dict[str, FrazilError] = {}
        for one in requests:
            in_transaction = one.request.transaction is not None
            lower = blocker(one.request.epoch, outstanding, () if in_transaction else going)
            if lower is None and not in_transaction:
                going.add(one.request.epoch)
            elif lower is not None:
                held[one.sealed.key] = _waits(one, lower, is_quarantined=known[lower])
                self._tell(one, lower, is_quarantined=known[lower])
        return held

    def _tell(self, one: CheckedRequest, lower: int, *, is_quarantined: bool) -> None:
        """Log once that a producer has stopped."""
        producer = one.request.producer.id
        if is_quarantined and self._stopped.get(producer) != lower:
            self._stopped[producer] = lower
            log.warning(
                "producer.stopped",
                table=str(one.request.identifier),
                producer=producer,
                epoch=lower,
            )


def _land_apart(requests: Sequence[CheckedRequest]) -> bool:
    """Return whether these may land by several swaps in another order: one in a transaction goes
    when those of the other tables are there."""
    return len(requests) > 1 and any(one.request.transaction is not None for one in requests)


def _waits(one: CheckedRequest, lower: int, *, is_quarantined: bool) -> TransientError:
    where = "is in quarantine: replay it, or discard it" if is_quarantined else "waits in the inbox"
    return TransientError(
        f"epoch {one.request.epoch} of the ordered producer `{one.request.producer.id}` waits for"
        f" epoch {lower}, which {where}"
    )


def _by_producer(candidates: Iterable[CheckedRequest]) -> list[list[CheckedRequest]]:
    """Return the requests of each ordered producer of a branch, by epoch."""
    found: defaultdict[tuple[str, str], list[CheckedRequest]] = defaultdict(list)
    for one in candidates:
        request = one.request
        if request.producer.ordered:
            found[request.branch, request.producer.id].append(one)
    return [sorted(group, key=lambda one: one.request.epoch) for group in found.values()]
