"""Frazil, Iceberg Java in Spark and PyIceberg commit to one table through one catalog, at once.

Each catalog has its server, one `frazil serve` and one Spark, as `shared_catalogs.py` describes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException, ValidationException

from committer.ports.pointer_swap import LoadedTable
from tests.integration.ids_seen import (
    check_history,
    ids_by_frazil,
    ids_by_pyiceberg,
    ids_of_file_by_pyiceberg,
    switches,
)
from tests.integration.shared_catalogs import SHARED_CATALOGS, SharedCatalog
from tests.support.integration.catalog_real_harness import CatalogRealHarness, catalog_real_harness
from tests.support.integration.java_engine import JavaEngine, java_engine
from tests.support.integration.real_harness import CATALOG, until
from tests.support.integration.traffic import RealProducer, all_ids, producers, publish_until

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.heavy,
    pytest.mark.timeout(400),
]

NAMESPACE = "beside"
PROPERTIES = {
    # All share two cores: a slow try of an engine must not be its last.
    "commit.retry.num-retries": "100",
    "write.metadata.previous-versions-max": "1000",
}
JAVA_IDS = [-1, -2, -3, -4]
PYICEBERG_IDS = [-101, -102, -103, -104]
# One row of Java, and the first of Frazil: its data file is rewritten.
DELETED = {-1, 0}
KEPT = 3
# Each of Java's statements may follow a commit of Frazil, and be followed by one.
SWITCHES_MIN = 4


@dataclass(slots=True)
class Beside:
    """One catalog with one committer and one Spark."""

    catalog: SharedCatalog
    harness: CatalogRealHarness
    java: JavaEngine

    async def create(self, creator: str) -> LoadedTable:
        """Create a table of (id, carrier), partitioned by bucket(2, carrier)."""
        name = f"{NAMESPACE}.by_{creator}"
        if creator == "frazil":
            ours = {**PROPERTIES, **self.catalog.frazils_tables}
            return await self.harness.create_table(name, properties=ours)
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES.items())
        for statement in (
            f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{NAMESPACE}",
            f"CREATE TABLE {CATALOG}.{name} (id BIGINT, carrier STRING) USING iceberg"
            f" PARTITIONED BY (bucket(2, carrier)) TBLPROPERTIES ({properties})",
        ):
            await asyncio.to_thread(self.java.sql, statement)
        return await self.harness.load(name)

    def write_by_pyiceberg(self, name: str) -> None:
        """Append one row at a time."""
        with closing(load_catalog(CATALOG, **self.harness.all_properties)) as catalog:
            table = catalog.load_table(name)
            for each in PYICEBERG_IDS:
                row = pa.table({"id": pa.array([each], pa.int64()), "carrier": ["YY"]})
                while True:
                    try:
                        table.append(row)
                    except (CommitFailedException, ValidationException):
                        # Not committed: another was first, or Java has expired the base meanwhile.
                        table.refresh()
                        continue
                    break

    async def ids_seen(self, name: str) -> dict[str, list[int]]:
        """Return the ids of all rows by each reader."""
        query = f"SELECT id FROM {CATALOG}.{name} ORDER BY id"
        rows = await asyncio.to_thread(self.java.sql, query)
        properties = self.harness.all_properties
        if self.catalog.has_pyiceberg:
            theirs = await asyncio.to_thread(ids_by_pyiceberg, properties, name)
        else:
            table = await self.harness.load(name)
            theirs = await asyncio.to_thread(ids_of_file_by_pyiceberg, properties, table)
        return {
            "Spark": [each for (each,) in rows],
            "PyIceberg": theirs,
            "Frazil": await ids_by_frazil(self.harness, name),
        }


@pytest.fixture(scope="module", params=SHARED_CATALOGS)
def beside(request: pytest.FixtureRequest) -> Iterator[Beside]:
    catalog = SHARED_CATALOGS[request.param]
    clients = catalog.start(request.getfixturevalue)
    with catalog_real_harness(clients.properties, **clients.variables) as harness:
        asyncio.run(harness.start())
        options = {"warehouse": harness.warehouse_location, **clients.java.options}
        with java_engine(harness, replace(clients.java, options=options)) as java:
            yield Beside(catalog, harness, java)


@pytest.mark.parametrize("creator", ["frazil", "java"])
async def test_rows_of_frazil_java_and_pyiceberg_are_all_there_once(
    beside: Beside, creator: str
) -> None:
    harness = beside.harness
    conflicts_before = len(harness.events("commit.conflicted"))
    table = await beside.create(creator)
    name = str(table.identifier)
    async with producers(harness, table, 2, waiting=1) as published:
        await published[0].publish()  # the row that Java deletes
        if beside.catalog.takes_turns:
            await _write_in_turns(beside, name, published)
        else:
            await _write_at_once(beside, name, published)
        await until(harness.is_settled, "an empty inbox")

    theirs = JAVA_IDS + (PYICEBERG_IDS if _pyiceberg_writes(beside) else [])
    ids = sorted({*all_ids(published), *theirs} - DELETED)
    seen = await beside.ids_seen(name)
    assert seen == dict.fromkeys(seen, ids)
    assert await harness.quarantined() == []
    states = await check_history(harness, await harness.load(name))
    assert switches(states) >= SWITCHES_MIN
    conflicts = len(harness.events("commit.conflicted")) - conflicts_before
    print(
        f"{len(ids)} rows, each once, by {', '.join(seen)}; {len(states)} metadata files, each on"
        f" top of the one before, {switches(states)} switches of the engine; {conflicts} conflicts"
        " seen by Frazil"
    )


def _statements_of_java(name: str) -> list[str]:
    table = f"{CATALOG}.{name}"
    inserts = [f"INSERT INTO {table} VALUES ({each}, 'ZZ')" for each in JAVA_IDS]
    delete = f"DELETE FROM {table} WHERE id IN ({', '.join(map(str, DELETED))})"
    expire = (
        f"CALL {CATALOG}.system.expire_snapshots(table => '{name}',"
        f" older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => {KEPT})"
    )
    return [*inserts[:2], delete, inserts[2], expire, inserts[3]]


def _pyiceberg_writes(beside: Beside) -> bool:
    return beside.catalog.has_pyiceberg and not beside.catalog.takes_turns


async def _write_at_once(beside: Beside, name: str, published: list[RealProducer]) -> None:
    """Publish until Java and PyIceberg have written all that they write."""

    def write_by_java() -> None:
        for statement in _statements_of_java(name):
            beside.java.sql(statement)

    async def write_by_others() -> None:
        async with asyncio.TaskGroup() as writers:
            writers.create_task(asyncio.to_thread(write_by_java))
            if _pyiceberg_writes(beside):
                writers.create_task(asyncio.to_thread(beside.write_by_pyiceberg, name))

    others = asyncio.create_task(write_by_others())
    async with asyncio.TaskGroup() as tasks:
        for producer in published:
            tasks.create_task(publish_until(others, producer))
    await others  # raises if one of their commits failed


async def _write_in_turns(beside: Beside, name: str, published: list[RealProducer]) -> None:
    for statement in _statements_of_java(name):
        await asyncio.to_thread(beside.java.sql, statement)
        for producer in published:
            await producer.publish()
        await until(beside.harness.is_settled, "an empty inbox")
