"""A service with one table whose rows are deleted, and whose deletes upkeep cleans up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

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
from tests.support.service.outside import add_table
from tests.support.service.service_harness import ServiceHarness

REMOVES_DANGLING = {"frazil.deletes.remove-dangling": "true"}


class Deleting:
    """A table with data of two partitions, and deletes of one of them."""

    def __init__(self, **options: object) -> None:
        self.harness = ServiceHarness(**options)  # type: ignore[arg-type]  # passed through
        self.epoch = 0

    async def create(self, properties: Mapping[str, str] = REMOVES_DANGLING) -> None:
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
