"""The rounds of one table. A round is one attempt, whatever became of the one before: load the base
→ ask the ledger (has it landed?) and check the requests → the batch in flight, or the next one →
attempt (`batch_committer.py`). No verdict rests on anything but freshly read metadata.
"""

from __future__ import annotations

from dataclasses import dataclass

from committer.errors import NoSuchTableError, TransientError
from committer.plan.ledger.state import TableState
from committer.service.requests.pending import Pending, Waiting
from committer.service.table.admission import Admission
from committer.service.table.admission_outcome import AdmissionOutcome
from committer.service.table.batch_committer import BatchCommitter
from committer.service.table.cached_table import CachedTable
from committer.service.table.inflight_batch import BatchSelector
from committer.service.table.transaction_part import TransactionPart
from committer.service.table.verdicts import Verdicts


@dataclass(eq=False)
class TableRounds:
    """Runs the rounds. `requests_max`: how many requests a round looks at. `is_gone`: the catalog
    had no such table when it was asked last.
    """

    cached_table: CachedTable
    admission: Admission
    verdicts: Verdicts
    batches: BatchSelector
    batch_committer: BatchCommitter
    requests_max: int
    part: TransactionPart

    def __post_init__(self) -> None:
        self.is_gone = False

    @property
    def waiting(self) -> Waiting:
        """The table's requests."""
        return self.admission.waiting

    async def run_one(self, *, is_turn: bool = True) -> int:
        """Run one round. `is_turn`: whether it may commit; else requests join their transactions
        only. Return how many attempts to back off for; 0: for none.
        Errors: `TableFrozenError`; those of the ports."""
        try:
            state, outcome, known_before = await self._admit_on_fresh_enough()
        except NoSuchTableError:
            await self._refuse_all()
            return 0
        self.is_gone = False
        if self._discard_stale_conflicts(outcome):
            outcome = await self._admit(state)
        self._decide_suspects(outcome)
        await self._conclude(outcome)
        candidates = await self.part.join(outcome.candidates)
        if not is_turn:
            return 0
        inflight = await self.batches.next(candidates, self.admission.basis, state)
        if inflight is None:
            return 0
        return await self.batch_committer.attempt(inflight, state, known_before=known_before)

    async def _refuse_all(self) -> None:
        self.is_gone = True
        self.batches.drop()
        self.cached_table.forget()
        self.part.leave_all()
        ready, generation = self._ready(), self.cached_table.generation
        await self._conclude(await self.admission.without_table(ready, generation))

    async def _conclude(self, outcome: AdmissionOutcome) -> None:
        await self.verdicts.conclude(outcome)
        self.part.concluded(outcome)

    async def _admit_on_fresh_enough(self) -> tuple[TableState, AdmissionOutcome, frozenset[str]]:
        """Admit on a cached table, which may lag behind: it lets requests land (the swap finds
        out), but only fresh metadata ends one without a commit.

        Return the keys of the requests that waited before a load, too: others come while it goes
        on, and their clients may have read what it lacks.
        """
        if (state := self.cached_table.usable) is not None:
            outcome = await self._admit(state)
            if not outcome.has_verdicts:
                return state, outcome, frozenset()
        known_before = frozenset(one.key for one in self._ready())
        state = await self.cached_table.load()
        return state, await self._admit(state), known_before

    async def _admit(self, state: TableState) -> AdmissionOutcome:
        return await self.admission.admit(self._ready(), state, self.cached_table.generation)

    def _ready(self) -> list[Pending]:
        return self.waiting.ready(self.requests_max)

    def _discard_stale_conflicts(self, outcome: AdmissionOutcome) -> bool:
        """Discard conflicts that were found before the last commit to the table: it may have landed
        what the request rests on. Return whether there was one.
        """
        stale = [
            suspect.pending.key
            for suspect in outcome.suspects
            if suspect.pending.conflict_moves not in (None, self.cached_table.moves)
        ]
        for key in stale:
            self.waiting.suspect(key, None)
        return bool(stale)

    def _decide_suspects(self, outcome: AdmissionOutcome) -> None:
        """Quarantine suspects that freshly read metadata does not have. If an earlier attempt may
        still land on this base, defer them until another commit moves the pointer.
        """
        for suspect in outcome.suspects:
            if self.cached_table.is_in_doubt:
                self.waiting.suspect(suspect.pending.key, None)
                self.waiting.defer(suspect.pending, TransientError(suspect.message))
            else:
                outcome.refused.append(suspect)

    async def close(self) -> None:
        """Cancel the checks outside the rounds; their requests stay in the inbox."""
        await self.admission.close()
