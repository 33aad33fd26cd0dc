"""The CPU time of what the two short processes of a cold write import, beyond what Spark has
imported in them before: the planner's, and that of the commit.

Each is a process of its own that imports and opens what its call does, with a catalog in SQLite and
a queue. It reads and writes nothing.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from bench.statistics import Spread

_SPARK = "import pyspark.worker, pyspark.sql.datasource, pyspark.sql.worker.{module}"
_FIRST_CALL = """
from workers.spark import worker_process
worker_process._is_of_daemon = lambda: True  # as in a worker of Spark
worker_process.begin_call()
from workers.requests.blocking_publisher import borrow_publisher
from workers.settings.worker_settings import load_settings
settings = load_settings({"catalog.uri": "sqlite:////nowhere/c.db", "inbox": "file:/nowhere"})
"""
_PLANNER = """
import committer.extras, workers.spark.message_first, workers.sink.datasource
with borrow_publisher(settings):
    import committer.catalog.sql.sql_catalog, committer.catalog.sql.sqlite_file
"""
_COMMIT = """
import workers.sink.batch_writer, workers.sink.publication
from workers.requests.connections import connect
with borrow_publisher(settings) as publisher:
    connect(publisher._tables)
"""
_NO_COMPILED = "PYTHONDONTWRITEBYTECODE"
_PROCESSES = {
    "planner": ("write_into_data_source", _PLANNER),
    "commit": ("commit_data_source_write", _COMMIT),
}


@dataclass(frozen=True, slots=True)
class Imports:
    """Medians of CPU seconds: of the process with Spark's imports alone, and with ours."""

    process: str
    spark_s: float
    all_s: float

    @property
    def ours_s(self) -> float:
        return self.all_s - self.spark_s


def measure_imports(rounds: int) -> Iterator[Imports]:
    """Start each process so many times, in turn with one that has Spark's imports alone."""
    for process, (module, program) in _PROCESSES.items():
        spark = _SPARK.format(module=module)
        _cpu_s(spark + _FIRST_CALL + program)  # compiles what is not compiled yet
        pairs = [(_cpu_s(spark), _cpu_s(spark + _FIRST_CALL + program)) for _ in range(rounds)]
        alone, together = zip(*pairs, strict=True)
        yield Imports(process, Spread.of(alone).median, Spread.of(together).median)


def _cpu_s(program: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Installed modules are compiled: these are, too, whatever the caller's variables say.
    environment = {key: value for key, value in os.environ.items() if key != _NO_COMPILED}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
