"""Starts a streaming upsert with the rows of each key in one task, which the sink requires.

A Python data source cannot ask Spark for a distribution of the rows that it writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from committer.errors import SettingsError


def upsert_stream(
    dataframe: Any,
    keys: str | Sequence[str],
    *,
    delete_column: str | None = None,
    sequence_column: str | None = None,
    partitions: int = 1,
) -> Any:
    """Return a `DataStreamWriter` of `format("frazil")` that upserts the rows of a streaming
    DataFrame: give it a checkpoint and a trigger, and start it with the table's name.

    `keys`: the columns that name a row. `delete_column`: a boolean column, or the values that
    delete, such as `op in ('d', 'D')`. `sequence_column`: of several rows of a key the highest
    counts. `partitions`: the tasks that write a micro-batch, each with files of its own.
    """
    names = [keys] if isinstance(keys, str) else list(keys)
    if not names or partitions < 1:
        raise SettingsError("upsert_stream: expected a key column, and one partition or more")
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    options = {
        "upsert-keys": ", ".join(quoted),
        "upsert-delete-column": delete_column,
        "upsert-sequence-column": sequence_column,
        # By key, whatever the table asks for.
        "distribution-mode": "none",
    }
    writer = dataframe.repartition(partitions, *quoted).writeStream.format("frazil")
    for name, value in options.items():
        writer = writer if value is None else writer.option(name, value)
    return writer
