"""The table of a write as its options want it, and whether such rows can be written to it.

Called from the data source writers in Spark's Python workers on the driver, before the tasks. That
is a process of its own, which starts for the first micro-batch: what only some writes need, and all
of publishing, is imported where it is used.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from uuid import UUID

import pyarrow as pa
from pyspark.sql.types import StructType

from committer.errors import NotFoundError, PublishError, SettingsError
from committer.iceberg.metadata.snapshot import MAIN
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.values.locations import data_folder
from committer.request.table_identifier import TableIdentifier
from committer.table_defaults import UPSERT_DELETES_PROPERTY
from workers.arrow.arrow_schema import MatchedColumns
from workers.arrow.column_checks import check_nullability, check_order
from workers.creation.frame_schema import arrow_schema_of, check_fits
from workers.distribution.distribution_mode import check_option
from workers.files.file_writer import FileNames, PartitionedWriter
from workers.files.vended_keys import access_of_tasks
from workers.files.write_properties import FORMAT
from workers.requests.blocking_publisher import BlockingPublisher, borrow_publisher
from workers.settings.create_options import CreateOptions
from workers.settings.options import WriteOptions
from workers.settings.upsert_options import DELETES
from workers.settings.worker_settings import NO_QUEUE, WorkerSettings, load_settings
from workers.sink.identity import MicroBatch
from workers.sink.target import TargetTable
from workers.sink.warnings.unheeded import warn_of_unheeded
from workers.upserts.table_deletes import deletes_of
from workers.upserts.upsert import Upsert

_QUEUE_CLIENT = "redis"


def load_target(options: WriteOptions, schema: StructType, *, looks_up: bool = True) -> TargetTable:
    """Read the table and check, before anything is written, that such rows can be written to it.

    `looks_up`: the writer runs jobs of Spark, so it can delete old rows by their positions.
    Errors: `PublishError`, `UnsupportedError` or `SettingsError`, saying what does not fit.
    """
    settings = load_settings(options.settings)
    _check_queue_client(settings)
    _check_names(options)
    with borrow_publisher(settings) as publisher:
        seen_ms = publisher.now_ms()
        metadata = _wanted_table(publisher, options, settings, schema)
        vended = publisher.credential(data_folder(metadata.location, metadata.properties))
    access = access_of_tasks(settings.access, vended)
    target = TargetTable.of(options.table, metadata, access, options.branch, seen_ms=seen_ms)
    if options.write_format:
        properties = {**target.properties, FORMAT: options.write_format}
        target = replace(target, properties=properties)
    if options.union_by_name:
        target = _widened(target, metadata, schema)
    _check_writable(target, options, schema)
    if options.upsert is not None:
        _check_takes_deletes(options.table, metadata.format_version)
        if not looks_up and options.upsert.deletes is None:
            _check_wants_no_look_up(options.table, metadata)
    if options.overwrite is not None:
        from workers.sink.operation import check_filter

        check_filter(options.overwrite, target.schema)
    query = options.checkpoint or options.query_name or options.producer or ""
    distribution = check_option(options.distribution_mode, schema)
    warn_of_unheeded(options.table, metadata, query, is_distributed=distribution is not None)
    return target


def _check_queue_client(settings: WorkerSettings) -> None:
    """Miss the queue's client before the rows are written: only publishing imports it."""
    if settings.queue_url != NO_QUEUE and find_spec(_QUEUE_CLIENT) is None:
        raise ModuleNotFoundError(f"No module named '{_QUEUE_CLIENT}'", name=_QUEUE_CLIENT)


def _check_names(options: WriteOptions) -> None:
    """Refuse a name that is too long before the rows are written rather than after."""
    if options.producer is None and not options.sink:
        return
    from workers.sink.publication import producer_of

    query = str(UUID(int=0))
    producer_of(options, MicroBatch(query, query, 0))


def _widened(target: TargetTable, metadata: TableMetadata, schema: StructType) -> TargetTable:
    from workers.creation.wider_schema import wider_schema

    wider = wider_schema(metadata, schema)
    return target if wider is None else replace(target, schema=wider, is_widened=True)


def _check_writable(target: TargetTable, options: WriteOptions, schema: StructType) -> None:
    source = arrow_schema_of(schema)
    if options.upsert is None:
        columns = _fitting_columns(target, source)
    else:
        columns, source = _fitting_upsert(target, source, options.upsert)
    if options.check_ordering:
        check_order(columns.columns)
    if options.check_nullability:
        check_nullability(list(source), columns.columns)


# A writer that gets no rows makes no file, but knows whether it could.
_NO_FILES = FileNames(0, 0, "", "")


def _fitting_columns(target: TargetTable, source: pa.Schema) -> MatchedColumns:
    columns = check_fits(f"table `{target.name}`", source, target.schema)
    PartitionedWriter(target, columns.schema, _NO_FILES).close()
    return columns


def _fitting_upsert(
    target: TargetTable, source: pa.Schema, upsert: Upsert
) -> tuple[MatchedColumns, pa.Schema]:
    from workers.sink.upsert_task import UpsertWriter
    from workers.upserts.upsert_columns import bind_upsert

    try:
        bound = bind_upsert(upsert, source, target.schema)
        if upsert.deletes == "positions":
            PartitionedWriter(target, bound.rows.schema, _NO_FILES).close()
        else:
            UpsertWriter(bound, target, _NO_FILES).close()
    except PublishError as error:
        raise PublishError(f"table `{target.name}`: {error}") from None
    return bound.rows, bound.row_schema(source)


def _check_takes_deletes(table: str, format_version: int) -> None:
    if format_version < 2:
        raise PublishError(
            f"table `{table}` has format version 1, which has no deletes, so nothing can be"
            " upserted: upgrade it (`frazil table evolve`)"
        )


def _check_wants_no_look_up(table: str, metadata: TableMetadata) -> None:
    if deletes_of(table, metadata.properties) == "positions":
        raise SettingsError(
            f"table `{table}` wants upserts to delete by position (property"
            f" `{UPSERT_DELETES_PROPERTY}`), and a data source runs no jobs that look rows up:"
            ' start the query with frazil.spark.upsert_stream(rows, keys, deletes="positions"), or'
            f" use frazil.spark.sink(table, ...) in foreachBatch; or set option `{DELETES}` to"
            " `equality`, which deletes by key all the same"
        )


def _wanted_table(
    publisher: BlockingPublisher,
    options: WriteOptions,
    settings: WorkerSettings,
    schema: StructType,
) -> TableMetadata:
    """Load the table, or create it for such rows if the options say so.

    Errors: `PublishError` without the table or the branch; those of `ensure_table`.
    """
    identifier = TableIdentifier.parse(options.table)
    try:
        metadata = publisher.load_table(identifier).metadata
    except NotFoundError as error:
        if options.create is None:
            raise PublishError(
                f"{error}: catalog `{settings.catalog.name}` has no table `{options.table}`; create"
                " it first (frazil.spark.create_table, `frazil table create`, or any Iceberg engine"
                ' on that catalog), or with the write: option("create", "true")'
            ) from None
        metadata = _created(publisher, identifier, schema, options.create)
    if options.branch is not None:
        _check_branch(identifier, metadata, options.branch)
    return metadata


def _created(
    publisher: BlockingPublisher,
    identifier: TableIdentifier,
    schema: StructType,
    create: CreateOptions,
) -> TableMetadata:
    from workers.creation.ensured_table import ensure_table
    from workers.creation.table_wish import new_table

    new = new_table(identifier, schema, create, all_optional=True)
    return ensure_table(publisher, new)[0].metadata


def _check_branch(identifier: TableIdentifier, metadata: TableMetadata, branch: str) -> None:
    ref = metadata.refs.get(branch)
    if branch != MAIN and (ref is None or ref.type != "branch"):
        raise PublishError(
            f"table `{identifier}` has no branch `{branch}`: create it first"
            f" (`frazil table branch create {identifier} {branch}`)"
        )
