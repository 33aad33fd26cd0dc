"""Spark in the process of the tests, with a JVM of its own: settings of a JVM are those that it was
started with, and several files of tests may share a process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from frazil.spark import find_java_home
from tests.support.integration.spark_confs import CONFS
from workers.settings.session_settings import remember_settings

_CHANGED = ("FRAZIL_", "JAVA_HOME", "PYSPARK_PYTHON")


@contextmanager
def spark_session(
    folder: Path, confs: Mapping[str, str], prepare: Callable[[Any], object]
) -> Iterator[Any]:
    """Start Spark, after `prepare` has had its builder; at the end it is gone with its JVM."""
    from pyspark.sql import SparkSession

    before = {name: value for name, value in os.environ.items() if name.startswith(_CHANGED)}
    end_jvm()
    os.environ["JAVA_HOME"] = str(find_java_home(folder / "java"))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("frazil-tests")
    usual = {
        **CONFS,
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
    }
    for key, value in {**usual, **confs}.items():
        builder.config(key, value)
    prepare(builder)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for name in [name for name in os.environ if name.startswith(_CHANGED)]:
        del os.environ[name]
    os.environ.update(before)
    try:
        yield spark
    finally:
        spark.stop()
        end_jvm()


def end_jvm() -> None:
    """End the JVM of this process, if it has one, and forget the settings of its sessions."""
    from pyspark import SparkContext

    remember_settings({})
    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    process = gateway.proc
    process.stdin.close()
    process.wait()
    SparkContext._gateway = SparkContext._jvm = None
