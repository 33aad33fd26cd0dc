"""One table's part in transactions: which of its requests wait for others, and which is called."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from committer.plan.batch.request_check import CheckedRequest
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import Committed, Conflict, Swap, SwapAnswer
from committer.ports.world import World
from committer.reason import Reason
from committer.request.commit_request import CommitRequest
from committer.service.requests.pending import Pending, Stage, Waiting
from committer.service.transactions.gatherings import Gathering, Transactions
from committer.service.transactions.refusals import Refusal

# A request that waits is looked at again so often: it may have landed through another committer.
LOOK_AGAIN_S = 30.0
_HOLD_S_MIN = 0.1
# Of one table: more of them wait in the inbox, so that other requests have the memory.
HELD_MAX = 1_000
# A quarter of what all large requests in hand may have. The oldest large one stays whatever its
# size: without it a transaction of large requests might never be complete.
HELD_LARGE_BYTES_MAX = 12 * 1024 * 1024
# Of transactions that land on a table one after another, before its other requests have a turn.
IN_A_ROW_MAX = 16
# From when on a transaction that waits is shown.
SHOWN_AFTER_S = 30.0


@dataclass(eq=False)
class TableTransactions:
    """Holds a table's requests of transactions back until they are called, and sends their swaps
    with those of the other tables. `hurry`: ends the table's wait for its next turn. `wait_s_max`:
    how long one waits for the others.
    """

    table_uuid: UUID
    catalog: Catalog
    transactions: Transactions
    waiting: Waiting
    hurry: Callable[[], None]
    world: World
    wait_s_max: float

    def __post_init__(self) -> None:
        self._joined: dict[str, Gathering] = {}
        self._since_s: dict[str, float] = {}
        # Those that another committer gathers, and those that are too many.
        self._foreign: list[str] = []
        self._too_many: list[str] = []
        self._refused: list[tuple[CommitRequest, Reason, str | None]] = []
        self._called: str | None = None
        self._in_a_row = 0
        self._is_stopping = False

    @property
    def is_called(self) -> bool:
        """Whether the next batch is the table's part of a transaction."""
        return self._called is not None

    @property
    def is_yielding(self) -> bool:
        """Whether requests without a transaction have the next turn: so many transactions have
        passed them, or the last one did not land.
        """
        return self._in_a_row >= IN_A_ROW_MAX

    def add(self, pending: Pending) -> None:
        """Add a request of a transaction to those that wait. If another committer owns the table,
        it has passed the request on.
        """
        self.waiting.add(pending, is_passed_on=not self.transactions.owns(self.table_uuid))
        # Other tables wait for this one, which may be early for its next commit.
        self.hurry()

    # --- Which requests the next batch may have ---

    def select(
        self, candidates: Sequence[CheckedRequest], in_flight: Collection[str]
    ) -> Sequence[CheckedRequest]:
        """Return the candidates without those that wait for their transactions; or the called one
        alone, once no batch of others is in flight, and unless it is their turn. Those that
        wait are looked at again later.
        """
        self._foreign, self._too_many = [], []
        members = [one for one in candidates if one.request.transaction is not None]
        others = [one for one in candidates if one.request.transaction is None]
        if self._is_stopping or not (members or self._since_s):
            self.report_refused()
            return others
        self._leave_ended({one.sealed.key for one in members})
        for one in members:
            self._join(one)
        self.report_refused()
        self.transactions.call_next()
        called = [one for one in members if one.sealed.key == self._called]
        for one in members:
            if one not in called:
                self._hold(one)
        # The batch of a transaction that is not called any more is dropped in any case.
        is_free = all(one.sealed.key not in in_flight for one in others)
        if is_free and self.is_yielding and others:
            return others
        return called if called and is_free else others

    def _leave_ended(self, keys: Collection[str]) -> None:
        """Leave the transactions of requests that may not land, or have ended."""
        for key in [key for key in self._joined if key not in keys]:
            pending = self.waiting.find(key)
            if pending is None or pending.stage is not Stage.DEFERRED or key == self._called:
                self._leave(key)
        self._since_s = {key: s for key, s in self._since_s.items() if key in self.waiting}

    def _leave(self, key: str) -> None:
        gathering = self._joined.pop(key)
        if self._called == key:
            self._called = None
        if gathering not in self._joined.values():
            self.transactions.leave(gathering, self.table_uuid)

    def _join(self, one: CheckedRequest) -> None:
        transaction, key = one.request.transaction, one.sealed.key
        if transaction is not None and self.transactions.is_ours(transaction):
            self._since_s.setdefault(key, self.world.monotonic_s())
            self._joined[key] = self.transactions.join(transaction, self.table_uuid, self)
        elif key in self._joined:
            # The shard of its first table has moved: another committer gathers it.
            self._leave(key)

    def _hold(self, one: CheckedRequest) -> None:
        """Hold a request back until its transaction is called, or until it is looked at again; one
        that has waited for too long is refused by the next round.
        """
        key = one.sealed.key
        pending, gathering = self.waiting.find(key), self._joined.get(key)
        is_too_much = len(self._joined) > HELD_MAX
        if gathering is None:
            self._foreign.append(key)
            return
        refusal = self.transactions.refusal(gathering, key)
        if pending is not None and refusal is not None:
            self.waiting.suspect(key, _refused(gathering, refusal), refusal.conflict)
            return
        if pending is not None and (first := self._first_beside(one.request, gathering)):
            self.waiting.suspect(key, _second(gathering, first))
            return
        if pending is None or not gathering.missing:
            # It waits for its turn, and for no request.
            self._since_s[key] = self.world.monotonic_s()
            hold_s = LOOK_AGAIN_S
        else:
            waited_s = self.world.monotonic_s() - self._since_s[key]
            if waited_s >= self.wait_s_max:
                self.waiting.suspect(key, _incomplete(gathering, self.wait_s_max))
                return
            if waited_s >= SHOWN_AFTER_S:
                self.transactions.show_waiting(gathering, waited_s)
            # The others of its transaction may be on their way.
            is_too_much = is_too_much or (waited_s >= LOOK_AGAIN_S and self._exceeds_share(key))
            # At least this long: a shorter wait may be below the resolution of the clock.
            hold_s = max(_HOLD_S_MIN, min(LOOK_AGAIN_S, self.wait_s_max - waited_s))
        if is_too_much:
            self._leave(key)
            self._too_many.append(key)
        elif pending is not None:
            self.waiting.hold(pending, hold_s)

    def _exceeds_share(self, key: str) -> bool:
        """Return whether a large request takes more than the table's share of memory, with the
        large ones that have come before it.
        """
        before_bytes = 0
        for one in map(self.waiting.find, self._joined):
            if one is None or not one.is_large:
                continue
            size_bytes = len(one.sealed.content) + one.named_bytes
            if one.key == key:
                return before_bytes > 0 and before_bytes + size_bytes > HELD_LARGE_BYTES_MAX
            before_bytes += size_bytes
        return False

    def _first_beside(self, request: CommitRequest, gathering: Gathering) -> str | None:
        """Return the key of the table's first request for a transaction, if that is of another
        epoch. Another attempt of the same epoch is a duplicate, once the first one has landed.
        """
        first = self._keys_of(gathering)[0]
        pending = self.waiting.find(first)
        if pending is None or _epoch_of(pending.sealed.request) == _epoch_of(request):
            return None
        return first

    async def pass_on(self) -> None:
        """Pass the requests on whose transactions another committer gathers, and return those to
        the inbox that are too many. There they are found again, if nothing ends them.
        """
        # The batch of a transaction that was called off is not sent again, and if an attempt has
        # landed after all, the ledger tells.
        self.waiting.withdraw((*self._too_many, *self._foreign))
        for key in self._too_many:
            if key in self.waiting:
                returned = self.waiting.end(key, Stage.RETURNED)
                # It may complete its transaction when it is read again: well within the wait.
                self.transactions.give_back(returned, self.wait_s_max / 10)
        for key in self._foreign:
            pending = self.waiting.find(key)
            if pending is None:
                continue
            if await self.transactions.forward(pending):
                self.waiting.end(key, Stage.RETURNED)
            else:
                self.waiting.hold(pending, LOOK_AGAIN_S)

    # --- Requests that are refused ---

    def refused(self, pending: Pending, reason: Reason) -> None:
        """Note a verdict on a request of this table, if it is in quarantine by now."""
        request = pending.sealed.request
        if request.transaction is not None and pending.stage is Stage.QUARANTINED:
            self._refused.append((request, reason, pending.conflict))

    def report_refused(self) -> None:
        """Tell the other tables, once the round knows which requests of this one may land: another
        one of the transaction may be among them.
        """
        refused, self._refused = self._refused, []
        for request, reason, conflict in refused:
            self.transactions.refused(request, reason, conflict)

    # --- What others say ---

    def called(self, gathering: Gathering) -> None:
        self._called = self._keys_of(gathering)[0]
        self.waiting.summon(self._called)
        self.hurry()

    def look_again(self, gathering: Gathering) -> None:
        for key in self._keys_of(gathering):
            if self.transactions.refusal(gathering, key) is not None:
                self.waiting.summon(key)
                self.hurry()

    def dismissed(self, gathering: Gathering) -> None:
        for key in self._keys_of(gathering):
            del self._joined[key]
            # A request that has landed ends in its table's round; the rest joins again.
            self.waiting.summon(key)
            self._called = None if self._called == key else self._called

    def _keys_of(self, gathering: Gathering) -> list[str]:
        return [key for key, one in self._joined.items() if one is gathering]

    # --- The swap ---

    def passed(self) -> None:
        """Note that a batch of no transaction has its turn."""
        self._in_a_row = 0

    async def swap(self, key: str, swap: Swap) -> SwapAnswer:
        """Swap for this request, with the other tables of its transaction.
        Errors: as `Catalog.swap_together`.
        """
        gathering = self._joined.get(key)
        if gathering is None or self._called != key:
            return Conflict()  # called off before anything was sent
        meeting, landed_count = gathering.meeting, self._in_a_row
        # Unless it lands: another table may be at fault, which requests that need none do not wait
        # for.
        self._in_a_row = IN_A_ROW_MAX
        answer = await meeting.swap(self.catalog, self.table_uuid, swap)
        if isinstance(answer, Committed):
            self._in_a_row = landed_count + 1
            self.transactions.landed(gathering)
        elif meeting.is_broken_up:
            self.transactions.dissolve(gathering)
        return answer

    def stop(self) -> None:
        """Leave all transactions for good: a round that goes on joins none."""
        self._is_stopping = True
        self.leave_all()

    def leave_all(self) -> None:
        """Leave all transactions, until a round takes place again, if one does: the other tables
        would wait in vain for this one, for one transaction after another. Then each may wait as
        long as if it were new, as the other tables may have had no rounds either.
        """
        self._since_s.clear()
        joined = list(self._joined)
        # The called one last, as another one would be called in its place.
        for key in sorted(joined, key=lambda key: key == self._called):
            if key in self._joined:
                self._leave(key)
        self.waiting.summon(*joined)


def part_of_transaction(requests: Sequence[CheckedRequest]) -> str | None:
    """Return the key, of a replay its own, of the one request that is part of a transaction."""
    if len(requests) != 1 or requests[0].request.transaction is None:
        return None
    return requests[0].sealed.key


def _refused(gathering: Gathering, refusal: Refusal) -> tuple[Reason, str]:
    return Reason.TRANSACTION_INCOMPLETE, (
        f"transaction {gathering.transaction.id}: the request for `{refusal.identifier}` was"
        f" refused ({refusal.reason.value}); so nothing of the transaction has landed"
    )


def _incomplete(gathering: Gathering, waited_s: float) -> tuple[Reason, str]:
    names = ", ".join(f"`{name}`" for name in gathering.missing)
    return Reason.TRANSACTION_INCOMPLETE, (
        f"transaction {gathering.transaction.id}: no request for {names} has come within"
        f" {waited_s:.0f} s, or none that may land; so this request has not landed"
    )


def _second(gathering: Gathering, first: str) -> tuple[Reason, str]:
    return Reason.TRANSACTION_INCOMPLETE, (
        f"transaction {gathering.transaction.id}: expected one request for each table, and"
        f" `{first}` is this table's; so this request has not landed"
    )


def _epoch_of(request: CommitRequest) -> tuple[str, str, int]:
    return request.producer.id, request.branch, request.epoch
