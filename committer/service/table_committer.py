"""One task for one table: gathers its requests, and lands them with one swap after another.

A round is one attempt, whatever became of the one before: load the base → ask the ledger (has it
landed?) and check the requests → plan → write in parallel → swap → match the four answers.
`Conflict`, `Rejected` and `Unknown` take the same road: forget the base, and the next round finds
out. An attempt whose answer is lost is conditional on its base, exactly like the next one:
whichever lands, the other cannot. No verdict rests on anything but freshly read metadata.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never
from uuid import UUID

from committer.errors import (
    FrazilError,
    InvalidMetadataError,
    InvariantError,
    NoSuchTableError,
    NotFoundError,
    TableFrozenError,
    TransientError,
    reason_of,
)
from committer.ledger_entry import property_key
from committer.plan.backoff import backoff_s
from committer.plan.batch import Batch, PreparedManifest, prepare_manifests, snapshot_id_from
from committer.plan.batching import (
    BatchPolicy,
    next_batch,
)
from committer.plan.check import CheckBasis, CheckedRequest
from committer.plan.commit import (
    Attempt,
    CommitPlan,
    LedgerChores,
    NeedsManifestList,
    plan_commit,
)
from committer.plan.state import TableState
from committer.plan.upkeep import Upkeep
from committer.ports import (
    Catalog,
    Committed,
    Conflict,
    Rejected,
    Storage,
    SwapAnswer,
    Unknown,
    World,
)
from committer.reason import Reason
from committer.request import TableIdentifier
from committer.service.admission import Admission, Admitted
from committer.service.breakers import Breakers
from committer.service.health import Health
from committer.service.landed import LandedBatch, tell_landed
from committer.service.log import log
from committer.service.metrics import Metrics
from committer.service.pace import Pace
from committer.service.pending import Ended, Pending, Waiting
from committer.service.receipts import committed_receipt
from committer.service.signatures import Signatures
from committer.service.steps import create_all, finish, off_loop_if_large
from committer.service.table_files import TableFiles, UpkeepParts
from committer.service.table_witness import TableWitness
from committer.service.upkeep import TableUpkeep
from committer.service.verdicts import FAULT_PAUSE_S, Verdicts, unknown_table
from committer.service.witness import WitnessKeeper
from committer.storage.inbox import Inbox, Quarantine

IDLE_S_MAX = 600.0
# An answer that is lost now and then is nobody's business; a catalog that never answers is.
UNKNOWN_SHOWN_AFTER = 3
# Nothing names what was written for a batch before it lands: an engine's orphan clean-up takes it,
# though not so soon.
INTENT_S_MAX = 3_600.0
STUCK_AFTER = 4
# How soon a table that an operator has accepted, or put right, is found to be.
FROZEN_PAUSE_S = 5.0


@dataclass(frozen=True, slots=True)
class Shop:
    """What all table committers of a process share."""

    catalog_name: str
    catalog: Catalog
    storage: Storage
    inbox: Inbox
    quarantine: Quarantine
    world: World
    health: Health
    metrics: Metrics
    breakers: Breakers
    policy: BatchPolicy
    signatures: Signatures
    witnesses: WitnessKeeper
    upkeep: UpkeepParts
    settle: Callable[[Sequence[Ended]], None]


@dataclass(slots=True)
class _Intent:
    """A batch on its way, kept over attempts, with what was written of it already."""

    batch: Batch
    basis: CheckBasis
    prepared: tuple[PreparedManifest, ...]
    upkeep: Upkeep
    since_s: float
    attempts: int = 0
    started_ms: int = 0
    written: set[str] = field(default_factory=set)
    metadata_bytes: int | None = None


class TableCommitter:
    """Commits the requests of one table (name and uuid), one attempt at a time."""

    def __init__(
        self,
        identifier: TableIdentifier,
        table_uuid: UUID,
        shop: Shop,
        let_go: Callable[[Pending], None],
    ) -> None:
        self.identifier = identifier
        self.table_uuid = table_uuid
        self._shop = shop
        self._leave_to_inbox = let_go
        self._waiting = Waiting()
        self._verdicts = Verdicts(
            self._waiting,
            shop.inbox,
            shop.quarantine,
            shop.world,
            shop.settle,
            shop.metrics,
            shop.breakers,
        )
        self._admission = Admission(
            shop.catalog_name,
            shop.storage,
            shop.inbox,
            shop.quarantine,
            shop.signatures,
            self._waiting.all,
        )
        self._upkeep = TableUpkeep(
            TableFiles(identifier, table_uuid, shop.upkeep, lambda: self._state), self._waiting.all
        )
        self._witness = TableWitness(
            identifier, table_uuid, shop.witnesses, shop.catalog, self._admission.evidence
        )
        self._state: TableState | None = None
        self._is_current = False
        self._generation = 0
        self._intent: _Intent | None = None
        self._doubted: set[str] = set()
        self._close_gaps: dict[str, int] = {}
        self._drop: set[str] = set()
        self._batch_max: int | None = None
        self._failures = 0
        self._work = asyncio.Event()
        self._stopping = asyncio.Event()
        self._pace = Pace(identifier, shop.catalog, shop.world, shop.policy, self._stopping)

    # --- What others see ---

    def submit(self, pending: Pending) -> None:
        """Add a request, or another copy of one that waits."""
        self._waiting.add(pending)
        self._work.set()

    def stop(self) -> None:
        """Finish the attempt in hand and end; what waits stays un-acknowledged."""
        self._stopping.set()
        self._work.set()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def find(self, key: str) -> Pending | None:
        """A request that waits here."""
        return self._waiting.find(key)

    @property
    def pending_count(self) -> int:
        return len(self._waiting)

    @property
    def is_stuck(self) -> bool:
        """Whether it has got nowhere for a while: frozen, or its servers do not let it."""
        return self._failures >= STUCK_AFTER

    @property
    def pending_bytes(self) -> int:
        return self._waiting.size_bytes

    @property
    def oldest_ms(self) -> int | None:
        """Since when the oldest request that waits here has been durable."""
        return self._waiting.oldest_ms

    @property
    def state(self) -> TableState | None:
        """The table as last loaded or committed; None before the first round."""
        return self._state

    def add_chores(self, chores: LedgerChores) -> None:
        """Ledger upkeep that the next commit takes along."""
        self._close_gaps.update(chores.close_gaps)
        self._drop.update(chores.drop)

    # --- The loop ---

    async def run(self) -> None:
        """Work until stopped, or until nothing has come for long."""
        try:
            await self._work_on()
        finally:
            await self._upkeep.close()

    async def _work_on(self) -> None:
        while await self._wait_for_work():
            try:
                await self._wait_for_turn()
                await self._round()
                self._recovered()
            except TransientError as error:
                await self._pause("unavailable", error, backoff_s(self._failures, 1.0))
            except TableFrozenError as error:
                await self._freeze(error)
            except FrazilError as error:
                if isinstance(error, InvariantError):
                    self._intent = None
                await self._pause("at_fault", error, FAULT_PAUSE_S)
            except Exception as error:  # noqa: BLE001  # our bug: keep the evidence, go on later
                log.exception("table.crashed", table=str(self.identifier))
                self._shop.metrics.crashed("table")
                self._intent = None
                await self._pause("crashed", error, FAULT_PAUSE_S)

    async def _wait_for_work(self) -> bool:
        while not self._stopping.is_set():
            next_s = self._waiting.recall(self._shop.world.monotonic_s())
            self._let_go()
            if self._waiting.has_ready:
                return True
            self._work.clear()
            try:
                async with asyncio.timeout(IDLE_S_MAX if next_s is None else next_s):
                    await self._work.wait()
            except TimeoutError:
                if not self._waiting:
                    return False
        return False

    def _let_go(self) -> None:
        """Of requests whose producer has to wait, all but those of an attempt on its way: they may
        have landed, and are told so.
        """
        if self._shop.breakers.are_open:
            sent = self._intent.batch.requests if self._intent else ()
            kept = {one.request.inbox_key for one in sent}
            for pending in self._waiting.let_go(self._shop.breakers.holds_request, kept):
                self._leave_to_inbox(pending)

    async def _wait_for_turn(self) -> None:
        """A retry goes at once, and so does each half of a batch that failed."""
        if self._intent is None and self._batch_max is None:
            is_current = await self._pace.wait(self._state)
            self._is_current = self._is_current and is_current

    async def _freeze(self, error: TableFrozenError) -> None:
        """What waits goes on waiting, and nothing is tidied up, until the table is right again."""
        self._shop.metrics.frozen(self.identifier, is_frozen=True)
        for pending in self._waiting.all():
            pending.is_shared = True
        await self._upkeep.close()
        await self._pause("frozen", error, FROZEN_PAUSE_S)

    async def _pause(self, event: str, error: Exception, delay_s: float) -> None:
        self._is_current = False
        self._failures += 1
        if self._shop.health.trouble(self._component, reason_of(error)):
            log.warning(f"table.{event}", table=str(self.identifier), error=str(error))
        jittered = delay_s * (0.5 + self._shop.world.jitter() / 2)
        await self._pace.sleep(jittered)

    def _recovered(self) -> None:
        self._failures = 0
        if not self._doubted and self._shop.health.well(self._component):
            self._shop.metrics.frozen(self.identifier, is_frozen=False)
            log.info("table.recovered", table=str(self.identifier))

    @property
    def _component(self) -> str:
        return f"table {self.identifier}"

    # --- One round ---

    async def _round(self) -> None:
        try:
            state, admitted = await self._admit_on_fresh_enough()
        except NoSuchTableError:
            self._intent, self._is_current = None, False
            unknown = [unknown_table(one, self._shop.catalog_name) for one in self._first()]
            await self._verdicts.quarantine_all(unknown)
            return
        self._judge_suspects(admitted, state)
        await self._verdicts.conclude(admitted, self._witness.known)
        intent = await self._next_intent(admitted.candidates, state)
        if intent is not None:
            await self._attempt(intent, state)

    async def _admit_on_fresh_enough(self) -> tuple[TableState, Admitted]:
        """A cached table may lag behind: it lets requests land (the swap finds out), but only
        fresh metadata ends one without a commit.
        """
        if self._state is not None and self._is_current and not self._witness.is_void:
            admitted = await self._admission.admit(self._first(), self._state, self._generation)
            if not admitted.has_verdicts:
                return self._state, admitted
        state = await self._load()
        return state, await self._admission.admit(self._first(), state, self._generation)

    async def _load(self) -> TableState:
        state = await self._witness.load(self._state)
        self._pace.saw(self._state, state.table)
        self._state = state
        self._is_current = True
        self._generation += 1
        self._doubted &= {state.table.metadata_location}
        self._upkeep.loaded(state)
        return state

    def _first(self) -> list[Pending]:
        return self._waiting.ready(self._shop.policy.requests_max)

    def _judge_suspects(self, admitted: Admitted, state: TableState) -> None:
        """Freshly read, the table still does not have them: quarantine. Not while an earlier
        attempt may land on this very base: then let others move the pointer, and try again.
        """
        for suspect in admitted.suspects:
            if state.table.metadata_location in self._doubted:
                suspect.pending.suspicion = None
                self._verdicts.put_off(suspect.pending, TransientError(suspect.message))
            else:
                admitted.refused.append(suspect)

    async def _next_intent(
        self, candidates: Sequence[CheckedRequest], state: TableState
    ) -> _Intent | None:
        """The batch on its way if all of it still may land, else a new one."""
        intent = self._intent
        basis = self._admission.basis
        if intent is not None and basis == intent.basis and self._is_fresh(intent):
            still = {candidate.request.inbox_key for candidate in candidates}
            if all(one.request.inbox_key in still for one in intent.batch.requests):
                return intent
        self._intent = None
        requests = _one_branch(next_batch(candidates, self._policy(state)))
        if not requests:
            return None
        batch = Batch(requests, self._new_snapshot_id(state), self._shop.world.uuid())
        try:
            prepared = await off_loop_if_large(
                sum(one.size_bytes for one in requests), prepare_manifests, batch, state.metadata
            )
        except Exception as error:  # noqa: BLE001  # isolates the request that our own bug trips over
            log.exception("plan.crashed", table=str(self.identifier), requests=len(requests))
            self._shop.metrics.crashed("plan")
            self._isolate(requests, Reason.PLAN_FAILED, repr(error))
            return None
        now_s = self._shop.world.monotonic_s()
        self._intent = _Intent(batch, basis, prepared, self._upkeep.offer(), now_s)
        return self._intent

    def _is_fresh(self, intent: _Intent) -> bool:
        return self._shop.world.monotonic_s() - intent.since_s <= INTENT_S_MAX

    def _policy(self, state: TableState) -> BatchPolicy:
        """The table's policy, with the limit while bisecting."""
        policy = self._pace.policy(state)
        limit = min(self._batch_max or policy.requests_max, policy.requests_max)
        return replace(policy, requests_max=limit)

    def _new_snapshot_id(self, state: TableState) -> int:
        while True:
            snapshot_id = snapshot_id_from(self._shop.world.uuid(), state.metadata)
            if snapshot_id is not None:
                return snapshot_id

    async def _attempt(self, intent: _Intent, state: TableState) -> None:
        world = self._shop.world
        intent.attempts += 1
        if intent.attempts == 1:
            intent.started_ms = world.now_ms()
            self._pace.started()
        attempt = Attempt(intent.attempts, world.uuid(), world.now_ms())
        try:
            plan = await self._plan(intent, state, attempt)
        except FrazilError:
            raise
        except Exception as error:  # noqa: BLE001  # our bug must not stop the other requests
            self._plan_crashed(intent, error)
            return
        await self._write(intent, plan)
        answer = await finish(self._shop.catalog.swap(plan.swap))
        self._pace.swapped()
        self._shop.metrics.swap_answered(self.identifier, answer)
        await self._match(answer, intent, plan)

    async def _plan(self, intent: _Intent, state: TableState, attempt: Attempt) -> CommitPlan:
        chores = LedgerChores(dict(self._close_gaps), frozenset(self._drop))
        while True:
            plan = plan_commit(state, intent.batch, intent.prepared, attempt, chores, intent.upkeep)
            if not isinstance(plan, NeedsManifestList):
                return plan
            state = state.with_head(plan.snapshot_id, await self._manifest_list(plan.location))

    async def _manifest_list(self, location: str) -> bytes:
        try:
            return await self._shop.storage.get(location)
        except NotFoundError as error:
            raise InvalidMetadataError(
                f"table {self.identifier}: the manifest list {location} of its current snapshot"
                " does not exist: another tool has deleted it; restore it, or roll the table back"
            ) from error

    def _plan_crashed(self, intent: _Intent, error: Exception) -> None:
        """Halve the batch. Whether the table or the last request alone is at fault is not known, so
        nothing is quarantined: it is put off, and the others go on.
        """
        requests = intent.batch.requests
        log.exception("plan.crashed", table=str(self.identifier), requests=len(requests))
        self._shop.metrics.crashed("plan")
        self._intent, self._batch_max = None, max(1, len(requests) // 2)
        if len(requests) == 1:
            key = requests[0].request.inbox_key
            self._verdicts.put_off(self._waiting[key], error)

    async def _write(self, intent: _Intent, plan: CommitPlan) -> None:
        """One parallel round: manifests that are not there yet, the list, and the metadata file."""
        before = self._shop.catalog.objects_before(plan.swap)
        self._upkeep.sending(plan, [created.location for created in before])
        objects = (*plan.objects, *before)
        fresh = tuple(created for created in objects if created.location not in intent.written)
        await create_all(self._shop.storage, fresh)
        intent.written.update(created.location for created in fresh)
        intent.metadata_bytes = next(
            (len(one.content) for one in fresh if one.location == plan.swap.metadata_location), None
        )

    async def _match(self, answer: SwapAnswer, intent: _Intent, plan: CommitPlan) -> None:
        match answer:
            case Committed(table):
                same = table.metadata is plan.swap.metadata
                self._state = plan.state if same else TableState.of(table, plan.state)
                # What came back may hold more than we planned: as good as a load.
                self._generation += 0 if same else 1
                self._landed(intent, plan, self._state)
                self._upkeep.landed(plan, self._state, intent.batch.branch)
            case Conflict():
                self._upkeep.refused(plan)
                log.info("commit.conflicted", **self._about(intent, plan))
                await self._again(intent)
            case Unknown(cause):
                self._doubted.add(plan.swap.base.metadata_location)
                self._upkeep.doubted(plan)
                log.warning("commit.unknown", cause=cause, **self._about(intent, plan))
                if intent.attempts >= UNKNOWN_SHOWN_AFTER:
                    self._shop.health.trouble(self._component, f"no answer to a swap: {cause}")
                await self._again(intent)
            case Rejected(reason):
                self._upkeep.refused(plan)
                log.warning("commit.rejected", reason=reason, **self._about(intent, plan))
                self._isolate(intent.batch.requests, Reason.COMMIT_REJECTED, reason)
            case _:
                assert_never(answer)

    async def _again(self, intent: _Intent) -> None:
        """Forget the base; wait a little, more with every attempt."""
        self._is_current = False
        await self._pace.sleep(backoff_s(intent.attempts - 1, self._shop.world.jitter()))

    def _isolate(self, requests: Sequence[CheckedRequest], reason: Reason, message: str) -> None:
        """Halve the batches until the request at fault stands alone, then suspect it: the next
        round asks the ledger, in freshly read metadata, whether it has landed after all.
        """
        self._intent, self._is_current = None, False
        self._batch_max = max(1, len(requests) // 2)
        if len(requests) == 1:
            self._waiting[requests[0].request.inbox_key].suspicion = (reason, message)

    def _landed(self, intent: _Intent, plan: CommitPlan, state: TableState) -> None:
        self._intent = None
        self._batch_max = None
        self._pace.landed(len(intent.batch.requests), intent.metadata_bytes)
        self._doubted.clear()
        self._forget_chores(intent, plan)
        requests = [one.request for one in intent.batch.requests]
        self._witness.landed(state, {property_key(one.producer.id, one.branch) for one in requests})
        self._shop.breakers.landed(requests)
        ended = []
        for request in requests:
            key = request.inbox_key
            receipt = committed_receipt(request, plan.landed[key])
            ended.append(Ended.landed(self._waiting.end(key), receipt, self._witness.known))
        self._shop.settle(ended)
        self._tell_landed(intent, plan)

    def _tell_landed(self, intent: _Intent, plan: CommitPlan) -> None:
        tell_landed(
            LandedBatch(
                self.identifier,
                intent.batch,
                plan.snapshot,
                attempts=intent.attempts,
                started_ms=intent.started_ms,
                metadata_bytes=intent.metadata_bytes,
            ),
            self._shop.metrics,
            now_ms=self._shop.world.now_ms(),
        )

    def _forget_chores(self, intent: _Intent, plan: CommitPlan) -> None:
        """Those that are done, and those that were found before a producer went on."""
        requests = [one.request for one in intent.batch.requests]
        self._drop -= plan.chores.drop
        self._drop -= {property_key(one.producer.id, one.branch) for one in requests}
        for key, below in plan.chores.close_gaps.items():
            if self._close_gaps.get(key) == below:
                del self._close_gaps[key]

    def _about(self, intent: _Intent, plan: CommitPlan) -> dict[str, object]:
        return {
            "table": str(self.identifier),
            "snapshot_id": plan.snapshot.snapshot_id,
            "attempt": intent.attempts,
            "requests": len(intent.batch.requests),
        }


def _one_branch(requests: Sequence[CheckedRequest]) -> tuple[CheckedRequest, ...]:
    """The requests of the first one's branch: a batch makes one snapshot."""
    if not requests:
        return ()
    branch = requests[0].request.branch
    return tuple(one for one in requests if one.request.branch == branch)
