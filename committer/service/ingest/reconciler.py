"""Lists the inbox for requests without a doorbell, and finds due ledger clean-up on the way.

The inbox holds what is outstanding only, so a listing costs what is outstanding. Without a queue
this is how requests are found at all: slower, nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from committer.errors import FrazilError
from committer.group_commit import finish_all
from committer.ports.skips import SkipKind
from committer.ports.world import World
from committer.request.commit_request import REQUEST_BYTES_MAX
from committer.service.ingest.intake import Intake
from committer.service.requests.foreign_entries import ForeignEntries
from committer.service.requests.inbox_keys import shard_of_key
from committer.service.requests.listing import Folders, Listed
from committer.service.sharding.shard_leases import ShardLeases
from committer.service.telemetry.health import Health
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics
from committer.storage.inbox import Inbox, Outstanding, Quarantine, skips_of

ALONE_INTERVAL_S = 1.0
TAKEN_AT_ONCE = 64
# So many passes take nothing while the queue is read for the first time: what waits there would
# have to be read from the inbox, one by one, and a large backlog takes its time.
READ_INTERVALS_MAX = 20


@dataclass(frozen=True, slots=True)
class Listing:
    """The result of the last complete listing of the inbox, and when it began. `unread_ms`: since
    when the oldest request has been durable that could not be taken, or that its owner has left
    there for long.
    """

    began_ms: int
    requests: int
    unread_ms: int | None


@dataclass(slots=True)
class _Tally:
    """Requests that a pass has found and taken, and since when the oldest was durable that it left
    where it was.
    """

    found: int = 0
    unread_ms: int | None = None

    def unread(self, waiting: Outstanding) -> None:
        self.unread_ms = min(self.unread_ms or waiting.modified_ms, waiting.modified_ms)


class Reconciler:
    """Takes outstanding requests older than an age; without a queue, all of them, often.

    `replaying`: the copies of requests that an operator is putting back.
    """

    def __init__(
        self,
        *,
        inbox: Inbox,
        quarantine: Quarantine,
        replaying: Quarantine,
        intake: Intake,
        shards: ShardLeases,
        foreign_entries: ForeignEntries,
        world: World,
        health: Health,
        metrics: Metrics,
        queue_is_away: asyncio.Event | None,
        queue_is_read: asyncio.Event | None,
        is_pending_delete: Callable[[str], bool],
        interval_s: float,
        age_s: float,
    ) -> None:
        self._inbox = inbox
        self._quarantine = quarantine
        self._replaying = replaying
        self._intake = intake
        self._shards = shards
        self._foreign_entries = foreign_entries
        self._world = world
        self._health = health
        self._metrics = metrics
        self._queue_is_away = queue_is_away
        self._queue_is_read = queue_is_read
        self._is_pending_delete = is_pending_delete
        self._interval_s = interval_s
        self._age_s = age_s
        self.listing: Listing | None = None
        self._only_counts = False
        # For each listed request that this process does not hold: since when it has been listed.
        self._listed_s: dict[str, float] = {}

    @property
    def _alone(self) -> bool:
        return self._queue_is_away is None or self._queue_is_away.is_set()

    async def run(self) -> None:
        """Reconcile for ever; the first pass that takes any takes all ages, since a start may
        follow a crash.

        Not before the queue has handed over what waits there: of that nothing has to be read.
        """
        for _ in range(READ_INTERVALS_MAX):
            if not self._alone:
                await self._wait(self._queue_is_read)
            self._only_counts = not (self._alone or self._is_read)
            if not self._only_counts:
                break
            await self._pass(0.0)
        self._only_counts = False
        age_s = 0.0
        while True:
            await self._pass(0.0 if self._alone else age_s)
            age_s = self._age_s
            await self._wait()

    @property
    def _is_read(self) -> bool:
        return self._queue_is_read is not None and self._queue_is_read.is_set()

    async def _wait(self, sooner: asyncio.Event | None = None) -> None:
        """Until the next pass: soon without a queue, and soon after the queue went away."""
        if self._alone:
            await self._world.sleep(min(ALONE_INTERVAL_S, self._interval_s))
            return
        waited = [
            asyncio.ensure_future(self._world.sleep(self._interval_s)),
            *(asyncio.ensure_future(each.wait()) for each in (self._queue_is_away, sooner) if each),
        ]
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waited:
                each.cancel()

    async def _pass(self, age_s: float) -> None:
        try:
            states = [(one, one.state.ledger) for one in self._intake.tables if one.state]
            now_s, now_ms = self._world.monotonic_s(), self._world.now_ms()
            may_find = [
                one for one, ledger in states if one.ledger_upkeep.may_find(ledger, now_s, now_ms)
            ]
            # Before the inbox, as a replay moves a request, and after it, as a committer does that
            # refuses one: none is missed on its way.
            uuids = [one.table_uuid for one in may_find]
            sought = {key for one in may_find for key in one.ledger_upkeep.settled.sought}
            listed, failures = Listed(Folders(sought)), self._intake.read_failures
            await self._list_quarantined(uuids, listed.quarantined)
            await self.reconcile(age_s, listed.waiting)
            await self._list_quarantined(uuids, listed.quarantined)
            for table, ledger in states:
                table.ledger_upkeep.find(ledger, listed, now_s, now_ms)
            if failures == self._intake.read_failures and self._health.healthy("inbox"):
                log.info("inbox.returned")
        except FrazilError as error:
            if self._health.degraded("inbox", str(error)):
                log.warning("inbox.unavailable", error=str(error))

    async def _list_quarantined(self, tables: Sequence[UUID], folders: Folders) -> None:
        """Add those of producers that have something in quarantine, or on its way back."""
        for table_uuid in tables:
            for place in (self._quarantine, self._replaying):
                skips = skips_of(table_uuid)
                async for found in place.list(table_uuid, skips=skips):
                    folders.add(found.key)
                folders.cannot_see(skips, place)

    async def reconcile(self, age_s: float, folders: Folders) -> None:
        """Take what is older than `age_s` and not pending; add the folders of all producers."""
        now_ms, now_s = self._world.now_ms(), self._world.monotonic_s()
        listed_s: dict[str, float] = {}
        requests, tally, skips = 0, _Tally(), skips_of()
        due: list[Outstanding] = []
        async for waiting in self._inbox.list(skips=skips):
            folders.add(waiting.key)
            if waiting.size_bytes > REQUEST_BYTES_MAX:
                skips.add(self._inbox.location(waiting.key), SkipKind.OVERSIZED)
                continue
            requests += 1
            pending = self._intake.find(waiting.key)
            if pending is not None:
                pending.durable_ms = min(pending.durable_ms, waiting.modified_ms)
            elif not self._is_pending_delete(waiting.key):
                listed_s[waiting.key] = self._listed_s.get(waiting.key, now_s)
                if self._is_due(waiting, now_ms, age_s):
                    due.append(waiting)
            if len(due) == TAKEN_AT_ONCE:
                await self._take_all(due, tally)
                due = []
        await self._take_all(due, tally)
        folders.cannot_see(skips, self._inbox)
        await self._foreign_entries.saw(skips, self._is_ours)
        self._listed_s = listed_s
        self.listing = Listing(now_ms, requests, tally.unread_ms)
        if tally.found and not self._alone:
            log.info("inbox.recovered", requests=tally.found)
            self._metrics.doorbells_missed(tally.found)

    async def _take_all(self, due: Sequence[Outstanding], tally: _Tally) -> None:
        await finish_all(self._take(one, tally) for one in due)

    async def _take(self, waiting: Outstanding, tally: _Tally) -> None:
        """Hand it to its table, which asks the ledger and the quarantine: a request that has landed
        or was quarantined leaves the inbox; any other is admitted.
        """
        is_wanted = not self._only_counts and self._may_take(waiting)
        if is_wanted and await self._intake.take_key(
            waiting.key, waiting.modified_ms, waiting.size_bytes
        ):
            tally.found += 1
        else:
            tally.unread(waiting)

    def _is_due(self, waiting: Outstanding, now_ms: int, age_s: float) -> bool:
        """Return whether its owner should have taken it by now."""
        if self._alone:
            age_s = max(age_s, self._shards.patience_s(shard_of_key(waiting.key)))
        elif not self._is_for_us(waiting):
            age_s = max(age_s, self._age_s)
        return self._has_age(waiting, now_ms, age_s)

    def _has_age(self, waiting: Outstanding, now_ms: int, age_s: float) -> bool:
        """By the clocks of this machine and of the storage; or, as they may be hours apart, by how
        long it has been listed.
        """
        listed_s = self._listed_s.get(waiting.key)
        is_long_listed = listed_s is not None and self._world.monotonic_s() - listed_s >= age_s
        return is_long_listed or waiting.modified_ms <= now_ms - int(age_s * 1000)

    def _is_for_us(self, waiting: Outstanding) -> bool:
        return self._is_ours(waiting.key)

    def _is_ours(self, key: str) -> bool:
        return self._alone or shard_of_key(key) in self._shards.owned

    def _may_take(self, waiting: Outstanding) -> bool:
        """Not while there is no room, nor while its producer has to wait."""
        is_held_back = self._intake.is_held_back
        return (
            self._is_for_us(waiting) and not self._intake.is_full and not is_held_back(waiting.key)
        )
