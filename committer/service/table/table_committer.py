"""One task for one table: gathers its requests, and lands them with one swap after another.

A round is one attempt, whatever became of the one before: load the base → ask the ledger (has it
landed?) and check the requests → the batch on its way, or the next one → attempt (`commit.py`). No
verdict rests on anything but freshly read metadata.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from uuid import UUID

from committer.errors import (
    FrazilError,
    InvariantError,
    NoSuchTableError,
    TableFrozenError,
    TransientError,
    reason_of,
)
from committer.plan.attempt_log import AttemptLog
from committer.plan.backoff import backoff_s
from committer.plan.state import TableState
from committer.request.table_identifier import TableIdentifier
from committer.service.requests.pending import Pending, Waiting
from committer.service.table.admission import Admission
from committer.service.table.admission_outcome import AdmissionOutcome
from committer.service.table.cached_table import CachedTable
from committer.service.table.commit_loop import CommitLoop
from committer.service.table.commit_pacer import CommitPacer
from committer.service.table.high_water_check import HighWaterCheck
from committer.service.table.inflight_batch import BatchSelector
from committer.service.table.large_checks import LargeChecks
from committer.service.table.shop import Shop
from committer.service.table.verdicts import FAULT_PAUSE_S, Verdicts, unknown_table
from committer.service.telemetry.log import log
from committer.service.upkeep.ledger_upkeep import LedgerUpkeep
from committer.service.upkeep.table_files import TableFiles
from committer.service.upkeep.table_upkeep import TableUpkeep

IDLE_S_MAX = 600.0
NO_TABLE_S_MAX = 1.0
STUCK_S_MAX = 30.0
STUCK_AFTER = 4
# How soon a table that an operator has accepted, or put right, is found to be.
FROZEN_PAUSE_S = 5.0


class TableCommitter:
    """Commits the requests of one table (name and uuid), one attempt at a time. Its commits take
    along what `ledger_upkeep` has found.
    """

    def __init__(
        self,
        identifier: TableIdentifier,
        table_uuid: UUID,
        shop: Shop,
        return_to_inbox: Callable[[Pending], None],
        upkeep_before: LedgerUpkeep | None = None,
    ) -> None:
        """`return_to_inbox`: called with each request that this committer evicts from memory.
        `upkeep_before`: the ledger upkeep of the table's previous committer, if it ended idle.
        """
        self.identifier = identifier
        self.table_uuid = table_uuid
        settled = shop.settled.of(table_uuid)
        self.ledger_upkeep = LedgerUpkeep(table_uuid, settled, upkeep_before)
        self.is_gone = False
        self._shop = shop
        self._return_to_inbox = return_to_inbox
        self._waiting = Waiting(shop.named.give_back)
        self._failures = 0
        self._work = asyncio.Event()
        self._stopping = asyncio.Event()
        self._verdicts = Verdicts(self._waiting, shop)
        self._large_checks = LargeChecks(self._waiting, shop, self._work.set)
        self._admission = Admission(
            shop.catalog_name,
            shop.storage,
            shop.inbox,
            shop.quarantine,
            shop.signatures,
            self._waiting.all,
            self._large_checks,
            shop.metrics.crashed,
        )
        self._attempts = AttemptLog()
        self._cached_table = CachedTable(
            HighWaterCheck(
                identifier,
                table_uuid,
                shop.high_water_marks,
                shop.catalog,
                self._admission.evidence,
            ),
            self._attempts,
        )
        self._upkeep = TableUpkeep(
            TableFiles(identifier, table_uuid, shop.upkeep, self._attempts),
            self._waiting.all,
        )
        self._pacer = CommitPacer(identifier, shop.catalog, shop.world, shop.policy, self._stopping)
        self._batches = BatchSelector(
            identifier,
            shop,
            waiting=self._waiting,
            cached_table=self._cached_table,
            attempts=self._attempts,
            pacer=self._pacer,
            upkeep=self._upkeep,
        )
        self._commit_loop = CommitLoop(
            identifier,
            shop,
            waiting=self._waiting,
            cached_table=self._cached_table,
            attempts=self._attempts,
            batches=self._batches,
            pacer=self._pacer,
            upkeep=self._upkeep,
            ledger_upkeep=self.ledger_upkeep,
            defer=self._verdicts.defer,
        )

    # --- What others see ---

    def submit(self, pending: Pending) -> None:
        """Add a request, or another copy of one that waits."""
        self._waiting.add(pending)
        self._work.set()

    def stop(self) -> None:
        """End after the current attempt; waiting requests stay unacknowledged."""
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
    def weight_bytes(self) -> int:
        """The estimated memory of its small requests."""
        return self._waiting.weight_bytes

    @property
    def large_bytes(self) -> int:
        return self._waiting.large_bytes

    @property
    def oldest_ms(self) -> int | None:
        """Since when the oldest request that waits here has been durable."""
        return self._waiting.oldest_ms

    @property
    def state(self) -> TableState | None:
        """The table as last loaded or committed; None before the first round."""
        return self._cached_table.state

    # --- The loop ---

    async def run(self) -> None:
        """Work until stopped, or until idle for long."""
        try:
            await self._work_on()
        finally:
            # The table's next committer reports its condition.
            self._shows_well()
            self._shop.settled.forget(self.table_uuid)
            await self._large_checks.close()
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
                    self._batches.drop()
                await self._pause("misconfigured", error, FAULT_PAUSE_S)
            except Exception as error:  # noqa: BLE001  # our bug: keep the evidence, go on later
                log.exception("table.crashed", table=str(self.identifier))
                self._shop.metrics.crashed("table")
                self._batches.drop()
                await self._pause("crashed", error, FAULT_PAUSE_S)

    async def _wait_for_work(self) -> bool:
        while not self._stopping.is_set():
            next_s = self._waiting.recall(self._shop.world.monotonic_s())
            self._evict_blocked()
            if self._waiting.has_ready:
                return True
            self._work.clear()
            try:
                async with asyncio.timeout(self._idle_s_max if next_s is None else next_s):
                    await self._work.wait()
            except TimeoutError:
                if not self._waiting:
                    return False
        return False

    @property
    def _idle_s_max(self) -> float:
        """How long to idle before the committer ends. One for a name without a table ends soon; a
        stuck table, for which large requests wait in the inbox, is retried.
        """
        if self.is_stuck:
            return STUCK_S_MAX
        state = self._cached_table.state
        is_there = state is not None and state.metadata.table_uuid == self.table_uuid
        return IDLE_S_MAX if is_there else NO_TABLE_S_MAX

    def _evict_blocked(self) -> None:
        """Evict the requests of producers with an open breaker, except those of the batch in
        flight: they may have landed, and their producers get a receipt. While the table is stuck,
        evict all large requests: other tables need the memory, and the ledger still answers for
        those that landed.
        """
        left: list[Pending] = []
        if self._shop.breakers.are_open:
            holds = self._shop.breakers.holds_request
            kept = self._batches.sent_keys
            left += self._waiting.evict(lambda one: holds(one.sealed), kept)
        if self.is_stuck and (large := list(self._waiting.evict(lambda one: one.is_large, ()))):
            self._batches.drop()
            left += large
        for pending in left:
            self._return_to_inbox(pending)

    async def _wait_for_turn(self) -> None:
        if not self._batches.are_urgent and not await self._pacer.wait(self._cached_table.state):
            self._cached_table.forget()

    async def _freeze(self, error: TableFrozenError) -> None:
        """Keep the requests waiting, and stop upkeep, until the table is healthy again."""
        self._shop.metrics.frozen(self.identifier, is_frozen=True)
        self._doubt_all()
        await self._upkeep.close()
        await self._pause("frozen", error, FROZEN_PAUSE_S)

    async def _pause(self, event: str, error: Exception, delay_s: float) -> None:
        self._cached_table.forget()
        self._failures += 1
        if self._shop.health.degraded(self._component, reason_of(error)):
            log.warning(f"table.{event}", table=str(self.identifier), error=str(error))
        jittered = delay_s * (0.5 + self._shop.world.jitter() / 2)
        await self._pacer.sleep(jittered)

    def _recovered(self) -> None:
        self._failures = 0
        if not self._attempts.has_lost and self._shows_well():
            log.info("table.recovered", table=str(self.identifier))

    def _shows_well(self) -> bool:
        """Clear the condition of the table. Return whether it had one."""
        had_some = self._shop.health.healthy(self._component)
        if had_some:
            self._shop.metrics.frozen(self.identifier, is_frozen=False)
        return had_some

    @property
    def _component(self) -> str:
        return f"table {self.identifier}"

    # --- One round ---

    async def _round(self) -> None:
        try:
            state, outcome = await self._admit_on_fresh_enough()
        except NoSuchTableError:
            self.is_gone = True
            self._batches.drop()
            self._cached_table.forget()
            unknown = [
                unknown_table(one, self._shop.catalog_name) for one in self._ready_requests()
            ]
            await self._verdicts.quarantine_all(unknown)
            return
        self.is_gone = False
        self._decide_suspects(outcome, state)
        await self._verdicts.conclude(outcome, self._cached_table.known)
        inflight = await self._batches.next(outcome.candidates, self._admission.basis, state)
        if inflight is not None:
            await self._commit_loop.attempt(inflight, state)

    async def _admit_on_fresh_enough(self) -> tuple[TableState, AdmissionOutcome]:
        """A cached table may lag behind: it lets requests land (the swap finds out), but only
        fresh metadata ends one without a commit.
        """
        if (state := self._cached_table.usable) is not None:
            outcome = await self._admit(state)
            if not outcome.has_verdicts:
                return state, outcome
        state = await self._load()
        return state, await self._admit(state)

    async def _admit(self, state: TableState) -> AdmissionOutcome:
        return await self._admission.admit(
            self._ready_requests(), state, self._cached_table.generation
        )

    async def _load(self) -> TableState:
        before, decided = self._cached_table.state, self._cached_table.known.decided
        state = await self._cached_table.load()
        if self._cached_table.known.decided > decided:
            self._doubt_all()
        self._pacer.saw(before, state.table)
        self._upkeep.loaded()
        return state

    def _doubt_all(self) -> None:
        """Mark all waiting requests as shared. Another committer may have finished them in the
        meantime, and the ledger may lack epochs that an operator has removed.
        """
        for pending in self._waiting.all():
            pending.is_shared = True

    def _ready_requests(self) -> list[Pending]:
        return self._waiting.ready(self._shop.policy.requests_max)

    def _decide_suspects(self, outcome: AdmissionOutcome, state: TableState) -> None:
        """Quarantine suspects that freshly read metadata does not have. If an earlier attempt may
        still land on this base, defer them until another commit moves the pointer.
        """
        for suspect in outcome.suspects:
            if self._attempts.may_land_on(state):
                suspect.pending.suspicion = None
                self._verdicts.defer(suspect.pending, TransientError(suspect.message))
            else:
                outcome.refused.append(suspect)
