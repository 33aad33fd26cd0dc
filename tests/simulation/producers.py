"""Producers with Spark's behavior: what they replay after which crash, and what they call it.

The publisher is the real one. Spark's checkpoint (the offset log before a micro-batch, the commit
log behind it) is on the actor and survives; a driver's life is one call of `run`, or less: it also
dies by itself, at each step of a micro-batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from uuid import UUID, uuid5

from committer.errors import FrazilError, InvalidRequestError, NoSuchTableError, PublishError
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.partition_spec import partition_path
from committer.iceberg.values.locations import data_file_location
from committer.ledger_entry import parse_entry, property_key
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject
from committer.request.attempt import timed_nonce
from committer.request.commit_request import Fingerprint, Producer
from committer.request.request_key import inbox_key
from committer.request.table_identifier import TableIdentifier
from tests.simulation.chance import draws, rng
from tests.simulation.ports import Ports
from workers.requests.backlog import USUAL_BACKLOG, BacklogPolicy
from workers.requests.publisher import Publisher, PublishPolicy
from workers.requests.table_cache import TableCache, opened
from workers.requests.written_epoch import WrittenEpoch
from workers.sink.fingerprint import SPARK_OFFSETS, epoch_fingerprint
from workers.sink.identity import MicroBatch

ROWS = 12
_NAMES = UUID("5f1e0a1c-3a51-5b52-9f14-6d2a7c1b0e77")
CATALOG = "frazil"
# How long a client library that hears nothing may go on with one request, here.
AGAIN_S_MAX = 60.0
# How long a publication may be held up by those before it, here.
BACKLOG_WAIT_S = 20.0


class DriverDiedError(Exception):
    """The driver is gone between two steps; what it held in memory is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerPlan:
    """The plan of a streaming query. Chances are for each micro-batch, or step of it.

    `sinks`: each writes every micro-batch, one after the other. `restored_at`: before this epoch
    the checkpoint is put back by `restored_by` epochs, and goes on with other offsets. `zombie`: a
    driver that is given up goes on all the same, and publishes late. `doubles`: two different
    writes under one attempt, which must be refused. `gives_up_after` refusals the query stays down.
    `backlog_max`: while more waits for the committer, each publication is held up for a while.
    """

    epochs: int = 6
    trigger_s: float = 2.0
    files_max: int = 3
    sinks: tuple[str, ...] = ("",)
    dies: float = 0.0
    zombie: float = 0.0
    empty: float = 0.0
    doubles: float = 0.0
    waits: bool = False
    fails_on_quarantine: bool = False
    restored_at: int | None = None
    restored_by: int = 2
    is_sequential: bool = True
    gives_up_after: int = 3
    backlog_max: int | None = None


@dataclass(slots=True)
class Checkpoint:
    """Spark's state on disk: the offset log by epoch, and the last epoch of the commit log."""

    offsets: dict[int, str] = field(default_factory=dict)
    committed: int = -1
    generation: int = 0

    def restore(self, by: int) -> None:
        """Restore an older copy; the source has gone on, so later offsets differ."""
        self.committed = max(-1, self.committed - by)
        self.generation += 1
        self.offsets = {
            epoch: entry for epoch, entry in self.offsets.items() if epoch <= self.committed
        }


@lru_cache(maxsize=64)
def _name(text: str) -> str:
    return str(uuid5(_NAMES, text))


class SparkProducer:
    """One streaming query that appends to one table."""

    def __init__(
        self, name: str, identifier: TableIdentifier, plan: ProducerPlan, *, seed: int
    ) -> None:
        self.name = name
        self.checkpoint = Checkpoint()
        # Publications that were held up by those before them.
        self.slowed = 0
        self._identifier = identifier
        self._plan = plan
        self._seed = seed
        self._query_id = _name(f"{seed}/{name}")
        self._runs = 0
        self._refusals = 0
        self._has_restored = False

    async def run(self, ports: Ports) -> None:
        """Run the query to its last epoch, restarting the driver whenever it dies."""
        async with asyncio.TaskGroup() as zombies:
            while self.checkpoint.committed + 1 < self._plan.epochs:
                self._runs += 1
                driver = _Driver(self, ports, zombies)
                try:
                    await driver.run()
                except DriverDiedError:
                    await ports.world.sleep(1.0 + 4.0 * ports.world.jitter())
                except NoSuchTableError:
                    return
                except PublishError:
                    # The query fails, and is started again a few times.
                    self._refusals += 1
                    if self._refusals > self._plan.gives_up_after:
                        return
                    await ports.world.sleep(20.0)
                except FrazilError:
                    await ports.world.sleep(5.0)

    def chance(self, what: str, epoch: int) -> float:
        """Draw a number by its purpose, so that leaving out one crash moves no other draw."""
        return draws(self._seed, f"{self.name} {what} {epoch} {self._runs}")[0]

    def restore_once(self, epoch: int) -> bool:
        """Restore the checkpoint if its epoch has come; return whether it was."""
        if epoch != self._plan.restored_at or self._has_restored:
            return False
        self._has_restored = True
        self.checkpoint.restore(self._plan.restored_by)
        return True

    def is_empty(self, epoch: int) -> bool:
        """Return whether the source has nothing for this epoch: the same for every run."""
        name = f"{self.name} empty {epoch} {self.checkpoint.generation}"
        return draws(self._seed, name)[0] < self._plan.empty

    @property
    def plan(self) -> ProducerPlan:
        return self._plan

    @property
    def identifier(self) -> TableIdentifier:
        return self._identifier

    def micro_batch(self, epoch: int) -> MicroBatch:
        """Return the identity of this run of an epoch; Spark draws a new run id for each start."""
        return MicroBatch(self._query_id, _name(f"{self._query_id}/{self._runs}"), epoch)


class _Driver:
    """One life of a query's driver."""

    def __init__(self, query: SparkProducer, ports: Ports, zombies: asyncio.TaskGroup) -> None:
        self._query = query
        self._plan = query.plan
        self._ports = ports
        self._zombies = zombies
        self._publisher = open_publisher(ports)

    async def run(self) -> None:
        checkpoint = self._query.checkpoint
        while checkpoint.committed + 1 < self._plan.epochs:
            await self._ports.world.sleep(self._plan.trigger_s * self._ports.world.jitter() * 2)
            epoch = checkpoint.committed + 1
            if self._query.restore_once(epoch):
                raise DriverDiedError
            checkpoint.offsets.setdefault(epoch, f"{checkpoint.generation}/{epoch}")
            self._may_die("planned", epoch)
            if not self._query.is_empty(epoch):
                for sink in self._plan.sinks:
                    await self._micro_batch(epoch, sink)
            self._may_die("published", epoch)
            checkpoint.committed = epoch

    async def _micro_batch(self, epoch: int, sink: str) -> None:
        table = await self._publisher.load_table(self._query.identifier)
        written = self._written(table, epoch, sink)
        await write_files(self._ports, written.files)
        if self._dies("written", epoch):
            if self._query.chance("zombie", epoch) < self._plan.zombie:
                self._zombies.create_task(self._publish_late(written))
            raise DriverDiedError
        receipt = await self._publisher.publish(written, self._policy())
        self._ports.history.told(self._query.name, receipt)
        self._query.slowed += receipt.backlog is not None
        if self._query.chance("doubles", epoch) < self._plan.doubles:
            await self._write_twice(table, written, sink)

    def _policy(self) -> PublishPolicy:
        most = self._plan.backlog_max
        return PublishPolicy(
            backlog=USUAL_BACKLOG if most is None else BacklogPolicy(most, BACKLOG_WAIT_S),
            on_quarantine="fail" if self._plan.fails_on_quarantine else "continue",
            wait="committed" if self._plan.waits else "durable",
            wait_timeout_s=120.0,
        )

    def _written(
        self, table: LoadedTable, epoch: int, sink: str, *, other: str = ""
    ) -> WrittenEpoch:
        micro_batch = self._query.micro_batch(epoch)
        written = WrittenEpoch(
            identifier=table.identifier,
            table_uuid=table.metadata.require_uuid(),
            schema_id=table.metadata.current_schema_id,
            producer=Producer(
                id=f"{micro_batch.query_id}/{sink}" if sink else micro_batch.query_id,
                sequential=self._plan.is_sequential,
            ),
            epoch=epoch,
            nonce=micro_batch.nonce(sink),
            fingerprint=Fingerprint(
                kind=SPARK_OFFSETS, value=self._query.checkpoint.offsets[epoch]
            ),
            files=(),
            may_repeat=self._plan.doubles > 0,
        )
        # How the rows are cut into files is another matter in each run.
        count = 1 + int(self._query.chance(f"files {sink}{other}", epoch) * self._plan.files_max)
        files = [
            build_data_file(
                table.metadata, written.attempt, f"{number:05d}{other}", rows=ROWS // count
            )
            for number in range(count)
        ]
        return replace(written, files=files)

    async def _write_twice(self, table: LoadedTable, first: WrittenEpoch, sink: str) -> None:
        """Write twice in one `foreachBatch` without sink names: the second must be refused, by the
        process that published the first as well as by another one.
        """
        second = self._written(table, first.epoch, sink, other="-again")
        await write_files(self._ports, second.files)
        is_elsewhere = self._query.chance("doubles elsewhere", first.epoch) >= 0.5
        publisher = open_publisher(self._ports) if is_elsewhere else self._publisher
        try:
            await publisher.publish(second, self._policy())
        except PublishError:
            return
        if not is_elsewhere or not await self._may_pass(first):
            self._ports.history.violated(
                "I1", f"a second write of attempt {first.attempt} was taken for the first"
            )

    async def _may_pass(self, first: WrittenEpoch) -> bool:
        """Return whether another process may take a second write for the first: an earlier run has
        landed the epoch, others removed or restored the ledger's entry, or the first was replayed.
        """
        history = self._ports.history
        name = property_key(first.producer.id)
        table = await self._ports.catalog.load(first.identifier)
        text = table.metadata.properties.get(name)
        landed = parse_entry(text).landed(first.epoch) if text else None
        if landed is not None:
            return landed.attempt != first.attempt
        is_changed = (first.table_uuid, name) in history.decided
        key = inbox_key(first.table_uuid, first.producer.id, first.epoch, first.attempt)
        return is_changed or first.table_uuid in history.restored or key in history.replayed

    async def _publish_late(self, written: WrittenEpoch) -> None:
        """Publish like a driver that was given up and replaced, but still runs."""
        await self._ports.world.sleep(2.0 + 40.0 * self._query.chance("late", written.epoch) ** 2)
        with suppress(FrazilError):
            await self._publisher.publish(written, PublishPolicy(on_quarantine="continue"))

    def _dies(self, step: str, epoch: int) -> bool:
        return self._query.chance(f"dies {step}", epoch) < self._plan.dies

    def _may_die(self, step: str, epoch: int) -> None:
        if self._dies(step, epoch):
            raise DriverDiedError


class OneShots:
    """Batch writes without a name, one after another: each a producer that never comes again."""

    def __init__(
        self,
        name: str,
        identifier: TableIdentifier,
        *,
        count: int,
        pause_s: float = 0.2,
        seed: int,
    ) -> None:
        self.name = name
        self._identifier = identifier
        self._count = count
        self._pause_s = pause_s
        self._seed = seed
        self._done = 0

    async def run(self, ports: Ports) -> None:
        publisher = open_publisher(ports)
        while self._done < self._count:
            await ports.world.sleep(self._pause_s * 2 * ports.world.jitter())
            try:
                await self._write(ports, publisher, self._done)
            except (NoSuchTableError, PublishError):
                self._done += 1  # the job has failed, and the next one is another
                continue
            self._done += 1

    async def _write(self, ports: Ports, publisher: Publisher, number: int) -> None:
        table = await publisher.load_table(self._identifier)
        nonce = timed_nonce(ports.world.now_ms(), ports.world.uuid())
        written = WrittenEpoch(
            identifier=table.identifier,
            table_uuid=table.metadata.require_uuid(),
            schema_id=table.metadata.current_schema_id,
            producer=Producer(id=str(nonce), one_shot=True),
            epoch=0,
            nonce=nonce,
            fingerprint=epoch_fingerprint(0),
            files=(),
        )
        files = [build_data_file(table.metadata, written.attempt, "00000", rows=ROWS)]
        await write_files(ports, files)
        written = replace(written, files=files)
        await publisher.publish(written, PublishPolicy())
        is_again, lag, *_ = draws(self._seed, f"{self.name} again {number}")
        if is_again < 0.2:
            # The client library has sent it once more: its answer was lost, perhaps for long.
            await ports.world.sleep(max(0.0, lag - 0.5) * AGAIN_S_MAX * 2)
            with suppress(PublishError):
                await publisher.publish(written, PublishPolicy())


class Malformed:
    """A client that puts anything under keys of its own: it must not affect other producers."""

    def __init__(self, name: str, table: LoadedTable, *, count: int, seed: int) -> None:
        self.name = name
        self._table = table
        self._count = count
        self._chance = rng(seed, name)
        self._sent = 0

    async def run(self, ports: Ports) -> None:
        while self._sent < self._count:
            await ports.world.sleep(3.0 * ports.world.jitter())
            table_uuid = self._table.metadata.require_uuid()
            key = inbox_key(table_uuid, self.name, self._sent, ports.world.uuid())
            content = self._chance.choice(
                (b"", b"{}\n", b'{"request-version":9}\n', self._chance.randbytes(200))
            )
            with suppress(FrazilError, InvalidRequestError):
                await ports.storage.create((NewObject(ports.inbox.location(key), content),))
            self._sent += 1


# --- Files ---------------------------------------------------------------------------------------


def open_publisher(ports: Ports, *, rings: bool = True) -> Publisher:
    """Open the real publisher on a process's ports. `rings`: it announces its requests."""
    return Publisher(
        catalog_name=CATALOG,
        tables=TableCache(
            open_catalog=opened(ports.catalog), storage=ports.storage, world=ports.world
        ),
        inbox=ports.inbox,
        quarantine=ports.quarantine,
        queue=ports.queue if rings else None,
        world=ports.world,
    )


def build_data_file(metadata: TableMetadata, attempt: UUID, name: str, *, rows: int) -> DataFile:
    """Build a data file of the table's default spec, null in every partition field."""
    spec = metadata.default_spec
    partition = (None,) * len(spec.fields)
    folder = partition_path(spec, metadata.current_schema, partition)
    path = data_file_location(
        metadata.location, metadata.properties, folder, f"{name}-{attempt}.parquet"
    )
    return DataFile(
        file_path=path,
        partition=partition,
        record_count=max(1, rows),
        file_size_in_bytes=len(path),
        spec_id=spec.spec_id,
    )


async def write_files(ports: Ports, files: Sequence[DataFile]) -> None:
    """Write the files' objects: their names, which are as long as they say."""
    await ports.storage.create(
        [NewObject(each.file_path, each.file_path.encode()) for each in files]
    )
