"""Writes as Spark runs them, without Spark: the driver's looks at the table, the tasks' files, and
the commit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from committer.iceberg.metadata.new_table import new_table_metadata
from committer.iceberg.schema.partition_spec import UNPARTITIONED, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.values.locations import metadata_file_location, metadata_folder
from committer.ports.pointer_swap import LoadedTable
from committer.request.receipt_model import Receipt
from committer.request.table_identifier import TableIdentifier
from tests.support.integration.duckdb_iceberg import duckdb_with_iceberg
from tests.support.integration.readers import local
from tests.support.integration.real_harness import RealHarness
from workers.branches.fresh_nonce import fresh_nonce
from workers.files.file_writer import FileNames
from workers.settings.options import WriteOptions, parse_options
from workers.settings.wap import NO_SESSION_WAP, SessionWap
from workers.sink.files_written import FilesWritten
from workers.sink.identity import MicroBatch, WriteIdentity, write_destination
from workers.sink.publication import publish_batch, publish_micro_batch
from workers.sink.target import TargetTable
from workers.sink.upsert_task import write_upserts
from workers.sink.wanted_table import load_target
from workers.spark.task_input import TaskInput
from workers.spark.written_files import write_files

Row = dict[str, Any]
Options = Mapping[str, str]
_NO_OPTIONS: Options = {}


@dataclass(frozen=True, slots=True)
class SinkWriter:
    """Writes to one table of a harness. `schema`: of the DataFrames that are written;
    `session`: the confs of the Spark session."""

    harness: RealHarness
    table: str
    schema: pa.Schema
    session: SessionWap = NO_SESSION_WAP

    def overwrite(
        self, tasks: Iterable[Sequence[Row]], options: Options = _NO_OPTIONS
    ) -> Receipt | None:
        """Run a batch write of mode `overwrite`; one list of rows for each task."""
        return self.begin(options).end(tasks)

    def append(
        self, tasks: Iterable[Sequence[Row]], options: Options = _NO_OPTIONS
    ) -> Receipt | None:
        """Run a batch write of mode `append` that waits until its rows are in the table."""
        return self.begin({"wait": "committed", **options}, overwrite=False).end(tasks)

    def begin(self, options: Options = _NO_OPTIONS, *, overwrite: bool = True) -> BatchWrite:
        """Return a batch write that has looked at the table, and has not run its tasks yet."""
        parsed = parse_options(self._options(options), streaming=False, overwrite=overwrite)
        return BatchWrite(self, parsed, load_target(parsed, from_arrow_schema(self.schema)))

    def micro_batch(
        self,
        source: MicroBatch,
        tasks: Iterable[Sequence[Row]],
        options: Options = _NO_OPTIONS,
        *,
        complete: bool = False,
    ) -> Receipt | None:
        """Run a micro-batch of a streaming query."""
        parsed = parse_options(self._options(options), streaming=True, overwrite=complete)
        target = load_target(parsed, from_arrow_schema(self.schema))
        messages = self.messages(parsed, target, source, tasks)
        return publish_micro_batch(parsed, target, messages, source.batch_id)

    def messages(
        self,
        options: WriteOptions,
        target: TargetTable,
        source: MicroBatch | None,
        tasks: Iterable[Sequence[Row]],
    ) -> list[FilesWritten]:
        run = source or fresh_nonce()
        place = write_destination(options, target, self.session, run)
        identity = WriteIdentity.of(options, run, place)
        return [
            self._message(options, target, source, identity, (number, rows))
            for number, rows in enumerate(tasks)
        ]

    def _message(
        self,
        options: WriteOptions,
        target: TargetTable,
        source: MicroBatch | None,
        identity: WriteIdentity,
        task: tuple[int, Sequence[Row]],
    ) -> FilesWritten:
        number, rows = task
        attempt = str(identity.attempt(target.table_uuid))
        names = FileNames(number, number, attempt, uuid4().hex[:8])
        batches, ending, digests = self._batches(rows), TaskInput(None), b""
        if options.upsert is None:
            files = write_files(batches, target, names, ending)
        else:
            files, digests = write_upserts(batches, target, options.upsert, names, ending)
        schema_id = target.schema.schema_id
        return FilesWritten(
            source, identity, target.table_uuid, schema_id, tuple(files), key_digests=digests
        )

    def _batches(self, rows: Sequence[Row]) -> Iterator[pa.RecordBatch]:
        """Yield batches of a few rows."""
        yield from pa.Table.from_pylist(list(rows), schema=self.schema).to_batches(max_chunksize=7)

    def _options(self, options: Options) -> dict[str, str]:
        settings = self.harness.settings
        return {
            "table": self.table,
            "catalog.name": settings.catalog.name,
            "catalog.uri": f"sqlite:///{self.harness.catalog_file}",
            "inbox": settings.inbox,
            "queue.url": settings.queue_url,
            **options,
        }


@dataclass(frozen=True, slots=True)
class BatchWrite:
    """A batch write under way."""

    writer: SinkWriter
    options: WriteOptions
    target: TargetTable

    def end(self, tasks: Iterable[Sequence[Row]]) -> Receipt | None:
        messages = self.writer.messages(self.options, self.target, None, tasks)
        return publish_batch(self.options, self.target, messages)


async def create_table(
    harness: RealHarness,
    name: str,
    schema: Schema,
    *,
    spec: PartitionSpec = UNPARTITIONED,
    format_version: int = 2,
    properties: Mapping[str, str] | None = None,
) -> None:
    identifier = TableIdentifier.parse(name)
    location = "/".join((harness.warehouse_location, *identifier.namespace, identifier.name))
    metadata = new_table_metadata(
        table_uuid=uuid4(),
        location=location,
        schema=schema,
        partition_spec=spec,
        sort_order=UNSORTED,
        properties=properties or {},
        format_version=format_version,
        now_ms=time.time_ns() // 1_000_000,
    )
    first = metadata_file_location(metadata_folder(location, {}), 0, uuid4())
    async with harness.catalog() as catalog:
        await catalog.create_namespace(identifier.namespace)
        await catalog.create_table(LoadedTable(identifier, metadata, first))


def rows_by_duckdb(harness: RealHarness, name: str, columns: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table in order, as DuckDB reads them, deletes applied."""
    table = asyncio.run(harness.load(name))
    with duckdb_with_iceberg() as connection:
        rows: list[tuple[Any, ...]] = connection.execute(
            f"SELECT {columns} FROM iceberg_scan(?) ORDER BY ALL",
            [local(table.metadata_location)],
        ).fetchall()
    return rows


def run_of(query: str, batch_id: int) -> MicroBatch:
    """Return a run of a query's micro-batch; each one is of another start of the query."""
    return MicroBatch(query, str(uuid4()), batch_id)
