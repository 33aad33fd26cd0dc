"""Passes requests of transactions on to the committer that gathers their transaction."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from committer.errors import AccessError, QueueUnavailableError
from committer.ports.queue import Doorbell, Queue
from committer.request.request_format import line_digest
from committer.service.requests.deferred_doorbells import DeferredDoorbells
from committer.service.requests.pending import Pending
from committer.service.telemetry.lag import Delay, LagCause


@dataclass(eq=False)
class Forwarder:
    """Rings for a request where the first table of its transaction is owned, once for each that
    waits for a receipt. Its own doorbells are deferred: they are acknowledged once the request has
    left the inbox, and ring again until then.
    """

    queue: Queue | None
    deferred: DeferredDoorbells

    async def ask_for_turn(self, pending: Pending) -> None:
        """Ask the owner of a request's table to commit nothing for a moment. Best effort."""
        if self.queue is None:
            return
        table_uuid = pending.sealed.request.table_uuid
        bell = Doorbell(table_uuid, pending.key, "", None, None, asks_for_turn=True)
        with suppress(QueueUnavailableError, AccessError):
            await self.queue.announce([bell])

    def give_back(self, pending: Pending, pause_s: float) -> None:
        """Defer the doorbells of a request that returns to the inbox, for this long."""
        self.deferred.add(pending.key, pending.waiters, _held(pending))
        self.deferred.pause(pending.key, pause_s)

    async def forward(self, pending: Pending, first_table: UUID) -> bool:
        """Tell the other committer, and return the request to the inbox. Return whether it is told;
        if not, the request stays here for now."""
        if self.queue is None:
            return False
        digest = line_digest(pending.sealed.content)
        waiting = pending.waiters.reply_to or (None,)
        bells = [Doorbell(first_table, pending.key, digest, None, one) for one in waiting]
        try:
            await self.queue.announce(bells)
        except (QueueUnavailableError, AccessError):
            return False
        self.deferred.add(pending.key, pending.waiters, _held(pending))
        return True


def _held(pending: Pending) -> Delay:
    return Delay(pending.durable_ms, LagCause.HELD)
