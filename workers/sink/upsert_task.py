"""One Spark task's part of an upsert: its winning rows into data files, its keys into delete files.

Runs on executors, like `task_writer.py`. A task sees its own rows only: the commit checks that no
other task has rows of the same key.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from committer.iceberg.entry.data_file import DataFile
from workers.files.deletes.equality_delete_writer import EqualityDeleteWriter
from workers.files.file_writer import Discarding, FileNames, PartitionedWriter
from workers.sink.target import TargetTable
from workers.spark.task_input import TaskInput
from workers.upserts.delete_specs import delete_specs
from workers.upserts.key_digests import digests_of
from workers.upserts.upsert import Upsert
from workers.upserts.upsert_columns import UpsertColumns, bind_upsert
from workers.upserts.winning_rows import Winners, WinningRows


class UpsertWriter(Discarding):
    """Writes winners. Use it as a context manager: an error inside discards its files."""

    def __init__(self, columns: UpsertColumns, target: TargetTable, names: FileNames) -> None:
        """Prepare to write. Errors: as `PartitionedWriter` and `delete_specs`."""
        specs = delete_specs(target.specs, target.schema, columns.key_ids)
        self._rows = PartitionedWriter(target, columns.rows.schema, names)
        self._keys = EqualityDeleteWriter(target, specs, columns.keys.schema, names)

    def write(self, winners: Winners) -> None:
        self._rows.write(winners.rows)
        self._keys.write(winners.keys)

    def close(self) -> list[DataFile]:
        """Return the data files and the delete files, which are durable then."""
        return [*self._rows.close(), *self._keys.close()]

    def discard(self) -> None:
        self._rows.discard()
        self._keys.discard()


def write_upserts(
    batches: Iterator[pa.RecordBatch],
    target: TargetTable,
    upsert: Upsert,
    names: FileNames,
    rows: TaskInput,
) -> tuple[list[DataFile], bytes]:
    """Write the rows that count; return their files, and the digests of their keys. No file stays
    if `rows` ends early.

    Errors: `PublishError` for rows that do not fit the table, or that nothing orders.
    """
    first = next(batches, None)
    columns = None if first is None else bind_upsert(upsert, first.schema, target.schema)
    if first is None or columns is None:
        rows.require_whole()
        return [], b""
    collected = WinningRows(columns)
    collected.add(first)
    for batch in batches:
        collected.add(batch)
    rows.require_whole()
    winners = collected.finish()
    if winners is None:
        return [], b""
    with UpsertWriter(columns, target, names) as writer:
        writer.write(winners)
        files = writer.close()
        rows.require_listener()
    return files, digests_of(winners.keys, names.attempt.encode())
