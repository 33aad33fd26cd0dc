"""Deletes the files of attempts that did not land and never will, with a stored proof.

    attempts … a commit of ours lands → judge → journal → look again → delete → journal entry away

`plan/commit/attempt_garbage.py` decides what is proven, and by what, when a commit of this
committer has landed: then the base of every earlier attempt has moved, and no batch is on its way
whose files a next attempt could use again. An attempt whose answer was lost waits in the journal
until its base has left the metadata log and been deleted. Files without a proof stay: `frazil table
orphans` lists them. Without conflicts there is nothing to do, and nothing is asked.
"""

from __future__ import annotations

from collections.abc import Collection

from committer.plan.cleanup.maintenance import Upkeep
from committer.plan.commit.attempt_garbage import GarbageFiles, named_after_all
from committer.plan.commit.attempt_log import AttemptLog
from committer.plan.commit.commit import CommitPlan
from committer.plan.ledger.state import TableState
from committer.ports.world import World
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import UpkeepKind
from committer.service.upkeep.table_files import TableFiles, delete_batches
from committer.service.upkeep.table_notes import TableNotes
from committer.storage.inbox.journal import GarbageEntry

# Beyond these, attempts in doubt are not noted: their files stay.
NOTED_MAX = 1_000


class AttemptGarbageCollector:
    """The maintenance task that deletes the garbage of attempts; one for each table committer."""

    kind = UpkeepKind.DELETE_FILES

    def __init__(
        self, files: TableFiles, notes: TableNotes, attempts: AttemptLog, world: World
    ) -> None:
        self._files = files
        self._table = str(files.table)
        self._notes = notes
        self._attempts = attempts
        self._world = world
        self._found: list[GarbageFiles] = []
        self._noted: list[GarbageEntry] = []
        self._is_resumed = False

    # --- In the rounds ---

    def judge(self, offered: Collection[str]) -> None:
        """Take over garbage after a commit of this committer has landed, while no batch is in
        flight. `offered`: see `AttemptLog.take_garbage`.
        """
        self._found += self._attempts.take_garbage(offered)

    def offer(self, upkeep: Upkeep) -> Upkeep:
        """Offer nothing: deletions need no commit."""
        return upkeep

    def landed(self, plan: CommitPlan) -> None:
        """Do nothing: garbage is judged once no batch is in flight."""

    def is_due(self, state: TableState, branch: str) -> bool:
        """Return whether there is something to note, to delete, or to take over."""
        is_ripe = any(_is_ripe(entry, state) for entry in self._noted)
        return bool(self._found) or is_ripe or not self._is_resumed

    # --- In the background ---

    async def work(self, state: TableState, branch: str) -> None:
        """Note what was found, then delete what is ripe."""
        if not self._is_resumed:
            await self._resume()
        while self._found:
            await self._note(self._found[0], state)
            del self._found[0]
        state = self._attempts.state or state
        for entry in [one for one in self._noted if _is_ripe(one, state)]:
            await self._delete_garbage(entry)
            self._noted.remove(entry)

    async def _resume(self) -> None:
        entries = await self._notes.unfinished(GarbageEntry)
        self._noted += entries
        self._is_resumed = True
        if entries:
            log.info("garbage.resumed", table=self._table, entries=len(entries))

    async def _note(self, found: GarbageFiles, state: TableState) -> None:
        if found.bases and len(self._noted) >= NOTED_MAX:
            return
        entry = GarbageEntry(
            entry_id=self._world.uuid(),
            table_uuid=self._files.table_uuid,
            proven_in=state.table.metadata_location,
            written_at_ms=self._world.now_ms(),
            own_files=found.own_files,
            manifests=found.manifests,
            bases=found.bases,
            after_sequence_number=found.after_sequence_number,
        )
        await self._notes.put(entry)
        self._noted.append(entry)

    async def _delete_garbage(self, entry: GarbageEntry) -> None:
        """Delete the files, if the table names none of them in spite of the proof."""
        garbage = GarbageFiles(
            entry.own_files, entry.manifests, entry.bases, entry.after_sequence_number
        )
        for batch in delete_batches(garbage.files):
            reason = await self._why_not(garbage)
            if reason is not None:
                log.warning("garbage.abandoned", table=self._table, reason=reason)
                await self._notes.delete(entry)
                return
            await self._files.delete(batch)
        await self._notes.delete(entry)
        log.info("garbage.deleted", table=self._table, files=len(garbage.files))

    async def _why_not(self, garbage: GarbageFiles) -> str | None:
        """Return why the files have to stay; None if they need not."""
        for base in garbage.bases:
            if await self._files.exists(base):
                return f"an attempt may yet land on `{base}`, if the table is put back to it"
        named = await self._files.answer(named_after_all(garbage, await self._files.latest()))
        return None if named is None else f"the table names `{named}`"


def _is_ripe(entry: GarbageEntry, state: TableState) -> bool:
    """Return whether every base that the entry waits for may be gone."""
    if not entry.bases:
        return True
    used = {state.table.metadata_location}
    used.update(one.metadata_file for one in state.metadata.metadata_log)
    return used.isdisjoint(entry.bases)
