"""Expires the snapshots of one table: decides, notes it durably, and cleans up behind the swap.

    decide → journal → offer … a commit takes it along … → search → delete → journal entry away

`plan/cleanup/expiry.py` decides which snapshots, `plan/cleanup/reachability.py` which files are
unneeded then. The requests that wait in the inbox alone are read before an expiry is noted, and
before files are deleted: they may need some of either. If one cannot be read, the expiry waits. One
that becomes durable later protects what it needs only from its arrival in memory on.

Nothing is deleted before a commit of ours has landed on metadata without the snapshots. A file that
no snapshot of such metadata reaches is reached by none that follows, unless an operator restores
the table to older metadata: so the pointer is read before each delete. After a crash the journal
names the open expiries: one whose snapshots are still in the table is offered again or given up,
any other is cleaned up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from committer.errors import SettingsError
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.plan.cleanup.expiry import (
    NOTHING,
    ExpiredSnapshots,
    Needed,
    due_expiry,
    may_expire,
    still_expirable,
)
from committer.plan.cleanup.maintenance import Upkeep
from committer.plan.cleanup.orphan_search import manifests_named_by, places_of
from committer.plan.cleanup.reachability import (
    Gone,
    Unreachable,
    fallen_metadata_files,
    find_unreachable,
)
from committer.plan.commit.commit import CommitPlan
from committer.plan.ledger.state import TableState
from committer.ports.world import World
from committer.request.commit_request import CommitRequest
from committer.service.requests.inbox_keys import parsed
from committer.service.requests.inbox_lookup import InboxLookup
from committer.service.requests.pending import Waiting
from committer.service.tasks.steps import OFF_LOOP_BYTES, history_bytes, off_loop_if_large
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics, UpkeepKind
from committer.service.upkeep.table_files import TableFiles, delete_batches
from committer.service.upkeep.table_notes import TableNotes
from committer.storage.inbox.journal import ExpiryEntry

# A look at all snapshots takes some milliseconds for thousands of them: taken after so long, or
# after so many commits, whichever is first.
LOOK_INTERVAL_S = 10.0
LOOK_SNAPSHOTS = 200
# So long metadata files that fall off the log are gathered: many tables lose one each commit.
GATHER_S = 0.25
CLOCK_AHEAD_MS_MAX = 300_000


class Expirer:
    """The maintenance task that expires snapshots; one for each table committer."""

    kind = UpkeepKind.EXPIRE_SNAPSHOTS

    def __init__(
        self,
        files: TableFiles,
        notes: TableNotes,
        waiting: Waiting,
        lookup: InboxLookup,
        world: World,
        metrics: Metrics,
        *,
        is_default: bool,
    ) -> None:
        """Expire snapshots of one table. `is_default`: unless the table says no."""
        self._files = files
        self._table = files.table
        self._notes = notes
        self._waiting = waiting
        self._lookup = lookup
        self._world = world
        self._metrics = metrics
        self._is_default = is_default
        self._found: ExpiredSnapshots | None = None
        self._offered: ExpiryEntry | None = None
        self._gone: list[ExpiryEntry] = []
        self._void: list[ExpiryEntry] = []
        self._fallen: list[str] = []
        self._is_resumed = False
        self._is_look_due = False
        self._look_at_s = 0.0
        self._look_at_snapshots = 0

    # --- In the rounds ---

    def offer(self, upkeep: Upkeep) -> Upkeep:
        """Add what is noted in the journal, unless a request that came since needs it."""
        if self._offered is None:
            return upkeep
        expired = _expired(self._offered)
        if self._needed().takes_any_of(expired):
            return upkeep
        return replace(upkeep, expired=expired)

    def landed(self, plan: CommitPlan) -> None:
        """Note what became of the offered entry, and which metadata files fell off the log."""
        swap = plan.swap
        if self._files.has_own_metadata_files:
            self._fallen += fallen_metadata_files(swap.base.metadata, swap.metadata)
        entry = self._offered
        if entry is None:
            return
        expired = _expired(entry)
        if expired.is_gone_from(swap.metadata):
            self._metrics.upkeep_done(self._table, self.kind, len(expired.snapshots))
            self._gone.append(entry)
            self._offered = None
        elif not still_expirable(expired, plan.state, now_ms=self._world.now_ms()):
            # Every attempt that held it was conditional on a base that this commit has moved.
            self._void.append(entry)
            self._offered = None

    def is_due(self, state: TableState, branch: str) -> bool:
        """Return whether there is something to finish, or enough to expire."""
        now_s, snapshots = self._world.monotonic_s(), len(state.metadata.snapshots)
        is_time = now_s >= self._look_at_s or snapshots >= self._look_at_snapshots
        if self._offered is None and is_time:
            self._look_at_s = now_s + LOOK_INTERVAL_S
            self._look_at_snapshots = snapshots + LOOK_SNAPSHOTS
            # Of very many snapshots that takes too long for the loop: `work` looks.
            self._is_look_due = history_bytes(state.metadata) >= OFF_LOOP_BYTES
            self._found = None if self._is_look_due else self._due(state, self._needed())
        # Not the first question: on many tables every commit leaves a metadata file to delete.
        is_unfinished = self._gone or self._void or self._fallen or not self._is_resumed
        return self._found is not None or self._is_look_due or bool(is_unfinished)

    async def _look(self, state: TableState, needed: Needed) -> ExpiredSnapshots | None:
        weight = history_bytes(state.metadata)
        return await off_loop_if_large(weight, self._due, state, needed)

    def _due(self, state: TableState, needed: Needed) -> ExpiredSnapshots | None:
        return due_expiry(
            state, now_ms=self._world.now_ms(), needed=needed, default=self._is_default
        )

    def _needed(self) -> Needed:
        return Needed.of(one.sealed.request for one in self._waiting.all())

    # --- In the background ---

    async def work(self, state: TableState, branch: str) -> None:
        """Finish what has landed before anything new is begun: of a chain, one end at a time."""
        if not self._is_resumed:
            await self._resume(state)
        if self._fallen:
            await self._world.sleep(GATHER_S)
            await self._delete_fallen(self._files.known_state or state)
        while self._void:
            await self._notes.delete(self._void[0])
            del self._void[0]
        while self._gone:
            await self._clean_up(self._gone[0])
            del self._gone[0]
        found, self._found = self._found, None
        if self._is_look_due:
            self._is_look_due = False
            found = await self._look(state, self._needed())
        if found is not None and self._offered is None:
            # Chosen again: requests that wait in the inbox alone may need some of it.
            found = await self._look(state, await self._needed_by_all())
            if found is not None:
                await self._note(found, state)

    async def _needed_by_all(self) -> Needed:
        """Return what the requests in memory and those in the inbox need."""
        requests = self._lookup.not_ended(self._files.table_uuid)
        every = {Needed.of((one,)) async for one in requests}
        return Needed.joined((self._needed(), *every))

    async def _note(self, expired: ExpiredSnapshots, state: TableState) -> None:
        """Write the journal entry; from then on the expiry is on offer."""
        ids = frozenset(expired.snapshot_ids)
        metadata = state.metadata
        kept = (one.snapshot_id for one in reversed(metadata.snapshots))
        entry = ExpiryEntry(
            entry_id=self._world.uuid(),
            table_uuid=self._files.table_uuid,
            base_location=state.table.metadata_location,
            kept_snapshot_id=next(one for one in kept if one not in ids),
            written_at_ms=self._world.now_ms(),
            snapshots=expired.snapshots,
            refs=expired.refs,
            statistics=tuple(
                one
                for one in (*metadata.statistics, *metadata.partition_statistics)
                if one.snapshot_id in ids
            ),
        )
        await self._notes.put(entry)
        await self._check_clock(entry)
        self._offered = entry

    async def _check_clock(self, entry: ExpiryEntry) -> None:
        """Check the clock: one that runs ahead makes everything old. Errors: `SettingsError`."""
        ahead_ms = entry.written_at_ms - await self._notes.stored_ms(entry)
        if ahead_ms > CLOCK_AHEAD_MS_MAX:
            await self._notes.delete(entry)
            raise SettingsError(
                f"this machine's clock is {ahead_ms // 1000} s ahead of the storage's: no snapshot"
                " expires by it; set the clock"
            )

    async def _resume(self, state: TableState) -> None:
        """Take over what another process has left. It is after a commit of ours: no attempt of a
        process that is gone can land any more.
        """
        entries = await self._notes.unfinished(ExpiryEntry)
        needed = await self._needed_by_all() if entries else NOTHING
        now_ms = self._world.now_ms()
        for entry in entries:
            expired = _expired(entry)
            if expired.is_gone_from(state.metadata):
                self._gone.append(entry)
            elif (
                self._offered is None
                and still_expirable(expired, state, now_ms=now_ms)
                and not needed.takes_any_of(expired)
            ):
                self._offered = entry
            else:
                self._void.append(entry)
        self._is_resumed = True
        if entries:
            log.info("expiry.resumed", table=str(self._table), entries=len(entries))

    async def _clean_up(self, entry: ExpiryEntry) -> None:
        """Delete the files that are not needed any more."""
        found = await self._find(entry)
        if found is None:
            return
        for batch in delete_batches(found.in_order):
            if await self._is_abandoned(entry, (await self._files.latest()).metadata):
                return
            await self._files.delete(batch)
        await self._notes.delete(entry)
        self._log_expired(entry, found)

    async def _find(self, entry: ExpiryEntry) -> Unreachable | None:
        """Return the files that no snapshot and no waiting request needs.
        None: the deletion is given up.
        """
        found = await self._search(entry)
        if found is None or not found.data_files:
            return found
        # A request that leaves the inbox while it is listed and read is in the table, which is
        # searched afterwards.
        may_go = await self._without_wanted(found)
        found = await self._search(entry)
        return None if found is None else found.only(may_go)

    async def _search(self, entry: ExpiryEntry) -> Unreachable | None:
        """Return the files that no snapshot needs, by the current table.
        None: the deletion is given up.
        """
        metadata = (await self._files.latest()).metadata
        if await self._is_abandoned(entry, metadata):
            return None
        gone = Gone(entry.snapshots, entry.statistics)
        named = {path for one in self._waiting.all() for path in _named_by(one.sealed.request)}
        found = await self._files.answer(find_unreachable(metadata, gone, named=named))
        # Files that others wrote, for this table perhaps: a request that waits may add one of them.
        is_adopted = any(one.sealed.request.adopt_existing for one in self._waiting.all())
        return found.within(() if is_adopted else places_of(metadata))

    async def _is_abandoned(self, entry: ExpiryEntry, metadata: TableMetadata) -> bool:
        """Return whether the files have to stay because they may be needed."""
        reason = _why_not(entry, metadata)
        if reason is not None:
            await self._notes.delete(entry)
            log.warning("expiry.abandoned", table=str(self._table), reason=reason)
        return reason is not None

    async def _without_wanted(self, found: Unreachable) -> frozenset[str]:
        """Return the data files and manifests among these that no durable request needs.

        Those of the attempts that may land once more stay: they landed in a snapshot that was
        rolled back, and an operator may allow them again, from the inbox or from quarantine, with
        the same files. So do those that a request in the inbox names, and all data files if it
        adopts some: only its manifests say which.
        """
        inbox, quarantined = await self._lookup.durable(self._files.table_uuid)
        keys = [parsed(one.key) for one in (*inbox, *quarantined)]
        attempts = {str(key.attempt) for key in keys if key is not None}
        attempts.update(str(one.sealed.request.attempt) for one in self._waiting.all())
        found = found.without(attempts)
        may_go = {*found.data_files, *found.manifests}
        async for request in self._lookup.requests(inbox):
            may_go.difference_update(_named_by(request))
            if request.adopt_existing:
                may_go.difference_update(found.data_files)
        return frozenset(may_go)

    async def _delete_fallen(self, state: TableState) -> None:
        """Delete metadata files that our own commits dropped from the log,
        never one that is in use."""
        location = await self._files.current_location()
        if location != state.table.metadata_location:
            # The table may have been restored to one of them: kept until that is known.
            return
        fallen, self._fallen = self._fallen, []
        used = {entry.metadata_file for entry in state.metadata.metadata_log}
        used.add(location)
        try:
            for batch in delete_batches([location for location in fallen if location not in used]):
                await self._files.delete(batch)
        except BaseException:
            self._fallen = fallen + self._fallen
            raise

    def _log_expired(self, entry: ExpiryEntry, found: Unreachable) -> None:
        log.info(
            "snapshots.expired",
            table=str(self._table),
            snapshots=len(entry.snapshots),
            refs=len(entry.refs),
            data_files=len(found.data_files),
            manifests=len(found.manifests),
            manifest_lists=len(found.manifest_lists),
        )


def _why_not(entry: ExpiryEntry, metadata: TableMetadata) -> str | None:
    """Return why the files have to stay, by what is known of the table now, or None."""
    if not _expired(entry).is_gone_from(metadata):
        return "the snapshots are in the table again"
    if entry.kept_snapshot_id not in metadata.snapshots_by_id:
        return "the table may have been put back to a time before the snapshots"
    if not may_expire(metadata.properties, default=True):
        return "the table's properties forbid it now"
    return None


def _named_by(request: CommitRequest) -> Iterator[str]:
    """Yield the files that a request names beside the data files that it adds."""
    yield from manifests_named_by(request)
    yield from request.needs.named_files


def _expired(entry: ExpiryEntry) -> ExpiredSnapshots:
    return ExpiredSnapshots(entry.snapshots, entry.refs)
