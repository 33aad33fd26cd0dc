"""Reads from Spark without Iceberg's runtime, on each version of PySpark that is supported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from frazil.spark import configure
from tests.support.builders.fixture_catalog import NAME, fixture_catalog
from tests.support.builders.fixtures import expected
from tests.support.integration.spark_session import spark_session

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    # PySpark leaves the socket that rows came through to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    # PySpark 4.3 says so at the first use, which does not touch pandas.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]

APPENDS = "v2_merged_manifests"  # 13 files
TABLES = (APPENDS, "v2_nested", "v2_formats", "v3_deletion_vectors", "v3_variant_spark")
# From this version on Spark tells a source of this trigger, and where the query stands.
TELLS_OF_THE_TRIGGER = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("reads")
    catalog = folder / "catalog.db"
    fixture_catalog(catalog, TABLES)

    def settle(builder: Any) -> None:
        configure(builder, catalog_uri=f"sqlite:///{catalog}", catalog_name=NAME)

    with spark_session(folder, {}, settle) as spark:
        yield spark


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_read(spark: Any, name: str) -> None:
    rows = spark.read.format("frazil").load(f"db.{name}").collect()
    assert len(rows) == expected(name)["table_rows"]["count"]
    assert spark.read.format("frazil").load(f"db.{name}$files").count() > 0


@pytest.mark.heavy
def test_what_is_there_now_is_read_within_the_limits(spark: Any, tmp_path: Path) -> None:
    def run() -> list[int]:
        batches: list[int] = []
        stream = (
            spark.readStream.format("frazil")
            .option("streaming-max-files-per-micro-batch", 5)
            .load(f"db.{APPENDS}")
        )
        query = (
            stream.writeStream.foreachBatch(lambda frame, _: batches.append(frame.count()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return batches

    runs = [run() for _ in range(4)]
    assert sum(map(sum, runs)) == 24
    assert [len(each) for each in runs] == ([3, 0, 0, 0] if TELLS_OF_THE_TRIGGER else [1, 1, 1, 0])
