"""Deletes that apply to nothing are removed behind the commits, by a request that lands in turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.ports.pointer_swap import LoadedTable
from committer.request.request_format import EncodedRequest
from tests.support.builders.flights import build_flights
from tests.support.builders.operation_requests import base_of, build_operation
from tests.support.builders.request_builders import (
    build_file,
    build_line,
    build_manifest,
    build_request,
    seal,
)
from tests.support.faults.faulty_catalog import Fault
from tests.support.service.outside import add_table
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True
WANTED = {"frazil.deletes.remove-dangling": "true"}
LOOKS = 61.0


class Deleting:
    """A table with data of two partitions, and deletes of one of them."""

    def __init__(self, **options: object) -> None:
        self.harness = ServiceHarness(**options)  # type: ignore[arg-type]  # passed through
        self.epoch = 0

    async def create(self, properties: Mapping[str, str] = WANTED) -> None:
        table = build_flights(properties=properties)
        self.table: LoadedTable = await add_table(self.harness, table)

    async def publish(self, sealed: EncodedRequest) -> None:
        self.epoch += 1
        await self.harness.publish(sealed)
        await self.harness.settle(1.0)

    async def append(self, carrier: str) -> str:
        sealed = build_request(self.table, producer=f"p{self.epoch}", epoch=0, partition=(carrier,))
        await self.publish(sealed)
        paths = [file.file_path for file in await self.harness.live_files()]
        (path,) = (path for path in paths if str(sealed.request.attempt) in path)
        return path

    async def delete_rows(self, carrier: str) -> None:
        """Delete by equality, without data."""
        line = build_line(self.table, producer=f"p{self.epoch}", epoch=0)
        line = line.model_copy(update={"operation": "row-delta"})
        file = build_file(self.table.metadata, line.attempt, partition=(carrier,))
        deletes = replace(
            file, content=DataFileContent.EQUALITY_DELETES, equality_ids=(1,), record_count=1
        )
        await self.publish(seal(line, [build_manifest(self.table.metadata, [deletes])]))

    async def remove(self, path: str) -> None:
        needs = {**base_of(await self.harness.load()), "removed-data-files": [path]}
        await self.publish(
            build_operation(self.table, "delete", producer=f"p{self.epoch}", epoch=0, needs=needs)
        )

    async def make_one_dangle(self) -> None:
        await self.append("BB")
        path = await self.append("AA")
        await self.delete_rows("AA")
        await self.delete_rows("BB")
        await self.remove(path)

    async def deletes(self) -> list[DataFile]:
        return [file for file in await self.harness.live_files() if file.content]

    async def carriers(self) -> list[str]:
        return sorted(str(file.partition[0]) for file in await self.deletes())

    def counted(self) -> float:
        samples = self.harness.metrics.instruments.samples()
        name = "frazil_dangling_deletes_removed_total"
        return sum(one.value for one in samples if one.name == name)


async def test_a_delete_that_applies_to_nothing_goes_and_one_that_is_needed_stays() -> None:
    deleting = Deleting()
    await deleting.create()
    async with deleting.harness.running():
        await deleting.make_one_dangle()
        assert await deleting.carriers() == ["AA", "BB"]
        await deleting.harness.settle(LOOKS)
        await deleting.append("AA")
        await deleting.harness.settle(5.0)
    assert await deleting.carriers() == ["BB"]
    assert deleting.counted() == 1
    metadata = await deleting.harness.load()
    assert metadata.current_snapshot is not None
    assert metadata.current_snapshot.operation == "replace"
    assert await deleting.harness.outstanding() == []
    assert await deleting.harness.quarantined() == []


async def test_a_table_that_does_not_want_it_keeps_its_deletes_and_nothing_is_read() -> None:
    deleting = Deleting()
    await deleting.create({})
    async with deleting.harness.running():
        await deleting.make_one_dangle()
        await deleting.harness.settle(LOOKS)
        deleting.harness.storage.calls.clear()
        await deleting.harness.publish(build_request(deleting.table, partition=("AA",)))
        await deleting.harness.settle(5.0)
        assert dict(deleting.harness.storage.calls) == {"create": 1}
    assert await deleting.carriers() == ["AA", "BB"]


async def test_a_commit_with_nothing_due_reads_nothing() -> None:
    deleting = Deleting()
    await deleting.create()
    async with deleting.harness.running():
        await deleting.append("BB")
        await deleting.delete_rows("BB")
        await deleting.harness.settle(LOOKS)
        await deleting.append("AA")
        await deleting.harness.settle(LOOKS)
        deleting.harness.storage.calls.clear()
        for epoch in range(3):
            sealed = build_request(deleting.table, epoch=epoch, partition=("AA",))
            await deleting.harness.publish(sealed)
            await deleting.harness.settle(LOOKS)
        assert dict(deleting.harness.storage.calls) == {"create": 3}


@pytest.mark.parametrize(
    "fault", [Fault.CONFLICT, Fault.LOST_REPLY, Fault.REQUEST_LOST], ids=lambda one: one.name
)
async def test_whatever_the_swap_answers_the_removal_lands_once(fault: Fault) -> None:
    deleting = Deleting()
    await deleting.create()
    async with deleting.harness.running():
        await deleting.make_one_dangle()
        await deleting.harness.settle(LOOKS)
        catalog = deleting.harness.catalog
        catalog.calls.clear()
        catalog.swap_s[str(deleting.table.identifier)] = 0.5
        await deleting.harness.publish(build_request(deleting.table, partition=("AA",)))
        await deleting.harness.settle(0.75)
        catalog.plan(fault)
        await deleting.harness.settle(30.0)
        assert catalog.calls["swap"] == (2 if fault is Fault.LOST_REPLY else 3)
    assert await deleting.carriers() == ["BB"]
    assert await deleting.harness.outstanding() == []
    assert await deleting.harness.quarantined() == []
