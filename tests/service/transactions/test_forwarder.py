"""The forwarder keeps a request here if the queue is away or denies its doorbell."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from committer.errors import AccessError, FrazilError, QueueUnavailableError
from committer.ports.queue import Doorbell
from committer.service.requests.deferred_doorbells import DeferredDoorbells, Waiters
from committer.service.requests.inbox_keys import InboxKey
from committer.service.requests.pending import Pending
from committer.service.transactions.forwarder import Forwarder
from tests.support.builders.table_builders import build_table
from tests.support.builders.transactions import build_group
from tests.support.memory.memory_queue import MemoryQueue, MemoryServer
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True


class Refusing(MemoryQueue):
    """A queue that takes no doorbell."""

    def __init__(self, server: MemoryServer, error: FrazilError) -> None:
        super().__init__(server, consumer="committer")
        self.error = error

    async def announce(self, doorbells: Sequence[Doorbell]) -> int:
        raise self.error


@pytest.mark.parametrize("error", [QueueUnavailableError("away"), AccessError("denied")], ids=repr)
async def test_a_queue_that_takes_no_doorbell_leaves_the_request_here(error: FrazilError) -> None:
    harness = ServiceHarness()
    deferred = DeferredDoorbells(harness.world)
    forwarder = Forwarder(Refusing(harness.server, error), deferred)
    tables = [build_table(f"db.{name}", warehouse="memory://warehouse") for name in ("a", "b")]
    sealed = build_group(tables)[0]
    pending = Pending(InboxKey(sealed.key), sealed, 0, waiters=Waiters(tokens=("1",)))
    await forwarder.ask_for_turn(pending)
    assert not await forwarder.forward(pending, UUID(int=1))
    assert deferred.take(pending.key) is None
