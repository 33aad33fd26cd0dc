"""For Spark applications: `configure` for the session, `create_table` for a DataFrame, `distribute`
for its rows before a write, a `sink` for `foreachBatch`, streaming upserts by `upsert_stream`,
`delete_from`, `update` and `merge_into` for the rows of a table, `rewrite_data_files` for its
compaction, `rewrite_position_deletes` and `convert_equality_deletes` for its deletes, and
`keep_in_shape`.

Importing this imports neither PySpark nor pyarrow: they are imported where a session is used.
"""

from __future__ import annotations

from workers.changes.merge_builder import MergeBuilder
from workers.changes.spark_changes import delete_from, merge_into, update
from workers.changes.what_changed import Changed
from workers.compaction.rewrite_result import DeletesResult, FailedGroup, RewriteResult
from workers.compaction.spark_compaction import (
    convert_equality_deletes,
    keep_in_shape,
    rewrite_data_files,
    rewrite_position_deletes,
)
from workers.creation.spark_table import create_table
from workers.distribution.distribute import distribute
from workers.session import configure
from workers.spark.java import find_java_home
from workers.streams.foreach_batch import sink
from workers.streams.upsert_stream import upsert_stream

__all__ = [
    "Changed",
    "DeletesResult",
    "FailedGroup",
    "MergeBuilder",
    "RewriteResult",
    "configure",
    "convert_equality_deletes",
    "create_table",
    "delete_from",
    "distribute",
    "find_java_home",
    "keep_in_shape",
    "merge_into",
    "rewrite_data_files",
    "rewrite_position_deletes",
    "sink",
    "update",
    "upsert_stream",
]
