from __future__ import annotations

from dataclasses import replace

import pytest

from committer.catalog.staging import read_table
from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.table_metadata import parse_table_metadata
from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.ports.pointer_swap import LoadedTable
from committer.request.table_identifier import TableIdentifier
from tests.support.builders.fixtures import table_dir, table_names
from tests.support.builders.table_builders import build_table
from tests.support.clock.worlds import ManualWorld
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.workers.publishing import FLIGHTS, build_bench
from workers.requests.table_cache import TableCache, opened, parse_without_history


class _CountingStorage(MemoryStorage):
    gets = 0

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        self.gets += 1
        return await super().get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )


async def test_metadata_is_read_again_only_when_the_pointer_has_moved() -> None:
    storage = _CountingStorage()
    bench = await build_bench(storage=storage)
    cache = TableCache(open_catalog=opened(bench.catalog), storage=storage, world=bench.world)
    first = await cache.current(FLIGHTS)
    assert await cache.current(FLIGHTS) is first
    assert storage.gets == 1
    await bench.land(bench.written())
    storage.gets = 0
    assert (await cache.current(FLIGHTS)).metadata_location != first.metadata_location
    assert storage.gets == 1


class _ServerCatalog(MemoryCatalog):
    """Writes metadata itself, and does not say where."""

    capabilities = CatalogCapabilities(kind="server", metadata_writer="catalog")

    async def current_location(self, identifier: TableIdentifier) -> str:
        return f"digest:{await super().current_location(identifier)}"

    async def load(self, identifier: TableIdentifier) -> LoadedTable:
        location = await super().current_location(identifier)
        table = await read_table(self.files, identifier, location)
        return replace(table, metadata_location=await self.current_location(identifier))

    files: MemoryStorage


async def test_metadata_that_the_catalog_keeps_is_asked_of_it() -> None:
    storage = _CountingStorage()
    catalog = _ServerCatalog(storage=storage)
    catalog.files = storage
    await catalog.create_namespace(("db",))
    table = build_table(warehouse="memory://warehouse")
    await catalog.create_table(table)
    cache = TableCache(open_catalog=opened(catalog), storage=MemoryStorage(), world=ManualWorld())
    first = await cache.current(table.identifier)
    assert first.metadata == table.metadata
    assert await cache.current(table.identifier) is first


@pytest.mark.parametrize("name", table_names())
def test_a_table_without_its_history_is_the_same_table_to_a_writer(name: str) -> None:
    for path in sorted((table_dir(name) / "metadata").glob("*.metadata.json")):
        whole, found = (
            parse(path.read_bytes()) for parse in (parse_table_metadata, parse_without_history)
        )
        for fact in (
            "table_uuid",
            "format_version",
            "location",
            "schemas",
            "current_schema",
            "partition_specs",
            "default_spec",
            "properties",
            "current_snapshot",
        ):
            assert getattr(found, fact) == getattr(whole, fact)
        branches = [name for name, ref in whole.refs.items() if ref.type == "branch"]
        assert list(found.refs) == branches
        for name in branches:
            assert found.branch_head(name) == whole.branch_head(name)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\x1f\x8b"])
def test_broken_metadata_is_called_broken(content: bytes) -> None:
    with pytest.raises(InvalidMetadataError):
        parse_without_history(content)
