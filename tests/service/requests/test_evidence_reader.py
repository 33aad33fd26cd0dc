"""Manifest lists are read for a proof while commits wait: seldom, and many at once."""

from __future__ import annotations

import asyncio

import pytest

from committer.plan.ledger import evidence as plan_evidence
from committer.plan.ledger.state import TableState
from committer.service.requests import evidence_reader as evidence
from committer.service.requests.evidence_reader import EvidenceReader
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
