"""Publishes what the tasks of a write have written: the driver's half after it.

Called from the data source writers in Spark's Python workers on the driver, never on an executor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from pydantic import ValidationError

from committer.errors import InvariantError, PublishError, SettingsError
from committer.request.commit_request import Fingerprint, Producer
from committer.request.receipt_model import Receipt
from committer.request.request_model import problem_text
from committer.request.table_identifier import TableIdentifier
from workers.branches.application_name import printable_name
from workers.files.store_access import StoreAccess
from workers.requests.backlog import BacklogPolicy
from workers.requests.blocking_publisher import borrow_publisher
from workers.requests.publisher import PublishPolicy
from workers.requests.written_epoch import SeenTable, WrittenEpoch
from workers.settings.options import WriteOptions
from workers.settings.wap import TO_MAIN, Destination
from workers.settings.worker_settings import WorkerSettings, load_settings
from workers.sink.files_written import FilesWritten
from workers.sink.fingerprint import epoch_fingerprint, fingerprint_of
from workers.sink.identity import MicroBatch, WriteIdentity
from workers.sink.operation import WriteOperation, operation_of
from workers.sink.target import TargetTable
from workers.sink.warnings.small_files import hint_at_small_files
from workers.spark.discarded_files import delete_files


@dataclass(frozen=True, slots=True)
class EpochIdentity:
    """The epoch that a write is, whichever attempt lands it. `may_repeat`: as of `WrittenEpoch`."""

    producer: Producer
    epoch: int
    fingerprint: Fingerprint
    may_repeat: bool = False


def publish_micro_batch(
    options: WriteOptions, target: TargetTable, messages: Sequence[FilesWritten], batch_id: int
) -> Receipt | None:
    """Publish what the tasks of a streaming write wrote; None if that changes nothing."""
    operation = operation_of(options, target, _destination(messages))
    written = _publishable(messages, operation)
    if not written:
        return None
    _require_keys_apart(options, target, written)
    micro_batch = written[0].micro_batch
    if micro_batch is None or micro_batch.batch_id != batch_id:
        raise InvariantError(f"commit of batch {batch_id}, but the tasks ran for {micro_batch}")
    settings = load_settings(options.settings)
    checkpoint = options.checkpoint or _checkpoint_of_session(options, micro_batch)
    identity = EpochIdentity(
        producer_of(options, micro_batch, is_in_order=operation.is_in_order),
        batch_id,
        fingerprint_of(checkpoint, batch_id, settings.access),
    )
    receipt = _publish(options, settings, target, written, identity, operation)
    files = [file for each in written for file in each.files if not file.content]
    hint_at_small_files(options.table, micro_batch.query_id, files)
    return receipt


def publish_batch(
    options: WriteOptions, target: TargetTable, messages: Sequence[FilesWritten]
) -> Receipt | None:
    """Publish a batch write; inside `foreachBatch` it represents the micro-batch."""
    operation = operation_of(options, target, _destination(messages))
    written = _publishable(messages, operation)
    if not written:
        return None
    _require_keys_apart(options, target, written)
    settings, first = load_settings(options.settings), written[0]
    producer = producer_of(
        options,
        first.micro_batch or first.identity.nonce,
        first.application,
        is_in_order=operation.is_in_order,
    )
    identity = batch_identity(options, producer, first.micro_batch, settings.access)
    return _publish(options, settings, target, written, identity, operation)


def producer_of(
    options: WriteOptions,
    source: MicroBatch | UUID,
    application: str | None = None,
    *,
    is_in_order: bool = False,
) -> Producer:
    """Derive the identity of a write, and what it promises. `source` as of `WriteIdentity.of`; a
    write without a query's name has the name of its `application`; `is_in_order`: its epochs have
    to land one after another.
    """
    is_named, is_batch = options.producer is not None, isinstance(source, UUID)
    try:
        return Producer(
            id=WriteIdentity.of(options, source).producer,
            name=printable_name(options.query_name) or printable_name(application),
            sequential=not is_batch and not is_named,
            ordered=is_in_order and (is_named or not is_batch),
            one_shot=is_batch and not is_named,
        )
    except ValidationError as error:
        problem = problem_text(error.errors(include_url=False, include_input=False)[0])
        raise SettingsError(f"option `producer` or `sink`: {problem}") from None


def batch_identity(
    options: WriteOptions, producer: Producer, micro_batch: MicroBatch | None, access: StoreAccess
) -> EpochIdentity:
    """Return the epoch of a batch write, or of a micro-batch in `foreachBatch`."""
    may_repeat = micro_batch is not None
    if micro_batch is None or options.epoch is not None:
        epoch = options.epoch or 0
        return EpochIdentity(producer, epoch, epoch_fingerprint(epoch), may_repeat)
    epoch = micro_batch.batch_id
    fingerprint = fingerprint_of(options.checkpoint, epoch, access)
    return EpochIdentity(producer, epoch, fingerprint, may_repeat)


def _publish(
    options: WriteOptions,
    settings: WorkerSettings,
    target: TargetTable,
    written: Sequence[FilesWritten],
    identity: EpochIdentity,
    operation: WriteOperation,
) -> Receipt:
    first = written[0]
    if {(w.identity, w.table_uuid, w.schema_id) for w in written} != {
        (first.identity, first.table_uuid, first.schema_id)
    }:
        raise InvariantError("tasks of one write disagree about its identity or table")
    if any(each.union != first.union for each in written):
        raise InvariantError("tasks of one write disagree about its columns")
    place = first.identity.destination
    epoch = WrittenEpoch(
        identifier=TableIdentifier.parse(options.table),
        table_uuid=first.table_uuid,
        schema_id=first.schema_id,
        producer=identity.producer,
        epoch=identity.epoch,
        nonce=first.identity.nonce,
        fingerprint=identity.fingerprint,
        files=[file for each in written for file in each.files],
        branch=place.branch,
        create_branch=place.create_branch,
        stage_only=place.stage_only,
        summary=place.summary,
        union=first.union,
        operation=operation.name,
        needs=operation.needs,
        may_repeat=identity.may_repeat,
        seen=_seen(target, first),
    )
    policy = PublishPolicy(
        options.on_quarantine,
        options.wait,
        options.wait_timeout_s,
        BacklogPolicy(options.backlog_max, options.backlog_wait_s),
    )
    with borrow_publisher(settings) as publisher:
        return publisher.publish(epoch, policy)


def _seen(target: TargetTable, written: FilesWritten) -> SeenTable | None:
    """Return the table of the plan, if the files were written for it as it was then."""
    if (target.table_uuid, target.schema.schema_id) != (written.table_uuid, written.schema_id):
        return None
    return SeenTable(
        target.table_uuid,
        target.format_version,
        (target.schema,),
        target.specs,
        target.seen_ms,
    )


def _require_keys_apart(
    options: WriteOptions, target: TargetTable, written: Sequence[FilesWritten]
) -> None:
    """Refuse rows of one key from two tasks: both would live, as neither task knew of the other.
    Their files are deleted: a commit of these messages never publishes them, now or later."""
    upsert = options.upsert
    if upsert is None:
        return
    from workers.upserts.key_digests import shared_by  # other writes load no Arrow for their commit

    if shared_by([each.key_digests for each in written]) is None:
        return
    files = [file.file_path for each in written for file in each.files]
    delete_files(files, target.access, "an upsert that was refused")
    keys = ", ".join(repr(name) for name in upsert.keys)
    raise PublishError(
        f"upsert into table `{options.table}`: two tasks have rows of one key, so nothing was"
        " published, and the files are deleted. All rows of a key belong into one task: start the"
        " query with `frazil.spark.upsert_stream`, or repartition the rows by the key before they"
        " are written:"
        f" df.repartition(4, {keys})"
    )


def _destination(messages: Sequence[FilesWritten]) -> Destination:
    """Return where a write lands: its tasks know the confs of the session."""
    return next((each.identity.destination for each in messages), TO_MAIN)


def _publishable(
    messages: Sequence[FilesWritten], operation: WriteOperation
) -> Sequence[FilesWritten]:
    """Return the messages to publish, none where there is nothing to do: of few rows some tasks
    have no files, and only an overwrite may change the table without any."""
    if operation.takes_none:
        return messages
    return [message for message in messages if message.files]


def _checkpoint_of_session(options: WriteOptions, micro_batch: MicroBatch) -> str | None:
    """Return where Spark keeps the checkpoint of a named query, if the session's conf says so."""
    if micro_batch.checkpoints is None or options.query_name is None:
        return None
    return f"{micro_batch.checkpoints.rstrip('/')}/{options.query_name}"
