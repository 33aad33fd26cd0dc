"""The transactions whose requests wait in this process.

A transaction is called once a request of each of its tables may land. A table is called for one
transaction at a time, which is decided here in one step: so no two of them wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from committer.ports.queue import shard_of
from committer.reason import Reason
from committer.request.commit_request import CommitRequest
from committer.request.table_identifier import TableIdentifier
from committer.request.transaction import Transaction
from committer.service.requests.pending import Pending
from committer.service.telemetry.health import Health
from committer.service.telemetry.log import log
from committer.service.transactions.forwarder import Forwarder
from committer.service.transactions.meeting import Meeting
from committer.service.transactions.refusals import Refusal, Refusals

_COMPONENT = "transactions"


class Member(Protocol):
    """The part of one table."""

    def called(self, gathering: Gathering) -> None:
        """Note that its request for this transaction is the next to be committed."""

    def dismissed(self, gathering: Gathering) -> None:
        """Note that the transaction has landed, or is gathered anew."""

    def look_again(self, gathering: Gathering) -> None:
        """Look at its request again at once: the transaction may not land any more."""

    @property
    def is_called(self) -> bool: ...


@dataclass(eq=False)
class Gathering:
    """One transaction. `present`: the tables whose requests may land now."""

    transaction: Transaction
    present: dict[UUID, Member] = field(default_factory=dict)
    is_called: bool = False
    _meeting: Meeting | None = None

    @property
    def missing(self) -> tuple[TableIdentifier, ...]:
        """The tables that it waits for."""
        return tuple(name for name, uuid in self.transaction.members if uuid not in self.present)

    @property
    def meeting(self) -> Meeting:
        """The meeting at the attempt that is under way, or the next one."""
        if self._meeting is None or self._meeting.is_over:
            self._meeting = Meeting([uuid for _, uuid in self.transaction.members])
        return self._meeting

    def break_up(self) -> None:
        if self._meeting is not None:
            self._meeting.break_up()


class Transactions:
    """Gathers requests by transaction: by its id and its tables. A client that names other tables
    under the same id begins another transaction.
    """

    def __init__(
        self, health: Health, forwarder: Forwarder, owns_shard: Callable[[int], bool]
    ) -> None:
        """Share the transactions with other committers: the owner of the first table gathers."""
        self._health = health
        self._forwarder = forwarder
        self._gatherings: dict[object, Gathering] = {}
        # Of those that have waited for a while: for what.
        self._shown: dict[str, str] = {}
        self._refusals = Refusals()
        self._owns_shard = owns_shard

    def owns(self, table_uuid: UUID) -> bool:
        """Return whether the table is this committer's."""
        return self._owns_shard(shard_of(table_uuid))

    def is_ours(self, transaction: Transaction) -> bool:
        """Return whether this committer gathers the transaction. Others pass its requests on: a
        single committer decides that it stays incomplete.
        """
        return self.owns(_first_table(transaction))

    async def forward(self, pending: Pending) -> bool:
        """Pass a request on to the committer that gathers; False if none is notified."""
        transaction = pending.sealed.request.transaction
        if transaction is None:
            return False
        return await self._forwarder.forward(pending, _first_table(transaction))

    def give_back(self, pending: Pending, pause_s: float) -> None:
        """Return a request to the inbox, where it is found again after this long."""
        self._forwarder.give_back(pending, pause_s)

    def join(self, transaction: Transaction, table_uuid: UUID, member: Member) -> Gathering:
        """Note that a table's request may land now."""
        key = _identity(transaction)
        self._refusals.came(key, table_uuid)
        gathering = self._gatherings.setdefault(key, Gathering(transaction))
        gathering.present.setdefault(table_uuid, member)
        return gathering

    def refused(self, request: CommitRequest, reason: Reason, conflict: str | None) -> None:
        """Note that a request is in quarantine, and have the others of its transaction looked at,
        unless another request of its table may land.
        """
        if request.transaction is None:
            return
        key = _identity(request.transaction)
        gathering = self._gatherings.get(key)
        if gathering is not None and request.table_uuid in gathering.present:
            return
        if self._refusals.note(key, request, reason, conflict) and gathering is not None:
            self._look_again(gathering)

    def refusal(self, gathering: Gathering, key: str) -> Refusal | None:
        """Return why the transaction cannot land with this request, if that is known."""
        return self._refusals.find(_identity(gathering.transaction), key)

    def _look_again(self, gathering: Gathering) -> None:
        for member in list(gathering.present.values()):
            member.look_again(gathering)

    def leave(self, gathering: Gathering, table_uuid: UUID) -> None:
        """Note that a table's request waits no more, or cannot land."""
        gathering.present.pop(table_uuid, None)
        if gathering.is_called:
            self.dissolve(gathering)
        if not gathering.present:
            self._forget(gathering)

    def dissolve(self, gathering: Gathering) -> None:
        """Call the tables off: the transaction is gathered anew."""
        if not gathering.is_called:
            return
        gathering.break_up()
        self._dismiss(gathering)
        log.info("transaction.dissolved", transaction=str(gathering.transaction.id))
        self.call_next()

    def landed(self, gathering: Gathering) -> None:
        """Note that the transaction has landed on all of its tables."""
        if not gathering.is_called:
            return
        self._dismiss(gathering)
        tables = [str(name) for name, _ in gathering.transaction.members]
        log.info("transaction.landed", transaction=str(gathering.transaction.id), tables=tables)
        self.call_next()

    def _dismiss(self, gathering: Gathering) -> None:
        """Forget a called transaction, and note with its tables that it is called no more."""
        gathering.is_called = False
        present = list(gathering.present.values())
        self._forget(gathering)
        for member in present:
            member.dismissed(gathering)

    def call_next(self) -> None:
        """Call every transaction that is complete and whose tables are free, oldest first."""
        for gathering in list(self._gatherings.values()):
            if gathering.is_called or gathering.missing:
                continue
            members = list(gathering.present.values())
            if any(member.is_called for member in members):
                continue
            gathering.is_called = True
            for member in members:
                member.called(gathering)

    def show_waiting(self, gathering: Gathering, waited_s: float) -> None:
        """Show a transaction that has waited for a while, and for which tables."""
        name = str(gathering.transaction.id)
        missing = ", ".join(str(one) for one in gathering.missing)
        if name not in self._shown:
            log.warning("transaction.waiting", transaction=name, missing=missing)
        self._shown[name] = f"transaction {name} has waited {waited_s:.0f} s for {missing}"
        self._show()

    def _show(self) -> None:
        if not self._shown:
            self._health.healthy(_COMPONENT)
            return
        *others, newest = self._shown.values()
        more = f"; and {len(others)} more" if others else ""
        self._health.degraded(_COMPONENT, f"{newest}{more}")

    def _forget(self, gathering: Gathering) -> None:
        self._gatherings.pop(_identity(gathering.transaction), None)
        if self._shown.pop(str(gathering.transaction.id), None) is not None:
            self._show()


def _identity(transaction: Transaction) -> tuple[object, ...]:
    return transaction.id, transaction.members


def _first_table(transaction: Transaction) -> UUID:
    (_, first), *_ = transaction.members
    return first
