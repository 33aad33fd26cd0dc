"""Commits one transaction: waits for a request of each table, takes the commit turns of the tables
in the order of their uuids, has each part planned on its table's state and written, swaps all
together, and hands each table its answer.

While turns are in hand nothing is loaded: a table whose state is stale gets its request back, looks
at it in a round of its own, and the transaction waits without a turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, assert_never
from uuid import UUID

from committer.errors import FrazilError, reason_of
from committer.group_commit import finish_all
from committer.plan.scheduling.backoff import backoff_s, retry_s, shortened_s
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    GroupCommitted,
    GroupConflict,
    Rejected,
    Swap,
    SwapAnswer,
    Unknown,
)
from committer.ports.queue import shard_of
from committer.ports.world import World
from committer.reason import Reason
from committer.request.commit_request import CommitRequest
from committer.request.table_identifier import TableIdentifier
from committer.request.transaction import Transaction, TransactionIdentity
from committer.service.requests.pending import FAULT_PAUSE_S, Pending, Refusal
from committer.service.tasks.steps import send_swaps
from committer.service.telemetry.health import Health
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics
from committer.service.transactions.commit_turn import CommitTurn, give_back, take_turns
from committer.service.transactions.pending_transaction import Event, PendingTransaction, Phase
from committer.service.transactions.refusals import Refusals, RefusedMember

# A transaction waits so long for a table's turn with another table's turn in hand.
HOLD_S_MAX = 1.0
# Planning and writing with all turns in hand: twice as long after each attempt that took longer.
ATTEMPT_S_MAX = 5.0
ATTEMPT_S_CAP = 600.0
# From when on a transaction that waits is shown.
SHOWN_AFTER_S = 30.0
# How often a transaction that waits is looked at without an event: its shard may have moved.
LOOK_S = 30.0
# Where nothing fails, the back-off stays below 20 ms times two to this power.
CONFLICT_BACKOFF_MAX = 6

_COMPONENT = "transactions"


@dataclass(frozen=True, slots=True)
class Setback:
    """Why an attempt has not landed. `is_fault`: a table or the catalog fails, and is asked ever
    less often; else other commits came first, or a table has to look at its request again.
    """

    cause: str
    is_fault: bool = False


class TablePart(Protocol):
    """The part of one table in all transactions of a process.

    `plan`, `write`, `answered` and `end_attempt` are called with the table's turn in hand, for one
    transaction after the other. A part that cannot go on returns why, and its request is back in
    the table's own queue; a fault of the table is reported there.
    """

    @property
    def turn(self) -> CommitTurn:
        """The turn that the table's own rounds take, too."""

    @property
    def is_failing(self) -> bool:
        """Whether the last round of the table failed."""

    @property
    def swap(self) -> Swap:
        """The swap of the planned part."""

    def requests(self, transaction: TransactionIdentity) -> Sequence[Pending]:
        """Return all requests of the transaction that wait here, in the order of their arrival."""

    def joined(self, transaction: TransactionIdentity) -> Sequence[Pending]:
        """Return those of them that are checked and may land."""

    def refuse(self, key: str, refusal: Refusal, conflict: str | None) -> None:
        """Have a joined request quarantined by a round, unless it turns out to have landed."""

    def leave(self, transaction: TransactionIdentity) -> None:
        """Return the joined requests to the table's queue."""

    def return_surplus(self, transaction: TransactionIdentity, waited_s: float) -> None:
        """Return the joined requests of a transaction that has been incomplete for that long to the
        inbox, if the table has more of them than memory should hold.
        """

    async def ask_for_turn(self, transaction: TransactionIdentity) -> None:
        """Ask the table's owner to commit nothing for a moment, if that is another committer that
        has come first again and again.
        """

    async def plan(self, transaction: TransactionIdentity, attempt: int) -> Setback | None:
        """Plan the first joined request on the state of the table. Return why that failed."""

    async def write(self) -> Setback | None:
        """Write the files of the planned part. Return why that failed."""

    def answered(self, answer: SwapAnswer, *, has_moved: bool) -> None:
        """Act on the answer to the swap. `has_moved`: whether the table's state may be stale."""

    def end_attempt(self) -> None:
        """Drop the part, unless it has landed: the next attempt plans anew."""


@dataclass(eq=False)
class TransactionConditions:
    """Shows the transactions that have waited for a while, and for what."""

    health: Health
    _shown: dict[UUID, str] = field(default_factory=dict)

    def show(self, transaction: UUID, waited_s: float, missing: str, cause: str | None) -> None:
        """Show a transaction that waits for these tables, or for the cause to end."""
        why = f"for {missing}" if missing else f"to land: {cause}" if cause else "for its turn"
        if transaction not in self._shown:
            log.warning(
                "transaction.waiting", transaction=str(transaction), missing=missing, cause=cause
            )
        self._shown[transaction] = f"transaction {transaction} has waited {waited_s:.0f} s {why}"
        self._report()

    def clear(self, transaction: UUID) -> None:
        if self._shown.pop(transaction, None) is not None:
            self._report()

    def _report(self) -> None:
        if not self._shown:
            self.health.healthy(_COMPONENT)
            return
        *others, newest = self._shown.values()
        more = f"; and {len(others)} more" if others else ""
        self.health.degraded(_COMPONENT, f"{newest}{more}")


@dataclass(eq=False, kw_only=True)
class TransactionContext:
    """The objects that all transactions of a process share. `parts`: of the tables that have a
    committer here. `wait_s_max`: how long the requests of a transaction wait for one that has not
    come.
    """

    catalog: Catalog
    world: World
    metrics: Metrics
    owns_shard: Callable[[int], bool]
    conditions: TransactionConditions
    wait_s_max: float
    parts: dict[tuple[TableIdentifier, UUID], TablePart] = field(default_factory=dict)
    refusals: Refusals = field(default_factory=Refusals)

    def is_ours(self, transaction: Transaction) -> bool:
        """Return whether this committer decides about the transaction: the owner of the first
        table's shard does, so that a single one finds it incomplete.
        """
        return self.owns_shard(shard_of(transaction.first_table))


class TransactionCommitter:
    """Commits one transaction, in a task of its own."""

    def __init__(self, transaction: Transaction, context: TransactionContext) -> None:
        self.pending = PendingTransaction(transaction)
        self._context = context
        self._identity = transaction.identity
        self._changed = asyncio.Event()
        self._began_s = context.world.monotonic_s()
        self._missing_since_s: float | None = None
        self._late: CommitTurn | None = None
        self._is_fault = False
        self._overruns = 0

    def joined(self) -> None:
        """Note that a request has joined."""
        self.pending.on(Event.JOINED)
        self._changed.set()

    def changed(self) -> None:
        """Look at the tables again: a request has ended, or a table has no committer any more."""
        self._changed.set()

    async def run(self) -> None:
        """Work until the transaction has landed, or no request of it waits here."""
        try:
            while self.pending.phase is not Phase.ENDED:
                try:
                    await self._step()
                except Exception as error:  # noqa: BLE001  # our bug: keep the evidence, try later
                    self._crashed(error)
                    await self._context.world.sleep(FAULT_PAUSE_S)
        finally:
            self._context.conditions.clear(self.pending.transaction.id)

    async def _step(self) -> None:
        match self.pending.phase:
            case Phase.QUEUED:
                await self._commit()
            case Phase.BACKING_OFF:
                await self._back_off()
            case _:
                await self._gather()

    def _crashed(self, error: Exception) -> None:
        log.exception(
            "transaction.crashed", transaction=str(self.pending.transaction.id), exc_info=error
        )
        self._context.metrics.crashed("transaction")
        attempts = self.pending.attempts + 1
        self.pending = PendingTransaction(
            self.pending.transaction, attempts=attempts, cause=repr(error)
        )

    # --- The tables ---

    @property
    def _parts(self) -> dict[tuple[TableIdentifier, UUID], TablePart]:
        """The parts of the transaction's tables, as far as these have a committer here."""
        parts = self._context.parts
        members = self.pending.transaction.members
        return {member: parts[member] for member in members if member in parts}

    def _is_empty(self) -> bool:
        return not any(part.requests(self._identity) for part in self._parts.values())

    def _not_joined(self) -> list[TableIdentifier]:
        parts = self._parts
        return [
            member[0]
            for member in self.pending.transaction.members
            if member not in parts or not parts[member].joined(self._identity)
        ]

    def _missing(self) -> list[TableIdentifier]:
        """Return the tables of which no request has come. One whose rounds fail may have some that
        wait in the inbox until it takes requests again.
        """
        parts = self._parts
        return [
            member[0]
            for member in self.pending.transaction.members
            if member not in parts
            or not (parts[member].is_failing or parts[member].requests(self._identity))
        ]

    # --- Gathering ---

    async def _gather(self) -> None:
        event = self._next_event()
        if event is not None:
            self.pending.on(event)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._show_and_wait_s()):
                await self._changed.wait()

    def _next_event(self) -> Event | None:
        self._changed.clear()
        if self._is_empty():
            return Event.EMPTIED
        if not self._context.is_ours(self.pending.transaction):
            for part in self._parts.values():
                part.leave(self._identity)
            return Event.MOVED
        if self._refuse_members():
            return Event.MEMBER_REFUSED
        if self._refuse_second_requests():
            return Event.SECOND_JOINED
        if not self._not_joined():
            self._missing_since_s = None
            return Event.COMPLETED
        if self._is_time_up() and self._refuse_all():
            return Event.TIME_UP
        for part in self._parts.values():
            part.return_surplus(self._identity, self._waited_s)
        return Event.EMPTIED if self._is_empty() else None

    def _refuse_members(self) -> bool:
        """Refuse the requests that cannot land because that of another table was refused."""
        is_refused = False
        for part in self._parts.values():
            for request in part.joined(self._identity):
                refusal = self._context.refusals.find(self._identity, request.key)
                if refusal is not None:
                    message = _refused(self.pending.transaction, refusal)
                    part.refuse(request.key, message, refusal.conflict)
                    is_refused = True
        return is_refused

    def _refuse_second_requests(self) -> bool:
        """Refuse requests of a table that already has one of another epoch. Another attempt of the
        same epoch stays: it is a duplicate once the first one has landed.
        """
        is_refused = False
        for part in self._parts.values():
            joined = part.joined(self._identity)
            for request in joined[1:]:
                if _epoch_of(request) != _epoch_of(joined[0]):
                    message = _second(self.pending.transaction, joined[0].key)
                    part.refuse(request.key, message, None)
                    is_refused = True
        return is_refused

    def _refuse_all(self) -> bool:
        """Refuse the joined requests because those of other tables are missing."""
        is_refused = False
        refusal = _incomplete(self.pending.transaction, self._missing(), self._limit_s)
        for part in self._parts.values():
            for request in part.joined(self._identity):
                part.refuse(request.key, refusal, None)
                is_refused = True
        return is_refused

    @property
    def _limit_s(self) -> float:
        return self._context.wait_s_max

    def _is_time_up(self) -> bool:
        """Return whether a request has been missing for too long. Requests that have come and wait
        for their tables do not count as missing.
        """
        now_s = self._context.world.monotonic_s()
        if not self._missing():
            self._missing_since_s = None
        elif self._missing_since_s is None:
            self._missing_since_s = now_s
        return self._left_s is not None and self._left_s <= 0

    @property
    def _left_s(self) -> float | None:
        """How much longer it waits for the missing requests; None: none is missing."""
        if self._missing_since_s is None:
            return None
        return self._missing_since_s + self._limit_s - self._context.world.monotonic_s()

    @property
    def _waited_s(self) -> float:
        return self._context.world.monotonic_s() - self._began_s

    def _show(self) -> None:
        """Show a transaction that has waited for long."""
        if self._waited_s >= SHOWN_AFTER_S:
            missing = ", ".join(map(str, self._not_joined()))
            self._context.conditions.show(
                self.pending.transaction.id, self._waited_s, missing, self.pending.cause
            )

    def _show_and_wait_s(self) -> float:
        """Show a transaction that has waited for long; return when to look at it again."""
        self._show()
        waits_s = [LOOK_S, SHOWN_AFTER_S - self._waited_s]
        if self._left_s is not None:
            waits_s.append(self._left_s)
        # At least this long: a shorter wait may be below the resolution of the clock.
        return max(0.1, min(wait_s for wait_s in waits_s if wait_s > 0))

    # --- One attempt ---

    async def _commit(self) -> None:
        parts = self._parts
        turns = [parts[member].turn for member in sorted(parts, key=lambda member: member[1])]
        if self._late in turns:
            # Waited for with no turn in hand, so that no other table waits for this one.
            turns.remove(self._late)
            turns.insert(0, self._late)
        # Not all alike: two transactions that wait for each other's turns would do so again.
        hold_s_max = shortened_s(HOLD_S_MAX, self._context.world.jitter())
        self._late = await take_turns(turns, hold_s_max)
        if self._late is not None:
            self.pending.on(Event.TURN_LATE)
            return
        try:
            if self._not_joined() or not self._context.is_ours(self.pending.transaction):
                self.pending.on(Event.MEMBER_LEFT)
                return
            self.pending.on(Event.TURNS_TAKEN)
            self._finished(await self._attempt_once())
        finally:
            give_back(turns)

    def _finished(self, setback: Setback | None) -> None:
        transaction = self.pending.transaction
        if setback is not None:
            self._is_fault = setback.is_fault
            self.pending.not_landed(setback.cause)
            log.info(
                "transaction.retried",
                transaction=str(transaction.id),
                attempt=self.pending.attempts,
                cause=setback.cause,
            )
            self._show()
            return
        self.pending.on(Event.LANDED)
        # Other attempts of the epochs that have landed: the rounds find that they are duplicates.
        for part in self._parts.values():
            part.leave(self._identity)
        tables = [str(identifier) for identifier, _ in transaction.members]
        log.info("transaction.landed", transaction=str(transaction.id), tables=tables)

    async def _attempt_once(self) -> Setback | None:
        """Return why the attempt has not landed; None: it has."""
        parts = [self._parts[member] for member in self.pending.transaction.members]
        try:
            return await self._attempt(parts)
        except FrazilError as error:
            return Setback(reason_of(error), is_fault=True)
        except TimeoutError:
            self._overruns += 1
            return Setback(
                "planning or writing took too long with all turns in hand", is_fault=True
            )
        finally:
            for part in parts:
                part.end_attempt()

    async def _attempt(self, parts: Sequence[TablePart]) -> Setback | None:
        attempt = self.pending.attempts
        async with asyncio.timeout(min(ATTEMPT_S_CAP, ATTEMPT_S_MAX * 2.0**self._overruns)):
            answers = await finish_all(part.plan(self._identity, attempt + 1) for part in parts)
            if not any(answers):
                answers = await finish_all(part.write() for part in parts)
        setbacks = sorted(filter(None, answers), key=lambda setback: not setback.is_fault)
        return setbacks[0] if setbacks else await self._swap(parts)

    async def _swap(self, parts: Sequence[TablePart]) -> Setback | None:
        answer = await send_swaps(self._context.catalog, [part.swap for part in parts])
        members = [identifier for identifier, _ in self.pending.transaction.members]
        match answer:
            case GroupCommitted(tables):
                for part, table in zip(parts, tables, strict=True):
                    part.answered(Committed(table), has_moved=False)
                return None
            case GroupConflict(moved):
                for identifier, part in zip(members, parts, strict=True):
                    part.answered(Conflict(), has_moved=not moved or identifier in moved)
                return Setback(f"conflict on {', '.join(map(str, moved or members))}")
            case Rejected(reason):
                for part in parts:
                    part.answered(answer, has_moved=True)
                return Setback(f"rejected: {reason}", is_fault=True)
            case Unknown(cause):
                for part in parts:
                    part.answered(answer, has_moved=True)
                return Setback(f"no answer: {cause}", is_fault=True)
            case other:
                assert_never(other)

    async def _back_off(self) -> None:
        """Wait without a turn in hand: longer after each attempt, to a bound if nothing fails."""
        world, attempts = self._context.world, self.pending.attempts
        await finish_all(part.ask_for_turn(self._identity) for part in self._parts.values())
        delay_s = (
            retry_s(attempts, world.jitter())
            if self._is_fault
            else backoff_s(min(attempts, CONFLICT_BACKOFF_MAX), world.jitter())
        )
        until_s = world.monotonic_s() + delay_s
        while not self._is_empty() and (left_s := until_s - world.monotonic_s()) > 0:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._changed.wait()
        self.pending.on(Event.PAUSE_OVER)


def _epoch_of(pending: Pending) -> tuple[str, str, int]:
    request: CommitRequest = pending.sealed.request
    return request.producer.id, request.branch, request.epoch


def _refused(transaction: Transaction, refusal: RefusedMember) -> Refusal:
    return Reason.TRANSACTION_INCOMPLETE, (
        f"transaction {transaction.id}: the request for `{refusal.identifier}` was refused"
        f" ({refusal.reason.value}); so nothing of the transaction has landed"
    )


def _incomplete(
    transaction: Transaction, missing: Sequence[TableIdentifier], waited_s: float
) -> Refusal:
    names = ", ".join(f"`{name}`" for name in missing)
    return Reason.TRANSACTION_INCOMPLETE, (
        f"transaction {transaction.id}: no request for {names} has come within {waited_s:.0f} s, or"
        " none that may land; so this request has not landed"
    )


def _second(transaction: Transaction, first: str) -> Refusal:
    return Reason.TRANSACTION_INCOMPLETE, (
        f"transaction {transaction.id}: expected one request for each table, and `{first}` is this"
        " table's; so this request has not landed"
    )
