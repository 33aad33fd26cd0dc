"""Producers that write real Parquet files and publish them as Spark does, without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import pyarrow as pa

from committer.ports.pointer_swap import LoadedTable
from committer.request.commit_request import Fingerprint, Producer
from committer.request.receipt_model import Receipt
from committer.request.request_key import inbox_key
from tests.support.integration.readers import local
from tests.support.integration.real_harness import RealHarness
from workers.arrow.arrow_schema import arrow_schema
from workers.files.file_writer import FileNames, PartitionedWriter
from workers.files.store_access import USUAL_ACCESS, StoreAccess
from workers.requests.connections import Connections, open_connections
from workers.requests.publisher import PublishPolicy
from workers.requests.written_epoch import WrittenEpoch
from workers.sink.target import TargetTable

ROWS_A_REQUEST = 4
_EPOCHS_MAX = 10_000
POLICIES = {
    "durable": PublishPolicy(wait="durable"),
    "committed": PublishPolicy(wait="committed", wait_timeout_s=120.0),
    "again": PublishPolicy(wait="durable", on_quarantine="continue"),
}


@dataclass(frozen=True, slots=True)
class Written:
    """One attempt at an epoch, and the ids of its rows."""

    epoch: WrittenEpoch
    ids: tuple[int, ...]

    @property
    def paths(self) -> list[str]:
        return [local(file.file_path) for file in self.epoch.files]

    @property
    def inbox_key(self) -> str:
        epoch = self.epoch
        return inbox_key(epoch.table_uuid, epoch.producer.id, epoch.epoch, epoch.attempt)


@dataclass(slots=True)
class RealProducer:
    """One streaming query: publishes one epoch after another, each with rows of its own.

    `written`: all that was written to be published, replays too. The other lists leave those out.
    """

    number: int
    table: LoadedTable
    connections: Connections
    access: StoreAccess = USUAL_ACCESS
    wait: str = "durable"
    epochs: int = 0
    ids: list[int] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    receipts: dict[int, Receipt] = field(default_factory=dict)
    path_of_epoch: dict[int, str] = field(default_factory=dict)
    written: list[Written] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"query-{self.number}"

    def write(self) -> WrittenEpoch:
        """Write the next epoch's data files: two partitions."""
        epoch, self.epochs = self.epochs, self.epochs + 1
        written = self.write_attempt(epoch, fingerprint=f"offsets-{epoch}")
        self.ids += written.ids
        self.paths += written.paths
        self.path_of_epoch[epoch] = written.paths[0]
        return written.epoch

    def write_attempt(self, epoch: int, *, fingerprint: str) -> Written:
        """Write data files of another attempt at an epoch: the same rows in other files."""
        written = WrittenEpoch(
            identifier=self.table.identifier,
            table_uuid=self.table.metadata.require_uuid(),
            schema_id=self.table.metadata.current_schema_id,
            producer=Producer(id=self.name, sequential=True),
            epoch=epoch,
            nonce=uuid4(),
            fingerprint=Fingerprint(kind="spark-offsets", value=fingerprint),
            files=(),
        )
        start = (self.number * _EPOCHS_MAX + epoch) * ROWS_A_REQUEST
        ids = list(range(start, start + ROWS_A_REQUEST))
        schema = arrow_schema(self.table.metadata.current_schema)
        rows = pa.record_batch([ids, [("AA", "UA")[each % 2] for each in ids]], schema=schema)
        salt = f"{self.number:04x}"
        epoch_with_files = write_rows(self.table, written, rows, salt=salt, access=self.access)
        self.written.append(Written(epoch_with_files, tuple(ids)))
        return self.written[-1]

    async def publish(self, count: int = 1) -> None:
        """Write and publish some epochs, one after another."""
        for _ in range(count):
            written = self.write()
            receipt = await self.connections.publisher.publish(written, POLICIES[self.wait])
            self.receipts[written.epoch] = receipt

    async def publish_again(self, epoch: int, *, fingerprint: str | None = None) -> None:
        """Publish another attempt at an epoch: a replay, or with another fingerprint a clash."""
        written = self.write_attempt(epoch, fingerprint=fingerprint or f"offsets-{epoch}")
        await self.connections.publisher.publish(written.epoch, POLICIES["again"])


async def publish_until(done: asyncio.Task[Any], producer: RealProducer) -> None:
    """Publish all the time, and once more when the other side has ended."""
    while not done.done():
        await producer.publish()
        await asyncio.sleep(0.05)
    await producer.publish()


def write_rows(
    table: LoadedTable,
    epoch: WrittenEpoch,
    rows: pa.RecordBatch,
    *,
    salt: str = "0000",
    access: StoreAccess = USUAL_ACCESS,
) -> WrittenEpoch:
    """Write rows, which have the schema of the table, as a task of Spark does."""
    names = FileNames(0, epoch.epoch, str(epoch.attempt), salt)
    target = TargetTable.of(str(table.identifier), table.metadata, access)
    with PartitionedWriter(target, rows.schema, names) as writer:
        writer.write(rows)
        return replace(epoch, files=writer.close())


@asynccontextmanager
async def producers(
    harness: RealHarness, table: LoadedTable, count: int, *, waiting: int = 0, first: int = 0
) -> AsyncIterator[list[RealProducer]]:
    """Open producers of one table, numbered from `first`; the first `waiting` wait for commits."""
    opened = [await open_connections(harness.settings) for _ in range(count)]
    try:
        yield [
            RealProducer(
                first + number,
                table,
                each,
                harness.settings.access,
                wait="committed" if number < waiting else "durable",
            )
            for number, each in enumerate(opened)
        ]
    finally:
        for each in opened:
            await each.close()


def all_paths(published: list[RealProducer]) -> list[str]:
    return sorted(path for producer in published for path in producer.paths)


def all_ids(published: list[RealProducer]) -> list[int]:
    return [each for producer in published for each in producer.ids]
