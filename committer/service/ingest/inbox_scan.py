"""Lists the inbox for requests without a doorbell.

The inbox holds what is outstanding only, so a listing costs what is outstanding.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from committer.ports.skips import SkipKind, Skips
from committer.ports.world import World
from committer.request.commit_request import REQUEST_BYTES_MAX
from committer.service.ingest.intake import Intake
from committer.service.ingest.ownership import Ownership
from committer.service.requests.deferred_doorbells import NO_WAITERS
from committer.service.requests.foreign_entries import ForeignEntries
from committer.service.requests.inbox_keys import InboxKey, table_folder_of
from committer.service.requests.large_requests import Arrival
from committer.service.requests.listing import Folders
from committer.service.settle.pending_deletes import PendingDeletes
from committer.service.telemetry.lag import Delay, OldestRequests
from committer.storage.inbox.inbox import Inbox, Outstanding, skips_of

TAKEN_AT_ONCE = 64
# A page of a listing. Before each of them the queue is read to its end, if that does not take long:
# of what it brings nothing has to be listed, and the two would slow each other down.
PAGE_KEYS = 1_000
# Of one table: a larger backlog is taken in parts, each in the order of arrival.
IN_ORDER_MAX = 100_000


@dataclass(slots=True)
class Listing:
    """The result of a complete listing of the inbox, and when it began. `found`: the requests that
    were taken. `unread`: those that it could not take and does not have among the deferred ones,
    by the folder of their table.
    """

    began_ms: int
    requests: int = 0
    found: int = 0
    unread: OldestRequests = field(default_factory=OldestRequests)


@dataclass(eq=False, kw_only=True)
class InboxScan:
    """Takes the requests that their owner should have taken by now."""

    inbox: Inbox
    intake: Intake
    ownership: Ownership
    pending_deletes: PendingDeletes
    foreign_entries: ForeignEntries
    world: World

    def __post_init__(self) -> None:
        # For each listed request that this process does not hold: since when it has been listed.
        self._listed_s: dict[str, float] = {}

    async def run(self, folders: Folders, age_s: float, *, takes: bool) -> Listing:
        """Take what is older than `age_s` and not pending, unless all is only counted; add the
        folders of all producers. Errors: the storage's.
        """
        now_s, listing = self.world.monotonic_s(), Listing(self.world.now_ms())
        unread, seen_unread = self.intake.reader.unread, set[str]()
        listed_s: dict[str, float] = {}
        due: list[Arrival] = []
        skips = skips_of()
        self.intake.deferred.begin_listing()
        async for waiting in self._listed(skips):
            folders.add(waiting.key)
            if waiting.size_bytes > REQUEST_BYTES_MAX:
                skips.add(self.inbox.location(waiting.key), SkipKind.OVERSIZED)
                continue
            if unread.is_unread(waiting.key):
                seen_unread.add(waiting.key)
                if (cause := unread.cause(waiting.key)) is not None:
                    skips.add(self.inbox.location(waiting.key), SkipKind.UNREADABLE, cause)
            listing.requests += 1
            is_known = self.intake.listed(waiting.key, waiting.modified_ms)
            if not is_known and waiting.key not in self.pending_deletes:
                before_s = self._listed_s.get(waiting.key)
                listed_s[waiting.key] = now_s if before_s is None else before_s
                found = _arrival(waiting)
                if self.ownership.is_due(found, before_s, age_s):
                    if _is_complete(due, found.key):
                        await self._take_all(due, listing, takes=takes)
                        due = []
                    due.append(found)
        await self._take_all(due, listing, takes=takes)
        folders.cannot_see(skips, self.inbox)
        self.intake.deferred.end_listing(skips, self.inbox)
        self.intake.breakers.listed(folders, now_s)
        await self.foreign_entries.saw(skips, self.ownership.is_ours)
        self._listed_s = listed_s
        unread.listed(seen_unread, now_s)
        return listing

    async def _listed(self, skips: Skips) -> AsyncIterator[Outstanding]:
        count = 0
        async for waiting in self.inbox.list(skips=skips):
            if count % PAGE_KEYS == 0:
                await self.ownership.queue.wait_until_empty()
            count += 1
            yield waiting

    async def _take_all(self, due: list[Arrival], listing: Listing, *, takes: bool) -> None:
        """Take what is due in the order of arrival. A listing is in the order of keys: of one
        moment, the epochs of a producer stay in order.
        """
        due.sort(key=lambda one: one.durable_ms)
        for some in (due[at : at + TAKEN_AT_ONCE] for at in range(0, len(due), TAKEN_AT_ONCE)):
            free = [one for one in some if takes and self._may_take(one)]
            are_taken = await self.intake.take_all(free)
            taken = {one.key for one, is_taken in zip(free, are_taken, strict=True) if is_taken}
            listing.found += len(taken)
            for one in some:
                if one.key not in taken and one.key not in self.intake.deferred:
                    delay = Delay(one.durable_ms, self.intake.lag_cause(one.key))
                    listing.unread.add(table_folder_of(one.key), delay)

    def _may_take(self, arrival: Arrival) -> bool:
        """Return whether a request may be taken: it is ours, and there is room. One whose producer
        has to wait for room is taken later.
        """
        key = arrival.key
        is_free = not self.intake.is_full and not self.intake.is_held_back(key)
        if not (is_free and self.ownership.is_ours(key)):
            return False
        if self.intake.is_surplus(key.folder):
            self.intake.add_surplus(arrival)
            return False
        return True


def _is_complete(due: Sequence[Arrival], key: str) -> bool:
    """Return whether what is due is enough, and of other tables than the next request."""
    if len(due) < TAKEN_AT_ONCE:
        return False
    return len(due) >= IN_ORDER_MAX or table_folder_of(key) != table_folder_of(due[-1].key)


def _arrival(waiting: Outstanding) -> Arrival:
    key = InboxKey(waiting.key)
    return Arrival(key, NO_WAITERS, waiting.modified_ms, size_bytes=waiting.size_bytes)
