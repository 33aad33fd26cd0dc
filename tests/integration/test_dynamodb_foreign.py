"""Iceberg Java's DynamoDbCatalog and ours on one DynamoDB table: each keeps what the other did.

Data and metadata are local files, so that the catalogs alone are between the two.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from committer.catalog.dynamodb.dynamodb_catalog import DynamoDbCatalog
from committer.errors import NoSuchTableError
from committer.ports.pointer_swap import Committed, Conflict, LoadedTable
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from committer.storage.disk.local import LocalStorage
from tests.support.builders.jars import iceberg_aws_jars
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.catalogs.dynamodb_items import open_items
from tests.support.integration.java_engine import JavaCatalog, JavaEngine, java_engine
from tests.support.integration.real_harness import RealHarness
from tests.support.servers.dynamodb_server import CREDENTIALS, REGION, DynamoDbServer

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(180),
]


@dataclass(slots=True)
class Shared:
    """One Spark for the whole file; its catalog has made the DynamoDB table."""

    java: JavaEngine
    warehouse: str
    server: DynamoDbServer
    table_name: str

    @asynccontextmanager
    async def ours(self) -> AsyncIterator[DynamoDbCatalog]:
        storage = LocalStorage()
        catalog = await DynamoDbCatalog.open(
            table_name=self.table_name,
            storage=storage,
            options=self.server.options,
            world=RealWorld(),
            create=False,
        )
        try:
            yield catalog
        finally:
            await catalog.close()
            await storage.close()

    async def create(self, catalog: DynamoDbCatalog, name: str) -> LoadedTable:
        table = build_table(name, warehouse=self.warehouse)
        await catalog.create_namespace(table.identifier.namespace)
        await catalog.create_table(table)
        return table


@pytest.fixture(scope="module")
def shared(dynamodb_server: DynamoDbServer) -> Iterator[Shared]:
    table_name = dynamodb_server.new_table_name()
    with tempfile.TemporaryDirectory(prefix="frazil-") as folder:
        harness = RealHarness(Path(folder), CREDENTIALS)
        options = {
            "catalog-impl": "org.apache.iceberg.aws.dynamodb.DynamoDbCatalog",
            "io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
            "warehouse": harness.warehouse_location,
            "client.region": REGION,
            "dynamodb.endpoint": dynamodb_server.url,
            "dynamodb.table-name": table_name,
        }
        with java_engine(harness, JavaCatalog(iceberg_aws_jars(), options)) as java:
            java.sql("CREATE NAMESPACE frazil.java")
            yield Shared(java, harness.warehouse_location, dynamodb_server, table_name)


def named(name: str) -> TableIdentifier:
    return TableIdentifier.parse(name)


def attributes(item: dict[str, Any]) -> dict[str, type]:
    return {name: type(one) for name, one in item.items()}


async def swap(catalog: DynamoDbCatalog, base: LoadedTable, **properties: str) -> LoadedTable:
    """Commit as Frazil does; the swap must win."""
    wanted = build_swap(base, properties=properties)
    storage = LocalStorage()
    await storage.create(catalog.objects_before(wanted))
    await storage.close()
    answer = await catalog.swap(wanted)
    assert isinstance(answer, Committed)
    return answer.table


async def test_items_of_both_have_the_same_attributes(shared: Shared) -> None:
    shared.java.sql("CREATE TABLE frazil.java.theirs (id bigint, name string)")
    async with shared.ours() as catalog:
        await catalog.create_namespace(("ours",))
        ours = await shared.create(catalog, "java.ours")
        async with open_items(shared.server, shared.table_name) as items:
            # Spark gives each namespace a property.
            assert attributes(await items.get("NAMESPACE", "ours")) | {"p.owner": str} == (
                attributes(await items.get("NAMESPACE", "java"))
            )
            assert attributes(await items.get("java.ours", "java")) == attributes(
                await items.get("java.theirs", "java")
            )
            await swap(catalog, ours, by="us")
            shared.java.sql("INSERT INTO frazil.java.theirs VALUES (1, 'a')")
            assert attributes(await items.get("java.ours", "java")) == attributes(
                await items.get("java.theirs", "java")
            )


async def test_table_of_java_is_committed_to_by_both_in_turn(shared: Shared) -> None:
    java = shared.java
    java.sql("CREATE TABLE frazil.java.turns (id bigint, name string)")
    async with shared.ours() as catalog:
        for turn in range(3):
            java.sql(f"INSERT INTO frazil.java.turns VALUES ({turn}, 'a')")
            base = await catalog.load(named("java.turns"))
            await swap(catalog, base, **{f"turn-{turn}": "ours"})
        loaded = await catalog.load(named("java.turns"))
    assert java.value("SELECT count(*) FROM frazil.java.turns") == 3
    assert len(loaded.metadata.snapshots) == 3
    properties = dict(map(tuple, java.sql("SHOW TBLPROPERTIES frazil.java.turns")))
    assert [properties[f"turn-{turn}"] for turn in range(3)] == ["ours"] * 3


async def test_table_of_ours_is_read_and_appended_to_by_java_and_a_stale_swap_loses(
    shared: Shared,
) -> None:
    java = shared.java
    async with shared.ours() as catalog:
        base = await shared.create(catalog, "mine.deep.flights")
        java.sql("INSERT INTO frazil.mine.deep.flights VALUES (1, 'a'), (2, 'b')")
        assert isinstance(await catalog.swap(build_swap(base)), Conflict)
        await swap(catalog, await catalog.load(named("mine.deep.flights")), by="us")
        assert java.value("SELECT count(*) FROM frazil.mine.deep.flights") == 2
        java.sql("INSERT INTO frazil.mine.deep.flights VALUES (3, 'c')")
        loaded = await catalog.load(named("mine.deep.flights"))
        assert loaded.metadata.properties["by"] == "us"
        assert len(loaded.metadata.snapshots) == 2


async def test_names_given_by_one_are_seen_by_the_other(shared: Shared) -> None:
    java = shared.java
    async with shared.ours() as catalog:
        created = await shared.create(catalog, "names.first")
        java.sql("ALTER TABLE frazil.names.first RENAME TO names.second")
        loaded = await catalog.load(named("names.second"))
        assert loaded.metadata == created.metadata
        await catalog.rename_table(named("names.second"), named("names.third"))
        assert java.sql("SHOW TABLES IN frazil.names") == [["names", "third", False]]
        assert ("names",) in await catalog.list_namespaces()
        assert ["names"] in java.sql("SHOW NAMESPACES IN frazil")
        java.sql("DROP TABLE frazil.names.third")
        with pytest.raises(NoSuchTableError):
            await catalog.load(named("names.third"))
        assert await catalog.list_tables(("names",)) == []
        await catalog.register_table(named("names.fourth"), created.metadata_location)
        java.sql("INSERT INTO frazil.names.fourth VALUES (1, 'a')")
        assert java.value("SELECT count(*) FROM frazil.names.fourth") == 1
        await catalog.drop_table(named("names.fourth"))
        assert java.sql("SHOW TABLES IN frazil.names") == []
        location = created.metadata_location
        arguments = f"table => 'names.fifth', metadata_file => '{location}'"
        java.sql(f"CALL frazil.system.register_table({arguments})")
        assert (await catalog.load(named("names.fifth"))).metadata_location == location
