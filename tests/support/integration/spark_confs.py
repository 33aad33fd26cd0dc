"""Settings of every Spark session that the tests start."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.builders.jars import JAVA_OPTIONS
from tests.support.integration.spark_daemon import DAEMON

CONFS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.sql.shuffle.partitions": "2",
    # A query of a test reads a few rows once: to compile it takes longer than to interpret it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.python.daemon.module": DAEMON,
}
