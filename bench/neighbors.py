"""Good neighbors: four producers of small appends, five a second, that wait for their commits."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

from bench.statistics import median, percentile
from committer.errors import FrazilError
from committer.ports.pointer_swap import LoadedTable
from committer.request.commit_request import Fingerprint, Producer
from tests.support.builders.request_builders import build_file
from tests.support.integration.real_harness import RealHarness
from workers.requests.connections import Connections, open_connections
from workers.requests.publisher import PublishPolicy
from workers.requests.written_epoch import WrittenEpoch

TABLES = ("db.t0", "db.t1")
# Listings as often as by the settings' defaults: the harness of the tests lists more often.
USUAL_LISTINGS = {
    "FRAZIL_SERVICE__RECONCILE_INTERVAL_S": "30",
    "FRAZIL_SERVICE__RECONCILE_AGE_S": "30",
    "FRAZIL_QUEUE__RECLAIM_IDLE_S": "300",
}
_NEIGHBORS = 4
_A_SECOND = 5.0


@dataclass(frozen=True, slots=True)
class Wait:
    """A published append: when it was published, and the seconds until its receipt."""

    table: str
    called_s: float
    waited_s: float


@dataclass(slots=True)
class Neighbors:
    """The neighbors and their waits. `failed`: errors by type."""

    harness: RealHarness
    tables: Sequence[LoadedTable]
    policy: PublishPolicy
    waits: list[Wait] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)

    async def publish_all(self, over: asyncio.Event) -> None:
        """Publish until it is over, and wait for the last receipt."""
        opened = [await open_connections(self.harness.settings) for _ in range(_NEIGHBORS)]
        try:
            async with asyncio.TaskGroup() as tasks:
                epoch = 0
                while not over.is_set():
                    number = epoch % _NEIGHBORS
                    table = self.tables[number % len(self.tables)]
                    written = _small_append(table, f"good-{number}", epoch)
                    tasks.create_task(self._publish(opened[number], written))
                    epoch += 1
                    await asyncio.sleep(1 / _A_SECOND)
        finally:
            for each in opened:
                await each.close()

    async def _publish(self, connections: Connections, written: WrittenEpoch) -> None:
        called_s = time.monotonic()
        try:
            await connections.publisher.publish(written, self.policy)
        except FrazilError as error:
            self.failed[type(error).__name__] += 1
        table = str(written.identifier)
        self.waits.append(Wait(table, called_s, time.monotonic() - called_s))


def print_waits(name: str, waits: Sequence[Wait]) -> None:
    """Print a line about these waits, if there are any."""
    seconds = [wait.waited_s for wait in waits]
    if seconds:
        print(
            f"{name}: {len(seconds)} requests, p50 {median(seconds):.2f} s,"
            f" p99 {percentile(seconds, 0.99):.2f} s, longest {max(seconds):.2f} s"
        )


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
