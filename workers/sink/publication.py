"""The driver's half of a write: the table's facts before it, the publication of its files after it.

Called from the data source writers in Spark's Python workers on the driver, never on an executor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from pydantic import ValidationError
from pyspark.sql.types import StructType

from committer.errors import InvariantError, SettingsError
from committer.iceberg.values.locations import data_folder
from committer.request.commit_request import Fingerprint, Producer
from committer.request.receipt_model import Receipt
from committer.request.table_identifier import TableIdentifier
from workers.arrow.column_checks import check_nullability, check_order
from workers.creation.frame_schema import arrow_schema_of, check_fits
from workers.creation.wider_schema import wider_schema
from workers.files.file_writer import FileNames, PartitionedWriter
from workers.files.store_access import StoreAccess
from workers.files.vended_keys import access_of_tasks
from workers.requests.backlog import BacklogPolicy
from workers.requests.blocking_publisher import borrow_publisher
from workers.requests.publisher import PublishPolicy
from workers.requests.written_epoch import WrittenEpoch
from workers.settings.options import WriteOptions
from workers.settings.worker_settings import WorkerSettings, load_settings
from workers.sink.fingerprint import epoch_fingerprint, fingerprint_of
from workers.sink.identity import MicroBatch, WriteIdentity
from workers.sink.small_files import hint_at_small_files
from workers.sink.target import TargetTable
from workers.sink.task_writer import FilesWritten
from workers.sink.unheeded import warn_of_unheeded
from workers.sink.wanted_table import wanted_table

_NAME_CHARACTERS_MAX = 100


def load_target(options: WriteOptions, schema: StructType) -> TargetTable:
    """Read the table and check, before anything is written, that such rows can be written to it.

    Errors: `PublishError`, `UnsupportedError` or `SettingsError`, saying what does not fit.
    """
    settings = load_settings(options.settings)
    _check_names(options)
    with borrow_publisher(settings) as publisher:
        metadata = wanted_table(publisher, options, settings, schema)
        vended = publisher.credential(data_folder(metadata.location, metadata.properties))
    target = TargetTable.of(options.table, metadata, access_of_tasks(settings.access, vended))
    if options.union_by_name and (wider := wider_schema(metadata, schema)) is not None:
        target = replace(target, schema=wider, is_widened=True)
    _check_writable(target, options, schema)
    query = options.checkpoint or options.query_name or options.producer or ""
    warn_of_unheeded(options.table, metadata, query)
    return target


def _check_names(options: WriteOptions) -> None:
    """Refuse a name that is too long before the rows are written rather than after."""
    query = str(UUID(int=0))
    producer_of(options, MicroBatch(query, query, 0))


def _check_writable(target: TargetTable, options: WriteOptions, schema: StructType) -> None:
    source = arrow_schema_of(schema)
    columns = check_fits(f"table `{target.name}`", source, target.schema)
    if options.check_ordering:
        check_order(columns.columns)
    if options.check_nullability:
        check_nullability(list(source), columns.columns)
    # A writer that gets no rows makes no file, but knows whether it could.
    PartitionedWriter(target, columns.schema, FileNames(0, 0, "", "")).close()


# --- After the tasks -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Identity:
    """The identity that the files are published under."""

    producer: Producer
    epoch: int
    fingerprint: Fingerprint
    may_repeat: bool


def publish_micro_batch(
    options: WriteOptions, messages: Sequence[FilesWritten], batch_id: int
) -> Receipt | None:
    """Publish what the tasks of a streaming write wrote; None if there are no rows."""
    written = _with_files(messages)
    if not written:
        return None
    micro_batch = written[0].micro_batch
    if micro_batch is None or micro_batch.batch_id != batch_id:
        raise InvariantError(f"commit of batch {batch_id}, but the tasks ran for {micro_batch}")
    settings = load_settings(options.settings)
    checkpoint = options.checkpoint or _checkpoint_of_session(options, micro_batch)
    identity = _Identity(
        producer_of(options, micro_batch),
        batch_id,
        fingerprint_of(checkpoint, batch_id, settings.access),
        may_repeat=False,
    )
    receipt = _publish(options, settings, written, identity)
    files = [file for each in written for file in each.files]
    hint_at_small_files(options.table, micro_batch.query_id, files)
    return receipt


def publish_batch(options: WriteOptions, messages: Sequence[FilesWritten]) -> Receipt | None:
    """Publish a batch write; inside `foreachBatch` it represents the micro-batch."""
    written = _with_files(messages)
    if not written:
        return None
    settings = load_settings(options.settings)
    return _publish(
        options, settings, written, _batch_identity(options, written[0], settings.access)
    )


def producer_of(
    options: WriteOptions, source: MicroBatch | UUID, application: str | None = None
) -> Producer:
    """Derive the identity of a write, and what it promises. `source` as of `WriteIdentity.of`; a
    write without a query's name has the name of its `application`.
    """
    is_named, is_batch = options.producer is not None, isinstance(source, UUID)
    try:
        return Producer(
            id=WriteIdentity.of(options, source).producer,
            name=_printable(options.query_name) or _printable(application),
            sequential=not is_batch and not is_named,
            one_shot=is_batch and not is_named,
        )
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise SettingsError(f"option `producer` or `sink`: {problem}") from None


def _printable(name: str | None) -> str | None:
    """Return the name, as far as it can be shown."""
    text = "".join(filter(str.isprintable, name or ""))
    return text[:_NAME_CHARACTERS_MAX] or None


def _batch_identity(options: WriteOptions, written: FilesWritten, access: StoreAccess) -> _Identity:
    micro_batch = written.micro_batch
    source = micro_batch or written.identity.nonce
    producer = producer_of(options, source, written.application)
    if options.epoch is not None:
        return _Identity(
            producer, options.epoch, epoch_fingerprint(options.epoch), micro_batch is not None
        )
    if micro_batch is None:
        return _Identity(producer, 0, epoch_fingerprint(0), may_repeat=False)
    epoch = micro_batch.batch_id
    fingerprint = fingerprint_of(options.checkpoint, epoch, access)
    return _Identity(producer, epoch, fingerprint, may_repeat=True)


def _publish(
    options: WriteOptions,
    settings: WorkerSettings,
    written: Sequence[FilesWritten],
    identity: _Identity,
) -> Receipt:
    first = written[0]
    if {(w.identity, w.table_uuid, w.schema_id) for w in written} != {
        (first.identity, first.table_uuid, first.schema_id)
    }:
        raise InvariantError("tasks of one write disagree about its identity or table")
    if any(each.union != first.union for each in written):
        raise InvariantError("tasks of one write disagree about its columns")
    epoch = WrittenEpoch(
        identifier=TableIdentifier.parse(options.table),
        table_uuid=first.table_uuid,
        schema_id=first.schema_id,
        producer=identity.producer,
        epoch=identity.epoch,
        nonce=first.identity.nonce,
        fingerprint=identity.fingerprint,
        files=[file for each in written for file in each.files],
        branch=first.identity.branch,
        union=first.union,
        may_repeat=identity.may_repeat,
    )
    policy = PublishPolicy(
        options.on_quarantine,
        options.wait,
        options.wait_timeout_s,
        BacklogPolicy(options.backlog_max, options.backlog_wait_s),
    )
    with borrow_publisher(settings) as publisher:
        return publisher.publish(epoch, policy)


def _with_files(messages: Sequence[FilesWritten]) -> list[FilesWritten]:
    """Return messages with files: of a micro-batch without rows some have none."""
    return [message for message in messages if message.files]


def _checkpoint_of_session(options: WriteOptions, micro_batch: MicroBatch) -> str | None:
    """Return where Spark keeps the checkpoint of a named query, if the session's conf says so."""
    if micro_batch.checkpoints is None or options.query_name is None:
        return None
    return f"{micro_batch.checkpoints.rstrip('/')}/{options.query_name}"
