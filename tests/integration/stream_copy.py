"""A Spark application that copies what is appended to a table into Parquet files, by a stream.

It is killed and started again; Spark's own file sink keeps each micro-batch once. Run as a program
it reads until it is killed; told to `finish`, until it has read what is there.
"""

from __future__ import annotations

import sys
from typing import Any

from tests.support.builders.jars import JAVA_OPTIONS

_FILES_MAX = "10"


def main(table: str, folder: str, *until: str) -> None:
    stream = (
        _session()
        .readStream.format("frazil")
        .option("streaming-max-files-per-micro-batch", _FILES_MAX)
        .load(table)
    )
    query = (
        stream.writeStream.format("parquet")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .option("path", f"{folder}/copy")
        .start()
    )
    if until != ("finish",):
        query.awaitTermination()
    query.processAllAvailable()
    query.stop()


def _session() -> Any:
    from pyspark.sql import SparkSession

    from frazil.spark import configure

    builder = configure(SparkSession.builder.master("local[2]").appName("copying"))
    confs = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    }
    for key, value in confs.items():
        builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


if __name__ == "__main__":
    main(*sys.argv[1:])
