"""For Spark applications: `configure` for the session, `create_table` for a DataFrame, a `sink` for
`foreachBatch`, and streaming upserts by `upsert_stream`.

Importing this imports neither PySpark nor pyarrow: they are imported where a session is used.
"""

from __future__ import annotations

from workers.creation.spark_table import create_table
from workers.session import configure
from workers.spark.foreach_batch import sink
from workers.spark.java import find_java_home
from workers.spark.upsert_stream import upsert_stream

__all__ = ["configure", "create_table", "find_java_home", "sink", "upsert_stream"]
