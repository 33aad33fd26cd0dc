"""The ids of a table's rows, and its history, by each client of its catalog."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing
from io import BytesIO
from itertools import pairwise

import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog
from pyiceberg.table import StaticTable

import frazil
from committer.iceberg.metadata.table_metadata import TableMetadata, parse_table_metadata
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import Storage
from tests.support.integration.real_harness import CATALOG, RealHarness


def ids_by_pyiceberg(properties: Mapping[str, str], name: str) -> list[int]:
    """Read the rows through PyIceberg's own client of the catalog."""
    with closing(load_catalog(CATALOG, **properties)) as catalog:
        rows = catalog.load_table(name).scan().to_arrow()
    return sorted(rows["id"].to_pylist())


def ids_of_file_by_pyiceberg(properties: Mapping[str, str], table: LoadedTable) -> list[int]:
    """Read the rows by the metadata file alone, where PyIceberg has no client of the catalog."""
    found = StaticTable.from_metadata(table.metadata_location, dict(properties))
    return sorted(found.scan().to_arrow()["id"].to_pylist())


async def ids_by_frazil(harness: RealHarness, name: str) -> list[int]:
    """Read the rows of the files that Frazil's reader plans."""
    properties = dict(harness.settings.catalog.values)
    table = await asyncio.to_thread(
        frazil.load_table, name, catalog_name=CATALOG, properties=properties
    )
    tasks = await asyncio.to_thread(table.scan().plan_files)
    assert not any(task.delete_files for task in tasks), "the test's engines copy on write"
    async with harness.storage() as storage:
        contents = [await storage.get(task.file.file_path) for task in tasks]
    columns = [pq.read_table(BytesIO(each))["id"].to_pylist() for each in contents]
    return sorted(each for ids in columns for each in ids)


async def check_history(harness: RealHarness, table: LoadedTable) -> list[TableMetadata]:
    """Check every metadata file from the table's first: each builds on the one before, so no commit
    of any engine was overwritten. Return them.
    """
    async with harness.storage() as storage:
        names = [entry.metadata_file for entry in table.metadata.metadata_log]
        states = [await _state(storage, each) for each in (*names, table.metadata_location)]
    assert not states[0].snapshots, "the log lacks the table's first metadata files"
    for number, (before, after) in enumerate(pairwise(states), 1):
        assert [each.metadata_file for each in after.metadata_log] == names[:number]
        assert after.table_uuid == before.table_uuid
        assert after.last_sequence_number >= before.last_sequence_number
        assert _is_on_top_of(after, before.current_snapshot_id)
    return states


def switches(states: Sequence[TableMetadata]) -> int:
    """Return how often a commit of Frazil follows one of another engine, or the other way round."""
    heads = [state.current_snapshot for state in states]
    ours = ["frazil.requests-count" in (head.summary or {}) for head in heads if head]
    return sum(before != after for before, after in pairwise(ours))


async def _state(storage: Storage, location: str) -> TableMetadata:
    return parse_table_metadata(await storage.get(location))


def _is_on_top_of(metadata: TableMetadata, snapshot_id: int | None) -> bool:
    """Return whether the head is a snapshot or comes from it."""
    each = metadata.current_snapshot_id
    while each is not None and each != snapshot_id:
        snapshot = metadata.snapshots_by_id.get(each)
        each = snapshot.parent_snapshot_id if snapshot else None
    return each == snapshot_id
