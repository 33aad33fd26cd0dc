"""The ledger's answers: an epoch has landed or not, as the same write or as another one.

Asked on every attempt, against the metadata that the attempt is conditional on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.snapshot import MAIN, Snapshot
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.ledger_entry import (
    NO_SNAPSHOT,
    Landed,
    ProducerEntry,
    parse_entry,
    parse_property_key,
    property_key,
    short_fingerprint,
)
from committer.plan.ledger.one_shots import OneShots, read_one_shots
from committer.reason import Reason
from committer.request.commit_request import CommitRequest


@dataclass(frozen=True, slots=True)
class NotLanded:
    """The epoch may land. `known` is False if the ledger has never heard of the producer."""

    known: bool


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The epoch landed with equal content: acknowledge with this receipt."""

    landed: Landed
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The epoch landed so long ago that its content is unproven; or, if `why` says so, it may have
    landed: the ledger has no entry of its producer.
    """

    why: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The request cannot land."""

    reason: Reason
    message: str


LedgerAnswer = NotLanded | Duplicate | Forgotten | Refused


@dataclass(frozen=True, slots=True)
class Ledger:
    """All entries of a table, by property key, and why some of them are frozen. `broken`: those
    of them whose history is in doubt, so that nothing of it may be forgotten. `one_shots`: the
    forgotten ones, by branch. `branch_gone`: those that would freeze if their branch, which was
    removed, began again at the head of main, and why.
    """

    entries: Mapping[str, ProducerEntry]
    frozen: Mapping[str, str]
    broken: frozenset[str] = frozenset()
    one_shots: Mapping[str, OneShots] = field(default_factory=dict)
    branch_gone: Mapping[str, str] = field(default_factory=dict)

    def ask(self, request: CommitRequest) -> LedgerAnswer:
        """Return the ledger's answer for a request."""
        key = property_key(request.producer.id, request.branch)
        entry = self.entries.get(key)
        if entry is not None and self._is_accepted(key, entry, request):
            # Only its inbox object shows that it has not been discarded since.
            return NotLanded(known=False)
        if entry is None or not entry.has_landed:
            answer = self._unknown(request, known=entry is not None)
        else:
            answer = _look_up(entry, request)
        if key in self.branch_gone:
            return Refused(Reason.PRODUCER_FROZEN, self.branch_gone[key])
        if key not in self.frozen:
            return answer
        # A producer that an operator froze still has a history; one in doubt proves nothing.
        if isinstance(answer, Duplicate) and key not in self.broken:
            return answer
        return Refused(Reason.PRODUCER_FROZEN, self.frozen[key])

    def _unknown(self, request: CommitRequest, *, known: bool) -> LedgerAnswer:
        """Answer if no entry says that a request of the producer has landed."""
        one_shots = self.one_shots.get(request.branch)
        if one_shots is None:
            return NotLanded(known)
        if one_shots.problem is not None:
            return Refused(Reason.PRODUCER_FROZEN, one_shots.problem)
        why = one_shots.why_unproven(request)
        return NotLanded(known) if why is None else Forgotten(why)

    def has_tombstone(self, key: str) -> bool:
        """Return whether the property's producer has landed once and was forgotten."""
        parsed = parse_property_key(key)
        if parsed is None:
            return False
        producer, branch = parsed
        return branch in self.one_shots and self.one_shots[branch].has_tombstone(producer)

    def _is_accepted(self, key: str, entry: ProducerEntry, request: CommitRequest) -> bool:
        """Return whether an operator permits the request to land: not after a rollback that the
        operator did not know of.
        """
        knew = entry.frozen is not None and entry.frozen.lost_snapshot_id is not None
        return (knew or key not in self.broken) and (
            request.epoch,
            request.attempt,
        ) in entry.accepted

    @property
    def branches(self) -> frozenset[str]:
        """The branches that producers have landed on."""
        parsed = map(parse_property_key, self.entries)
        return frozenset(one[1] for one in parsed if one is not None)

    def changed(
        self, written: Mapping[str, ProducerEntry], dropped: frozenset[str] = frozenset()
    ) -> Ledger:
        """Return the ledger after a commit that wrote and dropped these entries."""
        kept = {key: entry for key, entry in self.entries.items() if key not in dropped}
        # One that an operator has let land is in the history of the branch that it has created.
        gone = {key: why for key, why in self.branch_gone.items() if key not in written}
        return replace(self, entries={**kept, **written}, branch_gone=gone)

    def entry_of(self, request: CommitRequest) -> ProducerEntry:
        """Return the producer's entry, or a first empty one."""
        known = self.entries.get(property_key(request.producer.id, request.branch))
        producer = request.producer
        return known or ProducerEntry(
            request.table_uuid,
            sequential=producer.sequential,
            one_shot_ms=0 if producer.one_shot else None,
        )


def _look_up(entry: ProducerEntry, request: CommitRequest) -> LedgerAnswer:
    if request.epoch not in entry.epochs:
        return NotLanded(known=True)
    # More than one if an operator has accepted another content of the epoch.
    answers = [compare(one, request) for one in entry.latest if one.epoch == request.epoch]
    equal = (answer for answer in answers if isinstance(answer, Duplicate))
    return next(equal, None) or next(iter(answers), Forgotten())


def compare(landed: Landed, request: CommitRequest) -> Duplicate | Refused:
    """Return whether the landed epoch has this request's content."""
    fingerprint = request.fingerprint
    if landed.fingerprint_kind != fingerprint.kind:
        return _other_kind(landed, request)
    if landed.fingerprint == short_fingerprint(fingerprint.value):
        return Duplicate(landed)
    return Refused(
        Reason.EPOCH_CONTENT_DIFFERS,
        f"epoch {request.epoch} of producer `{request.producer.id}` landed in snapshot"
        f" {landed.snapshot_id} and stood for something else then",
    )


def _other_kind(landed: Landed, request: CommitRequest) -> Duplicate | Refused:
    """Judge an epoch that landed with another kind of fingerprint: a sequential producer (Spark's
    own query id) never gives an epoch number twice."""
    if request.producer.sequential or landed.attempt == request.attempt:
        return Duplicate(
            landed,
            f"fingerprint of kind `{request.fingerprint.kind}`, epoch {request.epoch} landed with"
            f" kind `{landed.fingerprint_kind}`: not compared",
        )
    return Refused(
        Reason.EPOCH_LANDED_UNPROVEN,
        f"epoch {request.epoch} of producer `{request.producer.id}` landed with a fingerprint of"
        f" kind `{landed.fingerprint_kind}`, which one of kind `{request.fingerprint.kind}` cannot"
        " be compared with",
    )


def read_ledger(metadata: TableMetadata) -> Ledger:
    """Read all entries of a table; check that each producer's last snapshot is still in history."""
    entries: dict[str, ProducerEntry] = {}
    frozen: dict[str, str] = {}
    broken: set[str] = set()
    branch_gone: dict[str, str] = {}
    history = cache(partial(history_of, metadata))
    for key, text in metadata.properties.items():
        parsed = parse_property_key(key)
        if parsed is None:
            continue
        try:
            entry = parse_entry(text)
        except InvalidMetadataError as error:
            frozen[key] = f"the table property `{key}` cannot be read: {error}"
            broken.add(key)
            continue
        if entry.table_uuid != metadata.table_uuid:
            continue  # a property copied from another table claims nothing
        branch = parsed[1]
        is_own = entry.is_own(parsed[0])
        lost = None if is_own else _lineage_break(entry, history(branch))
        if not is_own and history(branch).is_dropped and _lost(entry, history(MAIN)):
            branch_gone[key] = _branch_gone_text(branch)
        if lost:
            frozen[key] = lost
        if entry.frozen:
            frozen[key] = entry.frozen.why
        if lost or (entry.frozen and entry.frozen.lost_snapshot_id is not None):
            broken.add(key)
        entries[key] = entry
    return Ledger(entries, frozen, frozenset(broken), read_one_shots(metadata), branch_gone)


@dataclass(frozen=True, slots=True)
class History:
    """The retained ancestors of a branch head. `branched_off`: retained snapshots that descend from
    one of them outside the branch. `is_dropped`: another branch than main that does not exist: it
    was dropped or expired, which rolls nothing back.

    `oldest` is the edge of what is retained, whether it has a parent id or not: PyIceberg's expiry
    clears the parent id of the successor of an expired snapshot, and a replaced table starts with a
    snapshot without a parent.
    """

    snapshot_ids: frozenset[int]
    oldest: Snapshot | None
    branched_off: frozenset[int] = frozenset()
    is_dropped: bool = False

    def proves_lost(self, landed: Landed) -> bool:
        """Return whether a snapshot is provably no ancestor of the head. Behind the edge nothing is
        proven: engines shorten history as they like.
        """
        if self.is_dropped or landed.snapshot_id in self.snapshot_ids:
            return False
        if landed.snapshot_id == NO_SNAPSHOT:
            return False
        if self.oldest is None or landed.snapshot_id in self.branched_off:
            return True
        # Numbers rise along a chain; those of format version 1 are all 0, and prove nothing.
        return 0 < landed.sequence_number >= self.oldest.sequence_number


def history_of(metadata: TableMetadata, branch: str) -> History:
    """Return the retained snapshots behind the head of a branch."""
    ref = metadata.refs.get(branch)
    if branch != MAIN and (ref is None or ref.type != "branch"):
        return History(frozenset(), None, is_dropped=True)
    chain = {one.snapshot_id: one for one in metadata.branch_history(branch)}
    branched_off: set[int] = set()
    # Parents stand before their children.
    for one in metadata.snapshots if len(chain) < len(metadata.snapshots) else ():
        parent = one.parent_snapshot_id
        if one.snapshot_id not in chain and (parent in chain or parent in branched_off):
            branched_off.add(one.snapshot_id)
    oldest = next(reversed(chain.values()), None)
    return History(frozenset(chain), oldest, frozenset(branched_off))


def _lost(entry: ProducerEntry, history: History) -> Landed | None:
    """Return the producer's newest commit, if it is provably lost to a history."""
    if not entry.latest:
        return None
    newest = max(entry.latest, key=lambda landed: landed.sequence_number)
    return newest if history.proves_lost(newest) else None


def _lineage_break(entry: ProducerEntry, history: History) -> str | None:
    """Return why the producer's newest commit is not behind the branch head;
    None if it is, or expired."""
    newest = _lost(entry, history)
    if newest is None:
        return None
    return (
        f"snapshot {newest.snapshot_id} (sequence number {newest.sequence_number}), at which epoch"
        f" {newest.epoch} landed, is not in the history of the branch any more: the table was"
        " rolled back, restored or emptied"
    )


def _branch_gone_text(branch: str) -> str:
    return (
        f"branch `{branch}` was removed, and main lacks what this producer has committed to it: so"
        f" would a new branch `{branch}` at the head of main. Create it (`frazil table branch"
        " create`), and decide whether the producer skips its lost epochs or redoes them (`frazil"
        " producer thaw`)"
    )
