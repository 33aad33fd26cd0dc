"""The protocol of Frazil as a small state machine: pointer, ledger, inbox, expiry, rollback.

One table, one producer, a few epochs with a few attempts each, two committers. A step is what one
party does without looking up in between; everything else may happen between two steps. `Rules` are
the rules of DESIGN sections 4 to 6 one by one: switched off, each is a mutant, and some property
must break.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import NamedTuple


class Request(NamedTuple):
    """A commit request. `stands_for` is its fingerprint."""

    epoch: int
    attempt: int
    stands_for: int

    def __str__(self) -> str:
        return f"{self.epoch}{'abcdef'[self.attempt]}"

    def is_replay_of(self, other: Request) -> bool:
        """Whether both are one micro-batch."""
        return (self.epoch, self.stands_for) == (other.epoch, other.stands_for)


Requests = frozenset[Request]
NONE: Requests = frozenset()


class Snapshot(NamedTuple):
    """`added` by it, and all `rows` that a reader of it sees. `snapshot_id` names its file, too.

    What it has added is in its manifest list's header, as evidence.
    """

    snapshot_id: int
    sequence_number: int
    added: Requests
    rows: tuple[Request, ...]


class Entry(NamedTuple):
    """That a request has landed, and in which snapshot."""

    request: Request
    snapshot_id: int
    sequence_number: int


class Mark(NamedTuple):
    """How far a table has come: its newest snapshot, and the highest epoch in its ledger."""

    sequence_number: int = 0
    snapshot_id: int = 0
    epoch: int = -1

    def joined(self, other: Mark) -> Mark:
        return max(self, other)._replace(epoch=max(self.epoch, other.epoch))

    def contradicts(self, other: Mark) -> bool:
        """Whether one number was given to two snapshots."""
        return self[0] == other[0] and self[1] != other[1]


@dataclass(frozen=True, slots=True, eq=False)
class Metadata:
    """One version of the table metadata. `snapshots`: the retained ancestors of main, then main.

    `base` and `batch` are those of the swap that would make it current. There is one object for
    each version, so that states compare fast.
    """

    number: int
    snapshots: tuple[Snapshot, ...]
    last_sequence_number: int
    newest_snapshot_id: int
    ledger: frozenset[Entry]
    base: Metadata | None = None
    batch: Requests = NONE

    @property
    def head(self) -> Snapshot:
        return self.snapshots[-1]

    @property
    def mark(self) -> Mark:
        highest = max((one.request.epoch for one in self.ledger), default=-1)
        return Mark(self.last_sequence_number, self.newest_snapshot_id, highest)

    def has_reached(self, mark: Mark) -> bool:
        """Whether it holds all that was known, or is newer. A rolled back table does hold it."""
        if self.last_sequence_number < mark.sequence_number:
            return False
        same = (one for one in self.snapshots if one.sequence_number == mark.sequence_number)
        if any(one.snapshot_id != mark.snapshot_id for one in same):
            return False
        return mark.epoch in {-1, *(one.request.epoch for one in self.ledger)}

    def has_lost_entries(self, mark: Mark) -> bool:
        """Whether manifest lists that are newer than a mark tell of more than the ledger."""
        newer = (one for one in self.snapshots if one.sequence_number > mark.sequence_number)
        landed = {request.epoch for one in newer for request in one.added}
        return not landed <= {one.request.epoch for one in self.ledger}

    @property
    def files(self) -> frozenset[int]:
        """What a reader of it needs."""
        return frozenset((self.number, *(one.snapshot_id for one in self.snapshots)))

    @property
    def is_rolled_back(self) -> bool:
        """Whether the newest entry's snapshot is gone although the history reaches back to it."""
        if not self.ledger:
            return False
        newest = max(self.ledger, key=lambda one: one.sequence_number)
        if newest.snapshot_id in {one.snapshot_id for one in self.snapshots}:
            return False
        oldest = self.snapshots[0]
        return oldest.snapshot_id == 0 or oldest.sequence_number <= newest.sequence_number


class Committer(NamedTuple):
    """What one process knows; a crash forgets it.

    `seen`: in hand and found in the inbox since `base` was read. `is_fresh`: nothing was done since
    then. `flight`: what a swap without an answer would make current. `doubted`: bases of swaps
    whose answer was lost. `done`: proven to have landed, still in the inbox; `proven`: what the
    witness has to know before they leave it.
    """

    base: Metadata | None = None
    is_fresh: bool = False
    hand: Requests = NONE
    seen: Requests = NONE
    flight: Metadata | None = None
    doubted: frozenset[Metadata] = frozenset()
    done: Requests = NONE
    proven: Mark = Mark()


class Budget(NamedTuple):
    """How often each fault or foreign act may still happen."""

    unknown: int = 0
    crash: int = 0
    rewind: int = 0
    lost_bells: int = 0
    late_copy: int = 0
    append: int = 0
    expiry: int = 0
    rollback: int = 0
    restore: int = 0
    unset: int = 0

    def less(self, name: str) -> Budget:
        return self._replace(**{name: getattr(self, name) - 1})


class State(NamedTuple):
    """Everything. `flights`: swaps that may arrive at any time, or never. `landed`: what swaps have
    really added. `was_put_back`: by an operator. `wrong`: a step that must not be.
    """

    pointer: Metadata
    earlier: tuple[Metadata, ...]
    published: Requests
    inbox: Requests
    bells: Requests
    quarantine: Requests
    receipts: Requests
    landed: Requests
    witness: Mark
    flights: frozenset[Metadata]
    deleted_files: frozenset[int]
    committers: tuple[Committer, ...]
    budget: Budget
    was_put_back: bool = False
    wrong: str | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """Each True is a rule that is kept."""

    swap_is_conditional: bool = True
    ledger_is_asked: bool = True
    ledger_is_asked_on_every_attempt: bool = True
    ledger_survives_expiry: bool = True
    ledger_remembers_which_epochs: bool = True
    fingerprints_are_compared: bool = True
    manifest_lists_are_asked: bool = True
    receipts_follow_the_commit: bool = True
    inbox_is_left_after_the_commit: bool = True
    unknown_is_not_failed: bool = True
    unknown_is_not_committed: bool = True
    conflict_is_not_final: bool = True
    unknown_producers_are_looked_up: bool = True
    looked_up_after_the_base_was_read: bool = True
    entries_go_after_their_object: bool = True
    files_go_with_a_proof: bool = True
    inbox_is_listed: bool = True
    rolled_back_producers_freeze: bool = True
    witness_is_heeded: bool = True
    witness_comes_before_deletion: bool = True
    one_attempt_of_an_epoch: bool = True

    @classmethod
    def names(cls) -> list[str]:
        return [each.name for each in fields(cls)]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is published, what may go wrong, how many committers there are.

    `is_one_shot`: the ledger entry goes once its inbox object is gone.
    """

    requests: tuple[Request, ...]
    budget: Budget
    committers: int = 2
    is_one_shot: bool = False


Named = Iterator[tuple[str, State]]


@dataclass(frozen=True, slots=True)
class Protocol:
    """What may happen in a scenario under given rules."""

    scenario: Scenario
    rules: Rules
    _versions: dict[object, Metadata] = field(default_factory=dict)

    def start(self) -> State:
        return State(
            pointer=Metadata(0, (Snapshot(0, 0, NONE, ()),), 0, 0, frozenset()),
            earlier=(),
            published=NONE,
            inbox=NONE,
            bells=NONE,
            quarantine=NONE,
            receipts=NONE,
            landed=NONE,
            witness=Mark(),
            flights=frozenset(),
            deleted_files=frozenset(),
            committers=(Committer(),) * self.scenario.committers,
            budget=self.scenario.budget,
        )

    # --- What the parties do ---

    def steps(self, state: State) -> Named:
        """All that happens without anybody's fault."""
        yield from self._publish(state)
        for swap in state.flights:
            yield self._arrive(state, swap)
        for place, committer in enumerate(state.committers):
            if committer.flight is None:
                yield from self._take(state, place)
                yield from self._load(state, place)
                yield from self._look(state, place)
                yield from self._judge(state, place)
                yield from self._send(state, place)
                yield from self._forget(state, place)
            yield from self._settle(state, place)

    def _publish(self, state: State) -> Named:
        """A sequential producer: an epoch follows the one before, attempts come in any order."""
        begun = {one.epoch for one in state.published}
        for request in self.scenario.requests:
            if request not in state.published and (
                request.epoch == 0 or request.epoch - 1 in begun
            ):
                yield (
                    f"{request} is published",
                    state._replace(
                        published=state.published | {request},
                        inbox=state.inbox | {request},
                        bells=state.bells | {request},
                    ),
                )

    def _arrive(self, state: State, swap: Metadata) -> tuple[str, State]:
        """A swap reaches the catalog, which judges its condition; who waits for it hears of it."""
        holds = swap.base is state.pointer or not self.rules.swap_is_conditional
        following = state._replace(flights=state.flights - {swap})
        if holds:
            following = _landed(following, swap)
        for place, committer in enumerate(state.committers):
            if committer.flight is swap and holds:
                following = self._committed(following, place, swap)
            elif committer.flight is swap:
                following = self._conflicted(following, place, swap)
        outcome = "lands" if holds else "is refused"
        return f"swap {swap.number} of {_names(swap.batch)} {outcome}", following

    def _conflicted(self, state: State, place: int, swap: Metadata) -> State:
        idle = state.committers[place]._replace(base=None, seen=NONE, flight=None)
        if not self.rules.conflict_is_not_final:
            return self._quarantined(_put(state, place, idle), place, swap.batch)
        if self.rules.ledger_is_asked_on_every_attempt:
            return _put(state, place, idle)
        # Rebased without a question: what was found out once counts for ever.
        return self._sent(_put(state, place, idle._replace(base=state.pointer)), place, swap.batch)

    def _take(self, state: State, place: int) -> Named:
        committer = state.committers[place]
        waiting = state.bells | state.inbox if self.rules.inbox_is_listed else state.bells
        fresh = waiting - committer.hand - committer.done - state.quarantine
        if fresh:
            after = committer._replace(hand=committer.hand | fresh)
            yield f"{place} takes {_names(fresh)}", _put(state, place, after)

    def _load(self, state: State, place: int) -> Named:
        committer = state.committers[place]
        is_read = committer.is_fresh and committer.base is state.pointer
        if committer.hand and not is_read:
            seen = NONE if self.rules.looked_up_after_the_base_was_read else committer.seen
            after = committer._replace(base=state.pointer, seen=seen, is_fresh=True)
            yield f"{place} loads version {state.pointer.number}", _put(state, place, after)

    def _look(self, state: State, place: int) -> Named:
        """Is it in the inbox? Asked only where the ledger cannot answer."""
        committer = state.committers[place]
        unseen = committer.hand - committer.seen
        if committer.base is None or not unseen or not self._looks_up(committer.base):
            return
        gone = unseen - state.inbox
        after = committer._replace(hand=committer.hand - gone, seen=committer.hand - gone)
        looked = state._replace(bells=state.bells - gone)
        yield f"{place} looks for {_names(unseen)} in the inbox", _put(looked, place, after)

    def _looks_up(self, base: Metadata) -> bool:
        return self.rules.unknown_producers_are_looked_up and not base.ledger

    def _judge(self, state: State, place: int) -> Named:
        """Ends what needs no commit: duplicates, and what can never land."""
        committer = state.committers[place]
        base = committer.base
        if base is None or not committer.is_fresh or self._is_frozen_table(state, place):
            return
        answers = {request: self._find(base, request) for request in committer.hand}
        same = {one for one, landed in answers.items() if landed and landed.is_replay_of(one)}
        if same:
            after = committer._replace(
                hand=committer.hand - same,
                done=committer.done | same,
                proven=committer.proven.joined(self._mark(base)),
            )
            told = state._replace(receipts=state.receipts | same)
            yield f"{place} finds {_names(same)} landed", _put(told, place, after)
        other = {one for one, landed in answers.items() if landed and one not in same}
        if self._is_rolled_back(base):
            other = set(committer.hand - same)
        if other and base not in committer.doubted:
            yield f"{place} refuses {_names(other)}", self._quarantined(state, place, other)

    def _quarantined(self, state: State, place: int, requests: Iterable[Request]) -> State:
        committer = state.committers[place]
        refused = frozenset(requests)
        kept = state._replace(
            quarantine=state.quarantine | refused,
            inbox=state.inbox - refused,
            bells=state.bells - refused,
        )
        return _put(kept, place, committer._replace(hand=committer.hand - refused))

    def _find(self, base: Metadata, request: Request) -> Request | None:
        """What has landed of the request's epoch, as far as the ledger of this base tells."""
        if not self.rules.ledger_is_asked:
            return None
        entries = base.ledger
        if not self.rules.ledger_survives_expiry:
            retained = {one.snapshot_id for one in base.snapshots}
            entries = frozenset(one for one in entries if one.snapshot_id in retained)
        if not self.rules.ledger_remembers_which_epochs:
            highest = max((one.request.epoch for one in entries), default=-1)
            return request if request.epoch <= highest else None
        found = [one.request for one in entries if one.request.epoch == request.epoch]
        if not found:
            return None
        return found[0] if self.rules.fingerprints_are_compared else request

    def _is_rolled_back(self, base: Metadata) -> bool:
        return self.rules.rolled_back_producers_freeze and base.is_rolled_back

    def _is_frozen_table(self, state: State, place: int) -> bool:
        """Whether the loaded metadata lacks what was committed: by the witness, by what this
        process has seen itself, and by manifest lists that are newer than the witness.
        """
        base = state.committers[place].base
        assert base is not None
        if self.rules.witness_is_heeded:
            known = state.witness, state.committers[place].proven
            if not all(base.has_reached(mark) for mark in known):
                return True
        if not self.rules.manifest_lists_are_asked or self.scenario.is_one_shot:
            return False
        return base.has_lost_entries(state.witness)

    def _mark(self, metadata: Metadata) -> Mark:
        """Entries of one-shot producers go, so nobody can say later that one is missing."""
        mark = metadata.mark
        return mark._replace(epoch=-1) if self.scenario.is_one_shot else mark

    def _send(self, state: State, place: int) -> Named:
        committer = state.committers[place]
        base = committer.base
        if base is None or self._is_rolled_back(base) or self._is_frozen_table(state, place):
            return
        known = committer.seen if self._looks_up(base) else committer.hand
        candidates = sorted(one for one in known if self._find(base, one) is None)
        for batch in self._batches(candidates):
            yield f"{place} sends {_names(batch)}", self._sent(state, place, batch)

    def _batches(self, candidates: list[Request]) -> Iterator[Requests]:
        """Each alone, and as many as go together."""
        for request in candidates:
            yield frozenset((request,))
        together: dict[object, Request] = {}
        for request in candidates:
            key = request.epoch if self.rules.one_attempt_of_an_epoch else request
            together.setdefault(key, request)
        if len(together) > 1:
            yield frozenset(together.values())

    def _sent(self, state: State, place: int, batch: Requests) -> State:
        committer = state.committers[place]
        base = committer.base
        assert base is not None
        # What sets two attempts of one batch on one base apart: who, and what happened before.
        swap = self._version(base, ("swap", place, batch, state.budget), batch=batch)
        after = committer._replace(flight=swap, is_fresh=False)
        sent = state._replace(flights=state.flights | {swap})
        if not self.rules.receipts_follow_the_commit:
            sent = sent._replace(receipts=sent.receipts | batch)
        if not self.rules.inbox_is_left_after_the_commit:
            sent = sent._replace(inbox=sent.inbox - batch, bells=sent.bells - batch)
        return _put(sent, place, after)

    def _version(
        self,
        base: Metadata,
        name: object,
        *,
        batch: Requests = NONE,
        without: frozenset[Entry] = frozenset(),
    ) -> Metadata:
        """The next version with one snapshot more; the same object for the same name."""
        known = self._versions.get((base, name))
        if known is not None:
            return known
        number, sequence_number = len(self._versions) + 1, base.last_sequence_number + 1
        rows = tuple(sorted((*base.head.rows, *batch)))
        head = Snapshot(number, sequence_number, batch, rows)
        entries = frozenset(Entry(one, number, sequence_number) for one in batch)
        made = Metadata(
            number,
            (*base.snapshots, head),
            sequence_number,
            number,
            (base.ledger | entries) - without,
            base,
            batch,
        )
        return self._versions.setdefault((base, name), made)

    def _variant(self, base: Metadata, name: object, like: Metadata) -> Metadata:
        """A version that a foreign tool makes of what was there."""
        known = self._versions.get((base, name))
        if known is not None:
            return known
        made = Metadata(
            len(self._versions) + 1,
            like.snapshots,
            like.last_sequence_number,
            like.newest_snapshot_id,
            like.ledger,
            base,
        )
        return self._versions.setdefault((base, name), made)

    def _committed(self, state: State, place: int, swap: Metadata) -> State:
        """The committer's part after a swap that it takes for landed."""
        committer = state.committers[place]
        after = committer._replace(
            base=swap,
            is_fresh=False,
            hand=committer.hand - swap.batch,
            seen=NONE,
            flight=None,
            doubted=frozenset(),
            done=committer.done | swap.batch,
            proven=committer.proven.joined(self._mark(swap)),
        )
        return _put(state._replace(receipts=state.receipts | swap.batch), place, after)

    def _settle(self, state: State, place: int) -> Named:
        """The witness first, then the inbox."""
        committer = state.committers[place]
        noted, known = state.witness.joined(committer.proven), state.witness
        if known.contradicts(committer.proven) and self.rules.witness_comes_before_deletion:
            # The table was put back, and another has gone on from there: nothing is proven.
            after = committer._replace(done=NONE)
            left = _names(committer.done)
            if left:
                yield f"{place} leaves {left} where it is", _put(state, place, after)
            return
        if noted != known:
            yield f"{place} writes the witness", state._replace(witness=noted)
            if self.rules.witness_comes_before_deletion:
                return
        if committer.done:
            deleted = state._replace(
                inbox=state.inbox - committer.done, bells=state.bells - committer.done
            )
            after = committer._replace(done=NONE)
            yield f"{place} deletes {_names(committer.done)}", _put(deleted, place, after)

    def _forget(self, state: State, place: int) -> Named:
        """Drops the entries of one-shot requests; in a swap of its own here, and at once."""
        base = state.committers[place].base
        if not self.scenario.is_one_shot or base is not state.pointer:
            return
        gone = frozenset(one for one in base.ledger if one.request not in state.inbox)
        if not self.rules.entries_go_after_their_object:
            gone = base.ledger
        if gone:
            after = self._version(base, ("forget", gone), without=gone)
            names = _names(one.request for one in gone)
            yield f"{place} forgets {names}", _moved(state, after)

    # --- What befalls them ---

    def faults(self, state: State) -> Named:
        """What nobody can count on, as far as the budget goes."""
        budget = state.budget
        for place, committer in enumerate(state.committers):
            if budget.unknown and committer.flight is not None:
                yield from self._lose_answer(_spend(state, "unknown"), place)
            if budget.crash and committer != Committer():
                yield f"{place} crashes", _put(_spend(state, "crash"), place, Committer())
        if budget.rewind:
            for request in state.published - state.bells:
                rung = _spend(state, "rewind")._replace(bells=state.bells | {request})
                yield f"the queue rewinds to {request}", rung
        if budget.lost_bells and state.bells:
            yield "the queue loses all", _spend(state, "lost_bells")._replace(bells=NONE)
        if budget.late_copy:
            for request in state.published - state.inbox - state.quarantine:
                copied = _spend(state, "late_copy")._replace(inbox=state.inbox | {request})
                yield f"a late copy of the PUT of {request} arrives", copied
        yield from self._foreign(state)

    def _lose_answer(self, state: State, place: int) -> Named:
        committer = state.committers[place]
        swap = committer.flight
        assert swap is not None
        assert swap.base is not None
        if not self.rules.unknown_is_not_committed:
            yield f"{place} takes silence for a yes", self._committed(state, place, swap)
            return
        idle = committer._replace(
            base=None, seen=NONE, flight=None, doubted=committer.doubted | {swap.base}
        )
        lost = _put(state, place, idle)
        if not self.rules.unknown_is_not_failed:
            failed = self._quarantined(lost, place, swap.batch)
            yield f"{place} takes silence for a no", failed
            return
        yield f"{place} hears nothing of swap {swap.number}", lost
        if not self.rules.files_go_with_a_proof and state.pointer is swap.base:
            # It looks, does not find the attempt in the table, and takes that for a proof.
            files = state.deleted_files | {swap.number}
            yield f"{place} cleans up after silence", lost._replace(deleted_files=files)

    def _foreign(self, state: State) -> Named:
        budget, table = state.budget, state.pointer
        if budget.append:
            after = self._version(table, ("append", budget))
            yield "a foreign engine appends", _moved(_spend(state, "append"), after)
        if budget.expiry and len(table.snapshots) > 1:
            left = _like(table, snapshots=table.snapshots[-1:])
            after = self._variant(table, ("expiry", budget), left)
            yield "a foreign engine expires", _moved(_spend(state, "expiry"), after)
        if budget.rollback:
            for kept in range(1, len(table.snapshots)):
                left = _like(table, snapshots=table.snapshots[:kept])
                after = self._variant(table, ("rollback", kept, budget), left)
                back = _moved(_spend(state, "rollback"), after)._replace(was_put_back=True)
                yield f"main is rolled back to {left.head.snapshot_id}", back
        if budget.restore:
            for before in state.earlier:
                after = self._variant(table, ("restore", before, budget), before)
                back = _moved(_spend(state, "restore"), after)._replace(was_put_back=True)
                yield f"version {before.number} is restored", back
        if budget.unset and table.ledger:
            left = _like(table, ledger=frozenset())
            after = self._variant(table, ("unset", budget), left)
            yield "a foreign engine unsets the ledger", _moved(_spend(state, "unset"), after)


def _like(
    table: Metadata,
    *,
    snapshots: tuple[Snapshot, ...] | None = None,
    ledger: frozenset[Entry] | None = None,
) -> Metadata:
    return Metadata(
        table.number,
        table.snapshots if snapshots is None else snapshots,
        table.last_sequence_number,
        table.newest_snapshot_id,
        table.ledger if ledger is None else ledger,
    )


def _landed(state: State, swap: Metadata) -> State:
    """The swap takes effect; say so if it must not have."""
    wrong = None
    if state.pointer.is_rolled_back:
        wrong = f"{_names(swap.batch)} landed although the producer's history was rolled back"
    moved = _moved(state, swap)
    return moved._replace(landed=state.landed | swap.batch, wrong=wrong)


def _moved(state: State, metadata: Metadata) -> State:
    earlier = (*state.earlier, state.pointer) if state.budget.restore else ()
    return state._replace(pointer=metadata, earlier=earlier)


def _spend(state: State, name: str) -> State:
    return state._replace(budget=state.budget.less(name))


def _put(state: State, place: int, committer: Committer) -> State:
    committers = list(state.committers)
    committers[place] = committer
    return state._replace(committers=tuple(committers))


def _names(requests: Iterable[Request]) -> str:
    return " ".join(sorted(map(str, requests)))
