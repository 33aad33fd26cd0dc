"""The room in which the transactions of a process wait, outside the queues of their tables."""

from __future__ import annotations

import asyncio
from uuid import UUID

from committer.ports.queue import shard_of
from committer.reason import Reason
from committer.request.commit_request import CommitRequest
from committer.request.table_identifier import TableIdentifier
from committer.request.transaction import Transaction, TransactionIdentity
from committer.service.requests.pending import Pending
from committer.service.transactions.forwarder import Forwarder
from committer.service.transactions.transaction_committer import (
    TablePart,
    TransactionCommitter,
    TransactionContext,
)


class TransactionRoom:
    """Runs a task for each transaction of which a request waits here, and passes the events of its
    tables to it.
    """

    def __init__(
        self, context: TransactionContext, forwarder: Forwarder, tasks: asyncio.TaskGroup
    ) -> None:
        self._context = context
        self._forwarder = forwarder
        self._tasks = tasks
        self._committers: dict[TransactionIdentity, TransactionCommitter] = {}
        self._running: set[asyncio.Task[None]] = set()

    # --- Tables ---

    def enter(self, identifier: TableIdentifier, table_uuid: UUID, part: TablePart) -> None:
        """Add a table that has a committer here from now on."""
        self._context.parts[identifier, table_uuid] = part

    def leave(self, identifier: TableIdentifier, table_uuid: UUID) -> None:
        """Remove a table whose committer ends, or stops: its transactions wait for it."""
        if self._context.parts.pop((identifier, table_uuid), None) is not None:
            for committer in self._committers.values():
                if (identifier, table_uuid) in committer.pending.transaction.members:
                    committer.changed()

    # --- Requests ---

    def is_ours(self, transaction: Transaction) -> bool:
        """Return whether this committer decides about the transaction."""
        return self._context.is_ours(transaction)

    def owns(self, table_uuid: UUID) -> bool:
        """Return whether the table is this committer's."""
        return self._context.owns_shard(shard_of(table_uuid))

    def join(self, transaction: Transaction, table_uuid: UUID) -> None:
        """Note that a table's request has joined: it may land now."""
        identity = transaction.identity
        self._context.refusals.came(identity, table_uuid)
        committer = self._committers.get(identity)
        if committer is None:
            committer = TransactionCommitter(transaction, self._context)
            self._committers[identity] = committer
            task = self._tasks.create_task(self._run(committer), name=f"tx {transaction.id}")
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        committer.joined()

    async def _run(self, committer: TransactionCommitter) -> None:
        """Run a transaction's task until it ends. A request that joins while it ends begins it
        anew.
        """
        try:
            await committer.run()
        finally:
            del self._committers[committer.pending.transaction.identity]

    def has_others(self, request: CommitRequest) -> bool:
        """Return whether another request of the same table for its transaction waits here."""
        if request.transaction is None:
            return False
        part = self._context.parts.get((request.identifier, request.table_uuid))
        return part is not None and bool(part.requests(request.transaction.identity))

    def ended(self, request: CommitRequest) -> None:
        """Note that a request waits here no more."""
        if request.transaction is None:
            return
        committer = self._committers.get(request.transaction.identity)
        if committer is not None:
            committer.changed()

    def refused(self, request: CommitRequest, reason: Reason, conflict: str | None) -> None:
        """Note that a request is in quarantine: the others of its transaction cannot land, unless
        another request of its table waits.
        """
        if request.transaction is None or self.has_others(request):
            return
        self._context.refusals.note(request.transaction.identity, request, reason, conflict)
        self.ended(request)

    async def forward(self, pending: Pending) -> bool:
        """Pass a request on to the committer that decides; False if none is notified."""
        transaction = pending.sealed.request.transaction
        if transaction is None:
            return False
        return await self._forwarder.forward(pending, transaction.first_table)

    async def ask_for_turn(self, pending: Pending) -> None:
        """Ask the owner of a request's table to commit nothing for a moment."""
        await self._forwarder.ask_for_turn(pending)

    def give_back(self, pending: Pending, pause_s: float) -> None:
        """Return a request to the inbox, where it is found again after this long."""
        self._forwarder.give_back(pending, pause_s)

    @property
    def wait_s_max(self) -> float:
        """How long the requests of a transaction wait for one that has not come."""
        return self._context.wait_s_max

    def abandon(self) -> None:
        """Cancel the transactions; a swap that was sent is awaited all the same."""
        for task in self._running:
            task.cancel()
