"""A process of writers: some streaming queries that publish through one event loop.

Runs until SIGTERM, then ends each query's epoch. May be killed at any moment; started again with
the same journal it goes on as Spark does: an epoch of which it does not know how it ended is
written and published again by a new attempt, and now and then one of which it does.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from committer.catalog.catalog_properties import CatalogProperties
from committer.errors import FrazilError
from committer.request.table_identifier import TableIdentifier
from tests.soak.journal import Attempt, Ended, Journal, Past, pasts, read_journal
from tests.support.integration.traffic import POLICIES, RealProducer, Written
from workers.requests.connections import Connections, open_connections
from workers.settings.worker_settings import WorkerSettings


@dataclass(frozen=True, slots=True)
class Assignment:
    """The work of one process. `numbers`: of its producers; number `n` writes to table `n` modulo
    the count of tables. Those below `waiting` wait for their commits. `interval_s`: from one epoch
    of a producer to the next, on average.
    """

    catalog_name: str
    catalog_uri: str
    inbox: str
    queue_url: str
    tables: Sequence[str]
    numbers: Sequence[int]
    waiting: int
    interval_s: float
    seed: int
    journal: str

    @property
    def settings(self) -> WorkerSettings:
        catalog = CatalogProperties(self.catalog_name, {"uri": self.catalog_uri})
        return WorkerSettings(catalog, self.inbox, self.queue_url)

    @property
    def listens(self) -> Path:
        """A file that is there once the process heeds SIGTERM."""
        return Path(f"{self.journal}.listens")

    def printed(self) -> str:
        return json.dumps(asdict(self))


class Query:
    """One streaming query."""

    def __init__(
        self, producer: RealProducer, past: Past, journal: Journal, chance: random.Random
    ) -> None:
        self._producer = producer
        self._past = past
        self._journal = journal
        self._chance = chance

    async def run(self, interval_s: float, stop: asyncio.Event) -> None:
        """Publish epoch after epoch until stopped; the last one has ended then."""
        epoch = self._first_epoch()
        while not stop.is_set():
            if await self._publish(epoch):
                epoch += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(interval_s * (0.5 + self._chance.random())):
                    await stop.wait()
        while self._past.is_open:
            await self._publish(self._past.epochs - 1)

    def _first_epoch(self) -> int:
        """Return the open epoch, else the next or, if Spark did not record it, the last again."""
        forgot = self._past.epochs > 0 and self._chance.random() < 0.5
        return self._past.epochs - (self._past.is_open or forgot)

    async def _publish(self, epoch: int) -> bool:
        """Write and publish. False if it has to be done again: an error, as one fails a query."""
        written = self._producer.write_attempt(epoch, fingerprint=f"offsets-{epoch}")
        self._producer.written.clear()
        self._add(_attempt(self._producer.number, written))
        called_s = time.monotonic()
        try:
            policy = POLICIES[self._producer.wait]
            receipt = await self._producer.connections.publisher.publish(written.epoch, policy)
        except FrazilError as error:
            self._add(self._ended(epoch, called_s, error=f"{type(error).__name__}: {error}"))
            return False
        self._add(
            self._ended(
                epoch,
                called_s,
                state=receipt.state.value,
                snapshot_id=receipt.snapshot_id,
                sequence_number=receipt.sequence_number,
                backlog=receipt.backlog,
            )
        )
        return True

    def _ended(self, epoch: int, called_s: float, **told: object) -> Ended:
        took_s = time.monotonic() - called_s
        return Ended(self._producer.number, epoch, time.time(), took_s, **told)  # type: ignore[arg-type]

    def _add(self, event: Attempt | Ended) -> None:
        self._journal.add(event)
        self._past.note(event)


def _attempt(number: int, written: Written) -> Attempt:
    epoch = written.epoch
    return Attempt(
        number,
        epoch.epoch,
        str(epoch.nonce),
        epoch.fingerprint.value,
        [file.file_path for file in epoch.files],
        list(written.ids),
    )


async def work(assignment: Assignment) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    assignment.listens.touch()
    path = Path(assignment.journal)
    past = pasts(read_journal(path))
    journal, connections = Journal(path), await open_connections(assignment.settings)
    try:
        async with asyncio.TaskGroup() as tasks:
            for number in assignment.numbers:
                producer = await _producer(assignment, number, connections)
                # A fresh start draws other numbers than the one before.
                seed = f"{assignment.seed} {number} {past.get(number, Past()).epochs}"
                query = Query(producer, past.get(number, Past()), journal, random.Random(seed))
                tasks.create_task(query.run(assignment.interval_s, stop))
    finally:
        await connections.close()
        journal.close()


async def _producer(assignment: Assignment, number: int, connections: Connections) -> RealProducer:
    name = TableIdentifier.parse(assignment.tables[number % len(assignment.tables)])
    wait = "committed" if number < assignment.waiting else "durable"
    table = await connections.publisher.load_table(name)
    return RealProducer(number, table, connections, wait=wait)


if __name__ == "__main__":
    asyncio.run(work(Assignment(**json.loads(sys.argv[1]))))
