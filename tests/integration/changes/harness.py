"""One Spark application that has both: Frazil's changes, and Iceberg's own runtime beside them.

A committer serves the catalog, which Iceberg knows as `frazil`. So one SQL statement and one call
can be compared on equal tables.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.scan.plan_files import plan_files
from committer.iceberg.scan.scan_task import FileScanTask
from frazil.spark import configure, find_java_home
from tests.support.integration.java_engine import jdbc_catalog
from tests.support.integration.real_harness import CATALOG, RealHarness, real_harness
from tests.support.integration.spark_confs import CONFS
from tests.support.integration.spark_session import end_jvm
from workers.files.file_system import local_path

_OURS = ("FRAZIL_", "JAVA_HOME", "PYSPARK_PYTHON")


@dataclass(slots=True)
class ChangesHarness:
    """The application, and the committer that it publishes to."""

    real: RealHarness
    spark: Any

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement by Iceberg's runtime; `{catalog}.` stands before a table's name."""
        return [tuple(row) for row in self.spark.sql(statement).collect()]

    def create(
        self,
        name: str,
        columns: str = "id INT, region STRING, amount BIGINT",
        *,
        partitioned_by: str = "",
        version: int = 2,
        **properties: str,
    ) -> None:
        """Create an Iceberg table. `properties` have `_` where the names have dots."""
        self.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{name.partition('.')[0]}")
        given = {"format-version": str(version), "commit.retry.num-retries": "20"}
        given |= {key.replace("__", "-").replace("_", "."): v for key, v in properties.items()}
        texts = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        clause = f"PARTITIONED BY ({partitioned_by})" if partitioned_by else ""
        self.sql(
            f"CREATE TABLE {CATALOG}.{name} ({columns}) USING iceberg {clause}"
            f" TBLPROPERTIES ({texts})"
        )

    def insert(self, name: str, values: str) -> None:
        """Insert rows as one snapshot, of one file for each partition."""
        self.sql(f"INSERT INTO {CATALOG}.{name} SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")

    def rows(self, name: str, columns: str = "*") -> list[tuple[Any, ...]]:
        """Return the rows as Iceberg's runtime reads them, in order."""
        found = self.sql(f"SELECT {columns} FROM {CATALOG}.{name}")
        return sorted(found, key=lambda row: [(value is None, str(value)) for value in row])

    def metadata(self, name: str) -> TableMetadata:
        return asyncio.run(self.real.load(name)).metadata

    def metadata_location(self, name: str) -> str:
        """Return where the table's current metadata file lies."""
        return asyncio.run(self.real.load(name)).metadata_location

    def tasks(self, name: str, ref: str | None = None) -> list[FileScanTask]:
        """Return the live files of a table, with their deletes."""
        return list(plan_files(self.metadata(name), read=_read, ref=ref))

    def operations(self, name: str) -> list[str]:
        """Return the operations of all snapshots, in their order."""
        snapshots = self.metadata(name).snapshots
        by_age = sorted(snapshots, key=lambda one: (one.sequence_number, one.timestamp_ms))
        return [one.summary.get("operation", "") for one in by_age if one.summary]

    def settings(self) -> dict[str, str]:
        """Return what a write has to be told, as its planner runs in a process of its own."""
        found = self.real.environment()
        return {"home": found["FRAZIL_HOME"], "queue.url": found["FRAZIL_QUEUE__URL"]}

    def frame(self, rows: Sequence[tuple[Any, ...]], schema: str) -> Any:
        return self.spark.createDataFrame(list(rows), schema)


def _read(location: str) -> bytes:
    return local_path(location).read_bytes()


@contextmanager
def changes_harness() -> Iterator[ChangesHarness]:
    # Iceberg's commits are not waited for: they never meet Frazil's, but where a test says so.
    quick = {"FRAZIL_COMMIT__MIN_INTERVAL_MS": "0", "FRAZIL_COMMIT__YIELD_TO_OTHERS_MS": "0"}
    with real_harness(**quick) as real:
        asyncio.run(real.start())
        before = {name: value for name, value in os.environ.items() if name.startswith(_OURS)}
        os.environ["JAVA_HOME"] = str(find_java_home(real.folder / "java"))
        end_jvm()
        spark = _session(real)
        for name in [name for name in os.environ if name.startswith(_OURS)]:
            del os.environ[name]
        os.environ.update(before)
        # The change itself runs in this process.
        os.environ.update(_variables(real))
        try:
            yield ChangesHarness(real, spark)
        finally:
            spark.stop()
            end_jvm()
            for name in _variables(real):
                os.environ.pop(name, None)
            os.environ.update(before)


def _variables(real: RealHarness) -> dict[str, str]:
    names = ("FRAZIL_HOME", "FRAZIL_QUEUE__URL")
    return {name: real.environment()[name] for name in names}


def _session(real: RealHarness) -> Any:
    java = jdbc_catalog(real)
    prefix = f"spark.sql.catalog.{CATALOG}"
    confs = {
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        "spark.jars": ",".join(map(str, java.jars)),
        **CONFS,
        "spark.driver.memory": "1g",
        "spark.sql.session.timeZone": "UTC",
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.cache-enabled": "false",
        **{f"{prefix}.{key}": text for key, text in java.options.items()},
    }
    builder = SparkSession.builder.master("local[2]").appName("changes")
    for key, value in confs.items():
        builder.config(key, value)
    configure(builder)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark
