"""One Spark task's part of a write: its rows into data files, and the message about them.

Runs on executors: knows the table format and the task, neither catalog nor inbox nor request.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from uuid import UUID

import pyarrow as pa
from pyspark import TaskContext

from workers.settings.options import WriteOptions
from workers.settings.wap import SessionWap
from workers.sink.files_written import FilesWritten
from workers.sink.identity import MicroBatch, WriteIdentity, write_destination
from workers.sink.target import TargetTable
from workers.spark.task_input import running_task
from workers.spark.written_files import names_of_task, write_files

_log = logging.getLogger("frazil.workers")

_APPLICATION = "spark.app.name"
_BYTES_PER_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
_BYTES_PER_BATCH_OFF = str(2**31 - 1)
_warned: set[str] = set()


def write_task(
    batches: Iterator[pa.RecordBatch],
    target: TargetTable,
    options: WriteOptions,
    source: MicroBatch | UUID,
) -> FilesWritten:
    """Write all rows of the running task. A task that fails, or that Spark gives up meanwhile,
    deletes its own files only. `source`: as of `WriteIdentity.of`.

    Errors: `SettingsError` for confs of the session that do not fit, `PublishError` for rows that
    do not fit the table, or that stop before their end.
    """
    task, upsert = TaskContext.get(), options.upsert
    micro_batch = source if isinstance(source, MicroBatch) else None
    session = SessionWap.of(task.getLocalProperty)
    place = write_destination(options, target, session, source)
    identity = WriteIdentity.of(options, source, place)
    _warn_of_slow_transport(task.getLocalProperty(_BYTES_PER_BATCH))
    attempt = str(identity.attempt(target.table_uuid))
    names, digests = names_of_task(attempt), b""
    with running_task() as rows:
        if upsert is None:
            files = write_files(batches, target, names, rows)
        else:
            from workers.sink.upsert_task import write_upserts  # other writes do without it

            files, digests = write_upserts(batches, target, upsert, names, rows)
    return FilesWritten(
        micro_batch,
        identity,
        target.table_uuid,
        target.schema.schema_id,
        tuple(files),
        task.getLocalProperty(_APPLICATION),
        target.schema if target.is_widened else None,
        digests,
    )


def _warn_of_slow_transport(bytes_per_batch: str | None) -> None:
    """Warn if batches by bytes are on: Spark then computes the size of all columns for each row."""
    if bytes_per_batch == _BYTES_PER_BATCH_OFF or _BYTES_PER_BATCH in _warned:
        return
    _warned.add(_BYTES_PER_BATCH)
    _log.warning(
        "%s is not %s: rows come from Spark at about half the speed; see frazil.spark.configure",
        _BYTES_PER_BATCH,
        _BYTES_PER_BATCH_OFF,
    )
