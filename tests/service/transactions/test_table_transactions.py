"""One table's part in transactions, at the moments that a whole service seldom meets."""

from __future__ import annotations

import pytest

from committer.plan.batch.request_check import CheckBasis, CheckedRequest, Checker
from committer.ports.queue import Queue
from committer.reason import Reason
from committer.service.requests.deferred_doorbells import DeferredDoorbells
from committer.service.requests.inbox_keys import InboxKey
from committer.service.requests.large_requests import NamedManifests
from committer.service.requests.pending import Check, Pending, Stage, Waiting
from committer.service.telemetry.health import Health
from committer.service.transactions import table_transactions
from committer.service.transactions.forwarder import Forwarder
from committer.service.transactions.gatherings import Transactions
from committer.service.transactions.table_transactions import TableTransactions
from tests.support.builders.table_builders import build_table
from tests.support.builders.transactions import build_group
from tests.support.clock.worlds import ManualWorld
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.memory.memory_queue import MemoryQueue, MemoryServer
from tests.support.memory.memory_storage import MemoryStorage

WAIT_S_MAX = 600.0


def part_with(
    world: ManualWorld, *, is_ours: bool = True, queue: Queue | None = None
) -> tuple[TableTransactions, CheckedRequest]:
    """Return a table's part, and its request of a transaction, which waits and may land."""
    tables = [build_table(f"db.{name}", warehouse="memory://warehouse") for name in ("a", "b")]
    sealed = build_group(tables)[0]
    basis = CheckBasis.of("frazil", tables[0].metadata, transaction_tables_max=100)
    checked = Checker(basis, tables[0].metadata.current_schema).check(sealed)
    assert isinstance(checked, CheckedRequest)
    waiting = Waiting(world, NamedManifests(world))
    pending = Pending(InboxKey(sealed.key), sealed, 0)
    waiting.add(pending)
    waiting.checked(pending, Check(basis, checked))
    forwarder = Forwarder(queue, DeferredDoorbells(world))
    part = TableTransactions(
        tables[0].metadata.require_uuid(),
        MemoryCatalog(storage=MemoryStorage(world=world)),
        Transactions(Health(world), forwarder, lambda _: is_ours),
        waiting,
        lambda: None,
        world,
        WAIT_S_MAX,
    )
    return part, checked


def test_a_request_is_never_held_for_less_than_the_clock_can_tell() -> None:
    """The look at the bound would be repeated without end."""
    world = ManualWorld(now_ms=0)
    part, checked = part_with(world)
    waiting = part.waiting
    assert part.select([checked], ()) == []
    world.advance(WAIT_S_MAX - 1e-9)
    waiting.recall()
    assert waiting.has_ready
    assert part.select([checked], ()) == []
    left_s = waiting.recall()
    assert left_s is not None
    assert left_s >= 0.05


@pytest.mark.parametrize("is_ours", [True, False], ids=["too many", "of another committer"])
async def test_a_request_whose_batch_is_in_flight_is_passed_on(
    is_ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its transaction was called off after the attempt, so that the batch is not sent again."""
    monkeypatch.setattr(table_transactions, "HELD_MAX", 0)
    world = ManualWorld(now_ms=0)
    queue = MemoryQueue(MemoryServer(world=world), consumer="committer")
    part, checked = part_with(world, is_ours=is_ours, queue=queue)
    key = checked.sealed.key
    part.waiting.launch([key])
    assert part.select([checked], [key]) == []
    await part.pass_on()
    assert key not in part.waiting


def test_a_table_that_stops_still_tells_the_others_of_what_was_refused() -> None:
    part, checked = part_with(ManualWorld(now_ms=0))
    transaction, key = checked.request.transaction, checked.sealed.key
    assert transaction is not None
    part.refused(part.waiting.end(key, Stage.QUARANTINED), Reason.BRANCH_UNKNOWN)
    part.stop()
    assert part.select([], ()) == []
    _, (_, other) = transaction.members
    gathering = part.transactions.join(transaction, other, part)
    refusal = part.transactions.refusal(gathering, key)
    assert refusal is not None
    assert refusal.reason is Reason.BRANCH_UNKNOWN
