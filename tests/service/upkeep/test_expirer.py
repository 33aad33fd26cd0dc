"""Expiry beside a working committer: what goes, what stays, and what a crash or a lost answer does.

Histories are kept small by lowering the number of snapshots that stay for proofs.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from committer.errors import AccessError
from committer.iceberg.manifest.manifest_list import (
    ManifestFile,
    decode_manifest_list,
    iter_new_rows,
)
from committer.iceberg.metadata.snapshot import MAIN, SnapshotRef
from committer.iceberg.updates.metadata_update import (
    RemoveProperties,
    RemoveSnapshots,
    SetProperties,
    SetSnapshotRef,
    Update,
)
from committer.plan.batch.adopted_paths import ADOPT_LOCATIONS_PROPERTY
from committer.plan.cleanup import expiry
from committer.plan.ledger.quiet_gap import GapPolicy
from committer.ports.pointer_swap import Committed, LoadedTable
from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo, Storage
from committer.request.needs import Needs
from committer.request.request_format import EncodedRequest
from committer.request.table_identifier import TableIdentifier
from committer.storage.inbox.inbox import Outstanding, QuarantineRecord
from tests.support.builders.flights import foreign_swap
from tests.support.builders.operation_requests import build_operation
from tests.support.builders.request_builders import (
    build_file,
    build_line,
    build_manifest,
    build_request,
    changed_line,
    seal,
)
from tests.support.faults.counting_storage import CountingStorage
from tests.support.faults.faulty_catalog import Fault
from tests.support.faults.stopping_storage import StoppingStorage
from tests.support.service.service_harness import INBOX, WAREHOUSE, ServiceHarness

VIRTUAL_TIME = True

KEPT = 5
EXPIRING = {
    "frazil.expire.enabled": "true",
    "history.expire.min-snapshots-to-keep": str(KEPT),
    "history.expire.max-snapshot-age-ms": "0",
}
NAME = TableIdentifier.parse("db.flights")


@pytest.fixture(autouse=True)
def small_histories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "SNAPSHOTS_MIN", 3)


class Traffic:
    """One producer; `epochs` counts what it has published."""

    def __init__(self, harness: ServiceHarness, table: LoadedTable) -> None:
        self.harness = harness
        self.table = table
        self.epochs = count()
        self.published = 0

    async def commit(self, times: int = 1, *, every_s: float = 4.0, branch: str = MAIN) -> None:
        """Publish one request after the other, far enough apart for a commit each."""
        for _ in range(times):
            request = build_request(self.table, epoch=next(self.epochs), branch=branch)
            self.published += 1
            await self.harness.publish(request)
            await self.harness.settle(every_s)


def is_upkeep(kind: str, locations: Sequence[str]) -> bool:
    """Return whether a call writes the journal or deletes from a table."""
    of_table = locations[0].startswith(WAREHOUSE) and kind == "delete"
    return of_table or locations[0].startswith(f"{INBOX}/upkeep/")


async def open_harness(
    properties: dict[str, str] | None = None,
) -> tuple[ServiceHarness, StoppingStorage, LoadedTable]:
    made: list[StoppingStorage] = []

    def wrap(inner: Storage) -> StoppingStorage:
        made.append(StoppingStorage(inner, is_upkeep))
        return made[0]

    harness = ServiceHarness(wrap=wrap)
    table = await harness.create_table(properties=EXPIRING if properties is None else properties)
    return harness, made[0], table


async def objects(harness: ServiceHarness, prefix: str = WAREHOUSE) -> set[str]:
    return {one.location async for one in harness.storage.inner.list(prefix)}


async def needed(harness: ServiceHarness) -> set[str]:
    """Return the files that readers of all refs and snapshots open, metadata files aside."""
    found = set()
    for snapshot in (await harness.load()).snapshots:
        location = snapshot.manifest_list or ""
        rows = decode_manifest_list(await harness.storage.inner.get(location)).rows
        found |= {location, *(row.manifest_path for row in rows)}
    return found


async def left(harness: ServiceHarness) -> set[str]:
    """Return the manifests and lists that exist."""
    return {one for one in await objects(harness) if one.endswith(".avro")}


async def journal(harness: ServiceHarness) -> set[str]:
    return await objects(harness, f"{INBOX}/upkeep")


async def swap_in(harness: ServiceHarness, *updates: Update) -> None:
    """Commit as another engine."""
    catalog = harness.catalog.inner
    swap = foreign_swap(await catalog.load(NAME), *updates)
    await harness.storage.inner.create(catalog.objects_before(swap))
    assert isinstance(await catalog.swap(swap), Committed)


# --- What goes -----------------------------------------------------------------------------------


async def test_old_snapshots_go_with_their_files_and_the_journal_is_empty_then() -> None:
    harness, _, table = await open_harness()
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(40)
        metadata = await harness.load()
        assert KEPT <= len(metadata.snapshots) <= KEPT + 4
        assert await left(harness) == await needed(harness)
        assert len(await journal(harness)) <= 1
        await traffic.commit(6)
    assert len(await harness.live_files()) == traffic.published
    assert metadata.snapshot_log[0].snapshot_id == metadata.snapshots[0].snapshot_id


async def test_snapshots_go_although_every_commit_leaves_a_metadata_file_to_delete() -> None:
    """As on every table that Frazil creates, after its first hundred commits."""
    cleaning = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "3",
    }
    harness, _, table = await open_harness(EXPIRING | cleaning)
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(40)
    assert KEPT <= len((await harness.load()).snapshots) <= KEPT + 4


@pytest.mark.thorough
async def test_of_many_commits_a_second_snapshots_go_before_the_next_look_by_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("committer.service.upkeep.expirer.LOOK_SNAPSHOTS", 10)
    harness, _, table = await open_harness()
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(60, every_s=0.01)
        assert len((await harness.load()).snapshots) < KEPT + 2 * 10


async def test_a_table_that_says_nothing_keeps_everything() -> None:
    harness, storage, table = await open_harness({})
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(20)
    assert len((await harness.load()).snapshots) == 20
    assert storage.changes == []


@pytest.mark.parametrize("off", [{"gc.enabled": "false"}, {"frazil.expire.enabled": "false"}])
async def test_a_table_that_forbids_it_keeps_everything(off: dict[str, str]) -> None:
    harness, storage, table = await open_harness(EXPIRING | off)
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(20)
    assert len((await harness.load()).snapshots) == 20
    assert storage.changes == []


async def test_a_commit_that_expires_costs_no_call_more_than_any_other() -> None:
    harness, storage, table = await open_harness()
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(10)
        plain, expiring = Counter[str](), Counter[str]()
        for _ in range(30):
            before = len((await harness.load()).snapshots)
            harness.catalog.calls.clear()
            # Everything is slow but the calls of the commit itself: those alone are made at once.
            storage.delete_delay_s = 3.0
            creates = harness.storage.calls["create"]
            await traffic.commit(every_s=0.5)
            seen = harness.catalog.calls
            removed = len((await harness.load()).snapshots) <= before
            calls = (harness.storage.calls["create"] - creates, seen["swap"], seen["load"])
            (expiring if removed else plain)[str(calls)] += 1
            await harness.settle(12.0)
    assert set(plain) == set(expiring) == {"(1, 1, 0)"}
    assert sum(expiring.values()) >= 5


async def test_metadata_files_that_fall_off_the_log_go_where_the_table_wants_it() -> None:
    harness, _, table = await open_harness(
        {
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "3",
        }
    )
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(3)
        await swap_in(harness, SetProperties({"touched": "by another engine"}))
        await traffic.commit(8)
    current = await harness.catalog.inner.load(NAME)
    kept = {entry.metadata_file for entry in current.metadata.metadata_log}
    there = {one for one in await objects(harness) if one.endswith(".metadata.json")}
    assert there >= kept | {current.metadata_location}
    # The foreign commit dropped one from the log: only that engine knows, and it did not delete it.
    assert len(there - kept - {current.metadata_location}) == 1


async def test_of_many_commits_a_second_metadata_files_go_in_groups() -> None:
    harness, storage, table = await open_harness(
        {
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "3",
        }
    )
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(50, every_s=0.01)
        await harness.settle(1.0)
    assert len(storage.changes) <= 3
    there = {one for one in await objects(harness) if one.endswith(".metadata.json")}
    assert len(there) == 3 + 1


async def test_a_metadata_file_that_the_table_was_put_back_to_stays() -> None:
    harness, _, table = await open_harness(
        {
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "1",
        }
    )
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(1.0)
        older = await harness.catalog.inner.current_location(table.identifier)
        for epoch in (1, 2):
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(0.01)
        # Between the commit that drops it and its deletion an operator restores it.
        await harness.catalog.inner.drop_table(table.identifier)
        await harness.catalog.inner.register_table(table.identifier, older)
        await harness.settle(10.0)
    # With it what its own log names.
    assert {older, table.metadata_location} <= set(await objects(harness))


async def test_metadata_files_stay_by_default() -> None:
    harness, storage, table = await open_harness({"write.metadata.previous-versions-max": "3"})
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(8)
    assert storage.changes == []


# --- What stays ----------------------------------------------------------------------------------


async def test_a_clock_that_the_storage_contradicts_expires_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness, storage, table = await open_harness()
    head, behind_ms = storage.head, 31_536_000_000

    async def head_of_the_year_before(location: str) -> ObjectInfo:
        info = await head(location)
        return replace(info, modified_ms=info.modified_ms - behind_ms)

    monkeypatch.setattr(storage, "head", head_of_the_year_before)
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(30)
        assert len((await harness.load()).snapshots) == 30
        assert await journal(harness) == set()
        behind_ms = 2_000
        await traffic.commit(30)
        assert len((await harness.load()).snapshots) <= KEPT + 4
    assert await needed(harness) <= await left(harness)


async def test_a_tag_keeps_its_snapshot_and_all_that_it_needs() -> None:
    harness, _, table = await open_harness()
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(2)
        tagged = (await harness.load()).snapshots[0].snapshot_id
        await swap_in(harness, SetSnapshotRef("kept", SnapshotRef(tagged, "tag")))
        await traffic.commit(30)
        metadata = await harness.load()
        assert metadata.snapshots[0].snapshot_id == tagged
        assert len(metadata.snapshots) <= KEPT + 5
        assert await needed(harness) <= await left(harness)


async def test_nothing_expires_while_a_producer_is_frozen_after_a_roll_back() -> None:
    harness, _, table = await open_harness(EXPIRING | {"frazil.expire.enabled": "false"})
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(4)
        metadata = await harness.load()
        second = metadata.snapshots[1].snapshot_id
        await swap_in(
            harness,
            SetSnapshotRef(MAIN, SnapshotRef(second)),
            SetProperties({"frazil.expire.enabled": "true"}),
        )
        for epoch in range(20):
            other = build_request(table, producer="other", epoch=epoch)
            await harness.publish(other)
            await harness.settle(4.0)
        assert len((await harness.load()).snapshots) == 24
        assert await journal(harness) == set()
        # The operator lets it go on from here.
        await swap_in(harness, RemoveProperties(("frazil.producer.query-1",)))
        await harness.accept()
        for epoch in range(20, 30):
            await harness.publish(build_request(table, producer="other", epoch=epoch))
            await harness.settle(4.0)
        assert len((await harness.load()).snapshots) <= KEPT + 4
        assert await needed(harness) <= await left(harness)


async def test_a_branch_that_a_request_waits_for_does_not_go_before_it() -> None:
    harness, _, table = await open_harness(EXPIRING | {"history.expire.max-ref-age-ms": "1000"})
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(2)
        head = (await harness.load()).current_snapshot_id or 0
        await swap_in(harness, SetSnapshotRef("audit", SnapshotRef(head)))
        while not await journal(harness):
            await traffic.commit()
        assert "audit" in (await harness.load()).refs
        # One after the other in one round: the first is of main, and may take the expiry along.
        await harness.publish(build_request(table, producer="other", epoch=0))
        await harness.publish(build_request(table, producer="audit", epoch=0, branch="audit"))
        await harness.settle(1.0)
        audit = (await harness.load()).branch_head("audit")
    assert audit is not None
    assert audit.parent_snapshot_id == head


async def test_a_snapshot_that_a_request_was_made_against_does_not_go_before_it() -> None:
    harness, storage, table = await open_harness()
    traffic = Traffic(harness, table)
    async with harness.running():
        while not storage.changes:
            await traffic.commit()
        oldest = (await harness.load()).snapshots[0].snapshot_id
        line = build_line(table, producer="other").model_copy(
            update={"needs": Needs(base_snapshot_id=oldest)}
        )
        manifest = build_manifest(table.metadata, [build_file(table.metadata, line.attempt)])
        await harness.publish(seal(line, [manifest]))
        await harness.settle(4.0)
        assert len(await harness.receipts("other")) == 1
        assert (await harness.load()).snapshots[0].snapshot_id == oldest
        await traffic.commit(2)
        assert (await harness.load()).snapshots[0].snapshot_id != oldest


@pytest.mark.parametrize("by_name", [False, True])
async def test_a_staged_snapshot_does_not_go_before_the_request_that_publishes_it(
    by_name: bool,
) -> None:
    harness, storage, table = await open_harness()
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(1)
        staged = await stage(harness, table)
        while not storage.changes:
            await traffic.commit()
        # The expiry is noted, and the next commit would take it along.
        request = publishing(
            table, **({"wap-id": "w"} if by_name else {"source-snapshot-id": staged})
        )
        mine = build_request(table, epoch=next(traffic.epochs))
        traffic.published += 1
        await asyncio.gather(harness.publish(mine), harness.publish(request))
        await harness.settle(8.0)
        (receipt,) = await harness.receipts("publishing")
        assert receipt.state == "committed", receipt
        assert len(await harness.live_files()) == traffic.published + 1


async def stage(harness: ServiceHarness, table: LoadedTable) -> int:
    """Stage a snapshot under the `wap.id` "w"; return its id."""
    line = changed_line(
        build_line(table, producer="staging"), stage_only=True, summary={"wap.id": "w"}
    )
    manifest = build_manifest(table.metadata, [build_file(table.metadata, line.attempt)])
    await harness.publish(seal(line, [manifest]))
    await harness.settle(1.0)
    (staged,) = (
        one for one in (await harness.load()).snapshots if (one.summary or {}).get("wap.id")
    )
    return staged.snapshot_id


def publishing(table: LoadedTable, **needs: object) -> EncodedRequest:
    """Return the request that publishes a staged snapshot."""
    return build_operation(table, "cherry-pick", producer="publishing", needs=needs)


async def test_a_staged_snapshot_stays_while_the_request_that_publishes_it_is_unread() -> None:
    """It is in the inbox, and its doorbell is lost."""
    harness, _, table = await open_harness()
    traffic = Traffic(harness, table)
    async with harness.running(reconcile_interval_s=600.0):
        await traffic.commit(1)
        staged = await stage(harness, table)
        await harness.publish(publishing(table, **{"wap-id": "w"}), announce=False)
        await traffic.commit(16)
        assert staged in (await harness.load()).snapshots_by_id
        await harness.settle(1300.0)
        assert await harness.outstanding() == [] == await harness.quarantined()
        assert len(await harness.live_files()) == traffic.published + 1
        # Nothing keeps it any more.
        await traffic.commit(16)
        assert staged not in (await harness.load()).snapshots_by_id


async def test_an_expiry_of_an_earlier_process_is_given_up_if_an_unread_request_needs_it() -> None:
    harness, storage, table = await open_harness()
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(1)
        staged = await stage(harness, table)
        while not storage.changes:
            await traffic.commit()
    assert len(await journal(harness)) == 1
    async with harness.running():
        await harness.settle(1.0)
        await harness.publish(publishing(table, **{"wap-id": "w"}), announce=False)
        await traffic.commit(16)
        assert staged in (await harness.load()).snapshots_by_id
        assert await journal(harness) == set()


@pytest.mark.parametrize("place", ["inbox", "quarantine", "replayed", "nowhere"])
async def test_what_may_land_once_more_after_a_roll_back_keeps_its_data_files(place: str) -> None:
    """By an operator's leave: his word is in the ledger, the request wherever it waits."""
    harness, _, table = await open_harness(EXPIRING | {"frazil.expire.enabled": "false"})
    again = build_request(table, producer="again")
    data_file = build_file(table.metadata, again.request.attempt).file_path
    await harness.storage.inner.create((NewObject(data_file, b"rows"),))
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(2)
        head = (await harness.load()).current_snapshot_id or 0
        await harness.publish(again)
        await harness.settle(4.0)
        assert data_file in {one.file_path for one in await harness.live_files()}
        await swap_in(
            harness,
            SetSnapshotRef(MAIN, SnapshotRef(head)),
            SetProperties({"frazil.expire.enabled": "true"}),
            RemoveProperties(("frazil.producer.again",)),
        )
        await harness.accept()
        record = QuarantineRecord(
            key=again.request.inbox_key, reason="x", message="x", quarantined_at_ms=0
        )
        if place == "inbox":
            await harness.inbox.put(again)
        elif place == "quarantine":
            await harness.quarantine.put(record, again.content)
        elif place == "replayed":
            await harness.inbox.put(again.replayed(harness.world.uuid()))
        await traffic.commit(20)
        assert len((await harness.load()).snapshots) <= KEPT + 4
        assert (data_file in await objects(harness)) == (place != "nowhere")


class Hooked(CountingStorage):
    """Something happens before an object is read for the `reads`th time, once."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.location = ""
        self.reads = 1
        self.then: Callable[[], Awaitable[object]] | None = None

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        if location == self.location and self.then is not None:
            self.reads -= 1
            if self.reads == 0:
                await self.then()
        return await super().get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )


async def test_what_lands_once_more_during_the_search_keeps_its_data_files() -> None:
    made: list[Hooked] = []

    def wrap(inner: Storage) -> Storage:
        made.append(Hooked(inner))
        return made[0]

    harness = ServiceHarness(wrap=wrap)
    table = await harness.create_table(properties=EXPIRING | {"frazil.expire.enabled": "false"})
    again = build_request(table, producer="again")
    data_file = build_file(table.metadata, again.request.attempt).file_path
    await harness.storage.inner.create((NewObject(data_file, b"rows"),))
    traffic = Traffic(harness, table)
    landed: list[bool] = []

    async def lands() -> None:
        await harness.publisher_queue.announce([harness.doorbell(again)])
        await harness.settle(20.0)
        landed.append(await harness.outstanding() == [])

    async with harness.running():
        await traffic.commit(2)
        head = (await harness.load()).current_snapshot_id or 0
        await harness.publish(again)
        await harness.settle(4.0)
        lost = (await harness.load()).current_snapshot
        assert lost is not None
        await swap_in(
            harness,
            SetSnapshotRef(MAIN, SnapshotRef(head)),
            SetProperties({"frazil.expire.enabled": "true"}),
            RemoveProperties(("frazil.producer.again",)),
        )
        await harness.accept()
        await harness.inbox.put(again)
        made[0].location, made[0].then = lost.manifest_list or "", lands
        await traffic.commit(30)
        assert landed == [True]
        assert data_file in {one.file_path for one in await harness.live_files()}
        assert data_file in await objects(harness)


async def test_snapshots_that_came_back_while_files_were_deleted_stop_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("committer.service.upkeep.table_files.DELETES_AT_ONCE", 1)
    harness, storage, table = await open_harness()
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(KEPT)
        before = await harness.catalog.inner.load(NAME)
        while not storage.changes:
            await traffic.commit()
        storage.delete_delay_s = 20.0
        await traffic.commit(2)
        assert len((await harness.load()).snapshots) < KEPT + 3
        # An operator restores the table by hand; it freezes, and nothing is deleted.
        await harness.catalog.inner.drop_table(NAME)
        await harness.catalog.inner.create_table(before)
        await harness.publish(build_request(table, producer="other", epoch=0))
        await harness.settle(200.0)
    deleted = {location for kind, some in storage.changes if kind == "delete" for location in some}
    assert [one for one in deleted if one.startswith(WAREHOUSE)] == []


async def slow_deletes(
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[ServiceHarness, StoppingStorage, Traffic, LoadedTable]:
    """Return a table whose expiry waits for its next commit, with its earlier state; deletes are
    slow, one after the other.
    """
    monkeypatch.setattr("committer.service.upkeep.table_files.DELETES_AT_ONCE", 1)
    harness, storage, table = await open_harness()
    traffic = Traffic(harness, table)
    async with harness.running():
        while not storage.changes:
            await traffic.commit()
    storage.delete_delay_s = 20.0
    return harness, storage, traffic, await harness.catalog.inner.load(NAME)


def deleted_of_table(storage: StoppingStorage) -> list[str]:
    found = (location for kind, some in storage.changes if kind == "delete" for location in some)
    return [location for location in found if location.startswith(WAREHOUSE)]


async def test_a_table_that_was_put_back_stops_the_deletes_without_a_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness, storage, traffic, before = await slow_deletes(monkeypatch)
    async with harness.running():
        await traffic.commit(2)
        oldest = before.metadata.snapshots[0]
        assert oldest.snapshot_id not in (await harness.load()).snapshots_by_id
        await harness.catalog.inner.drop_table(NAME)
        await harness.catalog.inner.create_table(before)
        await harness.settle(200.0)
    assert len(deleted_of_table(storage)) <= 1


async def test_a_table_that_forbids_it_meanwhile_stops_the_deletes_without_a_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness, storage, traffic, _ = await slow_deletes(monkeypatch)
    async with harness.running():
        await traffic.commit(2)
        await swap_in(harness, SetProperties({"gc.enabled": "false"}))
        await harness.settle(200.0)
    assert len(deleted_of_table(storage)) <= 1


@pytest.mark.parametrize("another", [False, True])
async def test_a_table_that_was_dropped_stops_the_deletes_and_keeps_the_journal(
    another: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness, storage, traffic, _ = await slow_deletes(monkeypatch)
    async with harness.running():
        await traffic.commit(2)
        await harness.catalog.inner.drop_table(NAME)
        if another:
            await harness.create_table(properties=EXPIRING)
        await harness.settle(200.0)
    assert len(deleted_of_table(storage)) <= 1
    assert len(await journal(harness)) == 1


async def test_an_expiry_that_never_landed_deletes_nothing_of_a_table_that_was_put_back() -> None:
    """To a time before the snapshots came: they are not there, but were not expired."""
    harness, storage, table = await open_harness()
    traffic = Traffic(harness, table)
    async with harness.running():
        while not storage.changes:
            await traffic.commit()
    newest = await harness.catalog.inner.load(NAME)
    await harness.catalog.inner.drop_table(NAME)
    await harness.catalog.inner.create_table(table)
    async with harness.running():
        await traffic.commit(4)
    # It was the wrong thing to do.
    await harness.catalog.inner.drop_table(NAME)
    await harness.catalog.inner.create_table(newest)
    assert await needed(harness) <= await left(harness)


OLD = "memory://old/flights"


def adopting(table: LoadedTable, *paths: str, producer: str) -> EncodedRequest:
    line = build_line(table, producer=producer, one_shot=True)
    files = [replace(build_file(table.metadata, line.attempt), file_path=path) for path in paths]
    manifest = build_manifest(table.metadata, files)
    return seal(changed_line(line, adopt_existing=True), [manifest])


async def roll_back_adoption(
    harness: ServiceHarness, table: LoadedTable, traffic: Traffic, paths: Sequence[str]
) -> str:
    """Adopt files, put the table back, and allow that; return the list that is lost then."""
    await harness.storage.inner.create([NewObject(path, b"rows") for path in paths])
    await traffic.commit(2, every_s=90.0)
    head = (await harness.load()).current_snapshot_id or 0
    await harness.publish(adopting(table, *paths, producer="adopter"))
    await harness.settle(90.0)
    lost = (await harness.load()).current_snapshot
    assert lost is not None and set(paths) <= {one.file_path for one in await harness.live_files()}
    await swap_in(
        harness,
        SetSnapshotRef(MAIN, SnapshotRef(head)),
        SetProperties({"frazil.expire.enabled": "true"}),
        RemoveProperties(("frazil.producer.adopter",)),
    )
    await harness.accept()
    return lost.manifest_list or ""


async def test_files_outside_the_tables_folders_are_left_to_their_owners() -> None:
    harness, _, table = await open_harness(
        EXPIRING | {"frazil.expire.enabled": "false", ADOPT_LOCATIONS_PROPERTY: OLD}
    )
    inside, outside = f"{table.metadata.location}/data/a.parquet", f"{OLD}/a.parquet"
    traffic = Traffic(harness, table)
    async with harness.running():
        lost = await roll_back_adoption(harness, table, traffic, [inside, outside])
        await traffic.commit(20)
        assert {lost, inside} & await objects(harness) == set()
        assert await objects(harness, OLD) == {outside}


@pytest.mark.parametrize(
    ("reads", "is_announced"),
    [(1, True), (1, False), (2, True)],
    ids=["in memory", "in the inbox alone", "in memory after the listing"],
)
async def test_a_file_that_a_waiting_request_may_adopt_stays(
    reads: int, is_announced: bool
) -> None:
    """`reads` of the list of the lost snapshot: each search reads it once."""
    made: list[Hooked] = []

    def wrap(inner: Storage) -> Storage:
        made.append(Hooked(inner))
        return made[0]

    harness = ServiceHarness(wrap=wrap, min_interval_ms=60_000)
    table = await harness.create_table(properties=EXPIRING | {"frazil.expire.enabled": "false"})
    inside = f"{table.metadata.location}/data/a.parquet"
    traffic = Traffic(harness, table)

    waited: list[bool] = []

    async def waits() -> None:
        await harness.publish(adopting(table, inside, producer="again"), announce=is_announced)
        await harness.settle(2.0)
        waited.append(await harness.outstanding() != [])

    async with harness.running(reconcile_interval_s=300.0):
        lost = await roll_back_adoption(harness, table, traffic, [inside])
        made[0].location, made[0].then, made[0].reads = lost, waits, reads
        await traffic.commit(20, every_s=90.0)
        assert waited == [True] and lost not in await objects(harness)
        assert inside in {one.file_path for one in await harness.live_files()}
        assert inside in await objects(harness)


async def lose_a_file(harness: ServiceHarness) -> tuple[Traffic, str]:
    """Adopt a file in the folders of a table, put the table back, and let it expire."""
    table = await harness.create_table(properties=EXPIRING | {"frazil.expire.enabled": "false"})
    inside = f"{table.metadata.location}/data/a.parquet"
    traffic = Traffic(harness, table)
    await roll_back_adoption(harness, table, traffic, [inside])
    return traffic, inside


def adopts(table: LoadedTable, path: str) -> EncodedRequest:
    return adopting(table, path, producer="again")


def removes(table: LoadedTable, path: str) -> EncodedRequest:
    return build_operation(table, "delete", producer="again", needs={"removed-data-files": [path]})


@pytest.mark.parametrize("build", [adopts, removes])
async def test_a_file_that_an_unread_request_needs_stays(
    build: Callable[[LoadedTable, str], EncodedRequest],
) -> None:
    """It has been in the inbox since before the expiry, and its doorbell is lost."""
    harness = ServiceHarness()
    async with harness.running():
        traffic, inside = await lose_a_file(harness)
        await harness.publish(build(traffic.table, inside), announce=False)
        await traffic.commit(20)
        assert len((await harness.load()).snapshots) <= KEPT + 4
        assert len(await harness.outstanding()) == 1
        assert inside in await objects(harness)


async def test_a_file_that_an_unread_request_adopts_is_live_and_there_in_the_end() -> None:
    harness = ServiceHarness()
    async with harness.running(reconcile_interval_s=3600.0):
        traffic, inside = await lose_a_file(harness)
        await harness.publish(adopts(traffic.table, inside), announce=False)
        await traffic.commit(20)
        await harness.settle(7200.0)
        assert inside in {one.file_path for one in await harness.live_files()}
        assert inside in await objects(harness)


async def test_what_can_never_land_keeps_no_file_and_no_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("committer.service.requests.inbox_lookup.REQUEST_BYTES_MAX", 100_000)
    harness = ServiceHarness()
    async with harness.running():
        traffic, inside = await lose_a_file(harness)
        garbage, oversized = (adopts(traffic.table, inside) for _ in range(2))
        contents = {garbage.key: b"no request", oversized.key: oversized.content + bytes(100_000)}
        await harness.inbox_storage.inner.create(
            [NewObject(harness.inbox.location(key), content) for key, content in contents.items()]
        )
        await traffic.commit(20)
        assert len((await harness.load()).snapshots) <= KEPT + 4
        assert len(await harness.outstanding()) == 2
        assert inside not in await objects(harness)


async def test_a_request_that_cannot_be_read_stops_the_expiry_until_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = ServiceHarness()
    async with harness.running():
        traffic, inside = await lose_a_file(harness)
        before = len((await harness.load()).snapshots)
        request = adopts(traffic.table, inside)
        await harness.publish(request, announce=False)
        line, denied = harness.inbox.line, AccessError("the key of this object is not ours")

        async def deny(key: str) -> bytes:
            raise denied

        monkeypatch.setattr(harness.inbox, "line", deny)
        with capture_logs() as logged:
            await traffic.commit(20)
        assert len((await harness.load()).snapshots) == before + 20
        assert {one["error"] for one in logged if one["event"] == "upkeep.failed"} == {str(denied)}
        monkeypatch.setattr(harness.inbox, "line", line)
        await traffic.commit(20, every_s=8.0)
        assert len((await harness.load()).snapshots) <= KEPT + 4
        assert inside in await objects(harness)


async def test_more_unread_requests_than_are_read_stop_the_expiry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("committer.service.requests.inbox_lookup.LINES_MAX", 2)
    harness, _, table = await open_harness()
    traffic = Traffic(harness, table)
    async with harness.running(reconcile_interval_s=600.0):
        await harness.settle(1.0)
        for epoch in range(3):
            unread = build_request(table, producer="unread", epoch=epoch)
            await harness.publish(unread, announce=False)
        await traffic.commit(20)
        assert len((await harness.load()).snapshots) == 20
        await harness.settle(1300.0)
        await traffic.commit(20)
        assert len((await harness.load()).snapshots) <= KEPT + 4


@pytest.mark.parametrize("has_data_files", [False, True])
async def test_an_expiry_lists_the_inbox_once_more_and_reads_nothing_where_nothing_is_unread(
    has_data_files: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = ServiceHarness()
    listed, in_table = Counter[str](), harness.inbox.list
    read, line = list[str](), harness.inbox.line

    def list_inbox(
        table_uuid: UUID | None = None, *rest: str, skips: Skips | None = None
    ) -> AsyncIterator[Outstanding]:
        listed["of a table"] += table_uuid is not None
        return in_table(table_uuid, *rest, skips=skips)

    async def read_line(key: str) -> bytes:
        read.append(key)
        return await line(key)

    monkeypatch.setattr(harness.inbox, "list", list_inbox)
    monkeypatch.setattr(harness.inbox, "line", read_line)
    async with harness.running():
        if has_data_files:
            traffic, _ = await lose_a_file(harness)
        else:
            traffic = Traffic(harness, await harness.create_table(properties=EXPIRING))
        with capture_logs() as logged:
            await traffic.commit(20)
    expiries = [one["data_files"] for one in logged if one["event"] == "snapshots.expired"]
    assert len(expiries) >= 3 and sum(expiries) == has_data_files
    # Once before each is noted, with one that is on offer still, and twice before files of data go.
    noted = len(expiries) + len(await journal(harness))
    assert listed["of a table"] == noted + 2 * has_data_files
    # A request that has just landed is read before data files go: its commit may be voided.
    assert len(read) == has_data_files


# --- Crashes -------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("applied", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("stop_at", range(8))
async def test_a_crash_in_any_step_loses_nothing_and_leaves_nothing(
    stop_at: int, applied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("committer.service.upkeep.table_files.DELETES_AT_ONCE", 2)
    harness, storage, table = await open_harness()
    traffic = Traffic(harness, table)
    storage.stop_at, storage.applied = stop_at, applied
    async with harness.running():
        await traffic.commit(16)
    assert len(storage.changes) > stop_at, "the crash did not come"
    assert await needed(harness) <= await left(harness)
    storage.stop_at = None
    async with harness.running():
        await traffic.commit(16)
        assert await left(harness) == await needed(harness)
    assert len(await journal(harness)) <= 1
    assert len((await harness.load()).snapshots) <= KEPT + 4
    assert len(await harness.live_files()) == traffic.published


@pytest.mark.thorough
@pytest.mark.parametrize(
    "fault", [Fault.LOST_REPLY, Fault.REQUEST_LOST, Fault.LANDS_LATE, Fault.CONFLICT]
)
@pytest.mark.parametrize("dies", [False, True], ids=["lives", "dies"])
async def test_whatever_becomes_of_the_swap_that_expires(fault: Fault, dies: bool) -> None:
    harness, storage, table = await open_harness()
    traffic = Traffic(harness, table)
    async with harness.running():
        while not storage.changes:
            await traffic.commit()
        # The journal is written: the next swap takes the expiry along.
        harness.catalog.plan(fault)
        swaps = harness.catalog.calls["swap"]
        await traffic.commit(every_s=0.005 if dies else 4.0)
        assert harness.catalog.calls["swap"] > swaps
    assert await needed(harness) <= await left(harness)
    await harness.catalog.land_late()
    async with harness.running():
        await traffic.commit(20)
        assert await needed(harness) <= await left(harness)
        # An attempt that has not landed leaves its list behind, a process that dies its manifest.
        assert len(await left(harness) - await needed(harness)) <= (2 if dies else 1)
    assert len(await journal(harness)) <= 1
    assert len((await harness.load()).snapshots) <= KEPT + 4
    assert len(await harness.live_files()) == traffic.published


async def test_an_expiry_that_another_engine_was_faster_with_is_given_up() -> None:
    harness, storage, table = await open_harness()
    traffic = Traffic(harness, table)
    async with harness.running():
        while not storage.changes:
            await traffic.commit()
        first = (await harness.load()).snapshots[0].snapshot_id
        await swap_in(harness, RemoveSnapshots((first,)))
        await traffic.commit(3)
        assert await journal(harness) == set() or len(storage.changes) > 2
        await traffic.commit(20)
        assert await needed(harness) <= await left(harness)
    assert len((await harness.load()).snapshots) <= KEPT + 4


async def test_dead_snapshots_that_another_engine_has_revived_go_again() -> None:
    """Iceberg Java's replacement of a table, begun before an expiry, writes the snapshots that it
    has read: they are back in the table, and their files are not."""
    harness, _, table = await open_harness()
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(3)
        stale = (await harness.load()).snapshots
        await traffic.commit(20)
        catalog = harness.catalog.inner
        swap = foreign_swap(await catalog.load(NAME), SetProperties({"replaced": "true"}))
        metadata = swap.metadata
        dead = {one.snapshot_id for one in stale}
        assert dead.isdisjoint(one.snapshot_id for one in metadata.snapshots)
        metadata = replace(metadata, snapshots=(*stale, *metadata.snapshots))
        revived = replace(swap, metadata=metadata)
        await harness.storage.inner.create(catalog.objects_before(revived))
        assert isinstance(await catalog.swap(revived), Committed)
        await traffic.commit(20)
        metadata = await harness.load()
        assert dead.isdisjoint(one.snapshot_id for one in metadata.snapshots)
        assert await left(harness) == await needed(harness)
    assert len(await harness.live_files()) == traffic.published


async def test_a_journal_entry_that_nobody_can_read_deletes_nothing() -> None:
    harness, storage, table = await open_harness()
    location = f"{INBOX}/upkeep/{table.metadata.table_uuid}/x"
    await harness.inbox_storage.inner.create((NewObject(location, b"{}"),))
    traffic = Traffic(harness, table)
    async with harness.running():
        await traffic.commit(20)
    assert [kind for kind, _ in storage.changes] == ["create"]
    assert len(await harness.live_files()) == 20


# --- Latency -------------------------------------------------------------------------------------


@pytest.mark.thorough
async def test_commits_go_on_as_fast_while_thousands_of_files_are_deleted_slowly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Virtual time knows nothing of threads.
    monkeypatch.setattr("committer.service.tasks.steps.OFF_LOOP_BYTES", 10**9)
    harness, storage, table = await open_harness(EXPIRING | {"frazil.expire.enabled": "false"})
    # The property is set below as another engine would do it: no gap is left for that here.
    harness.policy = replace(harness.policy, gap=GapPolicy(length_ms=0))
    traffic = Traffic(harness, table)
    storage.delay_s = 0.025
    async with harness.running():
        await traffic.commit(300, every_s=0.2)
        alone = await latencies(harness, traffic, 20)
        storage.delete_delay_s = 0.1
        await swap_in(harness, SetProperties({"frazil.expire.enabled": "true"}))
        await traffic.commit(2, every_s=10.0)
        during = await latencies(harness, traffic, 100)
        assert len((await harness.load()).snapshots) < 200
        await harness.settle(400.0)
        assert await needed(harness) <= await left(harness)
    deleted = sum(len(some) for kind, some in storage.changes if kind == "delete")
    assert deleted >= 500
    assert max(during) <= max(alone) + 0.001


async def test_what_is_read_for_an_expiry_is_decoded_beside_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A list of a few kilobytes may hold a thousand rows: its size says little of the work."""
    loop, decoded, is_beside = asyncio.get_running_loop(), count(), False
    in_executor = loop.run_in_executor

    def run_in_executor(*arguments: object) -> asyncio.Future[object]:
        nonlocal is_beside
        is_beside = True
        try:
            return in_executor(*arguments)  # type: ignore[arg-type]
        finally:
            is_beside = False

    def rows(content: bytes, known: set[bytes]) -> Iterator[ManifestFile]:
        assert is_beside
        next(decoded)
        return iter_new_rows(content, known)

    monkeypatch.setattr(loop, "run_in_executor", run_in_executor)
    monkeypatch.setattr("committer.plan.cleanup.reachability.iter_new_rows", rows)
    harness, _, table = await open_harness()
    async with harness.running():
        await Traffic(harness, table).commit(16)
    assert next(decoded) > 0
    assert await left(harness) == await needed(harness)


async def latencies(harness: ServiceHarness, traffic: Traffic, times: int) -> list[float]:
    """Return virtual seconds from publish to receipt, request by request."""
    await harness.receipts()
    taken = []
    for _ in range(times):
        start = harness.world.monotonic_s()
        await traffic.commit(every_s=0.0)
        assert await harness.publisher_queue.wait_for_receipts("query-1", wait_s=60.0)
        taken.append(harness.world.monotonic_s() - start)
        await harness.settle(0.3)
    return taken
