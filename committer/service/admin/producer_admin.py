"""Carries out what an operator decides about producers and their requests.

Each decision is a change of the ledger, in a swap of its own: it is true for every committer at
once, and survives them. `plan/ledger/producer_decisions.py` computes the new entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from committer.errors import InvalidMetadataError, NotFoundError, UnsupportedError
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.updates.metadata_update import RemoveProperties, SetProperties, Update
from committer.ledger_entry import MAIN, EpochRanges, ProducerEntry, print_entry
from committer.plan.cleanup.reachability import attempts_held
from committer.plan.ledger.evidence import is_ours, lands_nothing, snapshots_with_evidence
from committer.plan.ledger.ledger import Ledger, history_of, read_ledger
from committer.plan.ledger.producer_decisions import (
    ProducerName,
    ProducerState,
    ProducerStatus,
    epochs_of,
    epochs_text,
    frozen,
    landed_since,
    marked_lost,
    rolled_back,
    standing,
    standings,
    thawed,
    with_accepted,
)
from committer.plan.ledger.state import TableState
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import Storage
from committer.ports.world import World
from committer.request.commit_request import CommitRequest
from committer.request.request_key import published_key
from committer.request.table_identifier import TableIdentifier
from committer.service.admin.table_change import Decide, change_table
from committer.service.requests.evidence_reader import EvidenceReader
from committer.service.requests.reading import answer
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from committer.storage.inbox.replays import Replays


@dataclass(frozen=True, slots=True)
class Lost:
    """The epochs that a producer lost to a rollback: those that landed in snapshots that are gone
    from the history, and have not landed again since, by leave. `is_whole`: there may be no others.
    """

    epochs: EpochRanges
    snapshots: int
    is_whole: bool


@dataclass(frozen=True, slots=True)
class ProducerAdmin:
    """Decisions about the producers of one catalog's tables."""

    catalog: Catalog
    storage: Storage
    replays: Replays
    high_water_marks: HighWaterMarkStore
    world: World

    async def standing(self, table: LoadedTable, name: ProducerName) -> ProducerStatus:
        """Return a producer's status.
        Errors: `NotFoundError` for one that the ledger does not know.
        """
        return _known(read_ledger(table.metadata), name)

    async def lost(self, table: LoadedTable, name: ProducerName) -> Lost:
        """Return the epochs that a producer lost to a rollback. Errors: those of the storage."""
        return await _lost(EvidenceReader(self.storage), table, name)

    async def require_lost(
        self, table: LoadedTable, name: ProducerName, again: EpochRanges
    ) -> None:
        """Refuse to let epochs land once more that are in the table, or have never landed. Errors:
        `UnsupportedError`; those of the storage.
        """
        await _require_lost(EvidenceReader(self.storage), table, name, again)

    async def freeze(self, identifier: TableIdentifier, name: ProducerName, why: str) -> None:
        """Freeze a producer: none of its requests lands any more.
        Idempotent; the producer may be unknown, its branch may not. Errors: `NotFoundError`.
        """

        async def decide(table: LoadedTable) -> Sequence[Update]:
            require_known_branch(table, name.branch)
            found = standing(read_ledger(table.metadata), name)
            _require_readable(found)
            before = found.entry or ProducerEntry(table.metadata.require_uuid())
            return _changed(name, found.entry, frozen(before, why, self.world.now_ms()))

        await self._change(identifier, decide)

    async def thaw(
        self, identifier: TableIdentifier, name: ProducerName, again: EpochRanges
    ) -> None:
        """Thaw a frozen producer; `again` are epochs that may land once more. Idempotent.

        Errors: `NotFoundError`; `UnsupportedError` where the entry cannot be read, or one of these
        epochs is not lost.
        """
        # Of all attempts: one that reads the history anew would lose each race on a busy table.
        reader = EvidenceReader(self.storage)

        async def decide(table: LoadedTable) -> Sequence[Update]:
            ledger = read_ledger(table.metadata)
            found = _known(ledger, name)
            _require_readable(found)
            if found.state is ProducerState.ACTIVE or found.entry is None:
                return ()
            history = history_of(table.metadata, name.branch)
            left = history.snapshot_ids if name.key in ledger.broken else None
            if again.ranges:
                await _require_lost(reader, table, name, again)
                await self._let_lack(table, name, found.entry)
            after = thawed(found.entry, left, again)
            return _changed(name, found.entry, await self._with_latest(table, name, after))

        await self._change(identifier, decide)

    async def _with_latest(
        self, table: LoadedTable, name: ProducerName, entry: ProducerEntry
    ) -> ProducerEntry:
        """Add the last epoch of the retained history if no epoch is remembered any more: without
        one the next rollback could not be detected.
        """
        if entry.latest or not entry.epochs.ranges:
            return entry
        reader = EvidenceReader(self.storage)
        for snapshot in snapshots_with_evidence(table.metadata, name.branch):
            landed = (await reader.evidence_of(snapshot)).items()
            of_producer = [one for (producer, _), one in landed if producer == name.producer]
            known = [one for one in of_producer if one.epoch in entry.epochs]
            if known:
                return replace(entry, latest=(max(known, key=lambda one: one.epoch),))
        return entry

    async def forget(self, identifier: TableIdentifier, name: ProducerName) -> None:
        """Take a producer out of the ledger, with all that it has landed. May be repeated.

        Errors: `UnsupportedError` while a request of it waits, or is in quarantine: it would be
        judged as if nothing had landed.
        """

        async def decide(table: LoadedTable) -> Sequence[Update]:
            if name.key not in table.metadata.properties:
                return ()
            keys = await self._requests(table.metadata.require_uuid(), name.producer)
            if keys:
                raise UnsupportedError(
                    f"producer `{name.producer}` of table {identifier} has {len(keys)} request(s)"
                    f" in the inbox or in quarantine (`{min(keys)}`): it is not forgotten before"
                    " they have landed, or are discarded"
                )
            await self._let_lack(table, name, standing(read_ledger(table.metadata), name).entry)
            return (RemoveProperties((name.key,)),)

        await self._change(identifier, decide)

    async def accept(
        self, identifier: TableIdentifier, name: ProducerName, requests: Sequence[CommitRequest]
    ) -> dict[str, str]:
        """Let quarantined requests land although the ledger is against it, each once.

        They land when they are replayed, and not before. Returns why not, by inbox key, for those
        that may not. May be repeated.
        """
        refused: dict[str, str] = {}

        async def decide(table: LoadedTable) -> Sequence[Update]:
            refused.clear()
            state = TableState.of(table)
            found = standing(state.ledger, name)
            refused.update(await self._refusals(state, found, requests))
            return await self._with_leave(state, found, requests, refused)

        await self._change(identifier, decide)
        return refused

    async def refusals(
        self, identifier: TableIdentifier, name: ProducerName, requests: Sequence[CommitRequest]
    ) -> dict[str, str]:
        """Return the refusals that `accept` would return now. Changes nothing."""
        state = TableState.of(await self.catalog.load(identifier))
        return await self._refusals(state, standing(state.ledger, name), requests)

    async def _refusals(
        self, state: TableState, found: ProducerStatus, requests: Sequence[CommitRequest]
    ) -> dict[str, str]:
        _require_readable(found)
        reader, refused = EvidenceReader(self.storage), dict[str, str]()
        for request in requests:
            why = await _why_not(reader, state, request)
            if why is not None:
                refused[request.inbox_key] = why
        left = [one for one in requests if one.inbox_key not in refused]
        return refused | await self._landed_long_ago(state, found, left)

    async def _with_leave(
        self,
        state: TableState,
        found: ProducerStatus,
        requests: Sequence[CommitRequest],
        refused: dict[str, str],
    ) -> Sequence[Update]:
        name = found.name
        pairs = {(one.epoch, one.attempt) for one in requests if one.inbox_key not in refused}
        if not pairs:
            return ()
        before = found.entry or state.ledger.entry_of(requests[0])
        keys = await self._requests(state.metadata.require_uuid(), name.producer)
        waiting = {published_key(key).rpartition("/")[2] for key in keys}
        entry, beyond = with_accepted(before, pairs, waiting)
        for request in requests:
            if (request.epoch, request.attempt) in beyond:
                refused[request.inbox_key] = "too many wait to be accepted: again when some landed"
        if name.key in state.ledger.broken and found.why is not None:
            entry = marked_lost(entry, found.why, self.world.now_ms())
        return _changed(name, found.entry, entry)

    async def _landed_long_ago(
        self, state: TableState, found: ProducerStatus, requests: Sequence[CommitRequest]
    ) -> dict[str, str]:
        """Return, by key, why a request may not land again: the files of the table prove that it
        landed beyond the kept proofs. All manifests are read for that, once.
        """
        head, entry = state.metadata.branch_head(found.name.branch), found.entry
        if head is None:
            return {}
        landed = entry.epochs if entry is not None and entry.has_landed else None
        asked = [one for one in requests if landed is None or one.epoch in landed]
        attempts = {str(one.attempt) for one in asked}
        try:
            held = await answer(attempts_held(head, attempts), self.storage) if asked else set()
        except InvalidMetadataError as error:
            why = f"it is unknown whether its data files are in the table: {error}"
            return {one.inbox_key: why for one in asked}
        why = "its data files are in the table: it has landed long ago; discard it"
        return {one.inbox_key: why for one in asked if str(one.attempt) in held}

    async def _let_lack(
        self, table: LoadedTable, name: ProducerName, entry: ProducerEntry | None
    ) -> None:
        """Tell the high-water mark before the swap,
        or the table would freeze for want of the epochs.
        """
        highest = None if entry is None else entry.epochs.highest
        epochs = {name.key: -1 if highest is None else highest}
        await self.high_water_marks.forget(
            table.metadata.require_uuid(),
            epochs,
            sequence_number=table.metadata.last_sequence_number,
            now_ms=self.world.now_ms(),
        )

    async def _requests(self, table_uuid: UUID, producer: str) -> set[str]:
        """Return the keys of all durable requests of a producer that have not landed."""
        return {key async for _, key in self.replays.all_durable(table_uuid, producer)}

    async def _change(self, identifier: TableIdentifier, decide: Decide) -> None:
        await change_table(self.catalog, self.storage, self.world, identifier, decide)


async def _lost(reader: EvidenceReader, table: LoadedTable, name: ProducerName) -> Lost:
    found = _known(read_ledger(table.metadata), name)
    if found.state is not ProducerState.ROLLED_BACK or found.entry is None:
        return Lost(EpochRanges(), 0, is_whole=True)
    gone = rolled_back(table.metadata, name, found.entry)
    since = landed_since(table.metadata, name, gone.snapshots[:1])
    lost, all_lost = await _epochs_in(reader, gone.snapshots, name)
    again, all_again = await _epochs_in(reader, since, name)
    is_whole = gone.is_whole and all_lost and all_again
    return Lost(epochs_of(lost - again), len(gone.snapshots), is_whole)


async def _require_lost(
    reader: EvidenceReader, table: LoadedTable, name: ProducerName, again: EpochRanges
) -> None:
    found, lost = _known(read_ledger(table.metadata), name), await _lost(reader, table, name)
    refused = again.without(lost.epochs)
    # Where not all that is lost is known, what the remaining history proves is not lost.
    is_known = found.state is ProducerState.ROLLED_BACK and lost.is_whole
    if refused.ranges and found.entry is not None and not is_known:
        present = await _present(reader, table, name, found.entry)
        refused = refused.without(found.entry.epochs.without(present))
    if refused.ranges:
        raise UnsupportedError(
            f"{epochs_text(refused)} of producer `{name.producer}` on branch `{name.branch}` of"
            f" table {table.identifier} may not land once more: only an epoch that has landed and"
            " is lost to a rollback may; nothing was changed"
        )


async def _present(
    reader: EvidenceReader, table: LoadedTable, name: ProducerName, entry: ProducerEntry
) -> EpochRanges:
    """Return the epochs that landed in the remaining history, as far as proofs are searched."""
    kept = history_of(table.metadata, name.branch).snapshot_ids
    proven = snapshots_with_evidence(table.metadata, name.branch)
    epochs, _ = await _epochs_in(reader, proven, name)
    return epochs_of(epochs | {one.epoch for one in entry.latest if one.snapshot_id in kept})


async def _epochs_in(
    reader: EvidenceReader, snapshots: Iterable[Snapshot], name: ProducerName
) -> tuple[set[int], bool]:
    """Return the epochs that landed in these snapshots, and whether there may be no others."""
    epochs, is_whole = set[int](), True
    for snapshot in filter(is_ours, snapshots):
        evidence = await reader.evidence_of(snapshot)
        is_whole = is_whole and (bool(evidence) or lands_nothing(snapshot))
        epochs.update(epoch for producer, epoch in evidence if producer == name.producer)
    return epochs, is_whole


def require_known_branch(table: LoadedTable, branch: str) -> None:
    """Check that the table or its ledger has a branch: the entries of a removed one stay.
    Errors: `NotFoundError`.
    """
    branches = {MAIN, *table.metadata.branches}
    if branch not in branches | {one.name.branch for one in standings(read_ledger(table.metadata))}:
        raise NotFoundError(
            f"table `{table.identifier}` has no branch `{branch}`: it has"
            f" {', '.join(sorted(branches))}"
        )


def _known(ledger: Ledger, name: ProducerName) -> ProducerStatus:
    found = standing(ledger, name)
    if found.entry is None and found.why is None:
        raise NotFoundError(
            f"the ledger has no producer `{name.producer}` on branch `{name.branch}`"
        )
    return found


async def _why_not(reader: EvidenceReader, state: TableState, request: CommitRequest) -> str | None:
    """Return why an operator cannot accept the request; None if it may be accepted."""
    if state.metadata.table_uuid != request.table_uuid:
        return "the table of that name has another uuid now"
    landed = await reader.landed_in(state, request)
    if landed is not None:
        return f"it has landed, in snapshot {landed}: replay it, to have that found out"
    return None


def _require_readable(found: ProducerStatus) -> None:
    if found.state is ProducerState.UNREADABLE:
        raise UnsupportedError(f"{found.why}; upgrade, or forget the producer")


def _changed(
    name: ProducerName, before: ProducerEntry | None, after: ProducerEntry
) -> Sequence[Update]:
    return () if after == before else (SetProperties({name.key: print_entry(after)}),)
