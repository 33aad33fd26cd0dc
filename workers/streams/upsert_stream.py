"""Starts a streaming upsert: with the rows of each key in one task, which the sink requires, or by
jobs of its own that look the keys up.

A Python data source cannot ask Spark for a distribution of the rows that it writes, nor run a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from committer.errors import SettingsError
from committer.table_defaults import UPSERT_DELETES
from workers.settings.upsert_options import DELETE, DELETES, KEYS, SEQUENCE
from workers.streams.upsert_stream_writer import UpsertStreamWriter


def upsert_stream(
    dataframe: Any,
    keys: str | Sequence[str],
    *,
    delete_column: str | None = None,
    sequence_column: str | None = None,
    partitions: int = 1,
    deletes: str | None = None,
) -> Any:
    """Return a writer that upserts the rows of a streaming DataFrame: give it a checkpoint and a
    trigger, as Spark's own, and start it with the table's name.

    `keys`: the columns that name a row. `delete_column`: a boolean column, or the values that
    delete, such as `op in ('d', 'D')`. `sequence_column`: of several rows of a key the highest
    counts. `partitions`: the tasks that write a micro-batch, each with files of its own. `deletes`:
    `equality` writes the keys of old rows, unread; `positions` looks old rows up, and writes
    deletion vectors, or position deletes in format version 2; None is as the table's property
    `frazil.upsert.deletes` says, else `equality`.
    """
    from workers.spark.spark_schema import quoted

    names = [keys] if isinstance(keys, str) else list(keys)
    if not names or partitions < 1:
        raise SettingsError("upsert_stream: expected a key column, and one partition or more")
    if deletes not in (None, *UPSERT_DELETES):
        raise SettingsError(
            f"upsert_stream: expected `equality` or `positions` as deletes, found `{deletes}`"
        )
    columns = [quoted(name) for name in names]
    options = {
        KEYS: ", ".join(columns),
        DELETE: delete_column,
        SEQUENCE: sequence_column,
        DELETES: deletes,
    }
    writer = UpsertStreamWriter(dataframe, columns, partitions)
    return writer.options(**{name: text for name, text in options.items() if text is not None})
