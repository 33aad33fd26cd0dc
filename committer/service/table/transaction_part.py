"""The part of one table in transactions: its requests join them, and each is planned, written and
answered here while the transaction has the table's turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from committer.errors import FrazilError, InvariantError, TransientError, reason_of
from committer.plan.batch.request_check import CheckedRequest
from committer.plan.commit.commit import CommitPlan
from committer.plan.commit.landed_commit import TRANSACTION
from committer.ports.pointer_swap import Committed, Conflict, Swap, SwapAnswer
from committer.request.table_identifier import TableIdentifier
from committer.request.transaction import TransactionIdentity
from committer.service.requests.pending import Pending, Refusal, Stage, Waiting
from committer.service.table.admission import Admission
from committer.service.table.admission_outcome import AdmissionOutcome
from committer.service.table.batch_committer import BatchCommitter
from committer.service.table.commit_pacer import CommitPacer
from committer.service.table.inflight_batch import InflightBatch
from committer.service.telemetry.table_condition import TableCondition
from committer.service.transactions.commit_turn import CommitTurn
from committer.service.transactions.transaction_committer import LOOK_S, Setback
from committer.service.transactions.transaction_room import TransactionRoom

# Requests of one table in incomplete transactions: more of them wait in the inbox, so that other
# requests have the memory.
JOINED_MAX = 1_000
# A quarter of what all large requests in hand may have. The oldest large one stays whatever its
# size: without it a transaction of large requests might never be complete.
JOINED_LARGE_BYTES_MAX = 12 * 1024 * 1024
# After so many conflicts the owner of the table is asked for its turn, and again so much later.
CONFLICTS_MAX = 2
ASK_AGAIN_S = 0.5


@dataclass(eq=False)
class TransactionPart:
    """Joins a table's requests to their transactions, and commits its part of each."""

    table_uuid: UUID
    room: TransactionRoom
    admission: Admission
    batch_committer: BatchCommitter

    def __post_init__(self) -> None:
        self.turn = CommitTurn()
        self._planned: tuple[InflightBatch, CommitPlan] | None = None
        # In a row, on a table that another committer owns.
        self._conflicts = 0
        self._asked_s = float("-inf")

    @property
    def identifier(self) -> TableIdentifier:
        return self.batch_committer.sender.identifier

    @property
    def waiting(self) -> Waiting:
        """The table's requests."""
        return self.admission.waiting

    @property
    def _condition(self) -> TableCondition:
        return self.batch_committer.sender.condition

    @property
    def _pacer(self) -> CommitPacer:
        return self.batch_committer.pacer

    # --- What the table's committer and its rounds call ---

    def start(self) -> None:
        """Take part in transactions from now on."""
        self.room.enter(self.identifier, self.table_uuid, self)

    def stop(self) -> None:
        """Take no part any more: a request that joins waits for the table's next committer."""
        self.room.leave(self.identifier, self.table_uuid)

    def add(self, pending: Pending) -> None:
        """Add a request of a transaction to those that wait. If another committer owns the table,
        it has passed the request on.
        """
        self.waiting.add(pending, is_passed_on=not self.room.owns(self.table_uuid))
        # Other tables wait for this one, which may be early for its next commit.
        self._pacer.hurry()

    async def join(self, candidates: Sequence[CheckedRequest]) -> Sequence[CheckedRequest]:
        """Have the requests of transactions join them; return the other candidates. A request whose
        transaction another committer decides is passed on to it.
        """
        for checked in candidates:
            transaction = checked.request.transaction
            if transaction is None:
                continue
            key = checked.sealed.key
            if self.room.is_ours(transaction):
                self.waiting.join(key)
                self.room.join(transaction, self.table_uuid)
            else:
                await self._pass_on(key)
        return [checked for checked in candidates if checked.request.transaction is None]

    async def _pass_on(self, key: str) -> None:
        pending = self.waiting.find(key)
        if pending is None:
            return
        if await self.room.forward(pending):
            self.waiting.end(key, Stage.RETURNED)
        else:
            self.waiting.defer(pending, TransientError("the queue takes no doorbell for it"))

    def concluded(self, outcome: AdmissionOutcome) -> None:
        """Report the requests of transactions that have ended in a round."""
        for verdict in outcome.refused:
            if verdict.pending.stage is Stage.QUARANTINED:
                request = verdict.pending.sealed.request
                self.room.refused(request, verdict.reason, verdict.pending.conflict)
        for pending in (*outcome.left_before, *(each.pending for each in outcome.duplicates)):
            self.room.ended(pending.sealed.request)

    def leave_all(self) -> None:
        """Return all joined requests to the table's queue."""
        self.waiting.leave_transaction([pending.key for pending in self.waiting.joined])

    # --- What transactions call ---

    @property
    def is_failing(self) -> bool:
        return self._condition.failures > 0

    def requests(self, transaction: TransactionIdentity) -> Sequence[Pending]:
        return tuple(self.waiting.of_transaction(transaction))

    def joined(self, transaction: TransactionIdentity) -> Sequence[Pending]:
        stages = (Stage.JOINED, Stage.IN_FLIGHT)
        return [
            pending
            for pending in self.waiting.of_transaction(transaction)
            if pending.stage in stages
        ]

    def refuse(self, key: str, refusal: Refusal, conflict: str | None) -> None:
        self.waiting.suspect(key, refusal, conflict)
        self._return_to_queue([key])

    def leave(self, transaction: TransactionIdentity) -> None:
        self._return_to_queue([pending.key for pending in self.joined(transaction)])

    def return_surplus(self, transaction: TransactionIdentity, waited_s: float) -> None:
        requests = self.joined(transaction)
        is_surplus = len(self.waiting.joined) > JOINED_MAX or (
            waited_s >= LOOK_S and any(map(self._exceeds_share, requests))
        )
        for pending in requests if is_surplus else ():
            self.waiting.end(pending.key, Stage.RETURNED)
            # It may complete its transaction when it is read again: well within the wait.
            self.room.give_back(pending, self.room.wait_s_max / 10)

    def _exceeds_share(self, pending: Pending) -> bool:
        """Return whether a large request takes more than the table's share of memory, with the
        large ones that joined before it.
        """
        before_bytes = 0
        for joined in self.waiting.joined:
            if not joined.is_large:
                continue
            size_bytes = len(joined.sealed.content) + joined.named_bytes
            if joined is pending:
                return before_bytes > 0 and before_bytes + size_bytes > JOINED_LARGE_BYTES_MAX
            before_bytes += size_bytes
        return False

    def _return_to_queue(self, keys: Sequence[str]) -> None:
        self.waiting.leave_transaction(keys)
        self._pacer.hurry()

    async def ask_for_turn(self, transaction: TransactionIdentity) -> None:
        now_s = self.batch_committer.batches.world.monotonic_s()
        requests = self.requests(transaction)
        if self._conflicts < CONFLICTS_MAX or now_s - self._asked_s < ASK_AGAIN_S or not requests:
            return
        self._asked_s = now_s
        await self.room.ask_for_turn(requests[0])

    async def plan(self, transaction: TransactionIdentity, attempt: int) -> Setback | None:
        try:
            is_planned = await self._plan(transaction, attempt)
        except Exception as error:  # noqa: BLE001  # a fault of this table alone
            return self._failed(transaction, error)
        if is_planned:
            return None
        # The table's own round loads the table, or ends the request.
        self.leave(transaction)
        return Setback(f"the request for `{self.identifier}` is looked at again")

    async def _plan(self, transaction: TransactionIdentity, attempt: int) -> bool:
        cached_table, batches = self.batch_committer.cached_table, self.batch_committer.batches
        state, (pending, *_) = cached_table.usable, self.joined(transaction)
        if state is None:
            return False
        if not await self.admission.may_land(pending, state, cached_table.generation):
            return False
        checked = [] if pending.checked is None else [pending.checked]
        inflight = await batches.next(checked, self.admission.basis, state)
        if inflight is None:
            return False
        inflight.attempts = attempt
        if attempt > 1:
            inflight.failures[TRANSACTION] = attempt - 1
        inflight.started_ms = batches.world.now_ms()
        inflight.started_s = batches.world.monotonic_s()
        known_before = frozenset(() if pending.known_since is None else (pending.key,))
        plan = await self.batch_committer.plan(inflight, state, known_before=known_before)
        if plan is None:
            return False
        self._planned = inflight, plan
        return True

    async def write(self) -> Setback | None:
        inflight, plan = self._in_hand
        try:
            await self.batch_committer.sender.write(inflight, plan)
        except Exception as error:  # noqa: BLE001  # a fault of this table alone
            (request,) = inflight.batch.requests
            transaction = request.request.transaction
            return self._failed(transaction.identity if transaction else None, error)
        return None

    @property
    def swap(self) -> Swap:
        _, plan = self._in_hand
        return plan.swap

    @property
    def _in_hand(self) -> tuple[InflightBatch, CommitPlan]:
        if self._planned is None:
            raise InvariantError(f"no part of a transaction is planned for `{self.identifier}`")
        return self._planned

    def end_attempt(self) -> None:
        self._planned = None
        # Else the table's rounds take it for theirs, and hurry to send it again.
        self.batch_committer.batches.drop()

    def answered(self, answer: SwapAnswer, *, has_moved: bool) -> None:
        inflight, plan = self._in_hand
        if isinstance(answer, Conflict) and not has_moved:
            self.batch_committer.sender.answered(answer, inflight, plan)
            return
        self.batch_committer.answered(inflight, plan, answer)
        if isinstance(answer, Committed):
            # The next transaction asks after its first conflict.
            self._conflicts = min(self._conflicts, CONFLICTS_MAX - 1)
        elif isinstance(answer, Conflict) and not self.room.owns(self.table_uuid):
            self._conflicts += 1
        if not isinstance(answer, Committed):
            self._return_to_queue(inflight.keys)

    def _failed(self, transaction: TransactionIdentity | None, error: Exception) -> Setback:
        """Report a fault of this table; the transaction waits for it without a turn."""
        self.batch_committer.cached_table.forget()
        if isinstance(error, TransientError):
            self._condition.failed("unavailable", error)
        elif isinstance(error, FrazilError):
            self._condition.failed("misconfigured", error)
        else:
            self._condition.crashed(error)
        if transaction is not None:
            self.leave(transaction)
        return Setback(f"`{self.identifier}`: {reason_of(error)}", is_fault=True)
