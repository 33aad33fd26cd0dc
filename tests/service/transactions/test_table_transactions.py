"""One table's part in transactions, at the moments that a whole service seldom meets."""

from __future__ import annotations

from committer.plan.batch.request_check import CheckBasis, CheckedRequest, Checker
from committer.service.requests.deferred_doorbells import DeferredDoorbells
from committer.service.requests.inbox_keys import InboxKey
from committer.service.requests.large_requests import NamedManifests
from committer.service.requests.pending import Check, Pending, Waiting
from committer.service.telemetry.health import Health
from committer.service.transactions.forwarder import Forwarder
from committer.service.transactions.gatherings import Transactions
from committer.service.transactions.table_transactions import TableTransactions
from tests.support.builders.table_builders import build_table
from tests.support.builders.transactions import build_group
from tests.support.clock.worlds import ManualWorld
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.memory.memory_storage import MemoryStorage

WAIT_S_MAX = 600.0


def test_a_request_is_never_held_for_less_than_the_clock_can_tell() -> None:
    """The look at the bound would be repeated without end."""
    world = ManualWorld(now_ms=0)
    tables = [build_table(f"db.{name}", warehouse="memory://warehouse") for name in ("a", "b")]
    sealed = build_group(tables)[0]
    basis = CheckBasis.of("frazil", tables[0].metadata, transaction_tables_max=100)
    checked = Checker(basis, tables[0].metadata.current_schema).check(sealed)
    assert isinstance(checked, CheckedRequest)
    waiting = Waiting(world, NamedManifests(world))
    pending = Pending(InboxKey(sealed.key), sealed, 0)
    waiting.add(pending)
    waiting.checked(pending, Check(basis, checked))
    part = TableTransactions(
        tables[0].metadata.require_uuid(),
        MemoryCatalog(storage=MemoryStorage(world=world)),
        Transactions(Health(world), Forwarder(None, DeferredDoorbells()), lambda _: True),
        waiting,
        lambda: None,
        world,
        WAIT_S_MAX,
    )
    assert part.select([checked], ()) == []
    world.advance(WAIT_S_MAX - 1e-9)
    waiting.recall()
    assert waiting.has_ready
    assert part.select([checked], ()) == []
    left_s = waiting.recall()
    assert left_s is not None
    assert left_s >= 0.05
