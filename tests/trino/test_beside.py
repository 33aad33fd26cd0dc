"""Trino changes and maintains tables beside our commits: each row is there once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

import pytest

from committer.catalog.hive.thrift_connection import Connection
from committer.catalog.hive.thrift_values import (
    get_number,
    get_struct,
    i32,
    i64,
    struct,
    structs,
    text,
)
from tests.support.integration.readers import seen_by_pyiceberg
from tests.support.integration.real_harness import until
from tests.support.integration.traffic import all_ids, producers, publish_until
from tests.support.servers.hive_server import HiveServer
from tests.support.servers.trino_client import TrinoError
from tests.trino.shared_catalog import SCHEMA, SharedCatalog

pytestmark = [pytest.mark.trino, pytest.mark.timeout(600)]

INSERTS = 4


def work_of_trino(shared: SharedCatalog, table: str, ours: int, *, tries_max: int = 1) -> list[int]:
    """Insert rows of its own, and delete and update some, one of ours too.

    Return the ids of its own that are left.
    """

    def change_one(statement: str) -> None:
        assert _changed(shared, statement, tries_max) == 1

    ids = [-number for number in range(1, INSERTS + 1)]
    for each in ids:
        change_one(f"INSERT INTO {table} VALUES ({each}, 'ZZ')")
    gone = ids.pop()
    change_one(f"DELETE FROM {table} WHERE id = {gone}")
    change_one(f"DELETE FROM {table} WHERE id = {ours}")
    change_one(f"UPDATE {table} SET carrier = 'YY' WHERE id = {ids[0]}")
    return ids


def _changed(shared: SharedCatalog, statement: str, tries_max: int) -> object:
    """Run a statement, again if another commit came first: then nothing of it was committed."""
    for _ in range(tries_max - 1):
        try:
            return shared.trino.value(statement)
        except TrinoError as error:
            if error.name != "ICEBERG_COMMIT_ERROR":
                raise
    return shared.trino.value(statement)


def maintenance_of_trino(shared: SharedCatalog, table: str, ours: int) -> list[int]:
    """Delete a row of ours, rewrite the data files, and expire all but the newest snapshot."""
    shared.trino.sql(f"DELETE FROM {table} WHERE id = {ours}")
    shared.trino.sql(f"ALTER TABLE {table} EXECUTE optimize")
    shared.trino.sql(f"ALTER TABLE {table} EXECUTE optimize_manifests")
    shared.trino.sql(f"ALTER TABLE {table} EXECUTE expire_snapshots(retention_threshold => '0s')")
    return []


Work = Callable[[SharedCatalog, str, int], list[int]]


async def committed_beside(
    shared: SharedCatalog, table: str, work: Work, *, properties: Mapping[str, str] | None = None
) -> list[int]:
    """Commit requests of two producers while Trino works; return the ids that must be left."""
    harness = shared.harness
    made = await harness.create_table(table, properties=properties)
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


def deletes_of_trino(shared: SharedCatalog, table: str, ours: int) -> list[int]:
    """Delete, again and again, rows like those that are being committed; none may be lost."""
    for _ in range(3):
        shared.trino.sql(f"DELETE FROM {table} WHERE carrier = 'AA'")
    shared.trino.sql(f"INSERT INTO {table} VALUES (-1, 'UA')")
    return [-1]


@pytest.mark.parametrize("shared", ["rest"], indirect=True, scope="session")
async def test_rows_that_are_being_committed_are_deleted_under_snapshot_isolation(
    shared: SharedCatalog,
) -> None:
    table = f"{SCHEMA}.isolated"
    properties = {
        "write.delete.isolation-level": "snapshot",
        "frazil.commit.yield-to-others-ms": "5000",
    }
    ids = await committed_beside(shared, table, deletes_of_trino, properties=properties)
    shared.trino.sql(f"DELETE FROM {table} WHERE carrier = 'AA'")
    left = [each for each in ids if each % 2]
    await check_each_row_once(shared, table, left)


@pytest.mark.parametrize("shared", ["hive"], indirect=True, scope="session")
async def test_rows_are_there_once_where_neither_takes_the_metastores_lock(
    shared: SharedCatalog,
) -> None:
    table = f"{SCHEMA}.unlocked"
    unlocked = {"engine.hive.lock-enabled": "false"}
    # Without the lock Trino does not repeat a commit that came second.
    work = partial(work_of_trino, tries_max=20)
    ids = await committed_beside(shared, table, work, properties=unlocked)
    await check_each_row_once(shared, table, ids)


@pytest.mark.parametrize("shared", ["s3"], indirect=True, scope="session")
async def test_rows_are_there_once_where_tables_are_on_s3(shared: SharedCatalog) -> None:
    table = f"{SCHEMA}.on_s3"
    ids = await committed_beside(shared, table, work_of_trino)
    assert shared.trino.column(f"SELECT id FROM {table} ORDER BY id") == ids
    files = shared.lines("table", "inspect", table, "--kind", "files")
    paths = shared.trino.column(f'SELECT file_path FROM {SCHEMA}."on_s3$files"')
    assert sorted(paths) == sorted(file["file_path"] for file in files)
    assert all(path.startswith("s3://") for path in paths)


@pytest.mark.parametrize("shared", ["hive"], indirect=True, scope="session")
async def test_trino_takes_the_metastores_lock_unless_the_table_says_no(
    shared: SharedCatalog, hive_server: HiveServer
) -> None:
    taken = {}
    for name, properties in (("locked", {}), ("lockless", {"engine.hive.lock-enabled": "false"})):
        table = f"{SCHEMA}.{name}"
        await shared.harness.create_table(table, properties=properties)
        before = lock_number(hive_server)
        await asyncio.to_thread(shared.trino.sql, f"INSERT INTO {table} VALUES (1, 'AA')")
        taken[name] = lock_number(hive_server) - before - 1
    assert taken["locked"] > 0
    assert taken["lockless"] == 0


def lock_number(server: HiveServer) -> int:
    """Take and release a lock that is in no one's way; return its number. Numbers have no gaps."""
    connection = Connection(*server.address, connect_timeout_s=10, read_timeout_s=60)
    component = {1: i32(3), 2: i32(2), 3: text("nowhere"), 4: text("nothing")}
    request = {1: structs((component,)), 3: text("test"), 4: text("here")}
    try:
        number = get_number(get_struct(connection.call("lock", {1: struct(request)}), 0), 1)
        connection.call("unlock", {1: struct({1: i64(number)})})
        return number
    finally:
        connection.close()


async def test_rows_are_there_once_in_a_table_that_trino_has_made(shared: SharedCatalog) -> None:
    table, harness = f"{SCHEMA}.made_by_trino", shared.harness
    await harness.create_table(f"{SCHEMA}.to_make_the_schema")
    create = (
        f"CREATE TABLE {table} (id bigint, carrier varchar) WITH (format = 'PARQUET',"
        f" partitioning = ARRAY['carrier'], location = '{harness.warehouse_location}/theirs')"
    )
    await asyncio.to_thread(shared.trino.sql, create)
    async with producers(harness, await harness.load(table), 1, waiting=1) as [producer]:
        await producer.publish(2)
        await asyncio.to_thread(shared.trino.sql, f"INSERT INTO {table} VALUES (-1, 'AA')")
        await producer.publish()
    await check_each_row_once(shared, table, sorted([-1, *producer.ids]))
    metadata = (await harness.load(table)).metadata
    ours = ["frazil.requests-count" in (one.summary or {}) for one in metadata.snapshots]
    # The first one is Trino's, and empty.
    assert ours == [False, True, True, False, True]
