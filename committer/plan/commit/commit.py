"""Plans everything that one attempt writes, from a batch and the table's state.

Each attempt is planned anew from the state that its swap is conditional on. The planner asks for
bytes as a value (`NeedsManifestList`) and is called again with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from committer.errors import InvalidMetadataError
from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.manifest.manifest_list import (
    ManifestFile,
    encode_manifest_file,
    encode_manifest_list,
)
from committer.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.updates.metadata_update import (
    AddSnapshot,
    RemoveProperties,
    SetProperties,
    SetSnapshotRef,
    Update,
)
from committer.iceberg.values.locations import manifest_list_location, metadata_folder
from committer.ledger_entry import (
    Landed,
    ProducerEntry,
    parse_property_key,
    print_entry,
    property_key,
    short_fingerprint,
)
from committer.plan.batch.batch import Batch, PreparedManifest, sync_marker
from committer.plan.cleanup.expiry import applicable_expiry
from committer.plan.cleanup.maintenance import Upkeep, applicable_merges, with_merges
from committer.plan.commit.commit_summary import ManifestCounts, commit_summary
from committer.plan.commit.swap import plan_swap
from committer.plan.ledger.evidence import EVIDENCE_KEY, print_evidence
from committer.plan.ledger.ledger import Ledger
from committer.plan.ledger.one_shots import (
    OneShots,
    may_be_forgotten,
    one_shots_key,
    print_one_shots,
)
from committer.plan.ledger.state import ListedManifest, TableState
from committer.ports.pointer_swap import Swap
from committer.ports.storage import NewObject
from committer.request.attempt import nonce_ms
from committer.request.commit_request import CommitRequest

_NO_UPKEEP = Upkeep()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to land a batch: its number from 1, the uuid of its metadata file, and the time.

    `engine_version`: the version of Frazil, which its snapshot's summary names; empty: not known.
    """

    number: int
    metadata_uuid: UUID
    now_ms: int
    engine_version: str = ""


@dataclass(frozen=True, slots=True)
class LedgerCleanup:
    """Upkeep of the ledger that travels with the next commit, by property key.

    `close_gaps`: the landed epoch below which nothing of the producer is outstanding any more.
    `drop`: entries of one-shot producers whose request has left the inbox. `settled`: attempts that
    have landed and left the inbox, so that their details may be forgotten.
    """

    close_gaps: Mapping[str, int] = field(default_factory=dict)
    drop: frozenset[str] = frozenset()
    settled: Mapping[str, frozenset[UUID]] = field(default_factory=dict)

    def of_branch(self, branch: str) -> LedgerCleanup:
        """Return the clean-up of one branch: a catalog may check the head of the branch that a
        commit moves, and nothing else (REST), so an entry of another branch may be older than it
        looks.
        """
        return LedgerCleanup(
            {key: below for key, below in self.close_gaps.items() if _is_of(key, branch)},
            frozenset(key for key in self.drop if _is_of(key, branch)),
            {key: attempts for key, attempts in self.settled.items() if _is_of(key, branch)},
        )


def _is_of(key: str, branch: str) -> bool:
    parsed = parse_property_key(key)
    return parsed is not None and parsed[1] == branch


@dataclass(frozen=True, slots=True)
class NeedsManifestList:
    """The head's manifest list is not in the state: read it, add it, plan again."""

    snapshot_id: int
    location: str


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The objects that an attempt writes in parallel, the swap after them, and the state after it.

    `landed` is keyed by inbox key. `cleanup` and `upkeep` become part of this commit.
    """

    swap: Swap
    objects: tuple[NewObject, ...]
    snapshot: Snapshot
    landed: Mapping[str, Landed]
    cleanup: LedgerCleanup
    upkeep: Upkeep
    state: TableState


def plan_commit(
    state: TableState,
    batch: Batch,
    prepared: tuple[PreparedManifest, ...],
    attempt: Attempt,
    cleanup: LedgerCleanup,
    upkeep: Upkeep = _NO_UPKEEP,
) -> CommitPlan | NeedsManifestList:
    """Plan one attempt. `prepared` are the batch's manifests, `upkeep` what background work has
    finished: what no longer applies to this base is left out."""
    metadata = state.metadata
    cleanup = cleanup.of_branch(batch.branch)
    parent = metadata.branch_head(batch.branch)
    carried = _carried_manifests(state, parent)
    if isinstance(carried, NeedsManifestList):
        return carried
    sequence_number = 0 if metadata.format_version == 1 else metadata.last_sequence_number + 1
    merges = applicable_merges(upkeep, batch.branch, carried, metadata.format_version)
    rows = with_merges(
        carried, merges, snapshot_id=batch.snapshot_id, sequence_number=sequence_number
    )
    listed, next_row_id = _list_manifests(metadata, batch, prepared, rows, sequence_number)
    counts = ManifestCounts.of(prepared, carried, merges)
    snapshot = _snapshot(metadata, parent, batch, attempt)
    summary = commit_summary(metadata, batch, prepared, counts, attempt.engine_version)
    snapshot = replace(snapshot, summary=summary)
    snapshot = replace(snapshot, added_rows=_added_rows(metadata, next_row_id))
    landed = {
        checked.request.inbox_key: Landed(
            checked.request.epoch,
            checked.request.fingerprint.kind,
            short_fingerprint(checked.request.fingerprint.value),
            checked.request.attempt,
            snapshot.snapshot_id,
            snapshot.sequence_number,
        )
        for checked in batch.requests
    }
    entries, dropped = _ledger_changes(state.ledger, batch, landed, cleanup, attempt.now_ms)
    expired = applicable_expiry(upkeep.expired, state, batch.branch, now_ms=attempt.now_ms)
    removals = expired.updates if expired else ()
    properties = {key: print_entry(entry) for key, entry in entries.items()}
    ledger = state.ledger.without(dropped).with_landed(entries)
    if dropped:
        one_shots = _with_forgotten(state, batch.branch, dropped, attempt.now_ms)
        properties[one_shots_key(batch.branch)] = print_one_shots(one_shots)
        ledger = ledger.with_one_shots(batch.branch, one_shots)
    updates = (*_updates(metadata, batch.branch, snapshot, properties, dropped), *removals)
    swap = plan_swap(state.table, updates, uuid=attempt.metadata_uuid, now_ms=attempt.now_ms)
    manifest_list = NewObject(
        snapshot.manifest_list or "", _manifest_list(metadata, batch, snapshot, parent, listed)
    )
    after = TableState(
        replace(state.table, metadata=swap.metadata, metadata_location=swap.metadata_location),
        ledger,
        _heads(state, batch, snapshot, listed),
    )
    objects = (*(manifest.written for manifest in prepared), manifest_list)
    taken = Upkeep(merges, expired)
    return CommitPlan(swap, objects, snapshot, landed, cleanup, taken, after)


def _carried_manifests(
    state: TableState, parent: Snapshot | None
) -> tuple[ListedManifest, ...] | NeedsManifestList:
    if parent is None:
        return ()
    known = state.heads.get(parent.snapshot_id)
    if known is not None:
        return known
    if parent.manifest_list is None:
        raise InvalidMetadataError(
            f"snapshot {parent.snapshot_id} of table `{state.table.identifier}` lists its manifests"
            " inline (an old format v1 form): expected a manifest list; rewrite the table's"
            " manifests with an engine that reads it"
        )
    return NeedsManifestList(parent.snapshot_id, parent.manifest_list)


def _list_manifests(
    metadata: TableMetadata,
    batch: Batch,
    prepared: tuple[PreparedManifest, ...],
    carried: tuple[ListedManifest, ...],
    sequence_number: int,
) -> tuple[tuple[ListedManifest, ...], int]:
    """Return the rows of the new list, new manifests first, and v3's next row id behind them."""
    next_row_id = metadata.next_row_id or 0
    listed: list[ListedManifest] = []
    for manifest in prepared:
        row = _row(manifest, batch, sequence_number)
        listed.append(ListedManifest(b"", row))
    listed.extend(carried)
    for position, entry in enumerate(listed):
        row = entry.row
        if _needs_row_ids(metadata, row):
            row = replace(row, first_row_id=next_row_id)
            next_row_id += (row.existing_rows_count or 0) + (row.added_rows_count or 0)
        if row is not entry.row or not entry.encoded:
            encoded = encode_manifest_file(row, metadata.format_version)
            listed[position] = ListedManifest(encoded, row)
    return tuple(listed), next_row_id


def _needs_row_ids(metadata: TableMetadata, row: ManifestFile) -> bool:
    """Return whether a manifest needs row ids:
    data without them in version 3, also one from before an upgrade."""
    is_data = row.content is ManifestContent.DATA
    return metadata.format_version >= 3 and is_data and row.first_row_id is None


def _row(manifest: PreparedManifest, batch: Batch, sequence_number: int) -> ManifestFile:
    encoded = manifest.encoded
    return ManifestFile(
        manifest_path=manifest.location,
        manifest_length=len(encoded.content),
        partition_spec_id=manifest.spec_id,
        sequence_number=sequence_number,
        min_sequence_number=sequence_number,
        added_snapshot_id=batch.snapshot_id,
        added_files_count=encoded.added_files_count,
        existing_files_count=0,
        deleted_files_count=0,
        added_rows_count=encoded.added_rows_count,
        existing_rows_count=0,
        deleted_rows_count=0,
        partitions=encoded.partitions,
    )


def _snapshot(
    metadata: TableMetadata,
    parent: Snapshot | None,
    batch: Batch,
    attempt: Attempt,
) -> Snapshot:
    folder = metadata_folder(metadata.location, metadata.properties)
    version_1 = metadata.format_version == 1
    return Snapshot(
        snapshot_id=batch.snapshot_id,
        parent_snapshot_id=parent.snapshot_id if parent else None,
        sequence_number=0 if version_1 else metadata.last_sequence_number + 1,
        # Readers refuse logs that run backwards; a clock that jumped back must not write one.
        timestamp_ms=max(attempt.now_ms, metadata.last_updated_ms),
        manifest_list=manifest_list_location(
            folder, batch.snapshot_id, attempt.number, batch.commit_uuid
        ),
        schema_id=metadata.current_schema_id,
        first_row_id=(metadata.next_row_id or 0) if metadata.format_version >= 3 else None,
    )


def _added_rows(metadata: TableMetadata, next_row_id: int) -> int | None:
    if metadata.format_version < 3:
        return None
    return next_row_id - (metadata.next_row_id or 0)


def _ledger_changes(
    ledger: Ledger,
    batch: Batch,
    landed: Mapping[str, Landed],
    cleanup: LedgerCleanup,
    now_ms: int,
) -> tuple[dict[str, ProducerEntry], frozenset[str]]:
    """Return the entries to write and to drop. A producer of this batch is never dropped by it, and
    of one that was frozen since the clean-up was found nothing is forgotten.
    """
    entries: dict[str, ProducerEntry] = {}
    for key, requests in _by_producer(batch).items():
        entry = ledger.entry_of(requests[0])
        entry = entry.with_promises(
            sequential=all(one.producer.sequential for one in requests),
            one_shot_ms=_latest_one_shot_ms(requests),
        )
        for one in requests:
            entry = entry.with_name(one.producer.name)
        entries[key] = entry.with_landed(*(landed[one.inbox_key] for one in requests))
    for key, attempts in cleanup.settled.items():
        known = entries.get(key) or ledger.entries.get(key)
        shorter = known.without_settled(attempts) if known else None
        if shorter is not None and shorter is not known and key not in ledger.frozen:
            entries[key] = shorter
    for key, below in cleanup.close_gaps.items():
        known = entries.get(key) or ledger.entries.get(key)
        if known is not None and key not in ledger.frozen:
            entries[key] = known.without_gaps(below)
    gone = (key for key in cleanup.drop if key in ledger.entries and key not in ledger.frozen)
    dropped = {key for key in gone if may_be_forgotten(ledger.entries[key], now_ms)}
    one_shots = ledger.one_shots.get(batch.branch)
    if one_shots is not None and one_shots.problem is not None:
        dropped.clear()  # they would leave no tombstones
    return entries, frozenset(dropped - entries.keys())


def _by_producer(batch: Batch) -> dict[str, list[CommitRequest]]:
    """Return the requests of a batch by the ledger's property of their producer."""
    found: dict[str, list[CommitRequest]] = {}
    for checked in batch.requests:
        request = checked.request
        found.setdefault(property_key(request.producer.id, request.branch), []).append(request)
    return found


def _latest_one_shot_ms(requests: Sequence[CommitRequest]) -> int | None:
    """Return the latest nonce time, if all of them promise that their producer never publishes
    again."""
    if not all(one.producer.one_shot for one in requests):
        return None
    return max(nonce_ms(one.nonce) or 0 for one in requests)


def _with_forgotten(
    state: TableState, branch: str, dropped: frozenset[str], now_ms: int
) -> OneShots:
    """Return the forgotten one-shot producers once these entries are removed too."""
    known = state.ledger.one_shots.get(branch) or OneShots(state.metadata.require_uuid())
    latest_ms = {
        parsed[0]: state.ledger.entries[key].one_shot_ms or 0
        for key in dropped
        if (parsed := parse_property_key(key)) is not None
    }
    return known.with_forgotten(latest_ms, now_ms)


def _updates(
    metadata: TableMetadata,
    branch: str,
    snapshot: Snapshot,
    properties: Mapping[str, str],
    dropped: frozenset[str],
) -> tuple[Update, ...]:
    ref = metadata.refs.get(branch)
    head = (
        replace(ref, snapshot_id=snapshot.snapshot_id)
        if ref
        else SnapshotRef(snapshot_id=snapshot.snapshot_id, type="branch")
    )
    updates: list[Update] = [
        AddSnapshot(snapshot),
        SetSnapshotRef(branch, head),
        SetProperties(properties),
    ]
    if dropped:
        updates.append(RemoveProperties(tuple(sorted(dropped))))
    return tuple(updates)


def _manifest_list(
    metadata: TableMetadata,
    batch: Batch,
    snapshot: Snapshot,
    parent: Snapshot | None,
    listed: tuple[ListedManifest, ...],
) -> bytes:
    return encode_manifest_list(
        [manifest.encoded for manifest in listed],
        format_version=metadata.format_version,
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=parent.snapshot_id if parent else None,
        sequence_number=snapshot.sequence_number,
        first_row_id=snapshot.first_row_id,
        sync=sync_marker(batch.commit_uuid, 2**32),
        extra_metadata={
            EVIDENCE_KEY: print_evidence([checked.request for checked in batch.requests])
        },
    )


def _heads(
    state: TableState,
    batch: Batch,
    snapshot: Snapshot,
    listed: tuple[ListedManifest, ...],
) -> dict[int, tuple[ListedManifest, ...]]:
    """Keep the new head's manifests; the old head's unless another ref still names it."""
    others = {ref.snapshot_id for name, ref in state.metadata.refs.items() if name != batch.branch}
    heads = {head: rows for head, rows in state.heads.items() if head in others}
    heads[snapshot.snapshot_id] = listed
    return heads
