"""Holds the requests of ordered producers until their lower epochs have landed.

Nothing is asked while epochs follow one another on their branch. Where one is missing, it may wait
in the inbox without a doorbell, or be in quarantine: then the producer has stopped on that branch
until an operator decides. A source that has skipped it has left nothing there, or has published it
to another branch: a key does not say which, so the request that would stop others is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from committer.errors import EpochGapError, FrazilError
from committer.ledger_entry import property_key
from committer.plan.batch.request_check import CheckedRequest
from committer.plan.ledger.ledger import Ledger
from committer.plan.scheduling.epoch_order import blocker, follows_on
from committer.service.requests.inbox_lookup import InboxLookup, OutstandingEpoch
from committer.service.telemetry.log import log

# In one look; those that are not read yet stop the others until the next one.
BRANCHES_READ_MAX = 32


@dataclass(slots=True)
class _Gap:
    """A producer whose epochs do not follow one another on a branch. `logged_epoch`: the
    epoch in quarantine that was logged. `branches`: of outstanding requests, by key.
    """

    logged_epoch: int | None = None
    branches: dict[str, str] = field(default_factory=dict)


@dataclass(eq=False)
class LandingOrder:
    """Orders the requests of one table."""

    lookup: InboxLookup
    _gaps: dict[tuple[str, str], _Gap] = field(default_factory=dict)

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
        name = first.branch, first.producer.id
        entry = ledger.entries.get(property_key(first.producer.id, first.branch))
        highest = entry.epochs.highest if entry else None
        if not _land_apart(requests) and follows_on(
            highest, (one.request.epoch for one in requests)
        ):
            self._gaps.pop(name, None)
            return {}
        gap = self._gaps.setdefault(name, _Gap())
        known = await self.lookup.outstanding(table_uuid, first.producer.id)
        left = [one for one in known if entry is None or one.epoch not in entry.epochs]
        outstanding = await self._of_branch(requests, left, gap)
        going: set[int] = set()
        held: dict[str, FrazilError] = {}
        for one in requests:
            in_transaction = one.request.transaction is not None
            lower = blocker(one.request.epoch, outstanding, () if in_transaction else going)
            if lower is None and not in_transaction:
                going.add(one.request.epoch)
            elif lower is not None:
                held[one.sealed.key] = _waits(one, lower, is_quarantined=outstanding[lower])
                if outstanding[lower] and gap.logged_epoch != lower:
                    gap.logged_epoch = lower
                    _log_stopped(one, lower)
        return held

    async def _of_branch(
        self, requests: Sequence[CheckedRequest], left: Sequence[OutstandingEpoch], gap: _Gap
    ) -> dict[int, bool]:
        """Return the epochs that have to land in order with these requests, and whether each is in
        quarantine: up to the first that is none of them, as it stops all above it.
        """
        own, branch = {one.request.epoch for one in requests}, requests[0].request.branch
        keys = {one.key for one in left}
        gap.branches = {key: known for key, known in gap.branches.items() if key in keys}
        read_max = len(gap.branches) + BRANCHES_READ_MAX
        found: dict[int, bool] = {}
        for one in left:
            if one.epoch in own:
                found.setdefault(one.epoch, one.is_quarantined)
                continue
            if one.key not in gap.branches and len(gap.branches) < read_max:
                said = await self.lookup.branch_of(one)
                if said is not None:
                    gap.branches[one.key] = said
            if gap.branches.get(one.key, branch) == branch:
                found.setdefault(one.epoch, one.is_quarantined)
                break
        return found


def _log_stopped(one: CheckedRequest, lower: int) -> None:
    """Log that a producer has stopped."""
    log.warning(
        "producer.stopped",
        table=str(one.request.identifier),
        producer=one.request.producer.id,
        epoch=lower,
    )


def _land_apart(requests: Sequence[CheckedRequest]) -> bool:
    """Return whether these may land by several swaps in another order: one in a transaction goes
    when those of the other tables are there."""
    return len(requests) > 1 and any(one.request.transaction is not None for one in requests)


def _waits(one: CheckedRequest, lower: int, *, is_quarantined: bool) -> EpochGapError:
    where = "is in quarantine: replay it, or discard it" if is_quarantined else "waits in the inbox"
    return EpochGapError(
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
