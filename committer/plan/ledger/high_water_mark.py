"""The high-water mark: a record, outside of the table, of what was committed to it.

Metadata cannot say of itself that it is old. So a high-water mark of the newest known metadata is
kept beside the inbox. Metadata that lacks a commit of the mark is rejected: it was restored,
registered again from an older file, or has lost entries of the ledger. Only an operator can decide
about that, and may accept it (`frazil table accept`). Pure, with its text form:

    {"v":1,"table":"<uuid>","accepted-ms":0,"sequence-number":42,"snapshot-id":…,
     "last-updated-ms":…,"producers":{"frazil.producer.<id>":41},"forgotten":{},"forgotten-ms":0,
     "forgotten-at":{},"landed-again":{}}
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from uuid import UUID

import orjson

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.snapshot import MAIN, Snapshot
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.values.json_reader import Reader
from committer.ledger_entry import Landed, ProducerEntry, parse_property_key, property_key
from committer.plan.ledger.evidence import SNAPSHOTS_MAX, EpochEvidence, has_evidence
from committer.plan.ledger.ledger import Ledger
from committer.plan.ledger.state import TableState

HIGH_WATER_MARK_VERSION = 1


@dataclass(frozen=True, slots=True)
class HighWaterMark:
    """The newest state that a table was seen in. Grows only, by `joined`, unless an operator
    accepts less.

    `accepted_ms`: which acceptance it follows, 0 before any; a later one makes all that was known
    before it void. `snapshot_id`: the snapshot that has the sequence number; in format version 1,
    where all have 0, the one that was added last. `producers`: the highest epoch of each lasting
    producer, by its ledger property. `forgotten`: up to which epoch an entry need not be there;
    `forgotten_ms`: when an operator said so last, `forgotten_at`: the table's sequence number then.
    `landed_again`: the highest epochs that have landed since, which have to be there.
    """

    table_uuid: UUID
    accepted_ms: int = 0
    sequence_number: int = 0
    snapshot_id: int | None = None
    last_updated_ms: int = 0
    producers: Mapping[str, int] = field(default_factory=dict)
    forgotten: Mapping[str, int] = field(default_factory=dict)
    forgotten_ms: int = 0
    forgotten_at: Mapping[str, int] = field(default_factory=dict)
    landed_again: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, state: TableState, *, accepted_ms: int = 0) -> HighWaterMark:
        """Return the high-water mark of a state of the table."""
        metadata = state.metadata
        newest = _newest(metadata)
        return cls(
            metadata.require_uuid(),
            accepted_ms,
            metadata.last_sequence_number,
            newest.snapshot_id if newest else None,
            metadata.last_updated_ms,
            _lasting(state.ledger.entries.items()),
        )

    def after(self, state: TableState, keys: Collection[str]) -> HighWaterMark:
        """Return the mark once a commit has led to this state and changed these entries only."""
        metadata, entries = state.metadata, state.ledger.entries
        newest = _newest(metadata)
        changed = ((key, entries[key]) for key in keys if key in entries)
        return replace(
            self,
            sequence_number=metadata.last_sequence_number,
            snapshot_id=newest.snapshot_id if newest else None,
            last_updated_ms=metadata.last_updated_ms,
            producers={**self.producers, **_lasting(changed)},
        ).with_landed_again(state.ledger, keys)

    def with_proven(self, unclaimed: Iterable[Unclaimed]) -> HighWaterMark:
        """Add what only manifest lists prove: it stays known when they expire."""
        proven: dict[str, int] = {}
        for one in unclaimed:
            proven[one.key] = max(one.landed.epoch, proven.get(one.key, -1))
        return replace(self, producers=_highest(self.producers, proven))

    def with_landed_again(self, ledger: Ledger, keys: Container[str]) -> HighWaterMark:
        """Return it with the epochs that have landed, by these entries,
        since the ledger forgot them.
        """
        again: dict[str, int] = {}
        for key, at in self.forgotten_at.items():
            entry = ledger.entries.get(key) if key in keys else None
            if entry is not None and not entry.one_shot:
                landed = [one.epoch for one in entry.latest if one.sequence_number > at]
                again |= {key: max(landed)} if landed else {}
        return replace(self, landed_again=_highest(self.landed_again, again))

    def joined(self, other: HighWaterMark) -> HighWaterMark:
        """Join all that both know. Of two acceptances only the later one counts."""
        if self.accepted_ms != other.accepted_ms:
            return max(self, other, key=lambda one: one.accepted_ms)
        newer = max(other, self, key=_age)
        return replace(
            newer,
            producers=_highest(self.producers, other.producers),
            forgotten=_highest(self.forgotten, other.forgotten),
            forgotten_ms=max(self.forgotten_ms, other.forgotten_ms),
            forgotten_at=(forgotten_at := _highest(self.forgotten_at, other.forgotten_at)),
            landed_again=_highest(self._again(forgotten_at), other._again(forgotten_at)),
        )

    def _again(self, forgotten_at: Mapping[str, int]) -> dict[str, int]:
        """Return the epochs that landed again and were not forgotten once more since."""
        again = self.landed_again.items()
        return {key: one for key, one in again if self.forgotten_at.get(key) == forgotten_at[key]}

    def contradicts(self, other: HighWaterMark) -> bool:
        """Return whether two snapshots have one sequence number: the table was restored in between,
        and another writer has committed since. One that was rolled back and has expired is not
        another.
        """
        return (
            self.sequence_number == other.sequence_number > 0
            and None not in (self.snapshot_id, other.snapshot_id)
            and self.snapshot_id != other.snapshot_id
        )

    @property
    def decided(self) -> tuple[int, int]:
        """The times at which an operator last accepted an older table, and last removed epochs. A
        state that was seen before a later decision does not prove that an epoch need not land
        again.
        """
        return self.accepted_ms, self.forgotten_ms

    def without(self, forgotten: Mapping[str, int], *, sequence_number: int) -> HighWaterMark:
        """Return the mark once the ledger may be without these epochs and those below them, as far
        as they have landed up to this sequence number.
        """
        again = self.landed_again.items()
        return replace(
            self,
            forgotten=_highest(self.forgotten, forgotten),
            forgotten_at={**self.forgotten_at, **dict.fromkeys(forgotten, sequence_number)},
            landed_again={key: epoch for key, epoch in again if key not in forgotten},
        )

    @property
    def required(self) -> Iterator[tuple[str, int]]:
        """The epochs that the ledger has to have, by its properties."""
        for key, epoch in self.producers.items():
            if epoch > self.forgotten.get(key, -1):
                yield key, epoch
        yield from self.landed_again.items()

    def has_forgotten(self, key: str, landed: Landed) -> bool:
        """Return whether the ledger may be without what has landed."""
        at = self.forgotten_at.get(key, landed.sequence_number)
        return landed.epoch <= self.forgotten.get(key, -1) and landed.sequence_number <= at


def missing_from(state: TableState, mark: HighWaterMark) -> Iterator[str]:
    """Yield what the high-water mark knows and the table lacks, one sentence each. Nothing: the
    metadata may be believed.

    A table that was rolled back (its branch moved to an older snapshot) lacks nothing here: that is
    in its own history, and freezes producers.
    """
    metadata = state.metadata
    known, number = mark.snapshot_id, mark.sequence_number
    if metadata.last_sequence_number < number:
        yield (
            f"its last sequence number is {metadata.last_sequence_number}, and snapshot {known} was"
            f" committed with {number}"
        )
    elif known is not None and known not in metadata.snapshots_by_id:
        if number == 0 and metadata.last_updated_ms < mark.last_updated_ms:
            yield f"it is older than snapshot {known}, which was committed, and is without it"
        other = _with_number(metadata, number)
        if other is not None:
            yield (
                f"sequence number {number} belongs to snapshot {other.snapshot_id}, and {known} was"
                " committed with it"
            )
    dropped = dropped_branches(state, mark)
    for key, epoch in mark.required:
        if key not in dropped and not _has_landed(state.ledger, key, epoch):
            yield f"the property `{key}` lacks epoch {epoch}, which has landed"


def snapshots_above(metadata: TableMetadata, mark: HighWaterMark) -> list[Snapshot]:
    """Return Frazil's retained snapshots that are newer than the high-water mark: a process ended
    between a commit and its mark. Those that no branch leads to count too: an operator who replaces
    or restores a table may have unset the ledger as well.
    """
    newest_first = takewhile(lambda one: not _is_below(one, mark), reversed(metadata.snapshots))
    return [one for one in islice(newest_first, SNAPSHOTS_MAX) if has_evidence(one)]


def _is_below(snapshot: Snapshot, mark: HighWaterMark) -> bool:
    """Return whether the high-water mark knows of a snapshot, and so of those behind it.
    Without sequence numbers (format version 1) one that is older than what was seen was seen: ours
    never are.
    """
    if snapshot.snapshot_id == mark.snapshot_id:
        return True
    if snapshot.sequence_number > 0 or mark.sequence_number > 0:
        return snapshot.sequence_number <= mark.sequence_number
    return snapshot.timestamp_ms < mark.last_updated_ms


@dataclass(frozen=True, slots=True)
class Unclaimed:
    """An epoch that a snapshot proves landed, and that its producer's property `key` lacks."""

    key: str
    producer: str
    landed: Landed

    def __str__(self) -> str:
        return (
            f"epoch {self.landed.epoch} of producer `{self.producer}` landed in snapshot"
            f" {self.landed.snapshot_id}, and the property `{self.key}` lacks it"
        )


def not_in_ledger(
    state: TableState, mark: HighWaterMark, landed: EpochEvidence
) -> Iterator[Unclaimed]:
    """Yield the epochs that a snapshot proves landed and that no entry of their producer has.

    An entry that is missing this soon was removed by hand: Frazil leaves a tombstone for those of
    one-shot producers.
    """
    for (producer, epoch), one in landed.items():
        if not any(
            _has_landed(state.ledger, key, epoch) or mark.has_forgotten(key, one)
            for key in _keys_of(state, mark, producer)
        ):
            branch = _branch_of(state.metadata, one.snapshot_id)
            yield Unclaimed(property_key(producer, branch), producer, one)


def _branch_of(metadata: TableMetadata, snapshot_id: int) -> str:
    """Return a branch that a snapshot is behind; `main` if none leads to it any more."""
    for branch in sorted(metadata.branches, key=lambda name: name != MAIN):
        if any(one.snapshot_id == snapshot_id for one in metadata.branch_history(branch)):
            return branch
    return MAIN


def _keys_of(state: TableState, mark: HighWaterMark, producer: str) -> Iterator[str]:
    """Yield the ledger's properties of a producer, on any branch."""
    known = {property_key(producer), *(property_key(producer, one) for one in state.metadata.refs)}
    yield from known
    for key in mark.forgotten:
        parsed = parse_property_key(key)
        if parsed is not None and parsed[0] == producer and key not in known:
            yield key


def dropped_branches(state: TableState, mark: HighWaterMark) -> dict[str, int]:
    """Return the ledger keys that were dropped together with their branch, on purpose."""
    gone: dict[str, int] = {}
    for key, epoch in mark.required:
        parsed = parse_property_key(key)
        branch = parsed[1] if parsed else MAIN
        is_known = key in state.ledger.entries or key in state.ledger.frozen
        if branch != MAIN and branch not in state.metadata.refs and not is_known:
            gone[key] = max(epoch, gone.get(key, -1))
    return gone


def _has_landed(ledger: Ledger, key: str, epoch: int) -> bool:
    """Return whether the epoch landed. An unreadable entry freezes its producer, not the table."""
    entry = ledger.entries.get(key)
    if entry is None:
        return key in ledger.frozen or ledger.has_tombstone(key)
    return epoch in entry.epochs


def _lasting(entries: Iterable[tuple[str, ProducerEntry]]) -> dict[str, int]:
    """Return the highest epochs of producers whose entries stay.
    Those of one-shot producers do not."""
    return {
        key: entry.epochs.ranges[-1][1]
        for key, entry in entries
        if not entry.one_shot and entry.epochs.ranges
    }


def _age(mark: HighWaterMark) -> tuple[int, bool, int]:
    """Return a key that sorts marks by age:
    of one sequence number, the snapshot is still known that has expired since."""
    number = mark.sequence_number
    return number, number > 0 and mark.snapshot_id is not None, mark.last_updated_ms


def _newest(metadata: TableMetadata) -> Snapshot | None:
    if metadata.format_version == 1 or metadata.last_sequence_number == 0:
        return metadata.snapshots[-1] if metadata.snapshots else None
    return _with_number(metadata, metadata.last_sequence_number)


def _with_number(metadata: TableMetadata, sequence_number: int) -> Snapshot | None:
    """Return the snapshot of a sequence number above 0; new ones stand at the end."""
    if sequence_number == 0:
        return None
    found = (one for one in reversed(metadata.snapshots) if one.sequence_number == sequence_number)
    return next(found, None)


def _highest(some: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    return {**some, **{key: epoch for key, epoch in others.items() if epoch > some.get(key, -1)}}


def print_high_water_mark(mark: HighWaterMark) -> bytes:
    """Print the high-water mark as it is stored."""
    return orjson.dumps(
        {
            "v": HIGH_WATER_MARK_VERSION,
            "table": str(mark.table_uuid),
            "accepted-ms": mark.accepted_ms,
            "sequence-number": mark.sequence_number,
            "snapshot-id": mark.snapshot_id,
            "last-updated-ms": mark.last_updated_ms,
            "producers": mark.producers,
            "forgotten": mark.forgotten,
            "forgotten-ms": mark.forgotten_ms,
            "forgotten-at": mark.forgotten_at,
            "landed-again": mark.landed_again,
        }
    )


def parse_high_water_mark(content: bytes, table_uuid: UUID) -> HighWaterMark:
    """Parse a mark: the inverse of `print_high_water_mark`. Errors: `InvalidMetadataError`, also
    for another table's or a newer version.
    """
    where = f"the high-water mark of table {table_uuid}"
    try:
        reader = Reader(orjson.loads(content), where)
        version = reader.integer("v")
        if version != HIGH_WATER_MARK_VERSION:
            raise InvalidMetadataError(
                f"{where} has version {version}, this version reads {HIGH_WATER_MARK_VERSION}"
            )
        named = UUID(reader.text("table"))
        if named != table_uuid:
            raise InvalidMetadataError(f"{where} is that of table {named}")
        return HighWaterMark(
            table_uuid,
            reader.integer("accepted-ms"),
            reader.integer("sequence-number"),
            reader.optional_integer("snapshot-id"),
            reader.integer("last-updated-ms"),
            _epochs(reader, "producers"),
            _epochs(reader, "forgotten"),
            reader.integer("forgotten-ms"),
            _epochs(reader, "forgotten-at"),
            _epochs(reader, "landed-again"),
        )
    except ValueError as error:
        raise InvalidMetadataError(f"{where} cannot be read: {error}") from error


def _epochs(reader: Reader, key: str) -> dict[str, int]:
    found = Reader(reader.take(key), f"{reader.where}: `{key}`")
    return {name: found.integer(name) for name in list(found.rest)}
