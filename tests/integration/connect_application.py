"""An application of Spark Connect: calls Frazil in each way, and prints what came of it as JSON.

Run as a program, as a Spark of this process would not let it have a remote one. The server starts
without a setting of Frazil: `configure` has to bring them. Arguments: a folder, a queue's URL.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from committer.errors import FrazilError
from frazil.spark import (
    configure,
    create_table,
    delete_from,
    distribute,
    find_java_home,
    merge_into,
    rewrite_data_files,
    sink,
    upsert_stream,
)

TABLE = "db.connected"
_END_S_MAX = 120


def main(folder: Path, queue_url: str) -> None:
    os.environ["JAVA_HOME"] = str(find_java_home(folder / "java"))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
    session = configure(spark.getOrCreate(), home=str(folder), queue_url=queue_url)
    try:
        for name, call in _calls(session, folder).items():
            print(json.dumps([name, _outcome(call)]), flush=True)
    finally:
        session.stop()


def _outcome(call: Callable[[], object]) -> object:
    try:
        return call()
    except (FrazilError, PySparkException) as error:
        return str(error)


def _calls(spark: Any, folder: Path) -> dict[str, Callable[[], object]]:
    rows = spark.range(5).selectExpr("id", "'x' AS text")
    changed = spark.range(3, 8).selectExpr("id", "'y' AS text")
    arriving = spark.readStream.schema("id BIGINT, text STRING").json(str(_source(folder)))

    def write(frame: Any) -> object:
        frame.write.format("frazil").mode("append").option("wait", "committed").save(TABLE)
        return count()

    def count() -> object:
        return spark.read.format("frazil").load(TABLE).count()

    def run(writer: Any, name: str, *, is_started_by_name: bool = True) -> object:
        writer = writer.option("checkpointLocation", str(folder / "checkpoints" / name))
        writer = writer.trigger(availableNow=True)
        query = writer.start(TABLE) if is_started_by_name else writer.start()
        query.awaitTermination(_END_S_MAX)
        return count()

    def merge() -> object:
        merging = merge_into(TABLE, changed, "target.id = source.id").when_matched_update_all()
        merging.when_not_matched_insert_all().execute()
        return count()

    def stream() -> object:
        return run(arriving.writeStream.format("frazil").option("wait", "committed"), "stream")

    def upsert() -> object:
        writer = upsert_stream(arriving, "id").option("wait", "committed")
        return run(writer, "upsert")

    def each_batch(**options: str) -> object:
        settings = {"home": str(folder), "queue.url": f"unix://{folder}/queue/redis.sock"}
        write_one = sink(TABLE, wait="committed", **settings, **options)
        writer = arriving.writeStream.foreachBatch(write_one)
        return run(writer, f"sink-{len(options)}", is_started_by_name=False)

    def read_stream() -> object:
        reading = spark.readStream.format("frazil").load(TABLE).writeStream.format("memory")
        query = reading.queryName("seen").trigger(availableNow=True).start()
        query.awaitTermination(_END_S_MAX)
        return spark.table("seen").count() == count()

    return {
        "create": lambda: create_table(rows, TABLE),
        "append": lambda: write(rows),
        "distribute": lambda: write(distribute(rows, TABLE)),
        "read stream": read_stream,
        "metadata table": lambda: spark.read.format("frazil").load(f"{TABLE}$snapshots").count(),
        "delete": lambda: delete_from(TABLE, "id = 1", spark=spark).deleted_rows,
        "merge": merge,
        "compact": lambda: len(
            rewrite_data_files(spark, TABLE, options={"rewrite-all": True}).snapshot_ids
        ),
        "stream": stream,
        "upsert": upsert,
        "sink without producer": each_batch,
        "sink": lambda: each_batch(producer="connected"),
    }


def _source(folder: Path) -> Path:
    source = folder / "source"
    source.mkdir()
    lines = [json.dumps({"id": number, "text": "z"}) for number in range(100, 110)]
    (source / "rows.json").write_text("\n".join(lines) + "\n")
    return source


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
