"""A process of Frazil's writers: several streams that publish through one event loop.

Everything that a request holds is made before the clock starts, as the peers make their data files;
encoding, storing and announcing it are inside. Times are of the monotonic clock, which all
processes of a machine share.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import time
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any
from uuid import UUID

from bench.child import Message, answer_lines
from bench.compacting import Compaction, DeltaStream, first_files
from bench.delay import delayed
from bench.operating import OperatingWriter, first_epoch
from bench.runs import Compacting
from bench.tables import live_paths
from bench.workload import Descriptor, data_file, descriptors, nonce_of
from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.errors import FrazilError
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import Doorbell, Queue
from committer.queue.redis_stream import RedisQueue
from committer.real_world import RealWorld
from committer.request.commit_request import Fingerprint, Producer
from committer.request.receipt_model import Receipt
from committer.request.table_identifier import TableIdentifier
from committer.storage.disk.local import LocalStorage
from committer.storage.inbox.inbox import Inbox, Quarantine
from committer.storage.inbox.inbox_identity import InboxIdentity
from workers.requests.backlog import BacklogPolicy
from workers.requests.publisher import Publisher, PublishPolicy
from workers.requests.table_cache import TableCache, opened
from workers.requests.written_epoch import WrittenEpoch

_WAIT_S_MAX = 60.0
_COMMITTED = PublishPolicy(wait="committed", wait_timeout_s=_WAIT_S_MAX)
# Measurements with it have no committer for a while: no producer waits for one.
_DURABLE = PublishPolicy(wait="durable", backlog=BacklogPolicy(wait_s=0.0))


class WatchedQueue:
    """The queue, and when each request was announced: it is durable from then on."""

    def __init__(self, queue: RedisQueue) -> None:
        self._queue = queue
        self.durable_s: dict[str, float] = {}

    async def announce(self, doorbells: Sequence[Doorbell]) -> int:
        now_s = time.monotonic()
        for bell in doorbells:
            self.durable_s[bell.inbox_key.rpartition("/")[2]] = now_s
        return await self._queue.announce(doorbells)

    def __getattr__(self, name: str) -> object:
        return getattr(self._queue, name)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that waits for a writer, whose name and epoch its attempt follows from."""

    nonce: UUID
    files: list[Descriptor]


@dataclass(slots=True)
class Timed:
    """Times of the requests: (called, durable, ended) in seconds, and failures by class."""

    requests: list[tuple[float, float, float]] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def fail(self, error: Exception) -> None:
        name = type(error).__name__
        self.failed[name] = self.failed.get(name, 0) + 1
        self.failures.append(str(error)[:300])

    def answer(self, cpu_s: float) -> Message:
        return {
            "requests": self.requests,
            "failed": self.failed,
            "failures": self.failures[:3],
            "cpu_s": cpu_s,
        }


class Publishing:
    """The commands that a publishing process knows."""

    def __init__(self) -> None:
        self._prepared: list[Prepared] = []
        # Of each writer of a `commit`.
        self._epochs: list[list[WrittenEpoch]] = []

    async def open(
        self, *, catalog_file: str, catalog: str, inbox: str, queue: str, name: str, delay_ms: int
    ) -> Message:
        """Connect as any Python client does."""
        self._catalog_name = catalog
        self._storage = delayed(LocalStorage(), delay_ms)
        self._catalog = await SqlCatalog.open(
            uri=f"sqlite:///{catalog_file}", name=catalog, storage=self._storage
        )
        self._inbox = Inbox(self._storage, inbox)
        self._quarantine = Quarantine(self._storage, inbox)
        identity = InboxIdentity(self._storage, inbox, RealWorld())
        self._queue = WatchedQueue(RedisQueue(queue, identity=identity, consumer=name))
        return {}

    async def begin(self, *, table: str, writers: int, appends: bool) -> Message:
        """Load the table that writers will change; append the files that they begin with, if this
        process is the first.
        """
        self._table = await self._open_publisher(table)
        if appends:
            await self._publisher.publish(first_epoch(self._table, writers), _COMMITTED)
        # With its snapshots, which a publisher does not read.
        self._table = await self._catalog.load(TableIdentifier.parse(table))
        return {}

    async def operate(
        self, *, writers: list[int], start_s: float, kind: str, of: int, window_s: float
    ) -> Message:
        """Change rows in each writer, and wait for each commit, until the window ends."""
        timed = Timed()
        changing = (
            self._change(OperatingWriter(kind, writer, of, self._table), start_s + window_s, timed)
            for writer in writers
        )
        return await self._measured(timed, start_s, changing)

    async def _change(self, writer: OperatingWriter, end_s: float, timed: Timed) -> None:
        while time.monotonic() < end_s:
            written = writer.next()
            receipt = await self._publish(written, timed)
            if receipt is not None:
                writer.landed(written, receipt)

    async def begin_compacting(self, *, table: str, appends: bool, **load: Any) -> Message:
        """Load the table of a stream and a compaction, as `begin`."""
        self._compacting = Compacting(**load)
        self._table = await self._open_publisher(table)
        if appends:
            await self._publisher.publish(first_files(self._table, self._compacting), _COMMITTED)
        self._table = await self._catalog.load(TableIdentifier.parse(table))
        # Importing the reader takes a second.
        live_paths(self._table.metadata_location)
        return {}

    async def compact(self, *, writers: list[int], start_s: float) -> Message:
        """Be the stream (writer 0) or the compaction (writer 1)."""
        await asyncio.sleep(start_s - time.monotonic())
        if writers == [0]:
            return await self._stream(start_s)
        return await self._compact(start_s)

    async def _stream(self, start_s: float) -> Message:
        """Publish a delta each period; if one takes longer, the next one at once."""
        load, timed, before_s = self._compacting, Timed(), _cpu_s()
        stream = DeltaStream(load, self._table)
        due_s = start_s
        while due_s < start_s + load.window_s:
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            if stream.is_hit:
                stream.saw(await self._catalog.load(self._table.identifier))
            written = stream.next()
            stream.ended(written, await self._publish(written, timed))
            due_s = max(due_s + load.period_s, time.monotonic())
        answer = timed.answer(_cpu_s() - before_s)
        return {**answer, "own": stream.own, "hits": list(stream.hits.items())}

    async def _compact(self, start_s: float) -> Message:
        """Rewrite all groups, and those that were lost again, until the window ends."""
        load, timed, before_s = self._compacting, Timed(), _cpu_s()
        left, epoch, passes, lost, retried = list(range(load.groups)), 0, 0, 0, 0
        end_s, last_s = start_s + load.window_s, start_s
        while left and time.monotonic() < end_s:
            table = await self._catalog.load(self._table.identifier)
            compaction = Compaction(load, self._table, table, passes)
            for part in compaction.parts(left):
                await asyncio.sleep(load.work_s / load.groups * len(part))
                if await self._publish(compaction.rewrite(epoch, part), timed) is not None:
                    last_s = time.monotonic()
                epoch += 1
            retried += len(left) if passes else 0
            table = await self._catalog.load(self._table.identifier)
            left = compaction.left(left, live_paths(table.metadata_location))
            lost, passes = lost + len(left), passes + 1
        return {
            **timed.answer(_cpu_s() - before_s),
            "requests": [],
            "failed": {},
            "landed": sorted(set(range(load.groups)).difference(left)),
            "lost": lost,
            "retried": retried,
            "took_s": last_s - start_s,
            "commits_ms": [(ended - called) * 1_000 for called, _, ended in timed.requests],
        }

    async def prepare(
        self,
        *,
        table: str,
        start: int,
        requests: int,
        files: int,
        files_a_day: int,
        writers: list[int],
    ) -> Message:
        """Make requests of so many files each, from file number `start` on, and load the table.

        `writers`: those of a `commit`, whose files get their names outside the clock, too.
        """
        self._table = await self._open_publisher(table)
        location = self._table.metadata.location
        gc.unfreeze()
        self._prepared = [
            Prepared(nonce_of(first), list(descriptors(location, first, files, files_a_day)))
            for first in range(start, start + requests * files, files)
        ]
        self._epochs = [
            [self._written(writer, epoch, one) for epoch, one in enumerate(share)]
            for writer, share in zip(writers, _shares(self._prepared, len(writers)), strict=True)
        ]
        gc.collect()
        gc.freeze()
        return {}

    async def _open_publisher(self, table: str) -> LoadedTable:
        queue: Queue = self._queue  # type: ignore[assignment]  # what it lacks it hands on
        world = RealWorld()
        self._publisher = Publisher(
            catalog_name=self._catalog_name,
            tables=TableCache(
                open_catalog=opened(self._catalog), storage=self._storage, world=world
            ),
            inbox=self._inbox,
            quarantine=self._quarantine,
            queue=queue,
            world=world,
        )
        self._queue.durable_s.clear()
        return await self._publisher.load_table(TableIdentifier.parse(table))

    async def contend(
        self, *, writers: list[int], start_s: float, window_s: float, epoch: int = 0
    ) -> Message:
        """Publish and wait for the commit in each writer, again and again (closed loop) until the
        window ends or no request is left. `epoch`: the first of each writer.
        """
        waiting = iter(self._prepared)
        timed = Timed()
        return await self._measured(
            timed,
            start_s,
            (
                self._write_in_turns(writer, waiting, start_s + window_s, epoch, timed)
                for writer in writers
            ),
        )

    async def flood(self, *, writers: list[int], start_s: float) -> Message:
        """Open loop: each writer publishes all of its share, and waits for durability only."""
        timed = Timed()
        shares = zip(writers, _shares(self._prepared, len(writers)), strict=True)
        return await self._measured(
            timed, start_s, (self._write_all(writer, share, timed) for writer, share in shares)
        )

    async def commit(self, *, writers: list[int], start_s: float) -> Message:
        """Publish each writer's share, all at once, and wait until all are committed."""
        timed = Timed()
        shares = (epochs for _, epochs in zip(writers, self._epochs, strict=True))
        return await self._measured(
            timed, start_s, (self._write_each(share, timed) for share in shares)
        )

    async def _measured(
        self, timed: Timed, start_s: float, writers: Iterable[Coroutine[object, object, None]]
    ) -> Message:
        coroutines = list(writers)
        await asyncio.sleep(start_s - time.monotonic())
        before_s = _cpu_s()
        await asyncio.gather(*coroutines)
        return timed.answer(_cpu_s() - before_s)

    async def _write_in_turns(
        self, writer: int, waiting: Iterator[Prepared], end_s: float, epoch: int, timed: Timed
    ) -> None:
        while time.monotonic() < end_s and (prepared := next(waiting, None)):
            await self._publish(self._written(writer, epoch, prepared), timed)
            epoch += 1

    async def _write_all(self, writer: int, share: Sequence[Prepared], timed: Timed) -> None:
        for epoch, prepared in enumerate(share):
            written = self._written(writer, epoch, prepared)
            await self._publish(written, timed, _DURABLE)

    async def _write_each(self, share: Sequence[WrittenEpoch], timed: Timed) -> None:
        for written in share:
            await self._publish(written, timed)

    def _written(self, writer: int, epoch: int, prepared: Prepared) -> WrittenEpoch:
        table: LoadedTable = self._table
        written = WrittenEpoch(
            identifier=table.identifier,
            table_uuid=table.metadata.require_uuid(),
            schema_id=table.metadata.current_schema_id,
            producer=Producer(id=f"writer-{writer}", sequential=True),
            epoch=epoch,
            nonce=prepared.nonce,
            fingerprint=Fingerprint(kind="bench", value=f"{writer}/{epoch}"),
            files=(),
        )
        attempt = written.attempt
        return replace(written, files=[data_file(one, attempt) for one in prepared.files])

    async def _publish(
        self,
        written: WrittenEpoch,
        timed: Timed,
        policy: PublishPolicy = _COMMITTED,
    ) -> Receipt | None:
        """Publish, and note the times; None where that failed."""
        called_s = time.monotonic()
        try:
            receipt = await self._publisher.publish(written, policy)
        except FrazilError as error:
            timed.fail(error)
            return None
        ended_s = time.monotonic()
        durable_s = self._queue.durable_s.get(str(written.attempt), ended_s)
        timed.requests.append((called_s, durable_s, ended_s))
        return receipt


def _shares(prepared: Sequence[Prepared], count: int) -> list[Sequence[Prepared]]:
    """Split as equally as can be, each a run of neighbors."""
    edges = [len(prepared) * number // max(1, count) for number in range(count + 1)]
    return [prepared[start:stop] for start, stop in pairwise(edges)]


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def main() -> None:
    publishing = Publishing()
    await answer_lines(
        {
            "open": publishing.open,
            "prepare": publishing.prepare,
            "contend": publishing.contend,
            "flood": publishing.flood,
            "commit": publishing.commit,
            "begin": publishing.begin,
            "operate": publishing.operate,
            "begin_compacting": publishing.begin_compacting,
            "compact": publishing.compact,
        }
    )


if __name__ == "__main__":
    asyncio.run(main())
