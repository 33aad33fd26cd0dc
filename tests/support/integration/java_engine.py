"""Iceberg Java in a Spark application of its own: SQL in, rows out.

    with java_engine(harness) as java:
        java.sql("SELECT count(*) FROM frazil.db.flights")

Run as a program it is that application, with Spark's settings of the catalog as an argument. It
reads one JSON string a line and answers with one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.builders.jars import iceberg_jars
from tests.support.integration.real_harness import CATALOG, RealHarness
from tests.support.integration.spark_confs import CONFS
from tests.support.integration.spark_program import spark_program

_COMMIT_LOGGER = "org.apache.iceberg.metrics.LoggingMetricsReporter"
_ATTEMPTS = re.compile(r"CommitReport\{.*?attempts=CounterResult\{unit=COUNT, value=(\d+)\}")


@dataclass(frozen=True, slots=True)
class JavaCatalog:
    """Iceberg Java's view of the catalog: jars, and the options of `spark.sql.catalog.frazil`.

    `before_sparks_own`: jars whose classes are taken before those of Spark's own jars.
    """

    jars: Sequence[Path]
    options: Mapping[str, str]
    before_sparks_own: Sequence[Path] = ()


def jdbc_catalog(harness: RealHarness) -> JavaCatalog:
    """Return the SQLite catalog of a harness, as Java opens it."""
    options = {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{harness.catalog_file}",
        "warehouse": harness.warehouse_location,
        "jdbc.schema-version": "V1",
    }
    return JavaCatalog(iceberg_jars(), options)


class JavaEngine:
    """A running Spark with Iceberg's own runtime and the harness's catalog as `frazil`."""

    def __init__(self, process: subprocess.Popen[str], log_file: Path) -> None:
        self._process = process
        self._log_file = log_file

    def sql(self, statement: str) -> list[list[Any]]:
        """Run a statement; errors of Spark come back as `RuntimeError`."""
        return self._ask(statement)

    def expire_as_trino(self, table: str) -> None:
        """Expire snapshots as Trino's `ALTER TABLE … EXECUTE expire_snapshots` does, with Iceberg's
        own library, for a threshold of 0.
        """
        self._ask({"expire": table})

    def records(self, metadata_location: str) -> list[list[Any]]:
        """Read the rows of a table by Iceberg's own library, without Spark, which lacks some of its
        types. Values are texts, and bytes in hex."""
        return self._ask({"records": metadata_location})

    def _ask(self, question: object) -> list[list[Any]]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("Spark has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        rows: list[list[Any]] = answer["rows"]
        return rows

    def value(self, statement: str) -> Any:
        """Return the only value of a statement's only row."""
        [[value]] = self.sql(statement)
        return value

    def commit_attempts(self) -> list[int]:
        """Return how many attempts each of Iceberg's commits took, in their order."""
        return [int(found) for found in _ATTEMPTS.findall(self._log_file.read_text())]


@contextmanager
def java_engine(harness: RealHarness, catalog: JavaCatalog | None = None) -> Iterator[JavaEngine]:
    """Start the application; at the end it is gone, with everything that it started."""
    catalog = catalog or jdbc_catalog(harness)
    confs = {
        "spark.jars": ",".join(map(str, catalog.jars)),
        "spark.driver.extraClassPath": ":".join(map(str, catalog.before_sparks_own)),
        **{f"spark.sql.catalog.{CATALOG}.{key}": text for key, text in catalog.options.items()},
    }
    log_file = harness.folder / "java.log"
    with spark_program(harness, __name__, json.dumps(confs), log_file=log_file) as process:
        yield JavaEngine(process, log_file)


# --- The application -----------------------------------------------------------------------------


def _session(confs_of_catalog: Mapping[str, str]) -> Any:
    from pyspark.sql import SparkSession

    prefix = f"spark.sql.catalog.{CATALOG}"
    confs = {
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        **CONFS,
        "spark.driver.memory": "1g",
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        **confs_of_catalog,
        # Each statement sees the table as it is.
        f"{prefix}.cache-enabled": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("iceberg-java")
    for key, value in confs.items():
        builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    _log_commits(spark)
    return spark


def _log_commits(spark: Any) -> None:
    """Log the attempts of each Iceberg commit, one line each, and nothing else."""
    logging = spark._jvm.org.apache.logging.log4j
    logging.core.config.Configurator.setLevel(_COMMIT_LOGGER, logging.Level.INFO)


def _answer(spark: Any, question: Any) -> list[list[Any]]:
    if isinstance(question, str):
        return [list(row) for row in spark.sql(question).collect()]
    if "records" in question:
        return _records(spark, question["records"])
    java = spark._jvm
    load = java.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
    table = load(spark._jsparkSession, f"{CATALOG}.{question['expire']}")
    table.expireSnapshots().expireOlderThan(java.System.currentTimeMillis()).commit()
    return []


def _records(spark: Any, metadata_location: str) -> list[list[Any]]:
    iceberg, conf = spark._jvm.org.apache.iceberg, spark._jsc.hadoopConfiguration()
    file_io = iceberg.hadoop.HadoopFileIO(conf)
    operations = iceberg.StaticTableOperations(metadata_location, file_io)
    table = iceberg.BaseTable(operations, "table")
    columns = range(table.schema().columns().size())
    records = iceberg.data.IcebergGenerics.read(table).build().iterator()
    found = []
    while records.hasNext():
        record = records.next()
        found.append([_text(record.get(at)) for at in columns])
    return found


def _text(value: Any) -> str | None:
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if "java.nio.HeapByteBuffer" in str(value):
        start = value.arrayOffset() + value.position()
        return bytes(value.array())[start : start + value.remaining()].hex()
    return None if value is None else str(value)


def main(confs_of_catalog: str) -> None:
    # Java's output must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spark = _session(json.loads(confs_of_catalog))
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"rows": _answer(spark, json.loads(line))}
        except Exception as error:  # noqa: BLE001  # the other side raises it
            answer = {"error": f"{type(error).__name__}: {error}"[:4000]}
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
