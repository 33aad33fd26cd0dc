"""The invariants I1 to I15, I18 to I22 over one run: of each effect at once, all at quiescence.

Each effect of a committer is judged at once, by the state of the servers then; effects of others
are followed, not judged. Violations are noted in the history, never raised inside a port.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from typing import Any, TypeVar
from uuid import UUID

from committer.errors import FrazilError, InvalidRequestError, NotFoundError
from committer.iceberg.metadata.table_metadata import TableMetadata, parse_table_metadata
from committer.ledger_entry import (
    LEDGER_PREFIX,
    UPKEEP_PREFIX,
    parse_property_key,
    property_key,
)
from committer.plan.ledger.high_water_mark import HighWaterMark, parse_high_water_mark
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import LoadedTable, Swap
from committer.ports.storage import NewObject, Storage
from committer.reason import Reason
from committer.request.commit_request import CommitRequest
from committer.request.receipt_model import Receipt, ReceiptState
from committer.request.request_format import EncodedRequest, read_request
from committer.request.request_key import inbox_key, published_key
from committer.request.table_identifier import TableIdentifier
from committer.request.transaction import Transaction
from committer.storage.inbox.high_water_mark_objects import HighWaterMarks
from committer.storage.inbox.inbox import QuarantineRecord, read_quarantined
from tests.simulation.history import History
from tests.simulation.ledger_model import Landing, Problem, entry_in, evidence_of_history
from tests.simulation.metadata_rules import added_snapshots
from tests.simulation.reasons import untrue, untrue_conflict
from tests.simulation.table_view import TableView

T = TypeVar("T")

# A landed request may also be quarantined for these reasons: its landing cannot be proven any more.
_MAY_FOLLOW_LANDING = frozenset(
    {
        Reason.EPOCH_LANDED_UNPROVEN.value,
        Reason.PRODUCER_FROZEN.value,
        Reason.TABLE_UNKNOWN.value,
        Reason.TABLE_UUID_MISMATCH.value,
    }
)
# Reasons that may hold for any request, since a table may have changed or been dropped.
_OF_THE_TABLE = frozenset(
    {
        Reason.TABLE_UNKNOWN.value,
        Reason.TABLE_UUID_MISMATCH.value,
        Reason.SCHEMA_MISMATCH.value,
        Reason.SPEC_UNKNOWN.value,
        Reason.SPEC_MISMATCH.value,
    }
)
REFUSED = Reason.COMMIT_REJECTED.value
UNPROVEN = Reason.EPOCH_LANDED_UNPROVEN.value


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the answer of a server that answers without waiting."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
    coroutine.close()
    raise AssertionError("a server of a simulation waits: the checks cannot")


class Invariants:
    """Listens to a history and judges it. `storage` and `catalog` are the servers themselves."""

    def __init__(
        self,
        storage: Storage,
        catalog: Catalog,
        history: History,
        inbox_root: str,
        *,
        breaker_threshold: int,
    ) -> None:
        self._storage = storage
        self._catalog = catalog
        self._history = history
        self._breaker_threshold = breaker_threshold
        root = inbox_root.rstrip("/")
        self._root = root + "/"
        self._inbox = f"{root}/inbox/"
        self._quarantine = f"{root}/quarantine/"
        self._high_water_marks = HighWaterMarks(storage, root)
        self._views: dict[UUID, TableView] = {}
        self._by_name: dict[TableIdentifier, UUID] = {}
        self._published: dict[str, EncodedRequest | None] = {}
        # In which order they became durable, and when (ms): of several times, the last.
        self._order: dict[str, int] = {}
        self._durable_ms: dict[str, int] = {}
        # The requests of each transaction.
        self._members: dict[object, list[str]] = defaultdict(list)
        # Swaps of other engines that have landed.
        self.foreign_commits = 0
        self._written: dict[str, bytes] = {}
        # Ended by a landing, whatever became of that since; by published key, as all sets here.
        self._superseded: set[str] = set()
        # By other engines, that no snapshot needed then: they do not ask who waits.
        self._taken: set[str] = set()
        # Taken out of quarantine by an operator.
        self._put_back: set[str] = set()
        # Requests that the catalog refused when sent alone, in one attempt or another.
        self._refused: set[str] = set()
        # The process that told of a conflict, and the one that landed a request, by key.
        self._told_by: dict[str, str] = {}
        self._landed_by: dict[str, str] = {}
        # Conflicts that were told, by operation and code.
        self.conflicts: Counter[tuple[str, str]] = Counter()
        self._by_attempt: dict[tuple[str, int, str], list[str]] = defaultdict(list)
        history.listener = self

    @property
    def commits(self) -> int:
        """Commits of ours that have landed."""
        return sum(view.commits for view in self._views.values())

    @property
    def landed(self) -> Counter[str]:
        """The requests that have landed, by operation; those of the committers' own as `upkeep`."""
        attempts = (one for view in self._views.values() for one in view.ledger.attempts.values())
        requests = (one.request for one in attempts)
        return Counter(
            "upkeep" if one.producer.id.startswith(UPKEEP_PREFIX) else one.operation
            for one in requests
        )

    @property
    def published(self) -> Sequence[str]:
        """The keys of all requests that were ever durable."""
        return tuple(self._published)

    def view(self, identifier: TableIdentifier) -> TableView:
        """Return the view of the table with this name."""
        return self._views[self._by_name[identifier]]

    # --- Effects, in the moment they take place --------------------------------------------------

    def created(self, process: str, created: NewObject) -> None:
        location = created.location
        if location.startswith(self._inbox):
            self._note_request(location[len(self._inbox) :], created.content)
        elif location.startswith(self._quarantine):
            self._enters_quarantine(process, location[len(self._quarantine) :], created.content)
        elif not location.startswith(self._root):
            self._written[location] = created.content

    def _enters_quarantine(self, process: str, key: str, content: bytes) -> None:
        """Check I10: the reason of a quarantined request is true of the catalog and the ledger."""
        record = read_quarantined(content, key)[0]
        reason = record.reason
        sealed = self._published.get(key)
        view = self._views.get(sealed.request.table_uuid) if sealed else None
        published = published_key(key)
        claimed = self._history.claims.get(published)
        if claimed is not None and reason not in (claimed, *_OF_THE_TABLE):
            wrong: str | None = f"it claims another's files: {claimed}"
        elif reason == REFUSED and published not in self._refused:
            wrong = "the catalog did not say so of it alone"
        elif sealed is None or view is None or view.current is None:
            wrong = None
        else:
            may_freeze = view.may_freeze(sealed.request)
            wrong = untrue(
                reason, sealed.request, view.ledger, view.metadata, may_freeze=may_freeze
            )
            if reason == Reason.CONFLICT.value:
                self.conflicts[sealed.request.operation, record.conflict or ""] += 1
                self._told_by[key] = process
            if reason == Reason.CONFLICT.value and not view.was_set_back:
                wrong = untrue_conflict(
                    record.conflict,
                    sealed.request,
                    view.metadata,
                    view.may_be_removed(sealed.request),
                )
        if wrong:
            self._violated("I10", f"{process} quarantines {key} for {reason}: {wrong}")
        if reason == UNPROVEN and self._must_be_remembered(key):
            self._violated("I1", f"{process} quarantines {key}, which has landed, as unproven")

    def _must_be_remembered(self, key: str) -> bool:
        """Return whether a request has landed, still counts, and has stayed in the inbox since; and
        the ledger was not changed by others.
        """
        landing, sealed = self._landing(key), self._published.get(key)
        if landing is None or sealed is None:
            return False
        if published_key(key) in self._superseded | self._put_back:
            return False
        request = sealed.request
        if self._is_decided(request) or request.table_uuid in self._history.tampered:
            return False
        return landing.request.attempt == request.attempt

    def _note_request(self, key: str, content: bytes) -> None:
        self._durable_ms[key] = self._history.now_ms()
        try:
            sealed = read_request(content, key=key)
        except InvalidRequestError:
            self._published.setdefault(key, None)
            return
        if key not in self._published:
            request = sealed.request
            name = request.producer.id, request.epoch, str(request.attempt)
            self._by_attempt[name].append(key)
            self._members[_transaction_name(request)].append(key)
        self._published[key] = sealed
        self._order.setdefault(key, len(self._order))

    def deleting(self, process: str, locations: Sequence[str]) -> None:
        for location in locations:
            if not self._exists(location):
                continue
            if location.startswith(self._inbox):
                self._leaves_inbox(process, location[len(self._inbox) :])
            elif location.startswith(self._quarantine):
                self._leaves_quarantine(process, location[len(self._quarantine) :])
            elif location.startswith(self._root):
                continue
            elif process not in self._history.foreign:
                self._leaves_table(process, location)
            elif not any(location in view.reachable() for view in self._views.values()):
                self._taken.add(location)

    def _leaves_inbox(self, process: str, key: str) -> None:
        if not self._has_ended(key, self._inbox + key) and not self._has_rows(key):
            self._violated("I1", f"{process} removes {key} from the inbox, which has not ended")
        elif self._landing(key) is not None:
            self._superseded.add(published_key(key))

    def _leaves_quarantine(self, process: str, key: str) -> None:
        """Check I1: a request leaves quarantine only after a replay, a discard or its landing."""
        published = published_key(key)
        if published in self._history.discarded | self._history.replayed:
            self._put_back.add(published)
            if self._has_ended(key, self._quarantine + key):
                return
        elif published in self._refused and self._own_landing(key) is not None:
            return  # another committer has landed it meanwhile
        self._violated("I1", f"{process} removes {key} from quarantine, and it is nowhere else")

    def _leaves_table(self, process: str, location: str) -> None:
        for view in self._views.values():
            if view.identifier in self._by_name and location in view.reachable():
                self._violated("I12", f"{process} deletes {location}, which the table needs")

    def swapped_together(self, process: str, swaps: Sequence[Swap]) -> None:
        for swap in swaps:
            self.swapped(process, swap)
        self.check_transactions()

    def swapped(self, process: str, swap: Swap) -> None:
        view = self._view_of(swap.base)
        is_ours = process not in self._history.foreign
        accepted = self._history.accepted
        self._all_violated(view.swap(swap, is_ours=is_ours, accepted=accepted))
        self._permitted(process, swap)
        if is_ours:
            self._refusal_resolved(process, view, swap)
            self._in_order(process, view, swap)
            self._forgotten(process, view, swap)
            return
        self.foreign_commits += 1
        self._history.decided.update((view.table_uuid, name) for name in _changed_entries(swap))
        if process in self._history.operators:
            view.forgive(swap.metadata, _changed_entries(swap))
        else:
            self._foreign_ledger(process, view, swap)

    def _in_order(self, process: str, view: TableView, swap: Swap) -> None:
        """Check I20: no epoch of an ordered producer lands before a lower one that was durable
        first, and waits or is in quarantine.
        """
        for snapshot in added_snapshots(swap.base.metadata, swap.metadata):
            for proof in view.contents.of(snapshot).evidence.values():
                landing = view.ledger.attempts.get(proof.attempt)
                key = landing.request.inbox_key if landing else ""
                before = next(self._before(key), None)
                if before is not None and key not in self._history.accepted:
                    self._violated("I20", f"{process} lands {key} before {before}")

    def _permitted(self, process: str, swap: Swap) -> None:
        """Follow the permissions of operators in the ledger: who gives one, and when it is gone."""
        table_uuid = swap.base.metadata.require_uuid()
        for name in _changed_entries(swap):
            before, after = (
                _permissions(table_uuid, metadata, name)
                for metadata in (swap.base.metadata, swap.metadata)
            )
            self._history.accepted -= before - after
            if process in self._history.operators:
                self._history.accepted |= after - before

    def _forgotten(self, process: str, view: TableView, swap: Swap) -> None:
        """Check I11: a landed epoch is remembered as long as its request is in the inbox."""
        for name in _changed_entries(swap):
            before, after = entry_in(swap.base.metadata, name), entry_in(swap.metadata, name)
            kept = {one.attempt for one in after.latest} if after else set()
            for one in before.latest if before else ():
                landing = view.ledger.attempts.get(one.attempt)
                key = landing.request.inbox_key if landing else ""
                if one.attempt not in kept and self._must_be_remembered(key):
                    self._violated("I11", f"{process} lets `{name}` forget {key}")

    def _foreign_ledger(self, process: str, view: TableView, swap: Swap) -> None:
        """Follow a swap that removes entries: it freezes the table, except for entries of one-shot
        producers, which no high-water mark records, and those of which no proof is left.
        """
        removed = [key for key in _changed_entries(swap) if key not in swap.metadata.properties]
        if removed:
            self._history.tampers(view.table_uuid, f"{process} removed entries of the ledger")
        view.forgive(swap.metadata, filter(view.ledger.is_one_shot, removed))
        if view.table_uuid in self._history.tampered and view.expired:
            view.forget_unproven(swap.metadata, self._high_water_mark(view.table_uuid))

    def refused(self, process: str, swap: Swap) -> None:
        view = self._view_of(swap.base)
        for request, _ in view.ledger.unlisted(swap.base.metadata, swap.metadata):
            self._refused.add(request.inbox_key)
        for snapshot in added_snapshots(swap.base.metadata, swap.metadata):
            evidence = view.contents.of(snapshot).evidence
            if len(evidence) == 1:
                ((producer, epoch), proof), *_ = evidence.items()
                self._refused.add(inbox_key(view.table_uuid, producer, epoch, proof.attempt))

    def _differ(self, key: str) -> bool:
        """Return whether one committer has told of a conflict, and another, which had the request
        too and another head, has landed it."""
        told, landed = self._told_by.get(key), self._landed_by.get(key)
        return None not in (told, landed) and told != landed

    def _refusal_resolved(self, process: str, view: TableView, swap: Swap) -> None:
        """Check I10: a request reported as quarantined lands only if an operator replays it, or if
        the catalog refused it to one committer but not to another that had started it too, or it
        was in conflict with the head of one but not of the other.
        """
        for request, _ in view.ledger.unlisted(swap.base.metadata, swap.metadata):
            self._landed_by[request.inbox_key] = process
        known = swap.base.metadata.snapshots_by_id
        for snapshot in swap.metadata.snapshots:
            if snapshot.snapshot_id in known:
                continue
            for proof in view.contents.of(snapshot).evidence.values():
                landing = view.ledger.attempts.get(proof.attempt)
                if landing is None:
                    continue
                key = landing.request.inbox_key
                if key in self._history.claims:
                    self._violated("I2", f"{key} landed, which claims another's files")
                self._landed_by[key] = process
                is_replayed = key in self._history.replayed
                is_excused = key in self._refused or is_replayed or self._differ(key)
                if not is_excused and self._exists(self._quarantine + key):
                    self._violated("I10", f"{key} landed from quarantine")

    def pointed(self, process: str, table: LoadedTable) -> None:
        view = self._view_of(table)
        is_restored = view.current is not None and (
            view.current.metadata_location != table.metadata_location
        )
        if is_restored:
            self._history.tampers(view.table_uuid, f"{process} restored older metadata")
            self._history.restored.add(view.table_uuid)
            view.forgive(table.metadata)
        self._by_name[table.identifier] = view.table_uuid
        self._all_violated(view.point(table))

    def accepted(self, table: LoadedTable) -> None:
        view = self._view_of(table)
        view.forgive(table.metadata)

    def dropped(self, process: str, identifier: TableIdentifier) -> None:
        self._by_name.pop(identifier, None)

    def acknowledged(self, process: str, key: str) -> None:
        if key in self._published and not self._was_answered(key):
            self._violated("I13", f"{process} acknowledged {key}, which has not ended")

    def replied(self, process: str, receipt: Receipt) -> None:
        """Check I10: a committed receipt of a committer names the snapshot."""
        if receipt.state is ReceiptState.COMMITTED and receipt.snapshot_id is None:
            name = f"epoch {receipt.epoch} of {receipt.producer}"
            self._violated("I10", f"{process} says that {name} is committed, and not where")
        self.received(process, receipt)

    def received(self, process: str, receipt: Receipt) -> None:
        """Check a receipt that a committer has sent or a producer has read from the ledger."""
        name = receipt.producer, receipt.epoch, receipt.attempt
        keys = self._by_attempt.get(name, ())
        if not keys:
            return
        if receipt.state is ReceiptState.COMMITTED:
            problems = [self._untrue_commit(key, receipt) for key in keys]
        elif receipt.state is ReceiptState.QUARANTINED:
            problems = [self._untrue_quarantine(key, receipt) for key in keys]
        else:
            return
        # A receipt names no table: it is true if it is true of one.
        if all(problems):
            invariant, text = problems[0] or ("", "")
            self._violated(invariant, f"{process}: {text}")

    def _untrue_commit(self, key: str, receipt: Receipt) -> Problem | None:
        landing = self._own_landing(key) or self._landing(key) or self._written_off(key)
        if landing is None:
            return "I10", f"a receipt says that {key} is committed, which has not landed"
        view = self._views[landing.request.table_uuid]
        # To a producer, a ledger that was taken away, or thawed, does not say where it has landed.
        # A committer that stood still says where it landed before it was taken back.
        at = view.ledger.snapshot_ids[landing.proof.attempt]
        if receipt.snapshot_id not in (None, *at):
            return "I10", f"a receipt says snapshot {receipt.snapshot_id}, {key} landed in {at}"
        is_own = str(landing.proof.attempt) == receipt.attempt
        if is_own == receipt.duplicate:
            return "I10", f"a receipt says duplicate: {receipt.duplicate} of {key}"
        unseen = landing.paths - view.live(view.metadata) - view.taken
        if unseen:
            return "I9", f"a receipt says {key} is committed, a reader misses {min(unseen)}"
        return None

    def _untrue_quarantine(self, key: str, receipt: Receipt) -> Problem | None:
        is_refused = receipt.reason == REFUSED and published_key(key) in self._refused
        is_refused |= self._differ(key)
        is_refused |= self._was_forgotten(self._published.get(key), receipt.reason or "")
        if self._own_landing(key) and receipt.reason not in _MAY_FOLLOW_LANDING and not is_refused:
            return "I10", f"a receipt says that {key} is in quarantine, which has landed"
        if not receipt.reason:
            return "I10", f"a receipt says that {key} is in quarantine without a reason"
        return None

    # --- Quiescence ------------------------------------------------------------------------------

    def backlog(self) -> list[str]:
        """Return the requests in the inbox, and those in quarantine that another committer has
        landed: a committer finds these out soon.
        """
        refused = [key for key in self._published if published_key(key) in self._refused]
        return self.waiting() + [key for key in sorted(refused) if self._is_untrue(key)]

    def _is_untrue(self, key: str) -> bool:
        record = self._record(key) if self._own_landing(key) is not None else None
        return record is not None and record.reason == REFUSED

    def at_quiescence(self) -> None:
        """Check everything, after faults have stopped and the committers have had their time."""
        for key in self.backlog():
            if not self.may_wait(key):
                self._violated("I15", f"{key} still waits: {self._why_waiting(key)}")
        for key, sealed in self._published.items():
            problem = self._end_of(key, sealed)
            if problem:
                self._violated(*problem)
        self.check_transactions()
        for identifier, table_uuid in self._by_name.items():
            self._check_table(identifier, self._views[table_uuid])

    def check_transactions(self) -> None:
        """Check I18: the requests of a transaction have landed on all of its tables, or on none."""
        landed: dict[object, set[UUID]] = defaultdict(set)
        members: dict[object, set[UUID]] = {}
        for key, sealed in self._published.items():
            transaction = sealed.request.transaction if sealed else None
            if sealed is None or transaction is None:
                continue
            name = _transaction_name(sealed.request)
            members[name] = {uuid for _, uuid in transaction.members}
            if self._own_landing(key) is not None:
                landed[name].add(sealed.request.table_uuid)
        for known, found in landed.items():
            if found != members[known]:
                self._violated("I18", f"transaction {known} has landed on {found} only")

    # --- What waits ------------------------------------------------------------------------------

    def waiting(self) -> list[str]:
        """Return the requests in the inbox."""
        return [location[len(self._inbox) :] for location in self._below(self._inbox)]

    def durable_ms(self, key: str) -> int:
        return self._durable_ms.get(key, 0)

    def transaction_of(self, key: str) -> Transaction | None:
        sealed = self._published.get(key)
        return sealed.request.transaction if sealed else None

    def members_of(self, key: str) -> Sequence[str]:
        """Return the requests of the transaction of this one, or this one alone."""
        sealed = self._published.get(key)
        if sealed is None or sealed.request.transaction is None:
            return (key,)
        return self._members[_transaction_name(sealed.request)]

    def may_land(self, key: str, transaction: Transaction) -> bool:
        """Return whether each table has a request of the transaction in the inbox, or a landed one,
        none is in quarantine, none has to wait for an operator or for a lower epoch, and no landing
        of any may be forgotten.
        """
        members = self.members_of(key)
        if any(map(self._may_be_forgotten, members)):
            return False
        there = {
            member[:36]
            for member in members
            if self._exists(self._inbox + member) or self._landing(member) is not None
        }
        missing = {str(uuid) for _, uuid in transaction.members} - there
        return not missing and not any(
            self._exists(self._quarantine + one) or self.may_wait(one) or self.waits_for_lower(one)
            for one in members
        )

    def waits_for_lower(self, key: str) -> bool:
        """Return whether a lower epoch of its ordered producer waits or is in quarantine."""
        return next(self._before(key), None) is not None

    def may_wait(self, key: str) -> bool:
        """Return whether the request may wait for an operator, as its table was restored, a lower
        epoch of its ordered producer is in quarantine, or its producer is frozen with an open
        breaker. One of a transaction waits for those of the other tables, which may wait so.
        """
        transaction = self.transaction_of(key)
        tables = [UUID(key[:36])]
        if transaction is not None:
            tables = [table_uuid for _, table_uuid in transaction.members]
        return any(table_uuid in self._history.tampered for table_uuid in tables) or any(
            self._is_held_back(member) for member in (key, *self.members_of(key))
        )

    def _is_held_back(self, key: str) -> bool:
        is_behind = any(self._quarantine in one for one in self._before(key))
        return is_behind or self._is_behind_breaker(key)

    def _is_behind_breaker(self, key: str) -> bool:
        """Return whether an operator has frozen the producer, and so many of its requests are in
        quarantine that its breaker may be open."""
        sealed = self._published.get(key)
        view = self._views.get(sealed.request.table_uuid) if sealed else None
        if sealed is None or view is None or view.current is None:
            return False
        name = property_key(sealed.request.producer.id, sealed.request.branch)
        entry = entry_in(view.metadata, name)
        if entry is None or entry.frozen is None:
            return False
        folder = key.rsplit("/", 2)[0]
        return len(self._below(f"{self._quarantine}{folder}/")) >= self._breaker_threshold

    def _before(self, key: str) -> Iterator[str]:
        """Yield the objects of an ordered producer that were durable before this request, and have
        to land before it."""
        sealed = self._published.get(key)
        if sealed is None or not sealed.request.producer.ordered:
            return
        request = sealed.request
        for other, known in self._published.items():
            if known is None or self._landing(other) is not None:
                continue
            one = known.request
            is_own = one.producer.id == request.producer.id
            is_lower = one.epoch < request.epoch and self._order[other] < self._order[key]
            is_there = (one.table_uuid, one.branch) == (request.table_uuid, request.branch)
            if is_own and is_lower and is_there:
                yield from (each for each in self._objects(other) if self._is_kept(each))

    def _is_kept(self, location: str) -> bool:
        """Return whether an object holds its request: no record that only tells of a conflict."""
        content = self._read(location)
        if content is None or not location.startswith(self._quarantine):
            return content is not None
        return not read_quarantined(content, location)[0].is_told_only

    def _was_forgotten(self, sealed: EncodedRequest | None, reason: str) -> bool:
        """Return whether a request could not land again, whose landing was removed from the ledger
        by an operator, or by others and accepted: it is in conflict with what came since, or a part
        of a transaction that waited for the others in vain.
        """
        ends = (Reason.TRANSACTION_INCOMPLETE.value, Reason.CONFLICT.value)
        if sealed is None or reason not in ends:
            return False
        return self._may_be_forgotten(sealed.key)

    def _may_be_forgotten(self, key: str) -> bool:
        """Return whether an operator, or others whose change was accepted, may have removed the
        landing of a request from the ledger."""
        sealed = self._published.get(key)
        if sealed is None:
            return False
        request = sealed.request
        return self._is_decided(request) or request.table_uuid in self._history.ever_tampered

    def _is_decided(self, request: CommitRequest) -> bool:
        """Return whether an operator has changed what the ledger says of the producer."""
        name = property_key(request.producer.id, request.branch)
        return (request.table_uuid, name) in self._history.decided

    def _why_waiting(self, key: str) -> str:
        has_ended = self._has_ended(key, self._inbox + key)
        ended = "it has ended" if has_ended else "it has not ended"
        return f"{ended}, {'known' if key in self._published else 'unknown'} to the onlooker"

    def _end_of(self, key: str, sealed: EncodedRequest | None) -> Problem | None:
        """Check I1: a request is committed, superseded or in quarantine; exactly one of them."""
        landing, own = self._landing(key), self._own_landing(key)
        is_landed = own is not None
        record = self._record(key)
        # An operator let the epoch land again: what landed in its place is all that counts.
        counts = is_landed and landing in (None, own)
        if (
            counts
            and record is not None
            and record.reason not in _MAY_FOLLOW_LANDING
            and not self._was_forgotten(sealed, record.reason)
            and not self._differ(key)
        ):
            return "I1", f"{key} has landed, and is in quarantine for {record.reason}"
        if is_landed or self._objects(key) or self._has_rows(key):
            return None
        if published_key(key) in self._history.discarded | self._superseded:
            return None
        if sealed is not None and landing is not None:
            if landing.stands_for(sealed.request):
                return None
            return "I1", f"{key} was skipped: its epoch landed, and stood for something else"
        return "I1", f"{key} is lost: neither committed nor superseded nor in quarantine"

    def _check_table(self, identifier: TableIdentifier, view: TableView) -> None:
        location = at_once(self._catalog.current_location(identifier))
        content = self._read(location)
        if content is None:
            self._violated("I6", f"the metadata file {location} does not exist")
            return
        stored = parse_table_metadata(content)
        if view.current is None or stored != view.metadata:
            self._violated("I6", f"{location} holds other metadata than the swap said")
        self._all_violated(view.check())
        for needed in () if view.is_restored else view.needed():
            found = self._read(needed)
            if found is None and needed in self._taken:
                continue
            if found is None:
                self._violated("I6", f"{identifier} needs {needed}, which does not exist")
            elif needed in self._written and found != self._written[needed]:
                self._violated("I6", f"{needed} has been overwritten")
        if view.table_uuid not in self._history.tampered:
            self._all_violated(view.ledger.all_entries(stored))
            self._audit(view)

    def _audit(self, view: TableView) -> None:
        """Check I11: the ledger rebuilt from the evidence in manifest lists equals the model's."""
        metadata = view.metadata
        contents = {each.snapshot_id: view.contents.of(each) for each in metadata.snapshots}
        for (producer, epoch), proof in evidence_of_history(metadata, contents).items():
            landing = view.ledger.attempts.get(proof.attempt)
            if landing is None or landing.evidence != proof:
                self._violated("I11", f"a list proves epoch {epoch} of {producer} by {proof}")

    # --- The state of the servers ----------------------------------------------------------------

    def _has_ended(self, key: str, location: str) -> bool:
        """Return whether a request can do without this object: it has its verdict, or another
        object holds it, in quarantine or since a replay.
        """
        if self._objects(key) - {location} or published_key(key) in self._history.discarded:
            return True
        if self._own_landing(key) is not None:
            return True
        sealed, landing = self._published.get(key), self._landing(key)
        return landing is not None and sealed is not None and landing.stands_for(sealed.request)

    def _was_answered(self, key: str) -> bool:
        """Return whether a request has ended, or had ended before an operator wrote off its landing
        or put it back from quarantine: its first doorbell may be acknowledged late.
        """
        has_ended = self._has_ended(key, self._inbox + key)
        is_back = published_key(key) in self._put_back | self._superseded
        return has_ended or is_back or self._written_off(key) is not None

    def _written_off(self, key: str) -> Landing | None:
        """Return a landing of the key's epoch that stands for it, also one that an operator has
        written off: a committer may know no later metadata yet.
        """
        sealed = self._published.get(key)
        view = self._views.get(sealed.request.table_uuid) if sealed else None
        if sealed is None or view is None:
            return None
        landings = view.ledger.ever_landed(sealed.request)
        return next((one for one in landings if one.stands_for(sealed.request)), None)

    def _has_rows(self, key: str) -> bool:
        """Return whether the rows of a request are in the table by a landing that an operator has
        had forgotten since: its duplicate may be told so, and removed, a moment later.
        """
        landing = self._written_off(key)
        if landing is None:
            return False
        view = self._views[landing.request.table_uuid]
        return landing.paths <= view.live(view.metadata) | view.taken

    def _landing(self, key: str) -> Landing | None:
        """Return the landing of the key's epoch."""
        sealed = self._published.get(key)
        if sealed is not None:
            view = self._views.get(sealed.request.table_uuid)
            return view.ledger.find(sealed.request) if view else None
        return None

    def _own_landing(self, key: str) -> Landing | None:
        """Return where this very attempt has landed, even if that does not count any more."""
        sealed = self._published.get(key)
        view = self._views.get(sealed.request.table_uuid) if sealed is not None else None
        return view.ledger.attempts.get(sealed.request.attempt) if view and sealed else None

    def _objects(self, key: str) -> set[str]:
        """Return the request's objects in inbox and quarantine, as published and as replayed."""
        published = published_key(key)
        epoch, _, _ = published.rpartition("/")
        return {
            found
            for folder in (self._inbox, self._quarantine)
            for found in self._below(f"{folder}{epoch}/")
            if published_key(found) == folder + published
        }

    def _record(self, key: str) -> QuarantineRecord | None:
        content = self._read(self._quarantine + key)
        return None if content is None else read_quarantined(content, key)[0]

    def _read(self, location: str) -> bytes | None:
        try:
            return at_once(self._storage.get(location))
        except NotFoundError:
            return None

    def _high_water_mark(self, table_uuid: UUID) -> HighWaterMark:
        content = self._read(self._high_water_marks.location(table_uuid))
        if content is None:
            return HighWaterMark(table_uuid)
        return parse_high_water_mark(content, table_uuid)

    def _exists(self, location: str) -> bool:
        try:
            at_once(self._storage.head(location))
        except FrazilError:
            return False
        return True

    def _below(self, prefix: str) -> list[str]:
        async def listed() -> list[str]:
            return [found.location async for found in self._storage.list(prefix)]

        return at_once(listed())

    def _view_of(self, table: LoadedTable) -> TableView:
        table_uuid = table.metadata.require_uuid()
        view = self._views.get(table_uuid)
        if view is None:
            view = self._views[table_uuid] = TableView(
                table_uuid,
                lambda key: self._published.get(key),
                self._read,
                self._history.written,
            )
        return view

    def _all_violated(self, problems: Iterable[Problem]) -> None:
        for invariant, text in problems:
            self._violated(invariant, text)

    def _violated(self, invariant: str, text: str) -> None:
        self._history.violated(invariant, text)


def _transaction_name(request: CommitRequest) -> object:
    """Return what all requests of one transaction share; None without any."""
    transaction = request.transaction
    return None if transaction is None else (transaction.id, transaction.members)


def _permissions(table_uuid: UUID, metadata: TableMetadata, name: str) -> set[str]:
    """Return the keys of the requests that an entry of the ledger lets land once."""
    entry, parsed = entry_in(metadata, name), parse_property_key(name)
    if entry is None or parsed is None:
        return set()
    return {inbox_key(table_uuid, parsed[0], epoch, attempt) for epoch, attempt in entry.accepted}


def _changed_entries(swap: Swap) -> list[str]:
    """Return the ledger properties that a swap has changed, added or removed."""
    before, after = swap.base.metadata.properties, swap.metadata.properties
    keys = [key for key in {**before, **after} if key.startswith(LEDGER_PREFIX)]
    return [key for key in keys if before.get(key) != after.get(key)]
