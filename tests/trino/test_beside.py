"""Trino changes and maintains tables beside our commits: each row is there once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.integration.readers import seen_by_pyiceberg
from tests.integration.real_harness import until
from tests.integration.traffic import all_ids, producers, publish_until
from tests.trino.shared_catalog import SCHEMA, SharedCatalog

pytestmark = [pytest.mark.trino, pytest.mark.timeout(600)]

INSERTS = 4


def work_of_trino(shared: SharedCatalog, table: str, ours: int) -> list[int]:
    """Insert rows of its own, and delete and update some, one of ours too.

    Return the ids of its own that are left.
    """
    ids = [-number for number in range(1, INSERTS + 1)]
    for each in ids:
        shared.trino.sql(f"INSERT INTO {table} VALUES ({each}, 'ZZ')")
    gone = ids.pop()
    assert shared.trino.value(f"DELETE FROM {table} WHERE id = {gone}") == 1
    assert shared.trino.value(f"DELETE FROM {table} WHERE id = {ours}") == 1
    assert shared.trino.value(f"UPDATE {table} SET carrier = 'YY' WHERE id = {ids[0]}") == 1
    return ids


def maintenance_of_trino(shared: SharedCatalog, table: str, ours: int) -> list[int]:
    """Delete a row of ours, rewrite the data files, and expire all but the newest snapshot."""
    shared.trino.sql(f"DELETE FROM {table} WHERE id = {ours}")
    shared.trino.sql(f"ALTER TABLE {table} EXECUTE optimize")
    shared.trino.sql(f"ALTER TABLE {table} EXECUTE optimize_manifests")
    shared.trino.sql(f"ALTER TABLE {table} EXECUTE expire_snapshots(retention_threshold => '0s')")
    return []


Work = Callable[[SharedCatalog, str, int], list[int]]


async def committed_beside(
    shared: SharedCatalog, table: str, work: Work, *, format_version: int = 2
) -> list[int]:
    """Commit requests of two producers while Trino works; return the ids that must be left."""
    harness = shared.harness
    made = await harness.create_table(table, format_version=format_version)
    async with producers(harness, made, 2, waiting=1) as published:
        await published[0].publish(2)
        deleted = published[0].ids[0]
        working = asyncio.create_task(asyncio.to_thread(work, shared, table, deleted))
        async with asyncio.TaskGroup() as tasks:
            for producer in published:
                tasks.create_task(publish_until(working, producer))
        theirs = await working  # raises if a statement failed
        # The epoch is known, whatever Trino did: its replay adds nothing.
        await published[0].publish_again(published[0].epochs - 1)
        await until(harness.is_settled, "an empty inbox")
    assert await harness.quarantined() == []
    return sorted(set(all_ids(published)) - {deleted} | set(theirs))


async def check_each_row_once(shared: SharedCatalog, table: str, ids: list[int]) -> None:
    assert shared.trino.column(f"SELECT id FROM {table} ORDER BY id") == ids
    seen = seen_by_pyiceberg(await shared.harness.load(table))
    assert (seen.rows, seen.distinct_ids, seen.sum_of_ids) == (len(ids), len(ids), sum(ids))


async def test_rows_are_there_once_while_trino_inserts_deletes_and_updates(
    shared: SharedCatalog,
) -> None:
    table = f"{SCHEMA}.beside"
    ids = await committed_beside(shared, table, work_of_trino)
    await check_each_row_once(shared, table, ids)
    changed = shared.trino.column(f"SELECT id FROM {table} WHERE carrier = 'YY'")
    assert changed == [-1]
    operations = shared.trino.column(
        f'SELECT operation FROM {SCHEMA}."beside$snapshots" WHERE element_at(summary,'
        " 'frazil.requests-count') IS NULL ORDER BY committed_at"
    )
    assert operations == [*["append"] * INSERTS, "delete", "delete", "overwrite"]


async def test_rows_are_there_once_while_trino_optimizes_and_expires(
    shared: SharedCatalog,
) -> None:
    table = f"{SCHEMA}.maintained"
    ids = await committed_beside(shared, table, maintenance_of_trino)
    await check_each_row_once(shared, table, ids)
    metadata = (await shared.harness.load(table)).metadata
    assert metadata.last_sequence_number > len(metadata.snapshots), "Trino has expired nothing"
