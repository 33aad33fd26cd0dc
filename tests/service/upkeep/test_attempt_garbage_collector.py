"""Garbage of attempts: deleted with a proof, kept without one, never those in use."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pytest

from committer.iceberg.manifest.manifest_list import decode_manifest_list
from committer.iceberg.metadata.snapshot import MAIN, SnapshotRef
from committer.iceberg.updates.metadata_update import (
    SetProperties,
    SetSnapshotRef,
    Update,
)
from committer.ports.pointer_swap import Committed, LoadedTable
from committer.ports.storage import Storage
from committer.request.table_identifier import TableIdentifier
from committer.service.table import inflight_batch
from committer.storage.inbox.journal import GarbageEntry
from tests.support.builders.request_builders import build_request
from tests.support.faults.faulty_catalog import Fault
from tests.support.faults.stopping_storage import StoppingStorage
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import INBOX, WAREHOUSE, ServiceHarness

VIRTUAL_TIME = True

NAME = TableIdentifier.parse("db.flights")
CLEANING = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "4",
}
FEW_MERGED = {"commit.manifest.min-count-to-merge": "4"}


def is_clean_up(kind: str, locations: Sequence[str]) -> bool:
    """Return whether a call writes the journal or deletes from a table."""
    of_table = locations[0].startswith(WAREHOUSE) and kind == "delete"
    return of_table or locations[0].startswith(f"{INBOX}/upkeep/")


class Table:
    """A service with one table that is committed to."""

    def __init__(self) -> None:
        self.harness = ServiceHarness(wrap=self._wrap)
        self.epochs = count()

    def _wrap(self, inner: Storage) -> StoppingStorage:
        self.storage = StoppingStorage(inner, is_clean_up)
        return self.storage

    async def create(self, properties: dict[str, str] | None = None) -> LoadedTable:
        self.table = await self.harness.create_table(properties=properties)
        return self.table

    async def commit(self, times: int = 1, *, seconds: float = 4.0) -> None:
        for _ in range(times):
            await self.harness.publish(build_request(self.table, epoch=next(self.epochs)))
            await self.harness.settle(seconds)

    async def swap_in(self, *updates: Update) -> None:
        """Commit as another engine."""
        await foreign_commit(self.harness, self.table, *updates)

    async def there(self, prefix: str = WAREHOUSE) -> set[str]:
        return {one.location async for one in self.harness.storage.inner.list(prefix)}

    async def journal(self) -> list[object]:
        uuid = self.table.metadata.require_uuid()
        return [entry async for entry in self.harness.journal.list(uuid)]

    async def named(self) -> set[str]:
        """Return all that the table names, except data files."""
        table = await self.harness.catalog.inner.load(NAME)
        metadata = table.metadata
        found = {table.metadata_location, *(one.metadata_file for one in metadata.metadata_log)}
        for snapshot in metadata.snapshots:
            location = snapshot.manifest_list or ""
            rows = decode_manifest_list(await self.harness.storage.inner.get(location)).rows
            found |= {location, *(row.manifest_path for row in rows)}
        return found

    async def garbage(self) -> set[str]:
        """Return files below the table that nothing names; check that all it names exist."""
        there, named = await self.there(), await self.named()
        assert named <= there
        return there - named


# --- What goes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "faults",
    [
        [Fault.CONFLICT],
        [Fault.REJECTED],
        [Fault.CONFLICT, Fault.CONFLICT, Fault.CONFLICT],
        [Fault.CONFLICT, Fault.REJECTED, Fault.CONFLICT],
    ],
    ids=lambda faults: "-".join(fault.name for fault in faults),
)
async def test_attempts_that_were_refused_leave_nothing_behind_the_next_commit(
    faults: list[Fault],
) -> None:
    table = Table()
    await table.create()
    async with table.harness.running():
        await table.commit()
        table.harness.catalog.plan(*faults)
        await table.commit(3, seconds=40.0)
        assert await table.garbage() == set()
        assert await table.journal() == []
    assert len(await table.harness.live_files()) == 4 - len(await table.harness.quarantined())


async def test_a_batch_that_a_real_conflict_meets_leaves_nothing() -> None:
    table = Table()
    await table.create()
    async with table.harness.running():
        await table.commit()
        await table.swap_in(SetProperties({"touched": "by another engine"}))
        await table.commit()
        assert await table.garbage() == set()
    assert len(table.harness.catalog.calls) > 0
    assert len(await table.harness.live_files()) == 2


async def test_a_batch_that_changed_leaves_its_manifests_to_be_deleted_too() -> None:
    table = Table()
    await table.create()
    for number in range(4):
        await table.harness.publish(build_request(table.table, producer=f"query-{number}"))
    # The batch of all, a half, then the request at fault: three batches that never land.
    table.harness.catalog.plan(*[Fault.REJECTED] * 3)
    async with table.harness.running():
        await table.harness.settle(60.0)
        assert await table.garbage() == set()
    assert len(await table.harness.quarantined()) == 1
    deleted = [locations for kind, locations in table.storage.changes if kind == "delete"]
    assert sum("-m0.avro" in one for locations in deleted for one in locations) == 3


async def test_nothing_is_deleted_where_the_catalogs_service_does_that_and_merges_go_on() -> None:
    cleaned, kept = Table(), Table()
    inner = kept.harness.catalog.inner
    assert isinstance(inner, MemoryCatalog)
    inner.capabilities = replace(inner.capabilities, maintains_tables=True)
    expiring = {"frazil.expire.enabled": "true", "history.expire.max-snapshot-age-ms": "0"}
    for table in (cleaned, kept):
        await table.create(CLEANING | FEW_MERGED | expiring)
        async with table.harness.running():
            await table.commit()
            table.harness.catalog.plan(Fault.CONFLICT, Fault.CONFLICT)
            await table.commit(12)
        assert len(await table.harness.live_files()) == 13
    assert cleaned.storage.changes and not kept.storage.changes
    metadata = await kept.harness.load()
    assert len(metadata.snapshots) == 13
    last = await kept.harness.storage.inner.get(metadata.snapshots[-1].manifest_list or "")
    assert len(decode_manifest_list(last).rows) < 8


async def test_commits_without_conflicts_write_no_note_and_delete_nothing() -> None:
    table = Table()
    await table.create()
    async with table.harness.running():
        await table.commit(8)
    assert table.storage.changes == []


async def test_the_note_is_durable_before_anything_is_deleted_and_goes_last() -> None:
    table = Table()
    await table.create()
    async with table.harness.running():
        await table.commit()
        table.harness.catalog.plan(Fault.CONFLICT)
        await table.commit()
    kinds = [(kind, locations[0].startswith(INBOX)) for kind, locations in table.storage.changes]
    assert kinds == [("create", True), ("delete", False), ("delete", True)]


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("stop_at", range(3))
async def test_a_crash_at_any_moment_of_it_is_finished_by_the_next_process(
    stop_at: int, applied: bool
) -> None:
    table = Table()
    await table.create()
    table.storage.stop_at, table.storage.applied = stop_at, applied
    async with table.harness.running():
        await table.commit()
        table.harness.catalog.plan(Fault.CONFLICT)
        await table.commit()
    assert len(table.storage.changes) == stop_at + 1
    table.storage.stop_at = None
    async with table.harness.running():
        await table.commit()
    left = await table.garbage()
    # Before the note is written only memory knows: an orphan, for the report.
    assert (left == set()) == (stop_at > 0 or applied)
    assert await table.journal() == []
    assert len(await table.harness.live_files()) == 3


async def test_a_merge_that_is_of_no_use_goes() -> None:
    table = Table()
    await table.create(FEW_MERGED)
    async with table.harness.running():
        await table.commit(4)
        second = (await table.harness.load()).snapshots[1]
        await table.swap_in(SetSnapshotRef(MAIN, SnapshotRef(second.snapshot_id, "branch")))
        await table.harness.publish(build_request(table.table, producer="another"))
        await table.harness.settle(10.0)
        assert await table.garbage() == set()
        assert len(await table.harness.live_files()) == 3


async def test_a_merge_that_no_attempt_has_taken_along_goes_when_it_is_of_no_use() -> None:
    table = Table()
    await table.create(FEW_MERGED)
    async with table.harness.running():
        await table.commit(4)
        second = (await table.harness.load()).snapshots[1]
        await table.swap_in(SetSnapshotRef("audit", SnapshotRef(second.snapshot_id, "branch")))
        await table.swap_in(SetSnapshotRef(MAIN, SnapshotRef(second.snapshot_id, "branch")))
        # Not of main: the commit on it finds out, and takes nothing along.
        await table.harness.publish(build_request(table.table, producer="other", branch="audit"))
        await table.harness.settle(10.0)
        await table.harness.publish(build_request(table.table, producer="another"))
        await table.harness.settle(10.0)
        assert await table.garbage() == set()
        assert len(await table.harness.live_files()) == 3


# --- What stays ----------------------------------------------------------------------------------


async def test_a_merge_that_was_taken_along_in_vain_stays_for_the_next_attempt() -> None:
    table = Table()
    await table.create(FEW_MERGED)
    harness = table.harness
    async with harness.running():
        await table.commit(3)
        third = (await harness.load()).snapshots[2]
        await table.swap_in(SetSnapshotRef("audit", SnapshotRef(third.snapshot_id, "branch")))
        await table.commit()
        # The attempt on main names the merged manifest, and never lands; one on audit does.
        harness.catalog.plan(Fault.REJECTED)
        await harness.publish(build_request(table.table, producer="refused"))
        await harness.settle(10.0)
        await harness.publish(build_request(table.table, producer="other", branch="audit"))
        await harness.settle(10.0)
        assert len(await harness.quarantined()) == 1
        assert len(table.storage.changes) > 0
        await table.commit()
        assert await table.garbage() == set()
        head = (await harness.load()).current_snapshot
    assert head is not None
    assert (head.summary or {})["manifests-replaced"] == "4"
    assert len(await harness.live_files()) == 5


@pytest.mark.parametrize("fault", [Fault.REQUEST_LOST, Fault.LOST_REPLY, Fault.LANDS_LATE])
async def test_behind_a_lost_answer_everything_stays_until_its_base_is_gone(fault: Fault) -> None:
    table = Table()
    await table.create(CLEANING)
    async with table.harness.running():
        await table.commit(2)
        base = (await table.harness.catalog.inner.load(NAME)).metadata_location
        table.harness.catalog.plan(fault)
        await table.commit()
        left = await table.garbage()
        assert len(left) == (0 if fault is Fault.LOST_REPLY else 2)
        if left:
            (entry,) = await table.journal()
            assert isinstance(entry, GarbageEntry)
            assert entry.bases == (base,)
            assert left == {*entry.own_files}
        await table.commit(3)
        assert base in await table.there()
        assert await table.garbage() == left
        await table.commit(3)
        assert base not in await table.there()
        assert await table.garbage() == set()
        assert await table.journal() == []
    assert len(await table.harness.live_files()) == 9


async def test_where_old_metadata_files_are_kept_so_is_what_an_attempt_in_doubt_has_left() -> None:
    table = Table()
    await table.create({"write.metadata.previous-versions-max": "4"})
    async with table.harness.running():
        await table.commit(2)
        table.harness.catalog.plan(Fault.REQUEST_LOST)
        await table.commit()
        await table.commit(8)
        # Its base has left the log, but the table might be put back to it.
        assert await table.journal() == []
    files = {one for one in await table.garbage() if not one.endswith(".metadata.json")}
    assert len(files) == 1


async def test_an_attempt_that_lands_when_the_table_is_put_back_to_its_base_is_readable() -> None:
    """The catalog's condition is the pointer alone: it holds again once an operator restores it."""
    table = Table()
    await table.create(CLEANING)
    async with table.harness.running():
        await table.commit(2)
        base = await table.harness.catalog.inner.load(NAME)
        table.harness.catalog.plan(Fault.LANDS_LATE)
        await table.commit()
        await table.commit(2)
    await table.harness.catalog.inner.drop_table(NAME)
    await table.harness.catalog.inner.register_table(NAME, base.metadata_location)
    (answer,) = await table.harness.catalog.land_late()
    assert isinstance(answer, Committed)
    assert len(await table.harness.live_files()) == 3


async def test_of_a_base_that_left_the_log_before_our_commit_nothing_is_believed() -> None:
    table = Table()
    await table.create({"write.metadata.previous-versions-max": "1"})
    async with table.harness.running():
        await table.commit()
        table.harness.catalog.plan(Fault.CONFLICT, Fault.CONFLICT)
        await table.harness.publish(build_request(table.table, epoch=next(table.epochs)))
        await table.harness.settle(0.001)
        await table.swap_in(SetProperties({"touched": "once"}))
        await table.swap_in(SetProperties({"touched": "twice"}))
        await table.harness.settle(10.0)
        assert await table.journal() == []
    lists = [one for one in await table.garbage() if "/snap-" in one]
    assert len(lists) >= 1
    assert len(await table.harness.live_files()) == 2


async def test_a_conflict_that_was_our_own_success_costs_no_file() -> None:
    """An answer that no catalog may give: what the table says comes first."""
    table = Table()
    await table.create()
    harness = table.harness
    async with harness.running():
        await table.commit()
        harness.catalog.plan(Fault.LANDS_LATE, Fault.CONFLICT)
        await harness.publish(build_request(table.table, epoch=next(table.epochs)))
        await harness.settle(0.001)
        (answer,) = await harness.catalog.land_late()
        assert isinstance(answer, Committed)
        await table.commit(2)
        assert await table.garbage() == set()
    assert len(await harness.live_files()) == 4


async def test_what_the_table_names_stays_whatever_a_note_says() -> None:
    table = Table()
    await table.create()
    async with table.harness.running():
        await table.commit(2)
    current = await table.harness.catalog.inner.load(NAME)
    head = current.metadata.current_snapshot
    assert head is not None
    rows = decode_manifest_list(
        await table.harness.storage.inner.get(head.manifest_list or "")
    ).rows
    for own_files, manifests in (
        ((current.metadata_location,), ()),
        ((current.metadata.metadata_log[0].metadata_file,), ()),
        ((head.manifest_list or "",), ()),
        ((), (rows[-1].manifest_path,)),
    ):
        await table.harness.journal.put(
            GarbageEntry(
                entry_id=table.harness.world.uuid(),
                table_uuid=table.table.metadata.require_uuid(),
                proven_in=current.metadata_location,
                written_at_ms=0,
                own_files=own_files,
                manifests=manifests,
                bases=(),
                after_sequence_number=0,
            )
        )
    async with table.harness.running():
        await table.commit()
        assert await table.garbage() == set()
        assert await table.journal() == []
    assert len(await table.harness.live_files()) == 3


# --- A batch that waits long ---------------------------------------------------------------------


async def test_a_batch_that_waited_for_long_is_written_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing names its manifests meanwhile: an engine's orphan clean-up may have taken them."""
    monkeypatch.setattr(inflight_batch, "INFLIGHT_S_MAX", 60.0)
    table = Table()
    await table.create()
    async with table.harness.running():
        await table.commit()
        table.harness.catalog.plan(*[Fault.UNAVAILABLE] * 4)
        before = await table.there()
        await table.harness.publish(build_request(table.table, epoch=next(table.epochs)))
        await table.harness.settle(0.001)
        written = await table.there() - before
        table.harness.storage.is_away = True
        await asyncio.sleep(120.0)
        await table.harness.storage.inner.delete([one for one in written if one.endswith(".avro")])
        table.harness.catalog.recover()
        table.harness.storage.is_away = False
        await table.harness.settle(60.0)
        assert len(await table.harness.live_files()) == 2
