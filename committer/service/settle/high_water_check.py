"""Rejects metadata of a table that lacks a known commit.

`committer.plan.ledger.high_water_mark` decides whether metadata lacks anything. Known are the
durable high-water mark and the commits that this committer has seen, perhaps before others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

from committer.errors import InvalidMetadataError, TableFrozenError
from committer.plan.ledger.high_water_mark import (
    HighWaterMark,
    Unclaimed,
    dropped_branches,
    missing_from,
    not_in_ledger,
    snapshots_above,
)
from committer.plan.ledger.state import TableState
from committer.ports.catalog import Catalog
from committer.request.table_identifier import TableIdentifier
from committer.service.requests.evidence_reader import EvidenceReader
from committer.service.settle.high_water_mark_store import HighWaterMarkStore

SHOWN_MAX = 3


@dataclass(eq=False)
class HighWaterCheck:
    """Loads one table for its committer, and remembers what it has shown."""

    identifier: TableIdentifier
    table_uuid: UUID
    store: HighWaterMarkStore
    catalog: Catalog
    evidence: EvidenceReader

    def __post_init__(self) -> None:
        self.known = HighWaterMark(self.table_uuid)
        # Whether the catalog has ever answered with a table of this name.
        self.has_loaded = False

    async def load(self, previous: TableState | None) -> TableState:
        """Read the pointer and its metadata. Another table of this name comes as it is.

        Errors: `TableFrozenError` where it lacks a known commit, or the high-water mark cannot be
        read; those of `Catalog.load`, and of the storage.
        """
        # Both in parallel, so that the high-water mark adds no latency. It may include a commit
        # that landed after the pointer was read: only a pointer that is read after the mark proves
        # that a commit is missing.
        state, stored = await self._read(previous)
        # An operator's decision may lower the mark: only metadata read after it reflects it.
        known = stored.joined(self.known)
        if stored.decided > self.known.decided or self._lacks(state, known):
            state = await self._load(previous)
            missing = self._lacks(state, known)
            if missing:
                raise TableFrozenError(_frozen(self.identifier, missing))
        await self._ask_manifest_lists(state, known)
        self._believe(state, known)
        return state

    @property
    def is_void(self) -> bool:
        """Whether an operator has decided about the table since it was loaded: load it again."""
        return self.store.has_decided_since(self.known)

    def landed(self, state: TableState, keys: Collection[str]) -> None:
        """Note a commit of ours that has led to this state,
        and changed these entries of the ledger."""
        self.known = self.known.after(state, keys)

    def lacks(self, state: TableState) -> bool:
        """Return whether the table lacks a known commit. A swap whose condition is not the whole
        pointer may land on a table that has lost some.
        """
        return bool(self._lacks(state, self.known))

    async def _read(self, previous: TableState | None) -> tuple[TableState, HighWaterMark]:
        state, stored = await asyncio.gather(
            self._load(previous), self.store.read(self.table_uuid), return_exceptions=True
        )
        if isinstance(state, BaseException):
            raise state
        if isinstance(stored, InvalidMetadataError):
            raise TableFrozenError(_frozen(self.identifier, (str(stored),))) from stored
        if isinstance(stored, BaseException):
            raise stored
        return state, stored

    async def _load(self, previous: TableState | None) -> TableState:
        table = await self.catalog.load(self.identifier)
        self.has_loaded = True
        return TableState.of(table, previous)

    def _lacks(self, state: TableState, known: HighWaterMark) -> tuple[str, ...]:
        """Return the first missing commits. None are known of another table of this name."""
        if state.metadata.table_uuid != self.table_uuid:
            return ()
        return tuple(islice(missing_from(state, known), SHOWN_MAX))

    async def _ask_manifest_lists(self, state: TableState, known: HighWaterMark) -> None:
        """Look for commits above the high-water mark: a process may have ended before it wrote the
        mark. Usually there is none. Errors: `TableFrozenError`; those of the storage.
        """
        if state.metadata.table_uuid != self.table_uuid:
            return
        unclaimed: list[Unclaimed] = []
        for snapshot in snapshots_above(state.metadata, known):
            landed = await self.evidence.evidence_of(snapshot)
            unclaimed += not_in_ledger(state, known, landed)
        if unclaimed:
            # Durable, as the table would thaw by itself once another engine expires the proof.
            await self.store.keep(known.with_proven(unclaimed))
            said = map(str, unclaimed[:SHOWN_MAX])
            raise TableFrozenError(_frozen(self.identifier, said))

    def _believe(self, state: TableState, known: HighWaterMark) -> None:
        self.known = known
        if state.metadata.table_uuid == self.table_uuid:
            seen = HighWaterMark.of(state, accepted_ms=known.accepted_ms)
            dropped, number = dropped_branches(state, known), state.metadata.last_sequence_number
            joined = known.joined(seen).without(dropped, sequence_number=number)
            self.known = joined.with_landed_again(state.ledger, state.ledger.entries)


def _frozen(identifier: TableIdentifier, missing: Iterable[str]) -> str:
    return (
        f"table {identifier} does not hold what was committed to it: {'; '.join(missing)}. Put the"
        f" newer metadata back, or go on with what there is: `frazil table accept {identifier}`"
    )
