"""An archive of the classes that Spark has loaded once, parsed and checked: a JVM that is started
with it spends a third less before its first answer, and the tests start many.

`python -m tests.support.builders.class_archive` makes it, ahead of the tests. A JVM without it, or
of another release, starts as ever.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.builders.jars import CLASS_ARCHIVE, JAVA_OPTIONS
from tests.support.integration.spark_session import spark_session


def main() -> None:
    if CLASS_ARCHIVE.is_file():
        return
    CLASS_ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CLASS_ARCHIVE.parent) as folder:
        made = Path(folder) / CLASS_ARCHIVE.name
        # What Spark says on its way is shown only if it fails.
        command = [sys.executable, "-m", "tests.support.builders.class_archive", folder]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode or not made.is_file():
            raise SystemExit(f"{run.stdout}{run.stderr}\nSpark has made no archive of its classes")
        made.replace(CLASS_ARCHIVE)


def run_spark(folder: Path) -> None:
    """Run what loads most classes: a table written, joined, sorted and read, and Python's rows."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    archive = f"-XX:ArchiveClassesAtExit={folder / CLASS_ARCHIVE.name}"
    confs = {"spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {archive}"}
    files = str(folder / "rows")
    with spark_session(folder, confs, lambda _: None) as spark:
        rows = spark.createDataFrame(
            [(1, "a", 1.5), (2, "b", None)], "id INT, name STRING, x FLOAT"
        )
        rows.write.partitionBy("name").parquet(files)
        written = spark.read.parquet(files)
        joined = written.join(rows.hint("merge"), "id").groupBy("id").count().orderBy("id")
        assert [row["count"] for row in joined.collect()] == [1, 1]
        assert written.mapInArrow(lambda batches: batches, written.schema).count() == 2
        stream = spark.readStream.schema(written.schema).parquet(files).writeStream
        query = stream.foreachBatch(lambda batch, _: batch.count())
        query.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    run_spark(Path(sys.argv[1])) if sys.argv[1:] else main()
