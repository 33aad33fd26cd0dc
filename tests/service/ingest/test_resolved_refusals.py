"""A request that one committer was refused while another landed it does not stay in quarantine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.errors import CatalogUnavailableError, FrazilError, InvalidMetadataError
from committer.iceberg.metadata.snapshot import MAIN, SnapshotRef
from committer.iceberg.updates.metadata_update import RemoveProperties, SetSnapshotRef
from committer.ledger_entry import property_key
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.request_format import EncodedRequest
from committer.request.table_identifier import TableIdentifier
from committer.service.ingest import poller, resolved_refusals
from committer.service.ingest.poller import REFUSED_AGE_MS_MAX, TOLD_ONLY, Poller
from committer.service.ingest.resolved_refusals import ResolvedRefusals
from committer.storage.inbox.inbox import ANSWER_KEPT_MS, Quarantine, QuarantineRecord
from tests.support.builders.request_builders import build_request
from tests.support.faults.counting_storage import CountingStorage
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import INBOX, ServiceHarness

VIRTUAL_TIME = True


class MeasuredStorage(CountingStorage):
    """Remembers how much one call has moved at most."""

    largest_bytes = 0

    def moved(self, call: str, objects: int, size_bytes: int) -> None:
        self.largest_bytes = max(self.largest_bytes, size_bytes)


def watch(harness: ServiceHarness) -> Poller:
    return Poller(
        queue=harness.queue,
        quarantine=harness.quarantine,
        storage=harness.storage.inner,
        folders={"witness": f"{INBOX}/witness/"},
        resolved_refusals=ResolvedRefusals(harness.catalog, harness.storage, harness.quarantine),
        world=harness.world,
        metrics=harness.metrics,
    )


async def refuse(harness: ServiceHarness, sealed: EncodedRequest, reason: Reason) -> str:
    """Quarantine a request, as a committer does that was refused it and did not see it land."""
    key = sealed.request.inbox_key
    now_ms = harness.world.now_ms()
    record = QuarantineRecord(key=key, reason=reason.value, message="", quarantined_at_ms=now_ms)
    await harness.quarantine.put(record, sealed.content)
    return key


async def land(harness: ServiceHarness, table: LoadedTable, epoch: int) -> EncodedRequest:
    sealed = build_request(table, epoch=epoch)
    async with harness.running():
        await harness.publish(sealed)
        await harness.settle(10.0)
    return sealed


async def quarantined(harness: ServiceHarness) -> list[str]:
    return [found.key async for found in harness.quarantine.list()]


@pytest.mark.parametrize("is_remembered", [True, False])
async def test_what_landed_leaves_the_quarantine_and_nothing_else_does(is_remembered: bool) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    landed = await land(harness, table, 0)
    if not is_remembered:  # then the manifest list tells
        await foreign_commit(harness, table, RemoveProperties((property_key("query-1"),)))
    await refuse(harness, landed, Reason.COMMIT_REJECTED)
    # Another attempt of the epoch that landed, and one that no committer has landed.
    others = [build_request(table, epoch=0), build_request(table, epoch=1)]
    kept = [await refuse(harness, one, Reason.COMMIT_REJECTED) for one in others]
    await watch(harness).look()
    assert await quarantined(harness) == sorted(kept)


async def test_what_is_there_for_another_reason_stays() -> None:
    harness = ServiceHarness()
    landed = await land(harness, await harness.create_table(), 0)
    key = await refuse(harness, landed, Reason.EPOCH_LANDED_UNPROVEN)
    await watch(harness).look()
    assert await quarantined(harness) == [key]


async def test_what_landed_and_was_rolled_back_stays() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, 0)
    first = (await harness.load()).snapshots[0].snapshot_id
    key = await refuse(harness, await land(harness, table, 1), Reason.COMMIT_REJECTED)
    await foreign_commit(harness, table, SetSnapshotRef(MAIN, SnapshotRef(first, "branch")))
    await watch(harness).look()
    assert await quarantined(harness) == [key]


async def test_a_table_that_is_gone_or_another_one_hides_no_other() -> None:
    harness = ServiceHarness()
    table, other = await harness.create_table(), await harness.create_table("db.other")
    keys = [await refuse(harness, build_request(other), Reason.COMMIT_REJECTED)]
    await harness.catalog.inner.drop_table(other.identifier)
    await refuse(harness, await land(harness, table, 0), Reason.COMMIT_REJECTED)
    await watch(harness).look()
    assert await quarantined(harness) == keys


@pytest.mark.parametrize(
    ("error", "looks"),
    [(InvalidMetadataError("unreadable"), 1), (CatalogUnavailableError("its server is away"), 3)],
)
async def test_tables_that_cannot_be_loaded_hide_no_other(
    error: FrazilError, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = ServiceHarness()
    created = [await harness.create_table(name) for name in ("db.flights", "db.ships", "db.trains")]
    *bad, table = sorted(created, key=lambda one: str(one.metadata.table_uuid))
    kept = [await refuse(harness, build_request(one), Reason.COMMIT_REJECTED) for one in bad]
    await refuse(harness, await land(harness, table, 0), Reason.COMMIT_REJECTED)
    load = harness.catalog.load

    async def load_unless_bad(identifier: TableIdentifier) -> LoadedTable:
        if identifier != table.identifier:
            raise error
        return await load(identifier)

    monkeypatch.setattr(harness.catalog, "load", load_unless_bad)
    watching = watch(harness)
    for look in range(looks):
        assert len(await quarantined(harness)) == 3, f"look {look}"
        await watching.look()
    assert await quarantined(harness) == sorted(kept)


async def test_more_records_than_one_look_reads_have_their_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resolved_refusals, "RECORDS_MAX", 2)
    harness = ServiceHarness()
    table = await harness.create_table()
    landed = await land(harness, table, 5)
    others = [build_request(table, epoch=epoch) for epoch in range(5)]
    for one in (*others, landed):
        await refuse(harness, one, Reason.COMMIT_REJECTED)
    watching = watch(harness)
    for _ in range(3):
        assert landed.key in await quarantined(harness)
        await watching.look()
    assert await quarantined(harness) == sorted(one.key for one in others)


async def test_only_the_line_of_a_refused_request_is_read() -> None:
    """Its manifests may have tens of megabytes, and many may wait for a look."""
    harness = ServiceHarness()
    table = await harness.create_table()
    landed = await land(harness, table, 0)
    longer = replace(landed, content=landed.content + bytes(8 << 20))
    await refuse(harness, longer, Reason.COMMIT_REJECTED)
    measured = MeasuredStorage(harness.storage.inner)
    looked_at = Quarantine(measured, INBOX)
    await ResolvedRefusals(harness.catalog, harness.storage, looked_at).take_out([landed.key])
    assert measured.largest_bytes < 5 << 20
    assert await quarantined(harness) == []


async def test_a_record_is_looked_at_while_an_attempt_may_be_on_its_way_and_no_longer() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await refuse(harness, build_request(table), Reason.COMMIT_REJECTED)
    watching = watch(harness)
    await watching.look()
    await watching.look()
    assert harness.catalog.calls["load"] == 2
    await harness.settle(REFUSED_AGE_MS_MAX / 1000 + 1.0)
    await watching.look()
    assert harness.catalog.calls["load"] == 2


async def test_a_conflict_that_is_only_told_is_not_counted_and_goes_after_a_day() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    told = build_request(table)
    record = QuarantineRecord(
        key=told.key, reason="conflict", message="", quarantined_at_ms=0, is_told_only=True
    )
    await harness.quarantine.put(record, b"")
    kept = await refuse(harness, build_request(table, epoch=1), Reason.CONFLICT)
    poller = watch(harness)
    for _ in range(2):
        await poller.look()
        page = harness.status_collector.page().decode()
        assert 'frazil_quarantine_requests{reason="conflict",table="unknown"} 1.0' in page
        assert TOLD_ONLY not in page
    await harness.settle(ANSWER_KEPT_MS / 1000 + 60)
    await poller.look()
    assert [one.key for one in await harness.quarantined()] == [kept]


async def test_old_answers_go_however_many_requests_are_in_quarantine_before_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(poller, "LISTED_MAX", 5)
    monkeypatch.setattr(poller, "RECORDS_MAX", 2)
    monkeypatch.setattr(poller, "LOOKS_A_SURVEY", 1)
    harness = ServiceHarness()
    table = await harness.create_table()
    requests = sorted((build_request(table, epoch=n) for n in range(20)), key=lambda one: one.key)
    for number, sealed in enumerate(requests):
        is_told_only = number >= 5 and number % 2 == 0
        record = QuarantineRecord(
            key=sealed.key,
            reason="conflict",
            message="",
            quarantined_at_ms=0,
            is_told_only=is_told_only,
        )
        await harness.quarantine.put(record, b"" if is_told_only else sealed.content)
    watching = watch(harness)
    for _ in range(10):
        await watching.look()
    assert len(await quarantined(harness)) == 20, "none is a day old"
    await harness.settle(ANSWER_KEPT_MS / 1000 + 60)
    for _ in range(10):
        await watching.look()
    kept = [one.key for number, one in enumerate(requests) if number < 5 or number % 2]
    assert await quarantined(harness) == kept
