"""Neighbors of a producer with 30,000 waiting requests: how long they wait for their commits.

    python -m bench.long_queue [--requests 30000] [--after-s 10]

A real `frazil serve` on local folders and a private queue is stopped (SIGSTOP) until one producer
has published its requests to the first of two tables. Then it continues, and four other producers
publish small appends to both tables, five a second, and wait for their commits.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

from bench.statistics import median, percentile
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import Doorbell
from committer.ports.storage import NewObject
from committer.queue.redis_stream import RedisQueue
from committer.request.commit_request import Fingerprint, Producer
from committer.request.request_format import line_digest
from committer.storage.disk.durable_writes import create_groups
from tests.support.builders.request_builders import build_file, build_request
from tests.support.integration.real_harness import RealHarness, real_harness
from workers.requests.backlog import BacklogPolicy
from workers.requests.connections import Connections, open_connections
from workers.requests.publisher import PublishPolicy
from workers.requests.written_epoch import WrittenEpoch

_TABLES = ("db.t0", "db.t1")
_NEIGHBORS = 4
_NEIGHBORS_A_SECOND = 5.0
_PRODUCER = "long-queue"
# Listings as often as by the settings' defaults: the harness of the tests lists more often.
_USUAL = {
    "FRAZIL_SERVICE__RECONCILE_INTERVAL_S": "30",
    "FRAZIL_SERVICE__RECONCILE_AGE_S": "30",
    "FRAZIL_QUEUE__RECLAIM_IDLE_S": "300",
}
_BATCH = 200
# The neighbors' waits are the committer's only: they do not slow down by themselves.
_POLICY = PublishPolicy(wait="committed", wait_timeout_s=300.0, backlog=BacklogPolicy(wait_s=0.0))


@dataclass(slots=True)
class Phase:
    """The waits of the neighbors in one part of the run, in seconds, by table."""

    name: str
    waits: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


@dataclass(slots=True)
class Neighbors:
    """Producers of small appends, each in the phase in which it was published."""

    harness: RealHarness
    tables: Sequence[LoadedTable]
    phases: list[Phase] = field(default_factory=list)
    is_over: bool = False

    def begin(self, phase: str) -> None:
        self.phases.append(Phase(phase))

    async def publish_all(self) -> None:
        opened = [await open_connections(self.harness.settings) for _ in range(_NEIGHBORS)]
        try:
            async with asyncio.TaskGroup() as tasks:
                epoch = 0
                while not self.is_over:
                    number = epoch % _NEIGHBORS
                    tasks.create_task(self._publish(opened[number], number, epoch))
                    epoch += 1
                    await asyncio.sleep(1 / _NEIGHBORS_A_SECOND)
        finally:
            for each in opened:
                await each.close()

    async def _publish(self, connections: Connections, number: int, epoch: int) -> None:
        table, phase = self.tables[number % len(self.tables)], self.phases[-1]
        written = _small_append(table, f"neighbor-{number}", epoch)
        called_s = time.monotonic()
        await connections.publisher.publish(written, _POLICY)
        phase.waits[str(table.identifier)].append(time.monotonic() - called_s)


def _small_append(table: LoadedTable, producer: str, epoch: int) -> WrittenEpoch:
    unwritten = WrittenEpoch(
        identifier=table.identifier,
        table_uuid=table.metadata.require_uuid(),
        schema_id=table.metadata.current_schema_id,
        producer=Producer(id=producer),
        epoch=epoch,
        nonce=uuid4(),
        fingerprint=Fingerprint(kind="bench", value=str(epoch)),
        files=(),
    )
    files = [build_file(table.metadata, unwritten.attempt, partition=(0,))]
    return replace(unwritten, files=files)


async def run(requests: int, after_s: float) -> Neighbors:
    """Run it. Errors: `TimeoutError` where the requests have not landed within ten minutes."""
    with real_harness(**_USUAL) as harness:
        tables = [await harness.create_table(name) for name in _TABLES]
        await harness.start()
        neighbors = Neighbors(harness, tables)
        # Else it commits them as fast as they arrive.
        harness.signal(signal.SIGSTOP)
        await _publish_queue(harness, tables[0], requests)
        harness.signal(signal.SIGCONT)
        began_s = time.monotonic()
        neighbors.begin(f"while {requests} wait")
        publishing = asyncio.create_task(neighbors.publish_all())
        await _wait_until_landed(harness)
        print(
            f"{requests} requests of one producer landed within {time.monotonic() - began_s:.1f} s"
        )
        neighbors.begin("after")
        await asyncio.sleep(after_s)
        neighbors.is_over = True
        await publishing
        return neighbors


async def _publish_queue(harness: RealHarness, table: LoadedTable, requests: int) -> None:
    queue = RedisQueue(harness.settings.queue_url, consumer=_PRODUCER)
    for start in range(0, requests, _BATCH):
        epochs = range(start, min(start + _BATCH, requests))
        await queue.announce(await asyncio.to_thread(_write, harness, table, epochs))
    await queue.close()


def _write(harness: RealHarness, table: LoadedTable, epochs: Sequence[int]) -> list[Doorbell]:
    sealed = [
        build_request(table, producer=_PRODUCER, epoch=epoch, partition=(0,)) for epoch in epochs
    ]
    groups = [
        [NewObject(f"{harness.settings.inbox}/inbox/{one.key}", one.content)] for one in sealed
    ]
    for error in create_groups(groups):
        if error is not None:
            raise error
    uuid = table.metadata.require_uuid()
    return [Doorbell(uuid, one.key, line_digest(one.content), one.content, None) for one in sealed]


async def _wait_until_landed(harness: RealHarness) -> None:
    end_s = time.monotonic() + 600
    while any(_PRODUCER in key for key in await harness.outstanding()):
        if time.monotonic() > end_s:
            raise TimeoutError("requests are left after ten minutes")
        await asyncio.sleep(0.5)


def _print(neighbors: Neighbors) -> None:
    for phase in neighbors.phases:
        for table, waits in sorted(phase.waits.items()):
            print(
                f"{phase.name}, {table}: {len(waits)} requests, p50 {median(waits):.2f} s,"
                f" p99 {percentile(waits, 0.99):.2f} s, longest {max(waits):.2f} s"
            )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.long_queue", description=__doc__)
    parser.add_argument("--requests", type=int, default=30_000)
    parser.add_argument("--after-s", type=float, default=10.0)
    options = parser.parse_args(arguments)
    _print(asyncio.run(run(options.requests, options.after_s)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
