"""Starts a streaming upsert: with the rows of each key in one task, which the sink requires, or by
jobs of its own that look the keys up.

A Python data source cannot ask Spark for a distribution of the rows that it writes, nor run a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from committer.errors import SettingsError
from workers.settings.upsert_options import DELETE, DELETES, KEYS, PARTITIONS, SEQUENCE
from workers.streams.position_upsert_writer import PositionUpsertWriter


def upsert_stream(
    dataframe: Any,
    keys: str | Sequence[str],
    *,
    delete_column: str | None = None,
    sequence_column: str | None = None,
    partitions: int = 1,
    deletes: str = "equality",
) -> Any:
    """Return a `DataStreamWriter` of `format("frazil")` that upserts the rows of a streaming
    DataFrame: give it a checkpoint and a trigger, and start it with the table's name.

    `keys`: the columns that name a row. `delete_column`: a boolean column, or the values that
    delete, such as `op in ('d', 'D')`. `sequence_column`: of several rows of a key the highest
    counts. `partitions`: the tasks that write a micro-batch, each with files of its own. `deletes`:
    `equality` writes the keys of old rows, unread; `positions` looks old rows up, and writes
    deletion vectors, or position deletes in format version 2.
    """
    names = [keys] if isinstance(keys, str) else list(keys)
    if not names or partitions < 1:
        raise SettingsError("upsert_stream: expected a key column, and one partition or more")
    if deletes not in ("equality", "positions"):
        raise SettingsError(
            f"upsert_stream: expected `equality` or `positions` as deletes, found `{deletes}`"
        )
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    options = {KEYS: ", ".join(quoted), DELETE: delete_column, SEQUENCE: sequence_column}
    if deletes == "positions":
        options |= {DELETES: deletes, PARTITIONS: str(partitions)}
        writer = PositionUpsertWriter(dataframe.writeStream)
    else:
        # By key, whatever the table asks for.
        options |= {"distribution-mode": "none"}
        writer = dataframe.repartition(partitions, *quoted).writeStream.format("frazil")
    for name, value in options.items():
        writer = writer if value is None else writer.option(name, value)
    return writer
