"""Runs SQL statements in Spark with Iceberg's own runtime: `iceberg_sql CONF STATEMENTS`.

CONF has a key and its value on each line. Rows are printed as tuples.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from tests.support.builders.jars import JAVA_OPTIONS, iceberg_jars


def main(conf: str, statements: str) -> None:
    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", ",".join(map(str, iceberg_jars())))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", JAVA_OPTIONS)
    )
    for line in conf.splitlines():
        key, value = line.split()
        builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for line in statements.splitlines():
        statement = line.partition("--")[0].strip().rstrip(";")
        if statement:
            print(statement)
            for row in spark.sql(statement).collect():
                print(f"  {tuple(row)}")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
