"""Position deletes become vectors behind the commits, of real files, by a request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import BytesIO

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from structlog.testing import capture_logs

from committer.errors import InvalidMetadataError
from committer.iceberg.deletes.deletion_vector_file import decode_vector_of, vector_range
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.updates.metadata_update import UpgradeFormatVersion
from committer.ports.storage import NewObject
from committer.service.upkeep.position_rows import read_position_rows
from tests.support.builders.request_builders import (
    build_file,
    build_line,
    build_manifest,
    build_request,
    seal,
)
from tests.support.service.deleting import Deleting
from tests.support.service.outside import foreign_commit

VIRTUAL_TIME = True
WANTED = {"frazil.deletes.convert-positions": "true"}
ROUND = 11.0


def parquet(rows: Sequence[tuple[str, int | None]]) -> bytes:
    paths, positions = [path for path, _ in rows], [position for _, position in rows]
    out = BytesIO()
    pq.write_table(pa.table({"file_path": paths, "pos": pa.array(positions, pa.int64())}), out)
    return out.getvalue()


def avro(rows: Sequence[tuple[str, int]]) -> bytes:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "file_path", "type": "string", "field-id": 2147483546},
            {"name": "pos", "type": "long", "field-id": 2147483545},
        ],
    }
    out = BytesIO()
    records = [{"file_path": path, "pos": position} for path, position in rows]
    fastavro.writer(out, json.loads(json.dumps(schema)), records)
    return out.getvalue()


class Positions(Deleting):
    """A table of version 2 with position deletes, to be upgraded."""

    async def delete_positions(
        self, rows: Sequence[tuple[str, int]], *, file_format: str = "PARQUET"
    ) -> None:
        line = build_line(self.table, producer=f"p{self.epoch}", epoch=0)
        line = line.model_copy(update={"operation": "row-delta"})
        file = build_file(self.table.metadata, line.attempt, partition=("AA",))
        content = avro(rows) if file_format == "AVRO" else parquet(rows)
        paths = {path for path, _ in rows}
        deletes = replace(
            file,
            content=DataFileContent.POSITION_DELETES,
            file_format=file_format,
            record_count=len(rows),
            file_size_in_bytes=len(content),
            value_counts=None,
            null_value_counts=None,
            lower_bounds=None,
            upper_bounds=None,
            referenced_data_file=paths.pop() if len(paths) == 1 else None,
        )
        await self.harness.storage.inner.create([NewObject(file.file_path, content)])
        await self.publish(seal(line, [build_manifest(self.table.metadata, [deletes])]))

    async def upgrade(self) -> None:
        await foreign_commit(self.harness, self.table, UpgradeFormatVersion(3))

    async def append_v3(self, carrier: str) -> None:
        """Append by a client that has read the table as it is."""
        table = await self.harness.catalog.inner.load(self.table.identifier)
        await self.publish(
            build_request(table, producer=f"p{self.epoch}", epoch=0, partition=(carrier,))
        )

    async def vectors(self) -> dict[str, list[int]]:
        found = {}
        for file in await self.deletes():
            assert file.is_deletion_vector
            offset, length = vector_range(file)
            content = await self.harness.storage.inner.get(
                file.file_path, offset=offset, length=length
            )
            found[file.referenced_data_file or ""] = list(decode_vector_of(file, content))
        return found

    def converted(self) -> float:
        samples = self.harness.metrics.instruments.samples()
        name = "frazil_position_deletes_converted_total"
        return sum(one.value for one in samples if one.name == name)


async def filled(properties: Mapping[str, str] = WANTED) -> tuple[Positions, list[str]]:
    positions = Positions()
    await positions.create(properties)
    async with positions.harness.running():
        paths = [await positions.append("AA") for _ in range(2)]
        await positions.delete_positions([(paths[0], 1), (paths[0], 4)])
        await positions.delete_positions([(paths[0], 2)], file_format="AVRO")
        await positions.delete_positions([(paths[0], 4), (paths[1], 7)])
    await positions.upgrade()
    return positions, paths


async def test_files_of_both_formats_become_one_vector_of_each_data_file() -> None:
    positions, paths = await filled()
    async with positions.harness.running():
        await positions.append_v3("CC")
        await positions.harness.settle(ROUND)
        assert await positions.vectors() == {paths[0]: [1, 2, 4], paths[1]: [7]}
        assert positions.converted() == 3
        positions.harness.storage.calls.clear()
        await positions.append_v3("CC")
        await positions.harness.settle(ROUND)
        await positions.append_v3("CC")
        await positions.harness.settle(ROUND)
        # The new manifest of deletes is read once.
        assert dict(positions.harness.storage.calls) == {"create": 2, "get": 1}
    assert await positions.harness.outstanding() == []
    assert await positions.harness.quarantined() == []


async def test_a_table_that_does_not_want_it_keeps_its_position_deletes() -> None:
    positions, _ = await filled({})
    async with positions.harness.running():
        await positions.append_v3("CC")
        await positions.harness.settle(ROUND)
        positions.harness.storage.calls.clear()
        await positions.append_v3("CC")
        await positions.harness.settle(ROUND)
        assert dict(positions.harness.storage.calls) == {"create": 1}
        assert len(await positions.deletes()) == 3


async def test_without_pyarrow_it_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    positions, _ = await filled()
    monkeypatch.setattr("committer.service.upkeep.vector_converter.find_spec", lambda name: None)
    with capture_logs() as events:
        async with positions.harness.running():
            for _ in range(3):
                await positions.append_v3("CC")
                await positions.harness.settle(ROUND)
    assert len(await positions.deletes()) == 3
    said = [one["reason"] for one in events if one["event"] == "position_deletes.left_alone"]
    assert said == ["pyarrow is not installed"]


@pytest.mark.parametrize("content", [b"", b"PAR1", parquet([("a", -1)]), parquet([("a", None)])])
def test_a_file_that_is_no_position_delete_file_is_damaged(content: bytes) -> None:
    file = DataFile(file_path="position deletes of d", record_count=1, file_size_in_bytes=1)
    with pytest.raises(InvalidMetadataError, match="position deletes of d"):
        read_position_rows(file, content)


def test_columns_of_another_file_are_no_positions() -> None:
    out = BytesIO()
    pq.write_table(pa.table({"id": [1]}), out)
    file = DataFile(file_path="position deletes of d", record_count=1, file_size_in_bytes=1)
    with pytest.raises(InvalidMetadataError, match="position deletes of d"):
        read_position_rows(file, out.getvalue())
