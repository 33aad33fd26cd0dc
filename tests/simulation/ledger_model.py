"""A model of one table's ledger: which attempt of which epoch has landed, by the snapshots alone.

Fed with every snapshot that a committer has added (its manifest list says which requests it holds),
and with what was published; so it knows nothing of the ledger's own entries, which it judges (I3,
I11, and I2 over time).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from uuid import UUID

from committer.errors import InvalidMetadataError
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.ledger_entry import (
    NO_SNAPSHOT,
    Landed,
    ProducerEntry,
    parse_entry,
    parse_property_key,
    property_key,
    short_fingerprint,
)
from committer.plan.batch.data_locations import attempt_named
from committer.plan.ledger.evidence import COUNT_KEY
from committer.plan.ledger.high_water_mark import HighWaterMark
from committer.request.attempt import nonce_ms
from committer.request.commit_request import CommitRequest
from committer.request.request_format import EncodedRequest
from committer.request.request_key import inbox_key
from tests.simulation.contents import Read, SnapshotContents

_MAKE_NO_SNAPSHOT = ("alter", "cherry-pick")
# An invariant and what broke it.
Problem = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Landing:
    """One request in one snapshot. `files`: those that it adds, of a rewrite without the groups
    that have not landed; `paths`: those of data that a reader finds by then. `proof`: what the
    ledger says, `evidence`: what a manifest list does, None where no snapshot was made. They differ
    of a staged request: the ledger names the head that its branch had.
    """

    branch: str
    request: CommitRequest
    proof: Landed
    evidence: Landed | None
    files: tuple[DataFile, ...]
    paths: frozenset[str]

    @property
    def listed(self) -> frozenset[str]:
        """The paths of all its files but vectors, which the committer may unite with others."""
        return frozenset(one.file_path for one in self.files if not one.is_deletion_vector)

    def stands_for(self, request: CommitRequest) -> bool:
        """Return whether another attempt of the epoch may count as landed with this one."""
        same_kind = self.proof.fingerprint_kind == request.fingerprint.kind
        if not same_kind:
            return request.producer.sequential or self.proof.attempt == request.attempt
        return self.proof.fingerprint == short_fingerprint(request.fingerprint.value)


@dataclass(slots=True)
class LedgerModel:
    """The landings of one table. `landed` by branch, producer and epoch, as long as it counts;
    `attempts`: all that ever landed, `snapshot_ids`: where; one that was rolled back and landed
    again has several. `added`: the snapshot that added each path. `forgotten`: one-shot producers
    whose entries have expired, by branch and id, with the latest time of their nonces.
    """

    table_uuid: UUID
    published: Callable[[str], EncodedRequest | None]
    read: Read
    landed: dict[tuple[str, str, int], Landing] = field(default_factory=dict)
    attempts: dict[UUID, Landing] = field(default_factory=dict)
    snapshot_ids: defaultdict[UUID, set[int]] = field(default_factory=lambda: defaultdict(set))
    added: dict[str, int] = field(default_factory=dict)
    forgotten: dict[tuple[str, str], int] = field(default_factory=dict)

    def find(self, request: CommitRequest) -> Landing | None:
        """Return the landing of the request's epoch."""
        return self.landed.get((request.branch, request.producer.id, request.epoch))

    def ever_landed(self, request: CommitRequest) -> list[Landing]:
        """Return all that has landed of the request's epoch, whether it still counts or not."""
        name = request.branch, request.producer.id, request.epoch
        return [
            one
            for one in self.attempts.values()
            if (one.branch, one.request.producer.id, one.request.epoch) == name
        ]

    def may_be_forgotten(self, request: CommitRequest) -> bool:
        """Return whether the one-shot producer was forgotten, or is as old as one that was."""
        if (request.branch, request.producer.id) in self.forgotten:
            return True
        made_ms = nonce_ms(request.nonce)
        times = (ms for (branch, _), ms in self.forgotten.items() if branch == request.branch)
        return made_ms is not None and made_ms <= max(times, default=-1)

    def forgive(self, metadata: TableMetadata, keys: Iterable[str] | None = None) -> set[str]:
        """Forget the landings that this metadata (of these entries) does not claim, after an
        operator has accepted it: the requests may land again. That they landed once stays on
        record. Return their files.
        """
        again: set[str] = set()
        wanted = None if keys is None else {parse_property_key(key) for key in keys}
        for known in list(self.landed):
            branch, producer, epoch = known
            if wanted is not None and (producer, branch) not in wanted:
                continue
            entry = entry_in(metadata, property_key(producer, branch))
            if entry is None or epoch not in entry.epochs:
                again |= self.landed.pop(known).listed
                continue
            # Of an epoch that landed twice, the one that counts is the one that is remembered.
            remembered = entry.landed(epoch)
            counts = self.attempts.get(remembered.attempt) if remembered else None
            if counts is not None:
                self.landed[known] = counts
        return self._may_come_again(again)

    def forget_unproven(
        self, metadata: TableMetadata, mark: HighWaterMark, expired: Set[int]
    ) -> set[str]:
        """Forget the landings of which no proof is left, as `guarantees.md` says under "Ledger
        unset": this metadata of another engine has no entry of the producer, every snapshot of the
        landing was `expired` by other engines, and the high-water mark never knew of the producer.
        Return their files.
        """
        again: set[str] = set()
        covered = {key for key, _ in mark.required}
        for known, landing in list(self.landed.items()):
            branch, producer, _ = known
            key = property_key(producer, branch)
            is_proven = key in metadata.properties or key in covered
            if not is_proven and self.snapshot_ids[landing.proof.attempt] <= expired:
                again |= self.landed.pop(known).listed
        return self._may_come_again(again)

    def _may_come_again(self, paths: set[str]) -> set[str]:
        for path in paths:
            self.added.pop(path, None)
        return paths

    # --- A commit of ours ------------------------------------------------------------------------

    def commit(
        self,
        contents: SnapshotContents,
        branch: str,
        accepted: set[str],
        after: TableMetadata,
        picked: Sequence[DataFile],
    ) -> Iterator[Problem]:
        """Take over a snapshot that a committer has added to a branch. `accepted` are keys that an
        operator allows to land again: each of them once, so a landing takes it out. `picked`: the
        files of the snapshot that it makes again.
        """
        snapshot = contents.snapshot
        expected: set[str] = set()
        for (producer, epoch), proof in contents.evidence.items():
            key = inbox_key(self.table_uuid, producer, epoch, proof.attempt)
            sealed = self.published(key)
            if sealed is None:
                yield "I3", f"snapshot {snapshot.snapshot_id} holds {key}, never published"
                continue
            request = sealed.request
            if request.branch != branch and not request.stage_only:
                yield "I3", f"{key} is for `{sealed.request.branch}`, and landed on `{branch}`"
            files = (*_landed_files(sealed, self.read, contents), *picked)
            expected.update(one.file_path for one in files if not one.is_deletion_vector)
            for one in picked:
                self.added.pop(one.file_path, None)
            data = (one for one in files if one.content is DataFileContent.DATA)
            paths = frozenset(one.file_path for one in data)
            told = proof
            if request.stage_only:
                told, paths = _at_head(proof, after, request.branch), frozenset()
            yield from self._land(
                Landing(request.branch, request, told, proof, files, paths), accepted
            )
            self.snapshot_ids[proof.attempt].add(proof.snapshot_id)
        yield from self._files(contents, expected)

    def _land(self, landing: Landing, accepted: set[str]) -> Iterator[Problem]:
        request, proof = landing.request, landing.proof
        key = inbox_key(self.table_uuid, request.producer.id, request.epoch, proof.attempt)
        known = self.find(request)
        # It may have landed itself: behind what was rolled back, or before that was forgiven; and
        # its staged snapshot may have been picked since.
        is_forgiven = known is None and proof.attempt in self.attempts
        if key in accepted or is_forgiven:
            accepted.discard(key)
            for path in landing.listed:
                self.added.pop(path, None)
        elif known is not None:
            yield (
                "I3",
                f"{key} landed in snapshot {proof.snapshot_id}, after attempt"
                f" {known.request.attempt} had landed in {known.proof.snapshot_id}",
            )
        name = landing.branch, request.producer.id, request.epoch
        self.landed[name] = self.attempts[proof.attempt] = landing
        self.snapshot_ids[proof.attempt].add(proof.snapshot_id)

    def unlisted(
        self, before: TableMetadata, after: TableMetadata
    ) -> Iterator[tuple[CommitRequest, Landed]]:
        """Yield the requests that land by a swap without a snapshot of theirs: changes of the
        table, and picks that only move a head. The ledger alone says so.
        """
        for key, text in after.properties.items():
            parsed = parse_property_key(key)
            if parsed is None or before.properties.get(key) == text:
                continue
            old, new = entry_in(before, key), entry_in(after, key)
            known = set() if old is None else {one.attempt for one in old.latest}
            for one in () if new is None else new.latest:
                name = inbox_key(self.table_uuid, parsed[0], one.epoch, one.attempt)
                sealed = None if one.attempt in known else self.published(name)
                if sealed is not None and sealed.request.operation in _MAKE_NO_SNAPSHOT:
                    yield sealed.request, one

    def land_unlisted(
        self, request: CommitRequest, proof: Landed, accepted: set[str]
    ) -> Iterator[Problem]:
        """Take over a request that made no snapshot."""
        landing = Landing(request.branch, request, proof, None, (), frozenset())
        yield from self._land(landing, accepted)

    def remembered(self, contents: SnapshotContents, after: TableMetadata) -> Iterator[Problem]:
        """Check I11 of one commit: the ledger keeps the details of each epoch in it as long as its
        request may be in the inbox.
        """
        for landing in self._of(contents):
            key = property_key(landing.request.producer.id, landing.branch)
            entry = entry_in(after, key)
            if entry is None or landing.proof not in entry.latest:
                yield "I11", f"`{key}` does not remember epoch {landing.proof.epoch}"

    def _of(self, contents: SnapshotContents) -> Iterator[Landing]:
        found = (self.attempts.get(proof.attempt) for proof in contents.evidence.values())
        return (landing for landing in found if landing is not None)

    def _files(self, contents: SnapshotContents, expected: set[str]) -> Iterator[Problem]:
        snapshot_id, added = contents.snapshot.snapshot_id, set(contents.added)
        said = (contents.snapshot.summary or {}).get(COUNT_KEY)
        if said != str(len(contents.evidence)):
            count = len(contents.evidence)
            yield "I3", f"snapshot {snapshot_id} says {said} requests, its list names {count}"
        if missing := expected - added:
            yield "I3", f"snapshot {snapshot_id} lacks {len(missing)} files: {min(missing)}"
        if unknown := added - expected:
            yield "I3", f"snapshot {snapshot_id} has {len(unknown)} unknown files: {min(unknown)}"
        if len(added) != len(contents.added):
            yield "I2", f"snapshot {snapshot_id} adds a file twice"
        for path in added:
            before = self.added.setdefault(path, snapshot_id)
            # A file that was adopted may come again once it is live no more: its name holds no
            # attempt, and that it is not live twice is checked of each snapshot.
            if before != snapshot_id and attempt_named(path):
                yield "I2", f"{path} was added by snapshot {before}, and again by {snapshot_id}"

    # --- The ledger ------------------------------------------------------------------------------

    def changed_entries(self, before: TableMetadata, after: TableMetadata) -> Iterator[Problem]:
        """Check I11 of one swap: each entry that it changed lists the epochs that have landed."""
        old, new = before.properties, after.properties
        for key in new:
            if old.get(key) != new[key] and parse_property_key(key):
                yield from self.entry(after, key)
        for key in old:
            if key not in new and parse_property_key(key):
                yield from self._dropped(old[key], key)

    def all_entries(self, metadata: TableMetadata) -> Iterator[Problem]:
        """Check I11 of a whole table: the ledger lists all landed epochs, entry by entry."""
        keys = {property_key(producer, branch) for branch, producer, _ in self.landed}
        for key in sorted(keys):
            if key in metadata.properties:
                yield from self.entry(metadata, key)
            elif not self.is_one_shot(key):
                yield "I11", f"the ledger has no `{key}`"

    def entry(self, metadata: TableMetadata, key: str) -> Iterator[Problem]:
        """Check I11 of one entry: its epochs are those that landed, and their details are right."""
        entry = entry_in(metadata, key)
        if entry is None:
            yield "I11", f"`{key}` cannot be read"
            return
        landings = {one.proof.epoch: one for one in self._landings(key)}
        missing = [epoch for epoch in landings if epoch not in entry.epochs]
        if missing:
            yield "I11", f"`{key}` does not know of epochs {missing}, which have landed"
        claimed = {epoch for low, high in entry.epochs for epoch in _span(low, high)}
        unproven = claimed - landings.keys()
        if unproven and not entry.sequential:
            yield "I11", f"`{key}` claims epochs {sorted(unproven)[:5]}, which never landed"
        for epoch in {landed.epoch for landed in entry.latest}:
            landing = landings.get(epoch)
            # A staged snapshot to which its branch was moved proves its request by itself.
            if landing and entry.landed(epoch) not in (landing.proof, landing.evidence):
                yield "I11", f"`{key}` says {entry.landed(epoch)}, it landed as {landing.proof}"

    def _dropped(self, text: str, key: str) -> Iterator[Problem]:
        """Check that a dropped entry is of a one-shot producer, and note that as forgotten."""
        if not self.is_one_shot(key):
            yield "I11", f"`{key}` was dropped: {text[:100]}"
        for one in self._landings(key):
            name, made_ms = (one.branch, one.request.producer.id), nonce_ms(one.request.nonce) or 0
            self.forgotten[name] = max(made_ms, self.forgotten.get(name, -1))

    def is_one_shot(self, key: str) -> bool:
        """Return whether an entry is that of a one-shot producer, which expires."""
        return all(one.request.producer.one_shot for one in self._landings(key))

    def _landings(self, key: str) -> Iterator[Landing]:
        parsed = parse_property_key(key)
        for (branch, producer, _), landing in self.landed.items():
            if parsed == (producer, branch):
                yield landing


def _at_head(proof: Landed, after: TableMetadata, branch: str) -> Landed:
    """Return what the ledger says of a staged request: it names the head of its branch."""
    head = after.branch_head(branch)
    if head is None:
        return replace(proof, snapshot_id=NO_SNAPSHOT, sequence_number=0)
    return replace(proof, snapshot_id=head.snapshot_id, sequence_number=head.sequence_number)


def _span(low: int, high: int) -> range:
    """Return the epochs of a range; of a very long one (epochs that are timestamps) its end."""
    return range(max(low, high - 1_000), high + 1)


def entry_in(metadata: TableMetadata, key: str) -> ProducerEntry | None:
    """Return an entry of the ledger; None if none can be read."""
    text = metadata.properties.get(key)
    return None if text is None else _parsed(text)


def is_frozen(metadata: TableMetadata, key: str) -> bool:
    """Return whether a property is an entry that an operator has frozen."""
    entry = entry_in(metadata, key) if parse_property_key(key) else None
    return entry is not None and entry.frozen is not None


@lru_cache(maxsize=64)
def _parsed(text: str) -> ProducerEntry | None:
    """Parse an entry, once for the several rules that look at it."""
    try:
        return parse_entry(text)
    except InvalidMetadataError:
        return None


def _landed_files(
    sealed: EncodedRequest, read: Read, contents: SnapshotContents
) -> Iterator[DataFile]:
    """Yield the files that a request adds, without those of groups that are left out whole."""
    left_out = {
        path
        for group in sealed.request.needs.groups
        if set(contents.added).isdisjoint(group.added_data_files)
        for path in group.added_data_files
    }
    return (one for one in _files_of(sealed, read) if one.file_path not in left_out)


def _files_of(sealed: EncodedRequest, read: Read) -> Iterator[DataFile]:
    """Yield the files that a request adds, from its own bytes."""
    for reference in sealed.request.manifests:
        content = sealed.manifest(reference) if reference.path is None else read(reference.path)
        if content is not None:
            for entry in decode_manifest(content).entries:
                yield replace(entry.data_file, spec_id=reference.partition_spec_id)


def evidence_of_history(
    metadata: TableMetadata, contents: Mapping[int, SnapshotContents]
) -> dict[tuple[str, int], Landed]:
    """Return the landings that the snapshots of main prove, newest first: a rebuilt ledger."""
    found: dict[tuple[str, int], Landed] = {}
    head = metadata.current_snapshot
    while head is not None:
        for key, landed in contents[head.snapshot_id].evidence.items():
            found.setdefault(key, landed)
        parent = head.parent_snapshot_id
        head = None if parent is None else metadata.snapshot_by_id(parent)
    return found
