"""The protocol of Frazil as a small state machine: pointer, ledger, inbox, expiry, rollback.

One table, one producer, a few epochs with a few attempts each, two committers. A step is what one
party does without looking up in between; everything else may happen between two steps. `Rules` are
the safety rules of the protocol one by one: each that is switched off is a mutant, and must break
some property.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

from tests.model.foreign import foreign_acts
from tests.model.one_shots import one_shot_chores
from tests.model.operator import operator_acts
from tests.model.quarantine import refused_deletes, replays
from tests.model.rules import Rules
from tests.model.state import Budget, Committer, State
from tests.model.table import NONE, Mark, Metadata, Request, Requests, Snapshot, Versions


@dataclass(frozen=True, slots=True)
class Scenario:
    """The published requests, the possible faults, and the number of committers.

    `is_one_shot`: each epoch is a producer of its own, whose ledger entry goes once its inbox
    object is gone. `before`: landed long ago.
    """

    requests: tuple[Request, ...]
    budget: Budget
    committers: int = 2
    is_one_shot: bool = False
    before: Requests = NONE


# The fingerprint of a forgotten request.
UNPROVEN = -1

Named = Iterator[tuple[str, State]]


@dataclass(frozen=True, slots=True)
class Protocol:
    """The possible steps of a scenario under given rules."""

    scenario: Scenario
    rules: Rules
    _versions: Versions = field(default_factory=Versions)

    def start(self) -> State:
        table = Metadata(0, (Snapshot(0, 0, NONE, ()),), 0, 0, frozenset())
        before = self.scenario.before
        if before:
            table = self._versions.following(table, "before", batch=before)
        return State(
            pointer=table,
            earlier=(),
            published=before,
            inbox=NONE,
            bells=NONE,
            quarantine=NONE,
            receipts=before,
            landed=before,
            high_water_mark=table.mark,
            flights=frozenset(),
            deleted_files=frozenset(),
            committers=(Committer(),) * self.scenario.committers,
            budget=self.scenario.budget,
        )

    # --- Steps of the parties ---

    def steps(self, state: State) -> Named:
        """Yield all steps without a fault."""
        yield from self._publish(state)
        for swap in state.flights:
            yield self._arrive(state, swap)
        for place in distinct_places(state):
            if state.committers[place].flight is None:
                yield from self._take(state, place)
                yield from self._load(state, place)
                yield from self._look(state, place)
                yield from self._judge(state, place)
                yield from self._send(state, place)
                is_current = state.committers[place].base is state.pointer
                if self.scenario.is_one_shot and is_current:
                    yield from one_shot_chores(state, place, self.rules, self._versions)
            yield from self._settle(state, place)
            if self.scenario.budget.replay:
                yield from refused_deletes(state, place)

    def _publish(self, state: State) -> Named:
        """Publish as a sequential producer: an epoch follows the one before, attempts come in any
        order. One-shot producers do not know one another.
        """
        begun = {-1, *(one.epoch for one in state.published)}
        for request in self.scenario.requests:
            follows = self.scenario.is_one_shot or request.epoch - 1 in begun
            if request not in state.published and follows:
                yield (
                    f"{request} is published",
                    state._replace(
                        published=state.published | {request},
                        deleted_data=state.deleted_data - {request},
                        inbox=state.inbox | {request},
                        bells=state.bells | {request},
                    ),
                )

    def _arrive(self, state: State, swap: Metadata) -> tuple[str, State]:
        """Deliver a swap to the catalog, which checks its base, and the answer to its committer."""
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
            return self._quarantined(state.with_committer(place, idle), place, swap.batch)
        if self.rules.ledger_is_asked_on_every_attempt:
            return state.with_committer(place, idle)
        # Rebased without a question: what was found out once counts for ever.
        return self._sent(
            state.with_committer(place, idle._replace(base=state.pointer)), place, swap.batch
        )

    def _take(self, state: State, place: int) -> Named:
        committer = state.committers[place]
        waiting = state.bells | state.inbox if self.rules.inbox_is_listed else state.bells
        fresh = waiting - committer.hand - committer.done - state.quarantine
        if fresh:
            after = committer._replace(hand=committer.hand | fresh)
            yield f"{place} takes {_names(fresh)}", state.with_committer(place, after)

    def _load(self, state: State, place: int) -> Named:
        committer = state.committers[place]
        is_read = committer.is_fresh and committer.base is state.pointer
        if committer.hand and not is_read:
            seen = NONE if self.rules.looked_up_after_the_base_was_read else committer.seen
            after = self._informed(state, committer)
            after = after._replace(base=state.pointer, seen=seen, is_fresh=True)
            yield (
                f"{place} loads version {state.pointer.number}",
                state.with_committer(place, after),
            )

    def _informed(self, state: State, committer: Committer) -> Committer:
        """Drop the committer's proofs once it learns of a later decision of an operator."""
        if committer.decided == state.decided:
            return committer
        done = NONE if self.rules.older_proofs_are_void_after_a_thaw else committer.done
        proven = committer.proven._replace(epoch=-1)
        shared = committer.hand if self.rules.who_waits_is_looked_up_after_a_thaw else NONE
        return committer._replace(
            done=done, proven=proven, decided=state.decided, shared=shared, seen=NONE
        )

    def _look(self, state: State, place: int) -> Named:
        """Look for requests in the inbox, only where the ledger cannot answer."""
        committer = state.committers[place]
        unseen = self._unanswered(committer) - committer.seen
        if not unseen:
            return
        gone = unseen - state.inbox
        seen = committer.seen | (unseen - gone)
        after = committer._replace(hand=committer.hand - gone, seen=seen)
        looked = state._replace(bells=state.bells - gone)
        yield (
            f"{place} looks for {_names(unseen)} in the inbox",
            looked.with_committer(place, after),
        )

    def _unanswered(self, committer: Committer) -> Requests:
        """Return the requests that land only while in the inbox: all of a producer that the ledger
        does not know, and those in hand when an operator removed epochs from the ledger.
        """
        if committer.base is None:
            return NONE
        return self._unknown(committer.base, committer.hand) | (committer.hand & committer.shared)

    def _unknown(self, base: Metadata, requests: Requests) -> Requests:
        """Return the requests whose producers the ledger does not know."""
        if not self.rules.unknown_producers_are_looked_up:
            return NONE
        if self.scenario.is_one_shot:
            return frozenset(one for one in requests if not base.has_entry(one))
        return NONE if base.ledger else requests

    def _judge(self, state: State, place: int) -> Named:
        """End the requests that need no commit: duplicates, and those that can never land."""
        committer = state.committers[place]
        base = committer.base
        if base is None or not committer.is_fresh or self._is_frozen_table(state, place):
            return
        known = committer.hand - (self._unknown(base, committer.hand) - committer.seen)
        answers = {request: self._find(base, request) for request in known}
        same = {one for one, landed in answers.items() if landed and landed.is_replay_of(one)}
        if same:
            after = committer._replace(
                hand=committer.hand - same,
                done=committer.done | same,
                proven=committer.proven.joined(self._mark(base)),
            )
            told = state._replace(receipts=state.receipts | same)
            yield f"{place} finds {_names(same)} landed", told.with_committer(place, after)
        other = {one for one, landed in answers.items() if landed and one not in same}
        refused = state
        if self._is_rolled_back(base):
            other = set(committer.hand - same)
            if other and not state.was_put_back:
                wrong = f"{_names(other)} refused as rolled back, but the table was not restored"
                refused = state._replace(wrong=wrong)
        if other and base not in committer.doubted:
            yield f"{place} refuses {_names(other)}", self._quarantined(refused, place, other)

    def _quarantined(self, state: State, place: int, requests: Iterable[Request]) -> State:
        committer = state.committers[place]
        refused = frozenset(requests)
        after = committer._replace(hand=committer.hand - refused)
        kept = state._replace(quarantine=state.quarantine | refused, bells=state.bells - refused)
        if self.scenario.budget.replay:  # a replay may come before the delete
            return kept.with_committer(place, after._replace(refused=after.refused | refused))
        return kept._replace(inbox=state.inbox - refused).with_committer(place, after)

    def _find(self, base: Metadata, request: Request) -> Request | None:
        """Return the landed request of the epoch, according to the ledger of this base."""
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
            return self._forgotten(base, request)
        if not self.rules.what_is_in_the_inbox_is_remembered:
            # Its fingerprint is known of the last epoch, and from manifest lists that are retained.
            retained = {one.snapshot_id for one in base.snapshots}
            last = max(base.ledger, key=lambda one: (one.sequence_number, one.request))
            known = {one.request for one in entries if one.snapshot_id in retained or one == last}
            return found[0] if found[0] in known else found[0]._replace(stands_for=-1)
        return found[0] if self.rules.fingerprints_are_compared else request

    def _forgotten(self, base: Metadata, request: Request) -> Request | None:
        """Return a request that may have landed and has no entry any more: proven by a manifest
        list, or unproven.
        """
        if not base.may_have_forgotten(request):
            return None
        return request if base.proves(request) else request._replace(stands_for=UNPROVEN)

    def _is_rolled_back(self, base: Metadata) -> bool:
        if not self.rules.the_edge_of_history_is_no_beginning and base.is_beyond_history:
            return True
        return self.rules.rolled_back_producers_freeze and base.is_rolled_back

    def _is_frozen_table(self, state: State, place: int) -> bool:
        """Return whether the loaded metadata lacks a known commit: by the high-water mark, by what
        this process has seen itself, and by manifest lists that are newer than the high-water mark.
        """
        base = state.committers[place].base
        assert base is not None
        if self.rules.high_water_mark_is_heeded:
            known = state.high_water_mark, state.committers[place].proven
            if not all(base.has_reached(mark) for mark in known):
                return True
        if not self.rules.manifest_lists_are_asked or self.scenario.is_one_shot:
            return False
        return base.has_lost_entries(state.high_water_mark)

    def _mark(self, metadata: Metadata) -> Mark:
        """Return the mark. Entries of one-shot producers expire, so none is ever missing."""
        mark = metadata.mark
        return mark._replace(epoch=-1) if self.scenario.is_one_shot else mark

    def _send(self, state: State, place: int) -> Named:
        committer = state.committers[place]
        base = committer.base
        if base is None or self._is_rolled_back(base) or self._is_frozen_table(state, place):
            return
        known = committer.hand - (self._unanswered(committer) - committer.seen)
        candidates = sorted(one for one in known if self._find(base, one) is None)
        for batch in self._batches(candidates):
            yield f"{place} sends {_names(batch)}", self._sent(state, place, batch)

    def _batches(self, candidates: list[Request]) -> Iterator[Requests]:
        """Yield each request alone, and as many together as one commit allows."""
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
        # Attempts of one batch on one base differ by the committer and the steps before.
        swap = self._versions.following(base, ("swap", place, batch, state.budget), batch=batch)
        after = committer._replace(flight=swap, is_fresh=False)
        sent = state._replace(flights=state.flights | {swap})
        if not self.rules.receipts_follow_the_commit:
            sent = sent._replace(receipts=sent.receipts | batch)
        if not self.rules.inbox_is_left_after_the_commit:
            sent = sent._replace(inbox=sent.inbox - batch, bells=sent.bells - batch)
        return sent.with_committer(place, after)

    def _committed(self, state: State, place: int, swap: Metadata) -> State:
        """Update the committer after a swap that it takes for landed."""
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
        return state._replace(receipts=state.receipts | swap.batch).with_committer(place, after)

    def _settle(self, state: State, place: int) -> Named:
        """Raise the high-water mark first, then delete from the inbox."""
        committer = state.committers[place]
        if committer.done and self._informed(state, committer).done != committer.done:
            after = self._informed(state, committer)._replace(base=None, is_fresh=False, seen=NONE)
            left = _names(committer.done)
            yield f"{place} leaves {left} where it is", state.with_committer(place, after)
            return
        noted, known = state.high_water_mark.joined(committer.proven), state.high_water_mark
        if known.contradicts(committer.proven) and self.rules.high_water_mark_comes_before_deletion:
            # The table was put back, and another has gone on from there: nothing is proven.
            after = committer._replace(done=NONE)
            left = _names(committer.done)
            if left:
                yield f"{place} leaves {left} where it is", state.with_committer(place, after)
            return
        if noted != known:
            yield f"{place} writes the high-water mark", state._replace(high_water_mark=noted)
            if self.rules.high_water_mark_comes_before_deletion:
                return
        if committer.done:
            deleted = state._replace(
                inbox=state.inbox - committer.done, bells=state.bells - committer.done
            )
            after = committer._replace(done=NONE)
            yield f"{place} deletes {_names(committer.done)}", deleted.with_committer(place, after)

    def _expire(self, state: State) -> Named:
        """Expire rolled-back snapshots, with the data files that only they need. Not while a
        producer is frozen.
        """
        gone = state.rolled_back - set(state.pointer.head.rows)
        if self.rules.expiry_spares_what_may_land_again:
            gone -= state.inbox | state.quarantine
        if state.budget.purge and gone and not state.pointer.is_rolled_back:
            yield (
                f"the data files of {_names(gone)} expire",
                state.spent("purge")._replace(
                    rolled_back=state.rolled_back - gone, deleted_data=state.deleted_data | gone
                ),
            )

    # --- Faults ---

    def faults(self, state: State) -> Named:
        """Yield the faults within the budget."""
        budget = state.budget
        for place in distinct_places(state):
            committer = state.committers[place]
            if budget.unknown and committer.flight is not None:
                yield from self._lose_answer(state.spent("unknown"), place)
            if budget.crash and committer != Committer():
                yield f"{place} crashes", state.spent("crash").with_committer(place, Committer())
        if budget.rewind:
            for request in state.published - state.bells:
                rung = state.spent("rewind")._replace(bells=state.bells | {request})
                yield f"the queue rewinds to {request}", rung
        if budget.lost_bells and state.bells:
            yield "the queue loses all", state.spent("lost_bells")._replace(bells=NONE)
        if budget.late_copy:
            for request in state.published - state.inbox - state.quarantine:
                again = {request} if self.scenario.is_one_shot else NONE
                copied = state.spent("late_copy")._replace(
                    inbox=state.inbox | {request}, sent_again=state.sent_again | again
                )
                yield f"a late copy of the PUT of {request} arrives", copied
        yield from self._expire(state)
        yield from replays(state, self.rules)
        yield from operator_acts(state, self._versions)
        yield from foreign_acts(state, self._versions)

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
        lost = state.with_committer(place, idle)
        if not self.rules.unknown_is_not_failed:
            failed = self._quarantined(lost, place, swap.batch)
            yield f"{place} takes silence for a no", failed
            return
        yield f"{place} hears nothing of swap {swap.number}", lost
        if not self.rules.files_go_with_a_proof and state.pointer is swap.base:
            # It looks, does not find the attempt in the table, and takes that for a proof.
            files = state.deleted_files | {swap.number}
            yield f"{place} cleans up after silence", lost._replace(deleted_files=files)


def distinct_places(state: State) -> list[int]:
    """Return the committers that differ. One that has the memory of another before it would only do
    what that one does: what follows is the same but for their places.
    """
    committers = state.committers
    return [place for place, one in enumerate(committers) if one not in committers[:place]]


def _landed(state: State, swap: Metadata) -> State:
    """Let the swap take effect; record it if it must not have."""
    wrong = None
    if state.pointer.is_rolled_back:
        wrong = f"{_names(swap.batch)} landed although the producer's history was rolled back"
    return state.moved(swap)._replace(landed=state.landed | swap.batch, wrong=wrong)


def _names(requests: Iterable[Request]) -> str:
    return _names_of(frozenset(requests))


@cache
def _names_of(requests: Requests) -> str:
    return " ".join(sorted(map(str, requests)))
