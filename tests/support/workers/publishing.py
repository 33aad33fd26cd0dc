"""Builders for tests of publishing: memory adapters, a table, and what tasks would have written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.ledger_entry import (
    EpochRanges,
    Landed,
    ProducerEntry,
    print_entry,
    property_key,
    short_fingerprint,
)
from committer.ports.queue import Queue
from committer.ports.storage import Storage
from committer.request.attempt import timed_nonce
from committer.request.commit_request import Fingerprint, Producer
from committer.request.table_identifier import TableIdentifier
from committer.storage.inbox.inbox import Inbox, Quarantine, QuarantineRecord
from committer.storage.inbox.key_file import KeyFile
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.clock.worlds import ManualWorld
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.memory.memory_queue import MemoryQueue, MemoryServer
from tests.support.memory.memory_storage import MemoryStorage
from workers.requests.publisher import Publisher, PublishPolicy
from workers.requests.table_cache import TableCache, opened
from workers.requests.written_epoch import WrittenEpoch

FLIGHTS = TableIdentifier(("db",), "flights")


def nonce_of(number: int) -> UUID:
    """Return a nonce that a one-shot producer may have as well."""
    return timed_nonce(number, UUID(int=number))


@dataclass(slots=True)
class Bench:
    """A publisher and everything around it."""

    storage: Storage
    catalog: MemoryCatalog
    server: MemoryServer
    world: ManualWorld
    inbox: Inbox
    quarantine: Quarantine
    publisher: Publisher
    metadata: TableMetadata

    async def inbox_keys(self) -> list[str]:
        return [found.key async for found in self.inbox.list()]

    def written(
        self,
        *,
        epoch: int = 0,
        producer: Producer | None = None,
        attempt: int = 1,
        names: Sequence[str] = ("a",),
        may_repeat: bool = False,
        table_uuid: UUID | None = None,
        schema_id: int | None = None,
    ) -> WrittenEpoch:
        written = WrittenEpoch(
            identifier=FLIGHTS,
            table_uuid=table_uuid or self.metadata.require_uuid(),
            schema_id=self.metadata.current_schema_id if schema_id is None else schema_id,
            producer=producer or Producer(id="stream", sequential=True),
            epoch=epoch,
            nonce=nonce_of(attempt),
            fingerprint=Fingerprint(kind="spark-offsets", value=f"offsets of {epoch}"),
            files=(),
            may_repeat=may_repeat,
        )
        return replace(written, files=[self.file(name, written.attempt) for name in names])

    def file(self, name: str, attempt: UUID) -> DataFile:
        location = f"{self.metadata.location}/data/{name}-{attempt}.parquet"
        return DataFile(
            file_path=location,
            record_count=10,
            file_size_in_bytes=1_000,
            lower_bounds={1: b"\1\0\0\0\0\0\0\0"},
        )

    async def land(
        self, written: WrittenEpoch, *, attempt: int | None = None, is_remembered: bool = True
    ) -> None:
        """Land an epoch as the committer does, as far as a producer sees it: the ledger changes.

        Not `is_remembered`: later epochs have landed since.
        """
        landed = Landed(
            written.epoch,
            written.fingerprint.kind,
            short_fingerprint(written.fingerprint.value),
            written.attempt
            if attempt is None
            else replace(written, nonce=nonce_of(attempt)).attempt,
            snapshot_id=4711,
            sequence_number=42,
        )
        entry = ProducerEntry(
            self.metadata.require_uuid(),
            EpochRanges(((written.epoch, written.epoch),)),
            (landed,) if is_remembered else (),
        )
        properties = {property_key(written.producer.id): print_entry(entry)}
        swap = build_swap(await self.catalog.load(FLIGHTS), properties=properties)
        await self.storage.create(self.catalog.objects_before(swap))
        await self.catalog.swap(swap)

    def publisher_elsewhere(self) -> Publisher:
        """Return the publisher of another process, which has published nothing yet."""
        return Publisher(
            catalog_name="main",
            tables=TableCache(
                open_catalog=opened(self.catalog), storage=self.storage, world=self.world
            ),
            inbox=self.inbox,
            quarantine=self.quarantine,
            queue=None,
            world=self.world,
        )


async def quarantine(bench: Bench, written: WrittenEpoch) -> None:
    """Publish it, and move it to quarantine."""
    before = set(await bench.inbox_keys())
    await bench.publisher.publish(written, PublishPolicy(on_quarantine="continue"))
    (key,) = set(await bench.inbox_keys()) - before
    await move_to_quarantine(bench, key)


async def move_to_quarantine(bench: Bench, key: str) -> None:
    """Do what the committer does with a request that cannot land."""
    record = QuarantineRecord(
        key=key, reason="schema_mismatch", message="no column `x`", quarantined_at_ms=1
    )
    await bench.quarantine.put(record, await bench.inbox.get(key))
    await bench.inbox.delete([key])


async def build_bench(
    *,
    with_queue: bool = True,
    storage: Storage | None = None,
    keys: str | None = None,
    world: ManualWorld | None = None,
    server: MemoryServer | None = None,
    format_version: int = 2,
) -> Bench:
    """Build a bench with the table `db.flights`, and a queue unless told otherwise.

    `keys`: the location of its file of keys.
    """
    world = world or ManualWorld()
    storage = storage or MemoryStorage()
    catalog = MemoryCatalog(storage=storage)
    server = server or MemoryServer(world=world)
    table = build_table(str(FLIGHTS), warehouse="memory:/warehouse", format_version=format_version)
    await catalog.create_namespace(FLIGHTS.namespace)
    await catalog.create_table(table)
    inbox, quarantine = Inbox(storage, "memory:/requests"), Quarantine(storage, "memory:/requests")
    queue: Queue | None = MemoryQueue(server, consumer="writer") if with_queue else None
    publisher = Publisher(
        catalog_name="main",
        tables=TableCache(open_catalog=opened(catalog), storage=storage, world=world),
        inbox=inbox,
        quarantine=quarantine,
        queue=queue,
        world=world,
        key_file=KeyFile(storage, keys, world) if keys else None,
    )
    return Bench(storage, catalog, server, world, inbox, quarantine, publisher, table.metadata)
