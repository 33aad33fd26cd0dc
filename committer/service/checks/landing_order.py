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
                held |= {checked.sealed.key: error for checked in requests}
        return held

    async def _held(
        self, requests: Sequence[CheckedRequest], ledger: Ledger, table_uuid: UUID
    ) -> dict[str, FrazilError]:
        first = requests[0].request
        name = first.branch, first.producer.id
        entry = ledger.entries.get(property_key(first.producer.id, first.branch))
        highest = entry.epochs.highest if entry else None
        if not _land_apart(requests) and follows_on(
            highest, (checked.request.epoch for checked in requests)
        ):
            self._gaps.pop(name, None)
            return {}
        gap = self._gaps.setdefault(name, _Gap())
        epochs = await self.lookup.outstanding(table_uuid, first.producer.id)
        left = [epoch for epoch in epochs if entry is None or epoch.epoch not in entry.epochs]
        outstanding = await self._of_branch(requests, left, gap)
        going: set[int] = set()
        held: dict[str, FrazilError] = {}
        for checked in requests:
            in_transaction = checked.request.transaction is not None
            lower = blocker(checked.request.epoch, outstanding, () if in_transaction else going)
            if lower is None and not in_transaction:
                going.add(checked.request.epoch)
            elif lower is not None:
                is_quarantined = outstanding[lower]
                held[checked.sealed.key] = _gap_error(checked, lower, is_quarantined=is_quarantined)
                if is_quarantined and gap.logged_epoch != lower:
                    gap.logged_epoch = lower
                    _log_stopped(checked, lower)
        return held

    async def _of_branch(
        self, requests: Sequence[CheckedRequest], left: Sequence[OutstandingEpoch], gap: _Gap
    ) -> dict[int, bool]:
        """Return the epochs that have to land in order with these requests, and whether each is in
        quarantine: up to the first that is none of them, as it stops all above it.
        """
        own, branch = {checked.request.epoch for checked in requests}, requests[0].request.branch
        keys = {epoch.key for epoch in left}
        gap.branches = {key: name for key, name in gap.branches.items() if key in keys}
        read_max = len(gap.branches) + BRANCHES_READ_MAX
        in_quarantine: dict[int, bool] = {}
        for outstanding in left:
            if outstanding.epoch in own:
                in_quarantine.setdefault(outstanding.epoch, outstanding.is_quarantined)
                continue
            if outstanding.key not in gap.branches and len(gap.branches) < read_max:
                name = await self.lookup.branch_of(outstanding)
                if name is not None:
                    gap.branches[outstanding.key] = name
            if gap.branches.get(outstanding.key, branch) == branch:
                in_quarantine.setdefault(outstanding.epoch, outstanding.is_quarantined)
                break
        return in_quarantine


def _log_stopped(checked: CheckedRequest, lower: int) -> None:
    """Log that a producer has stopped."""
    log.warning(
        "producer.stopped",
        table=str(checked.request.identifier),
        producer=checked.request.producer.id,
        epoch=lower,
    )


def _land_apart(requests: Sequence[CheckedRequest]) -> bool:
    """Return whether these may land by several swaps in another order: one in a transaction goes
    when those of the other tables are there."""
    return len(requests) > 1 and any(
        checked.request.transaction is not None for checked in requests
    )


def _gap_error(checked: CheckedRequest, lower: int, *, is_quarantined: bool) -> EpochGapError:
    request = checked.request
    where = "is in quarantine: replay it, or discard it" if is_quarantined else "waits in the inbox"
    return EpochGapError(
        f"epoch {request.epoch} of the ordered producer `{request.producer.id}` waits for epoch"
        f" {lower}, which {where}"
    )


def _by_producer(candidates: Iterable[CheckedRequest]) -> list[list[CheckedRequest]]:
    """Return the requests of each ordered producer of a branch, by epoch."""
    groups: defaultdict[tuple[str, str], list[CheckedRequest]] = defaultdict(list)
    for checked in candidates:
        request = checked.request
        if request.producer.ordered:
            groups[request.branch, request.producer.id].append(checked)
    return [sorted(group, key=lambda checked: checked.request.epoch) for group in groups.values()]
