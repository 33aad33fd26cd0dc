"""The three writers that are compared, on one Spark session and, with tables, one catalog."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bench.spark.landings import LandingWatch
from frazil.spark import configure, create_table
from tests.support.builders.jars import JAVA_OPTIONS
from tests.support.integration.java_engine import JavaCatalog, jdbc_catalog
from tests.support.integration.real_harness import CATALOG, RealHarness
from workers.spark.java import find_java_home

NAMESPACE = "bench"


@dataclass(frozen=True, slots=True)
class Target:
    """The target of rows. `partition`: the column that they are partitioned by. `fans_out`: rows
    stay in the task that they come in; else a writer may distribute and sort them.
    """

    name: str
    partition: str | None = None
    fans_out: bool = True


class System(Protocol):
    """A writer of tables."""

    @property
    def name(self) -> str: ...

    def create(self, frame: Any, target: Target) -> None:
        """Make an empty table for rows such as these."""
        ...

    def write(self, frame: Any, target: Target) -> None:
        """Append rows; returns when the write has ended as this writer means it."""
        ...

    def stream(self, frame: Any, target: Target, checkpoint: Path) -> Any:
        """Start a query that appends as fast as it can."""
        ...

    def folder(self, target: Target) -> Path:
        """Return where its data files are."""
        ...

    def watch(self, target: Target) -> LandingWatch | None:
        """Return a watch on the table; None for bare files."""
        ...


@dataclass(frozen=True, slots=True)
class Frazil:
    """`format("frazil")`: a write ends when its request is durable.

    `properties`: of its tables.
    """

    harness: RealHarness
    name: str = "frazil"
    properties: Mapping[str, str] = field(default_factory=dict)

    def _table(self, target: Target) -> str:
        return f"{NAMESPACE}.{self._name(target)}"

    def _name(self, target: Target) -> str:
        return f"{self.name.replace(' ', '_')}_{target.name}"

    def create(self, frame: Any, target: Target) -> None:
        partitions = [target.partition] if target.partition else []
        create_table(
            frame, self._table(target), partition_by=partitions, properties=self.properties
        )

    def write(self, frame: Any, target: Target) -> None:
        frame.write.format("frazil").mode("append").option("table", self._table(target)).save()

    def stream(self, frame: Any, target: Target, checkpoint: Path) -> Any:
        writer = frame.writeStream.format("frazil").option("table", self._table(target))
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def folder(self, target: Target) -> Path:
        return self.harness.warehouse / NAMESPACE / self._name(target)

    def watch(self, target: Target) -> LandingWatch:
        return LandingWatch(self.harness.catalog_file, self._table(target), self.harness.read)


@dataclass(frozen=True, slots=True)
class Iceberg:
    """Iceberg's runtime for Spark: a write ends when it is committed."""

    spark: Any
    harness: RealHarness
    name: str = "iceberg"

    def _table(self, target: Target) -> str:
        return f"{CATALOG}.{self._name(target)}"

    def _name(self, target: Target) -> str:
        return f"{NAMESPACE}.iceberg_{target.name}"

    def create(self, frame: Any, target: Target) -> None:
        columns = ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in frame.schema)
        partitioned = f"PARTITIONED BY ({target.partition})" if target.partition else ""
        # As Frazil writes them: rows stay where they are, and a file is open for each partition.
        # Else rows are distributed and sorted by partition.
        fan_out = "'write.distribution-mode'='none', 'write.spark.fanout.enabled'='true'"
        apart = "'write.distribution-mode'='hash', 'write.spark.fanout.enabled'='false'"
        properties = f"TBLPROPERTIES ({fan_out if target.fans_out else apart})"
        self.spark.sql(
            f"CREATE TABLE {self._table(target)} ({columns}) USING iceberg {partitioned}"
            f" {properties}"
        )

    def write(self, frame: Any, target: Target) -> None:
        frame.writeTo(self._table(target)).append()

    def stream(self, frame: Any, target: Target, checkpoint: Path) -> Any:
        writer = frame.writeStream.format("iceberg").option("fanout-enabled", "true")
        return writer.option("checkpointLocation", str(checkpoint)).toTable(self._table(target))

    def folder(self, target: Target) -> Path:
        return self.harness.warehouse / NAMESPACE / f"iceberg_{target.name}"

    def watch(self, target: Target) -> LandingWatch:
        return LandingWatch(self.harness.catalog_file, self._name(target), self.harness.read)


@dataclass(frozen=True, slots=True)
class Parquet:
    """Spark's own writer of files, without a table."""

    harness: RealHarness
    name: str = "parquet"

    def create(self, frame: Any, target: Target) -> None:
        shutil.rmtree(self.folder(target), ignore_errors=True)

    def write(self, frame: Any, target: Target) -> None:
        writer = frame.write.mode("append")
        if target.partition:
            writer = writer.partitionBy(target.partition)
        writer.parquet(str(self.folder(target)))

    def stream(self, frame: Any, target: Target, checkpoint: Path) -> Any:
        writer = frame.writeStream.format("parquet").option("path", str(self.folder(target)))
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def folder(self, target: Target) -> Path:
        return self.harness.folder / "parquet" / target.name

    def watch(self, target: Target) -> None:
        return None


def bytes_of(system: System, target: Target) -> int:
    """Return how many bytes of data files a system has written."""
    return sum(file.stat().st_size for file in system.folder(target).rglob("*.parquet"))


@contextmanager
def open_systems(
    harness: RealHarness, java: JavaCatalog | None = None
) -> Iterator[tuple[Any, Sequence[System]]]:
    """Yield a Spark session of two cores, and the systems in it.

    `java`: the harness's catalog, as Iceberg's runtime opens it; SQLite and local files by default.
    """
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(find_java_home(harness.folder / "java"))
    variables = harness.environment()
    os.environ.update({key: text for key, text in variables.items() if key.startswith("FRAZIL_")})
    java = java or jdbc_catalog(harness)
    prefix = f"spark.sql.catalog.{CATALOG}"
    confs = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS.replace("-XX:TieredStopAtLevel=1", ""),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.streaming.numRecentProgressUpdates": "100000",
        "spark.jars": ",".join(map(str, java.jars)),
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.cache-enabled": "false",
        **{f"{prefix}.{key}": text for key, text in java.options.items()},
    }
    builder = SparkSession.builder.master("local[2]").appName("bench")
    for key, text in confs.items():
        builder.config(key, text)
    spark = configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{NAMESPACE}")
    try:
        yield spark, (Frazil(harness), Iceberg(spark, harness), Parquet(harness))
    finally:
        spark.stop()
