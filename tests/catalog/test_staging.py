"""Reading the metadata that a pointer names."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from committer.catalog import staging
from committer.errors import UnsupportedError
from committer.iceberg.metadata.table_metadata import TableMetadata, parse_table_metadata
from tests.support.builders.table_builders import build_table
from tests.support.memory.memory_storage import MemoryStorage


@pytest.mark.parametrize("is_large", [False, True])
async def test_a_large_metadata_file_is_read_beside_the_loop(
    is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def parse(content: bytes) -> TableMetadata:
        threads.append(threading.get_ident())
        return parse_table_metadata(content)

    monkeypatch.setattr(staging, "parse_table_metadata", parse)
    storage = MemoryStorage()
    properties = {f"key-{number}": "x" * 1_000 for number in range(300 if is_large else 1)}
    table = build_table(warehouse="memory://warehouse", properties=properties)
    await staging.write_first_metadata(storage, table)
    read = await staging.read_table(storage, table.identifier, table.metadata_location)
    assert read == table
    assert (threads == [threading.get_ident()]) is not is_large


async def test_an_old_table_without_uuid_does_not_come_in_from_a_catalog() -> None:
    table = build_table(warehouse="memory://warehouse")
    old = replace(table.metadata, format_version=1, last_sequence_number=0, table_uuid=None)
    storage = MemoryStorage()
    await storage.create([staging.metadata_object(old, table.metadata_location)])
    with pytest.raises(UnsupportedError, match="`table-uuid`: expected a uuid"):
        await staging.read_table(storage, table.identifier, table.metadata_location)
