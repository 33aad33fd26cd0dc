"""Spark reads file system tables on S3 by `type=hadoop` while Frazil, alone, commits to them."""

from __future__ import annotations

import asyncio

import pytest

from tests.integration.ids_seen import check_history, ids_by_frazil
from tests.support.builders.jars import iceberg_hadoop_s3_jars
from tests.support.integration.catalog_real_harness import CatalogRealHarness, catalog_real_harness
from tests.support.integration.java_engine import JavaCatalog, JavaEngine, java_engine
from tests.support.integration.real_harness import CATALOG, until
from tests.support.integration.traffic import all_ids, producers, publish_until
from tests.support.servers.dynamodb_server import CREDENTIALS, REGION
from tests.support.servers.s3_server import S3Server

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.heavy,
    pytest.mark.timeout(300),
]

NAME = "db.flights"
READS = 3


def spark_on(harness: CatalogRealHarness, s3: S3Server) -> JavaCatalog:
    """Return the same warehouse for Iceberg's HadoopCatalog, by Hadoop's client of S3."""
    options = {
        "type": "hadoop",
        "warehouse": harness.warehouse_location,
        "hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "hadoop.fs.s3a.endpoint": s3.url,
        "hadoop.fs.s3a.endpoint.region": REGION,
        "hadoop.fs.s3a.path.style.access": "true",
    }
    return JavaCatalog(iceberg_hadoop_s3_jars(), options)


async def test_spark_reads_every_row_once_while_frazil_commits_on_s3(s3_server: S3Server) -> None:
    properties = {
        "type": "hadoop",
        "warehouse": f"{s3_server.new_root()}/warehouse",
        "hadoop.no-other-writers": "true",
        "s3.endpoint": s3_server.url,
        "s3.region": REGION,
        "s3.path-style-access": "true",
    }
    with catalog_real_harness(properties, **CREDENTIALS) as harness:
        await harness.start()
        table = await harness.create_table(NAME)
        with java_engine(harness, spark_on(harness, s3_server)) as java:
            async with producers(harness, table, 1, waiting=1) as published:
                reading = asyncio.create_task(read_again_and_again(java))
                await publish_until(reading, published[0])
                counts = await reading
                await until(harness.is_settled, "an empty inbox")
            assert counts == sorted(counts)
            last = await asyncio.to_thread(java.sql, f"SELECT id FROM {CATALOG}.{NAME} ORDER BY id")
        ids = sorted(all_ids(published))
        assert [each for (each,) in last] == ids == await ids_by_frazil(harness, NAME)
        states = await check_history(harness, await harness.load(NAME))
    print(f"{len(ids)} rows in {len(states) - 1} commits; Spark read {counts} meanwhile")


async def read_again_and_again(java: JavaEngine) -> list[int]:
    """Return how many rows each of some reads finds; none of them finds one twice."""
    counts = []
    for _ in range(READS):
        query = f"SELECT count(*), count(DISTINCT id) FROM {CATALOG}.{NAME}"
        [[rows, distinct]] = await asyncio.to_thread(java.sql, query)
        assert rows == distinct
        counts.append(rows)
    return counts
