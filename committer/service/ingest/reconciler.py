"""Looks for requests without a doorbell again and again, and for due ledger clean-up on the way.

Without a queue this is how requests are found at all: slower, nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from committer.errors import FrazilError
from committer.ports.world import World
from committer.service.ingest.inbox_scan import InboxScan, Listing
from committer.service.ingest.ledger_cleanup import LedgerCleanup
from committer.service.ingest.ownership import QueueProgress
from committer.service.requests.inbox_keys import shard_of_folder
from committer.service.telemetry.health import Health
from committer.service.telemetry.lag import Delay
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics

ALONE_INTERVAL_S = 1.0
# So many passes take nothing while the queue is read for the first time: what waits there would
# have to be read from the inbox, one by one, and a large backlog takes its time.
READ_INTERVALS_MAX = 20


@dataclass(eq=False, kw_only=True)
class Reconciler:
    """Scans the inbox: for requests older than `age_s`; without a queue, for all, often.

    `listing`: the last complete one.
    """

    scan: InboxScan
    ledger_cleanup: LedgerCleanup
    queue: QueueProgress
    world: World
    health: Health
    metrics: Metrics
    interval_s: float
    age_s: float

    def __post_init__(self) -> None:
        self.listing: Listing | None = None

    def unread(self) -> Iterator[tuple[str, Delay]]:
        """Yield what the last listing could not take, by the folder of its table, of the tables
        that are still this committer's. A request of another one may have landed, and not be
        deleted yet: it counts there.
        """
        for table, delay in self.listing.unread if self.listing is not None else ():
            if self.scan.ownership.owns_shard(shard_of_folder(table)):
                yield table, delay

    async def run(self) -> None:
        """Reconcile for ever; the first pass that takes any takes all ages,
        since a start may follow a crash.

        Not before the queue has handed over what waits there: of that nothing has to be read.
        """
        for _ in range(READ_INTERVALS_MAX):
            if not self._alone:
                await self._wait(self.queue.has_caught_up)
            if self._alone or self.queue.has_caught_up.is_set():
                break
            await self._pass(0.0, takes=False)
        age_s = 0.0
        while True:
            await self._pass(0.0 if self._alone else age_s)
            age_s = self.age_s
            await self._wait()

    @property
    def _alone(self) -> bool:
        return self.queue.is_away.is_set()

    async def _wait(self, *sooner: asyncio.Event) -> None:
        """Wait for the next pass: a short time without a queue, and after the queue failed."""
        if self._alone:
            await self.world.sleep(min(ALONE_INTERVAL_S, self.interval_s))
            return
        waited = [
            asyncio.ensure_future(self.world.sleep(self.interval_s)),
            *(asyncio.ensure_future(each.wait()) for each in (self.queue.is_away, *sooner)),
        ]
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waited:
                each.cancel()

    async def _pass(self, age_s: float, *, takes: bool = True) -> None:
        try:
            async with self.ledger_cleanup.during_scan() as folders:
                self.listing = listing = await self.scan.run(folders, age_s, takes=takes)
                self._show_found(listing.found)
            if self.health.recovered("inbox"):
                self.scan.intake.reader.unread.retry_all()
        except FrazilError as error:
            self.health.unavailable("inbox", error)

    def _show_found(self, requests: int) -> None:
        if requests and not self._alone:
            log.info("doorbells.missed", requests=requests)
            self.metrics.doorbells_missed(requests)
