"""The commit of a batch write runs in a process of its own, which loads no more than it needs."""

from __future__ import annotations

import subprocess
import sys

_COMMIT = """
import sys
import pyspark.sql.worker.commit_data_source_write
import workers.sink.batch_writer, workers.sink.publication
from workers.requests.blocking_publisher import borrow_publisher
print(*{'pyarrow', 'aiobotocore', 'aiohttp', 'fastavro'} & set(sys.modules))
"""


def test_a_commit_of_appended_files_loads_no_arrow() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _COMMIT], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == []
