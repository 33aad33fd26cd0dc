"""The ledger remembers attempts until their requests have left the inbox, and no longer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from committer.errors import StorageUnavailableError
from committer.iceberg.metadata.snapshot import MAIN
from committer.iceberg.updates.metadata_update import RemoveSnapshotRef
from committer.ledger_entry import Landed, ProducerEntry, parse_entry, property_key
from committer.plan.ledger.ledger import Ledger
from committer.ports.pointer_swap import LoadedTable
from committer.ports.skips import SkipKind
from committer.request.request_format import EncodedRequest
from committer.request.request_key import inbox_key, producer_prefix
from committer.service.requests.deferred_doorbells import NO_WAITERS
from committer.service.requests.inbox_keys import InboxKey
from committer.service.requests.listing import Folders, Listed
from committer.service.requests.settled_requests import SettledByTable, SettledRequests
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from committer.service.settle.outcome import Outcome
from committer.service.settle.settler import Settler
from committer.storage.inbox.audit_log import AuditLog
from committer.storage.inbox.ended_requests import EndedRequests
from committer.storage.inbox.inbox import Inbox, skips_of
from tests.support.builders.request_builders import build_request
from tests.support.clock.virtual_time import LoopWorld
from tests.support.faults.counting_storage import CountingStorage
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import INBOX, ServiceHarness

VIRTUAL_TIME = True
KEY = property_key("query-1")
TABLE = UUID(int=7)


class UndeletingStorage(CountingStorage):
    """Deletes nothing while `is_stuck`."""

    is_stuck = True

    async def delete(self, locations: Sequence[str]) -> None:
        if self.is_stuck:
            raise StorageUnavailableError("no permission to delete")
        await self.inner.delete(locations)


async def entry_of(harness: ServiceHarness) -> tuple[list[int], int]:
    """Return the epochs whose details are kept, the oldest first, and the bytes of the entry."""
    text = (await harness.load()).properties[KEY]
    return [one.epoch for one in reversed(parse_entry(text).latest)], len(text)


def backlog(table: LoadedTable, count: int) -> list[EncodedRequest]:
    return [build_request(table, epoch=epoch) for epoch in range(count)]


async def publish_all(harness: ServiceHarness, requests: Sequence[EncodedRequest]) -> None:
    for sealed in requests:
        await harness.publish(sealed)


# --- In one process ------------------------------------------------------------------------------


async def test_an_entry_grows_with_a_backlog_and_is_short_again_with_the_next_commit() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await publish_all(harness, backlog(table, 300))
    async with harness.running():
        await harness.settle(5.0)
        assert (await harness.load()).current_snapshot is not None
        epochs, size = await entry_of(harness)
        assert (epochs, await harness.outstanding()) == ([*range(300)], [])
        assert 10_000 < size < 20_000
        await harness.publish(build_request(table, epoch=300))
        await harness.settle(5.0)
        epochs, size = await entry_of(harness)
    assert epochs == [299, 300]
    assert size < 300


async def test_a_producer_that_goes_on_steadily_has_two_epochs_in_its_entry() -> None:
    harness = ServiceHarness(min_interval_ms=1_000)
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=3.0):
        for epoch in range(20):
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(1.0)
            epochs, size = await entry_of(harness)
            assert epochs == [*range(max(0, epoch - 1), epoch + 1)]
            assert size < 300


async def test_the_entry_of_a_producer_that_rests_is_shortened_by_anothers_commit() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await publish_all(harness, backlog(table, 5))
    async with harness.running(reconcile_interval_s=10.0):
        await harness.settle(15.0)
        assert (await entry_of(harness))[0] == [0, 1, 2, 3, 4]
        await harness.publish(build_request(table, producer="another"))
        await harness.settle(1.0)
    assert (await entry_of(harness))[0] == [3, 4]


async def test_what_cannot_be_deleted_stays_remembered_until_it_can() -> None:
    harness = ServiceHarness()
    storage = UndeletingStorage(harness.storage.inner)
    harness.inbox = Inbox(storage, INBOX)
    table = await harness.create_table()
    requests = backlog(table, 9)
    async with harness.running(reconcile_interval_s=5.0):
        for start in (0, 3, 6):
            await publish_all(harness, requests[start : start + 3])
            await harness.settle(20.0)
        assert (await entry_of(harness))[0] == [*range(9)]
        storage.is_stuck = False
        await harness.settle(60.0)
        assert await harness.outstanding() == []
        await harness.publish(build_request(table, epoch=9))
        await harness.settle(1.0)
    assert (await entry_of(harness))[0] == [8, 9]


# --- In several ----------------------------------------------------------------------------------


async def land_and_end(harness: ServiceHarness, table: LoadedTable, *, deleted: bool) -> None:
    """Land five epochs in one commit, and end the process with its inbox clean or not."""
    storage = UndeletingStorage(harness.storage.inner)
    storage.is_stuck = not deleted
    inbox, harness.inbox = harness.inbox, Inbox(storage, INBOX)
    await publish_all(harness, backlog(table, 5))
    await harness.run_until_settled(seconds=5.0)
    harness.inbox = inbox


async def test_what_another_process_has_deleted_is_forgotten_after_a_listing() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await land_and_end(harness, table, deleted=True)
    async with harness.running(reconcile_interval_s=10.0):
        await harness.publish(build_request(table, producer="another"))
        await harness.settle(1.0)
        assert (await entry_of(harness))[0] == [0, 1, 2, 3, 4]
        await harness.settle(30.0)
        await harness.publish(build_request(table, producer="another", epoch=1))
        await harness.settle(1.0)
    assert (await entry_of(harness))[0] == [3, 4]


async def test_what_a_crash_left_in_the_inbox_is_known_is_deleted_and_then_forgotten() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await land_and_end(harness, table, deleted=False)
    async with harness.running(reconcile_interval_s=10.0):
        await harness.settle(5.0)
        assert await harness.outstanding() == []
        await harness.publish(build_request(table, epoch=5))
        await harness.settle(1.0)
    assert (await entry_of(harness))[0] == [4, 5]
    assert await harness.quarantined() == []


async def test_what_a_frozen_producer_has_landed_is_not_forgotten() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await land_and_end(harness, table, deleted=True)
    await harness.publish(build_request(table, producer="another"))
    await harness.run_until_settled(seconds=5.0)
    await foreign_commit(harness, table, RemoveSnapshotRef(MAIN))
    async with harness.running(reconcile_interval_s=5.0):
        for epoch in range(1, 5):
            await harness.publish(build_request(table, producer="a third", epoch=epoch))
            await harness.settle(10.0)
    assert (await entry_of(harness))[0] == [0, 1, 2, 3, 4]


# --- Without a service ---------------------------------------------------------------------------


def landed(epoch: int) -> Landed:
    return Landed(epoch, "k", "f", UUID(int=epoch), 10, 1)


def ledger_of(*epochs: int) -> Ledger:
    return Ledger({KEY: ProducerEntry(TABLE).with_landed(*map(landed, epochs))}, {})


def name_of(epoch: int) -> str:
    return inbox_key(TABLE, "query-1", epoch, UUID(int=epoch))


def listed(*keys: str, sought: Collection[str]) -> Listed:
    """Return a pass that has found these keys in the inbox."""
    found = Listed(Folders(sought))
    for key in keys:
        found.waiting.add(key)
    return found


def test_what_a_listing_could_not_see_is_not_settled() -> None:
    settled, ledger, skips = SettledRequests(TABLE), ledger_of(0, 1, 2), skips_of()
    settled.find(ledger, Listed())
    inbox = Inbox(MemoryStorage(world=LoopWorld()), INBOX)
    skips.add(f"{inbox.folder}{producer_prefix(TABLE, 'query-1')}", SkipKind.NO_ACCESS)
    blind = Listed(Folders(settled.sought))
    blind.waiting.cannot_see(skips, inbox)
    settled.find(ledger, blind)
    assert settled.among(ledger, [KEY]) == {}
    assert settled.sought == {name_of(0)}


def test_only_what_was_seen_in_the_ledger_before_a_listing_is_judged_by_it() -> None:
    settled, ledger = SettledRequests(TABLE), ledger_of(0, 1, 2, 3)
    assert settled.sought == frozenset()
    settled.find(ledger, Listed())
    assert settled.among(ledger, [KEY]) == {}
    assert settled.sought == {name_of(0), name_of(1)}
    settled.find(ledger, listed(name_of(1), sought=settled.sought))
    assert settled.sought == {name_of(1)}
    assert settled.among(ledger, []) == {KEY: {UUID(int=0)}}


def test_a_request_that_was_replayed_is_in_the_inbox_under_another_key() -> None:
    settled, ledger = SettledRequests(TABLE), ledger_of(0, 1, 2)
    settled.find(ledger, Listed())
    replayed = inbox_key(TABLE, "query-1", 0, UUID(int=0), replay=UUID(int=9))
    settled.find(ledger, listed(replayed, sought=settled.sought))
    assert settled.among(ledger, [KEY]) == {}
    assert settled.sought == {name_of(0)}


async def test_what_left_the_inbox_for_the_quarantine_is_not_settled_by_its_deletion() -> None:
    """One committer refused it while another landed it: it may come back."""
    harness, tables = ServiceHarness(), SettledByTable()
    settler = Settler(
        requests=EndedRequests(harness.inbox, harness.quarantine),
        audit=AuditLog(harness.inbox_storage, INBOX),
        queue=None,
        world=harness.world,
        health=harness.health,
        high_water_marks=HighWaterMarkStore(harness.high_water_marks),
        settled=tables,
    )
    sealed = build_request(await harness.create_table(), epoch=0)
    await harness.inbox.put(sealed)
    settled = tables.of(sealed.request.table_uuid)
    settler.settle([Outcome(InboxKey(sealed.key), NO_WAITERS)])
    assert await settler.flush()
    assert await harness.outstanding() == []
    one = Landed(0, "k", "f", sealed.request.attempt, 10, 1)
    ledger = Ledger({KEY: ProducerEntry(TABLE).with_landed(one)}, {})
    assert settled.among(ledger, [KEY]) == {}


def test_what_went_to_quarantine_is_not_settled() -> None:
    settled, ledger = SettledRequests(TABLE), ledger_of(0, 1, 2)
    settled.find(ledger, Listed())
    quarantined = Folders()
    quarantined.add(inbox_key(TABLE, "query-1", 9, UUID(int=9)))
    settled.find(ledger, Listed(quarantined=quarantined))
    assert settled.among(ledger, [KEY]) == {}
    assert settled.sought == {name_of(0)}


def test_what_this_process_has_deleted_needs_no_listing_and_is_forgotten_with_its_entry() -> None:
    tables = SettledByTable()
    settled = tables.of(TABLE)
    others = ["no key", inbox_key(UUID(int=8), "q", 0, TABLE)]
    tables.deleted(InboxKey(key) for key in [*map(name_of, range(3)), *others])
    before = ledger_of(0, 1, 2)
    settled.find(before, Listed())
    assert settled.sought == frozenset()
    done = settled.among(before, [KEY])
    assert done == {KEY: {UUID(int=epoch) for epoch in range(3)}}
    after = Ledger({KEY: before.entries[KEY].without_settled(done[KEY])}, {})
    settled.landed(done, after)
    assert settled.among(before, [KEY]) == {KEY: {UUID(int=1), UUID(int=2)}}
    tables.forget(TABLE)
    tables.deleted([InboxKey(name_of(5))])
    assert settled.among(ledger_of(5), [KEY]) == {}
