"""One attempt at an in-flight batch: plan → write in parallel → swap → act on one of four answers.

`Conflict`, `Rejected` and `Unknown` take the same road: forget the base, and the next round finds
out. An attempt whose answer is lost is conditional on its base, exactly like the next one:
whichever lands, the other cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import assert_never

from committer.errors import FrazilError, InvalidMetadataError, NotFoundError
from committer.ledger_entry import property_key
from committer.plan.attempt_log import AttemptLog
from committer.plan.backoff import backoff_s
from committer.plan.commit import Attempt, CommitPlan, NeedsManifestList, plan_commit
from committer.plan.state import TableState
from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    LoadedTable,
    Rejected,
    SwapAnswer,
    Unknown,
)
from committer.reason import Reason
from committer.request.table_identifier import TableIdentifier
from committer.service.requests.pending import Outcome, Pending, Waiting
from committer.service.requests.receipt_builders import committed_receipt
from committer.service.table.cached_table import CachedTable
from committer.service.table.commit_pacer import CommitPacer
from committer.service.table.inflight_batch import BatchSelector, InflightBatch
from committer.service.table.shop import Shop
from committer.service.tasks.steps import create_all, finish
from committer.service.telemetry.commit_report import LandedBatch, report_commit
from committer.service.telemetry.log import log
from committer.service.upkeep.ledger_upkeep import LedgerUpkeep
from committer.service.upkeep.table_upkeep import TableUpkeep

# An answer that is lost now and then is no condition to report; a catalog that never answers is.
UNKNOWN_SHOWN_AFTER = 3

# In the summary of each snapshot.
_VERSION = version("frazil")


class CommitLoop:
    """Sends the attempts of one table."""

    def __init__(
        self,
        identifier: TableIdentifier,
        shop: Shop,
        *,
        waiting: Waiting,
        cached_table: CachedTable,
        attempts: AttemptLog,
        batches: BatchSelector,
        pacer: CommitPacer,
        upkeep: TableUpkeep,
        ledger_upkeep: LedgerUpkeep,
        defer: Callable[[Pending, Exception], None],
    ) -> None:
        """`defer`: retries a request after a while."""
        self._identifier = identifier
        self._shop = shop
        self._waiting = waiting
        self._cached_table = cached_table
        self._attempts = attempts
        self._batches = batches
        self._pacer = pacer
        self._upkeep = upkeep
        self._defer = defer
        self._ledger_upkeep = ledger_upkeep

    async def attempt(self, inflight: InflightBatch, state: TableState) -> None:
        """Try to land it on this state. Errors: those of the ports, where nothing was swapped."""
        world = self._shop.world
        inflight.attempts += 1
        if inflight.attempts == 1:
            inflight.started_ms = world.now_ms()
            self._pacer.started()
        attempt = Attempt(inflight.attempts, world.uuid(), world.now_ms(), _VERSION)
        try:
            plan = await self._plan(inflight, state, attempt)
        except FrazilError:
            raise
        except Exception as error:  # noqa: BLE001  # our bug must not stop the other requests
            self._plan_crashed(inflight, error)
            return
        await self._write(inflight, plan)
        answer = await self._swap(plan)
        self._pacer.swapped()
        self._shop.metrics.swap_answered(self._identifier, answer)
        await self._match(answer, inflight, plan)

    # --- Plan and write ---

    async def _plan(
        self, inflight: InflightBatch, state: TableState, attempt: Attempt
    ) -> CommitPlan:
        requests = (one.request for one in inflight.batch.requests)
        landing = dict.fromkeys(property_key(one.producer.id, one.branch) for one in requests)
        cleanup = self._ledger_upkeep.cleanup(
            self._shop.recently_quarantined, state.ledger, landing
        )
        while True:
            plan = plan_commit(
                state, inflight.batch, inflight.prepared, attempt, cleanup, inflight.upkeep
            )
            if not isinstance(plan, NeedsManifestList):
                return plan
            state = state.with_head(plan.snapshot_id, await self._manifest_list(plan.location))

    async def _manifest_list(self, location: str) -> bytes:
        try:
            return await self._shop.storage.get(location)
        except NotFoundError as error:
            raise InvalidMetadataError(
                f"table {self._identifier}: the manifest list {location} of its current snapshot"
                " does not exist: another tool has deleted it; restore it, or roll the table back"
            ) from error

    def _plan_crashed(self, inflight: InflightBatch, error: Exception) -> None:
        """Halve the batch. Whether the table or the last request alone is at fault is not known, so
        nothing is quarantined: the request is deferred, and the others go on.
        """
        requests = inflight.batch.requests
        log.exception("plan.crashed", table=str(self._identifier), requests=len(requests))
        self._shop.metrics.crashed("plan")
        self._batches.halve(requests)
        if len(requests) == 1:
            self._defer(self._waiting[requests[0].sealed.key], error)

    async def _write(self, inflight: InflightBatch, plan: CommitPlan) -> None:
        """One parallel round: manifests that are not there yet, the list, and the metadata file."""
        before = self._shop.catalog.objects_before(plan.swap)
        self._attempts.sending(plan, [created.location for created in before])
        objects = (*plan.objects, *before)
        fresh = tuple(created for created in objects if created.location not in inflight.written)
        await create_all(self._shop.storage, fresh)
        inflight.written.update(created.location for created in fresh)
        inflight.metadata_bytes = next(
            (len(one.content) for one in fresh if one.location == plan.swap.metadata_location), None
        )

    async def _swap(self, plan: CommitPlan) -> SwapAnswer:
        """Send the swap. An exception other than a `FrazilError` leaves open whether it was
        applied: `Unknown`.
        """
        try:
            return await finish(self._shop.catalog.swap(plan.swap))
        except FrazilError:
            raise
        except Exception as error:  # noqa: BLE001  # our bug: it may have been sent
            log.exception("swap.crashed", table=str(self._identifier))
            self._shop.metrics.crashed("swap")
            return Unknown(repr(error))

    # --- The four answers ---

    async def _match(self, answer: SwapAnswer, inflight: InflightBatch, plan: CommitPlan) -> None:
        match answer:
            case Committed(table):
                self._landed(inflight, plan, table)
            case Conflict():
                self._attempts.refused(plan)
                log.info("commit.conflicted", **self._about(inflight, plan))
                await self._again(inflight)
            case Unknown(cause):
                self._attempts.lost(plan)
                log.warning("commit.unknown", cause=cause, **self._about(inflight, plan))
                if inflight.attempts >= UNKNOWN_SHOWN_AFTER:
                    component = f"table {self._identifier}"
                    self._shop.health.degraded(component, f"no answer to a swap: {cause}")
                await self._again(inflight)
            case Rejected(reason):
                self._attempts.refused(plan)
                log.warning("commit.rejected", reason=reason, **self._about(inflight, plan))
                self._batches.isolate(inflight.batch.requests, Reason.COMMIT_REJECTED, reason)
            case _:
                assert_never(answer)

    async def _again(self, inflight: InflightBatch) -> None:
        """Forget the base; wait a little, more with every attempt."""
        self._cached_table.forget()
        await self._pacer.sleep(backoff_s(inflight.attempts - 1, self._shop.world.jitter()))

    def _landed(self, inflight: InflightBatch, plan: CommitPlan, table: LoadedTable) -> None:
        is_as_planned = table.metadata is plan.swap.metadata
        state = plan.state if is_as_planned else TableState.of(table, plan.state)
        requests = [one.request for one in inflight.batch.requests]
        keys = {property_key(one.producer.id, one.branch) for one in requests}
        self._cached_table.landed(state, keys, is_as_planned=is_as_planned)
        self._batches.landed()
        self._pacer.landed(len(requests), inflight.metadata_bytes)
        self._ledger_upkeep.landed(plan.cleanup, state.ledger)
        self._shop.breakers.landed(requests)
        ended = []
        for one in inflight.batch.requests:
            receipt = committed_receipt(one.request, plan.landed[one.request.inbox_key])
            pending = self._waiting.end(one.sealed.key)
            ended.append(Outcome.landed(pending, receipt, self._cached_table.known))
        self._shop.settle(ended)
        self._report_commit(inflight, plan)
        self._upkeep.landed(plan, state, inflight.batch.branch)

    def _report_commit(self, inflight: InflightBatch, plan: CommitPlan) -> None:
        report_commit(
            LandedBatch(
                self._identifier,
                inflight.batch,
                plan.snapshot,
                attempts=inflight.attempts,
                started_ms=inflight.started_ms,
                metadata_bytes=inflight.metadata_bytes,
            ),
            self._shop.metrics,
            now_ms=self._shop.world.now_ms(),
        )

    def _about(self, inflight: InflightBatch, plan: CommitPlan) -> dict[str, object]:
        return {
            "table": str(self._identifier),
            "snapshot_id": plan.snapshot.snapshot_id,
            "attempt": inflight.attempts,
            "requests": len(inflight.batch.requests),
        }
