"""Modules that the processes of a write load: no more than they need, and on older releases too."""

from __future__ import annotations

import subprocess
import sys

_COMMIT = """
import sys
import pyspark.sql.worker.commit_data_source_write
import workers.sink.batch_writer, workers.sink.publication
from workers.requests.blocking_publisher import borrow_publisher
from workers.requests.connections import connect
from workers.settings.worker_settings import load_settings
settings = {"catalog.uri": "sqlite:////nowhere/c.db", "inbox": "file:/nowhere"}
with borrow_publisher(load_settings(settings)) as publisher:
    connect(publisher._tables)
print(*{"pyarrow", "aiobotocore", "aiohttp", "fastavro", "sqlalchemy"} & set(sys.modules))
"""


def test_a_commit_of_appended_files_loads_no_arrow() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _COMMIT], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == []


# PySpark 4.0: tables are written by batches, and by `foreachBatch`.
_WITHOUT_STREAM_WRITER = """
from pyspark.sql import datasource
del datasource.DataSourceStreamArrowWriter
import pyspark_frazil, frazil.spark
import workers.sink.datasource, workers.streams.position_upserts
"""


def test_pyspark_4_0_has_all_that_batches_need() -> None:
    subprocess.run([sys.executable, "-c", _WITHOUT_STREAM_WRITER], check=True)
