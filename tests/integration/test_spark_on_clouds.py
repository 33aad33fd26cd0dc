"""Spark writes data files on an emulator of each cloud's store and publishes there, `frazil serve`
commits, and other readers see each row once: Iceberg Java, PyIceberg, DuckDB.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

from committer.backends.storage_schemes import open_storage
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import Storage
from committer.real_world import RealWorld
from tests.support.builders.jars import GCP_BUNDLE, ICEBERG, fetch_jars
from tests.support.integration.catalog_real_harness import CatalogRealHarness, catalog_real_harness
from tests.support.integration.duckdb_iceberg import duckdb_with_iceberg
from tests.support.integration.java_engine import JavaCatalog, java_engine
from tests.support.integration.real_harness import CATALOG
from tests.support.servers.azurite import ACCOUNT, KEY, Azurite
from tests.support.servers.gcs_server import GcsServer

pytestmark = [
    *(pytest.mark.server, pytest.mark.spark, pytest.mark.slow, pytest.mark.heavy),
    pytest.mark.timeout(400),
]
NAME = "db.flights"
FAR = "4000000000000"


@dataclass(frozen=True)
class Place:
    """A folder of a store. `properties`: for Frazil and PyIceberg; `java`: for Iceberg Java, whose
    jars for Azure are not on every mirror: None, and it does not read.
    """

    root: str
    properties: Mapping[str, str]
    java: Mapping[str, str] | None
    pyiceberg: Mapping[str, str] | None
    """What PyIceberg needs beside; None where it cannot read."""
    variables: Mapping[str, str] = field(default_factory=dict)


def _on_gcs(request: pytest.FixtureRequest) -> Place:
    server: GcsServer = request.getfixturevalue("gcs_server")
    properties = {"gcs.service.host": server.url, "gcs.no-auth": "true"}
    java = {
        "io-impl": "org.apache.iceberg.gcp.gcs.GCSFileIO",
        "gcs.project-id": "frazil",
        **properties,
    }
    token = {"gcs.oauth2.token": "any", "gcs.oauth2.token-expires-at": FAR}
    return Place(server.new_root(), properties, java, token)


def _on_adls(request: pytest.FixtureRequest) -> Place:
    server: Azurite = request.getfixturevalue("azurite")
    root = server.new_root()
    properties = {
        "adls.account-name": ACCOUNT,
        "adls.account-key": KEY,
        "adls.blob-storage-authority": server.address,
        "adls.blob-storage-scheme": "http",
    }
    secret = {"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_KEY": KEY}
    if request.param == "adls":
        # PyIceberg takes `container@account` for the name of a container.
        return Place(root, properties, None, None, secret)
    short = root.replace(f"@{ACCOUNT}.dfs.core.windows.net", "")
    theirs = {"adls.dfs-storage-authority": server.address, "adls.dfs-storage-scheme": "http"}
    return Place(short, properties, None, theirs, secret)


@pytest.fixture(params=["gcs", "adls", "adls-without-account"])
def place(request: pytest.FixtureRequest) -> Place:
    return _on_gcs(request) if request.param == "gcs" else _on_adls(request)


async def test_rows_that_spark_writes_on_a_clouds_store_are_each_read_once(
    place: Place, tmp_path: Path
) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    properties = {"uri": uri, "warehouse": f"{place.root}/warehouse", **place.properties}
    variables = {
        "FRAZIL_INBOX": f"{place.root}/requests",
        "FRAZIL_SECURITY__UNSIGNED_OPERATIONS": "all",
        "PYSPARK_PYTHON": sys.executable,
        **place.variables,
    }
    with catalog_real_harness(properties, **variables) as harness:
        await harness.create_table(NAME)
        await harness.start()
        rows = await asyncio.to_thread(_write_and_read_by_spark, harness, place, tmp_path)
        table = await harness.load(NAME)
        storage = open_storage(harness.settings.catalog, RealWorld())
        assert await _seen_by_duckdb(table, storage, tmp_path / "copy") == rows
        await storage.close()
        if place.pyiceberg is not None:
            assert await asyncio.to_thread(_seen_by_pyiceberg, harness, place.pyiceberg) == rows


def _write_and_read_by_spark(
    harness: CatalogRealHarness, place: Place, folder: Path
) -> Sequence[int]:
    """Write three times in one Spark application. Return the ids, as its own reader sees them."""
    jars = fetch_jars((*ICEBERG, GCP_BUNDLE))
    options = {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{folder}/catalog.db",
        "jdbc.schema-version": "V1",
        "warehouse": f"{place.root}/warehouse",
        **(place.java or {}),
    }
    with java_engine(harness, JavaCatalog(jars, options)) as spark:
        spark.sql(
            "CREATE TEMPORARY VIEW flights (id LONG, carrier STRING) USING frazil"
            f" OPTIONS (table '{NAME}', wait 'committed')"
        )
        for start in (0, 100, 200):
            spark.sql(
                f"INSERT INTO flights SELECT id, CONCAT('A/', id % 3) FROM range({start},"
                f" {start + 100})"
            )
        expected = list(range(300))
        if place.java is not None:
            seen = spark.sql(f"SELECT id FROM {CATALOG}.{NAME} ORDER BY id")
            assert [one for (one,) in seen] == expected
    return expected


def _seen_by_pyiceberg(harness: CatalogRealHarness, theirs: Mapping[str, str]) -> Sequence[int]:
    catalog = load_catalog(
        CATALOG,
        **{
            **harness.all_properties,
            "type": "sql",
            "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
            **theirs,
        },
    )
    return sorted(catalog.load_table(NAME).scan().to_arrow()["id"].to_pylist())


async def _seen_by_duckdb(table: LoadedTable, storage: Storage, folder: Path) -> Sequence[int]:
    """Read with DuckDB, which has no client of such an emulator, a copy of the table's files."""
    location = table.metadata.location
    async for found in storage.list(location):
        path = folder / found.location.removeprefix(f"{location}/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(await storage.get(found.location))
    name = table.metadata_location.rpartition("/")[2]
    with duckdb_with_iceberg() as connection:
        rows = connection.execute(
            "SELECT id FROM iceberg_scan(?, version => ?, allow_moved_paths => true) ORDER BY id",
            [str(folder), name.removesuffix(".metadata.json")],
        ).fetchall()
    return [one for (one,) in rows]
