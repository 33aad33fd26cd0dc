"""An archive of the classes that Spark has loaded once, parsed and checked: a JVM that is started
with it spends a third less before its first answer, and the tests start many.

`python -m tests.support.builders.class_archive` makes it, ahead of the tests. A JVM without it, or
of another release, starts as ever.
"""

from __future__ import annotations

import os
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
        _run_spark(Path(folder), f"{JAVA_OPTIONS} -XX:ArchiveClassesAtExit={made}")
        made.replace(CLASS_ARCHIVE)


def _run_spark(folder: Path, java_options: str) -> None:
    """Run what loads most classes: a table written, joined, sorted and read, and Python's rows."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    confs = {"spark.driver.extraJavaOptions": java_options}
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
    main()
