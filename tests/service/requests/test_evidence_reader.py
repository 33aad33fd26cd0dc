"""Manifest lists are read for a proof while commits wait: seldom, and many at once."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from committer.errors import AccessError, NotFoundError
from committer.ledger_entry import NO_SNAPSHOT, property_key
from committer.plan.commit.alter_commit import plan_alter_commit
from committer.plan.commit.commit import CommitPlan, Planning
from committer.plan.commit.ledger_changes import LedgerCleanup
from committer.plan.commit.step_plan import Attempt
from committer.plan.ledger import evidence as plan_evidence
from committer.plan.ledger.state import TableState
from committer.plan.operations.head import Objects
from committer.request.request_format import EncodedRequest
from committer.service.requests import evidence_reader as evidence
from committer.service.requests.evidence_reader import EvidenceReader
from tests.support.builders.alter_requests import build_alter
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_request
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.plan.committing import Table

VIRTUAL_TIME = True


class SlowStorage(MemoryStorage):
    """A second for each object, also for many at once."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        super().__init__()
        self.objects = objects
        self.reads = 0

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        self.reads += 1
        await asyncio.sleep(1.0)
        if location not in self.objects:
            raise NotFoundError(location)
        return self.objects[location]


def build_table(epochs: int) -> Table:
    table = Table.of(build_flights(fields=()))
    for epoch in range(epochs):
        table.commit(build_request(table.state.table, epoch=epoch))
    return table


async def seek(reader: EvidenceReader, state: TableState, epoch: int) -> float:
    """Return how many seconds it takes to look for another content of an epoch."""
    before_s = asyncio.get_running_loop().time()
    await reader.find(state, build_request(state.table, epoch=epoch, fingerprint="other").request)
    return asyncio.get_running_loop().time() - before_s


async def test_a_long_history_is_read_in_few_rounds_and_once() -> None:
    table = build_table(60)
    storage = SlowStorage(table.objects)
    reader = EvidenceReader(storage)
    # 1, 2, 4, 8, 16, 29
    assert await seek(reader, table.state, 59) == pytest.approx(6.0)
    table.commit(build_request(table.state.table, epoch=60))
    assert await seek(reader, table.state, 60) == pytest.approx(1.0)
    assert storage.reads == 61


async def test_what_is_read_anew_takes_the_place_of_the_oldest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evidence, "REMEMBERED_MAX", 8)
    monkeypatch.setattr(plan_evidence, "SNAPSHOTS_MAX", 4)
    table = build_table(4)
    storage = SlowStorage(table.objects)
    reader = EvidenceReader(storage)
    for epoch in range(4, 24):
        await seek(reader, table.state, epoch - 1)
        table.commit(build_request(table.state.table, epoch=epoch))
    assert storage.reads == 4 + 19


def build_altered_table(changes: int) -> tuple[Table, list[EncodedRequest]]:
    """Return a table after so many changes of one producer without a snapshot, each in a metadata
    file of its own."""
    table, requests = Table.of(build_flights(fields=())), list[EncodedRequest]()
    for epoch in range(changes):
        change = {"action": "add-column", "name": f"x{epoch}", "type": "int"}
        requests.append(build_alter(table.table, change, epoch=epoch))
        batch, _ = table.batch(requests[-1])
        table.now_ms += 1_000
        attempt = Attempt(1, UUID(int=20_000 + epoch), table.now_ms)
        # The ledger forgets them but for the last two.
        settled = frozenset(one.request.attempt for one in requests[:-1])
        cleanup = LedgerCleanup(settled={property_key("query-1"): settled})
        planning = Planning(table.state, batch, (), attempt, cleanup, objects=Objects({}))
        plan = plan_alter_commit(planning, moves_head=False)
        assert isinstance(plan, CommitPlan)
        table.land(plan)
    return table, requests


async def test_few_metadata_files_are_read_to_find_the_one_in_which_an_epoch_was_new() -> None:
    table, requests = build_altered_table(60)
    assert table.state.metadata.snapshots == ()
    for epoch in (0, 1, 29, 56):
        storage = SlowStorage(table.objects)
        landed = await EvidenceReader(storage).find(table.state, requests[epoch].request)
        assert landed is not None
        assert (landed.epoch, landed.attempt) == (epoch, requests[epoch].request.attempt)
        assert storage.reads <= 6


async def test_the_very_attempt_of_a_change_is_found_in_metadata_files_and_no_other() -> None:
    table, requests = build_altered_table(8)
    reader = EvidenceReader(SlowStorage(table.objects))
    landed = await reader.landed_in(table.state, requests[2].request)
    assert landed == NO_SNAPSHOT
    change = {"action": "add-column", "name": "x2", "type": "int"}
    again = build_alter(table.table, change, epoch=2).request
    assert await reader.landed_in(table.state, again) is None


async def test_no_metadata_file_is_read_for_an_epoch_that_has_not_landed() -> None:
    table, _ = build_altered_table(3)
    storage = SlowStorage(table.objects)
    change = {"action": "add-column", "name": "y", "type": "int"}
    later = build_alter(table.table, change, epoch=3).request
    assert await EvidenceReader(storage).landed_in(table.state, later) is None
    assert storage.reads == 0


class StorageWithoutMetadata(SlowStorage):
    """Refuses to hand out metadata files, as where a catalog server keeps them for itself."""

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        if location.endswith(".metadata.json"):
            raise AccessError(location)
        return await super().get(location)


async def test_metadata_files_that_the_committer_may_not_read_prove_nothing() -> None:
    table, requests = build_altered_table(4)
    reader = EvidenceReader(StorageWithoutMetadata(table.objects))
    assert await reader.find(table.state, requests[0].request) is None
