"""Chooses the snapshots and refs that expire, and decides when a commit removes them.

Iceberg's rules, to the letter, with a floor of Frazil's own below them. Deleting their files is
planned in `reachability.py`. Source: docs/reference/iceberg-notes.md 8.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from committer.iceberg.metadata.property_values import is_true
from committer.iceberg.metadata.snapshot import MAIN, WAP_ID, Snapshot, SnapshotRef
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.updates.metadata_update import RemoveSnapshotRef, RemoveSnapshots, Update
from committer.plan.ledger.evidence import SNAPSHOTS_MAX
from committer.plan.ledger.state import TableState
from committer.request.commit_request import CommitRequest
from committer.table_defaults import (
    EXPIRE_PROPERTY,
    GC_PROPERTY,
    ICEBERG_SNAPSHOT_AGE_MS,
    KEEP_SNAPSHOTS_PROPERTY,
    SNAPSHOT_AGE_PROPERTY,
)

_REF_AGE_PROPERTY = "history.expire.max-ref-age-ms"
# The defaults of engines that find no property.
_ICEBERG_DEFAULTS = {
    KEEP_SNAPSHOTS_PROPERTY: 1,
    SNAPSHOT_AGE_PROPERTY: ICEBERG_SNAPSHOT_AGE_MS,
    _REF_AGE_PROPERTY: 2**63 - 1,
}

# Proofs are searched in the manifest lists of this many snapshots, so these never expire.
SNAPSHOTS_MIN = SNAPSHOTS_MAX
# Below this share of what stays an expiry costs more than it saves. With it, what expiry costs for
# each commit is the same for every retention.
_SURPLUS_SHARE = 20
# Bounds the expiry of one commit and the background work after it.
EXPIRED_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention that a table's properties ask for. A ref's own values go first. Ages in ms."""

    min_snapshots_to_keep: int
    max_snapshot_age_ms: int
    max_ref_age_ms: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Retention | None:
        """Read a table's retention; None if a value cannot be read: then nothing expires."""
        try:
            keep, age_ms, ref_age_ms = (
                int(properties.get(key, default)) for key, default in _ICEBERG_DEFAULTS.items()
            )
        except ValueError:
            return None
        return cls(keep, age_ms, ref_age_ms) if keep > 0 else None


@dataclass(frozen=True, slots=True)
class Needed:
    """The snapshots that pending requests were made against or name, those that they pick, also by
    the `wap.id` of a summary, and the branches they are for."""

    snapshot_ids: frozenset[int] = frozenset()
    branches: frozenset[str] = frozenset()
    picked_ids: frozenset[int] = frozenset()
    wap_ids: frozenset[str] = frozenset()

    @classmethod
    def of(cls, requests: Iterable[CommitRequest]) -> Needed:
        """Return what these requests need."""
        found = tuple(requests)
        needs = [one.needs for one in found]
        named = (
            *(one.base_snapshot_id for one in needs),
            *(getattr(change, "snapshot_id", None) for one in found for change in one.changes),
        )
        return cls(
            frozenset(one for one in named if one is not None),
            frozenset(one.branch for one in found),
            frozenset(
                one.source_snapshot_id for one in needs if one.source_snapshot_id is not None
            ),
            frozenset(one.wap_id for one in needs if one.wap_id is not None),
        )

    @classmethod
    def joined(cls, every: Collection[Needed]) -> Needed:
        """Return what all of these need."""
        return cls(
            frozenset(chain.from_iterable(one.snapshot_ids for one in every)),
            frozenset(chain.from_iterable(one.branches for one in every)),
            frozenset(chain.from_iterable(one.picked_ids for one in every)),
            frozenset(chain.from_iterable(one.wap_ids for one in every)),
        )

    def in_table(self, metadata: TableMetadata) -> frozenset[int]:
        """Return the ids of its snapshots, with the parents of those to pick: what came after is
        compared with a replacement of partitions."""
        if not self.picked_ids and not self.wap_ids:
            return self.snapshot_ids
        picked = [one for one in metadata.snapshots if self._picks(one)]
        parents = (one.parent_snapshot_id for one in picked)
        own = (one.snapshot_id for one in picked)
        return self.snapshot_ids.union(own, (one for one in parents if one is not None))

    def takes_any_of(self, expired: ExpiredSnapshots) -> bool:
        """Return whether an expiry would remove one of its snapshots or branches."""
        taken = not self.snapshot_ids.isdisjoint(expired.snapshot_ids)
        picked = any(map(self._picks, expired.snapshots))
        return taken or picked or not self.branches.isdisjoint(expired.refs)

    def _picks(self, one: Snapshot) -> bool:
        wap_id = (one.summary or {}).get(WAP_ID)
        return one.snapshot_id in self.picked_ids or wap_id in self.wap_ids


NOTHING = Needed()


@dataclass(frozen=True, slots=True)
class ExpiredSnapshots:
    """Snapshots to remove, oldest first, and refs to remove before them."""

    snapshots: tuple[Snapshot, ...]
    refs: tuple[str, ...] = ()

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        return tuple(snapshot.snapshot_id for snapshot in self.snapshots)

    @property
    def updates(self) -> tuple[Update, ...]:
        removed = (RemoveSnapshots(self.snapshot_ids),) if self.snapshots else ()
        return (*(RemoveSnapshotRef(name) for name in self.refs), *removed)

    def is_gone_from(self, metadata: TableMetadata) -> bool:
        """Return whether the table has none of the snapshots any more;
        without any, none of the refs."""
        if self.snapshots:
            return not any(each in metadata.snapshots_by_id for each in self.snapshot_ids)
        return not any(name in metadata.refs for name in self.refs)


def may_delete_files(properties: Mapping[str, str]) -> bool:
    """Return whether a table lets its files be deleted (`gc.enabled`): others may use them."""
    return is_true(properties, GC_PROPERTY, default=True)


def may_expire(properties: Mapping[str, str], *, default: bool) -> bool:
    """Return whether Frazil expires snapshots of a table.
    `default`: where the table does not say."""
    said = properties.get(EXPIRE_PROPERTY, "").strip().lower()
    if not may_delete_files(properties):
        return False
    return said == "true" if said else default


def due_expiry(
    state: TableState, *, now_ms: int, needed: Needed, default: bool
) -> ExpiredSnapshots | None:
    """Return what the next commit should expire; None if that is nothing, or too little."""
    if not may_expire(state.metadata.properties, default=default):
        return None
    found = expirable(state, now_ms=now_ms, needed=needed)
    if found is None:
        return None
    kept = len(state.metadata.snapshots) - len(found.snapshots)
    if len(found.snapshots) < max(1, kept // _SURPLUS_SHARE) and not found.refs:
        return None
    return ExpiredSnapshots(found.snapshots[:EXPIRED_MAX], found.refs)


def applicable_expiry(
    expired: ExpiredSnapshots | None, state: TableState, branch: str, *, now_ms: int
) -> ExpiredSnapshots | None:
    """Return the earlier choice if all of it would be chosen again for a commit to this branch."""
    if expired is None or branch in expired.refs:
        return None
    return expired if still_expirable(expired, state, now_ms=now_ms) else None


def still_expirable(expired: ExpiredSnapshots, state: TableState, *, now_ms: int) -> bool:
    """Return whether everything that was chosen earlier is still there,
    and would be chosen again."""
    if not may_expire(state.metadata.properties, default=True):
        return False
    found = expirable(state, now_ms=now_ms)
    return (
        found is not None
        and set(expired.refs) <= set(found.refs)
        and set(expired.snapshot_ids) <= set(found.snapshot_ids)
    )


def expirable(
    state: TableState, *, now_ms: int, needed: Needed = NOTHING
) -> ExpiredSnapshots | None:
    """Select all that Iceberg's rules let expire, in the table's order; None if there is nothing.

    Nothing while a producer's history is in doubt: an operator may want it back. No branch
    that producers have landed on: what they publish next would be refused.
    """
    metadata = state.metadata
    retention = Retention.of(metadata.properties)
    if retention is None or state.ledger.broken or not _all_have_lists(metadata):
        return None
    branches = needed.branches | state.ledger.branches
    refs = _kept_refs(metadata, retention, now_ms, branches)
    kept = _kept_snapshots(metadata, refs.values(), retention, now_ms)
    for snapshot_id in needed.in_table(metadata):
        kept |= _since(metadata, refs.values(), snapshot_id)
    snapshots = tuple(one for one in metadata.snapshots if one.snapshot_id not in kept)
    dropped = tuple(name for name in metadata.refs if name not in refs)
    return ExpiredSnapshots(snapshots, dropped) if snapshots or dropped else None


def _all_have_lists(metadata: TableMetadata) -> bool:
    """Return whether all have manifest lists:
    old v1 snapshots without one are left to other engines."""
    return all(snapshot.manifest_list is not None for snapshot in metadata.snapshots)


def _kept_refs(
    metadata: TableMetadata, retention: Retention, now_ms: int, needed: Collection[str]
) -> dict[str, SnapshotRef]:
    """Select the refs that stay: `main` and needed ones always;
    others while their head is young enough."""
    kept = {}
    for name, ref in metadata.refs.items():
        age_max = retention.max_ref_age_ms if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        head = metadata.snapshot_by_id(ref.snapshot_id)
        is_young = head is not None and now_ms - head.timestamp_ms <= age_max
        if name == MAIN or name in needed or is_young:
            kept[name] = ref
    return kept


def _kept_snapshots(
    metadata: TableMetadata, refs: Collection[SnapshotRef], retention: Retention, now_ms: int
) -> set[int]:
    kept = {ref.snapshot_id for ref in refs}
    referenced = set(kept)
    for ref in refs:
        if ref.type == "branch":
            kept |= _kept_of_branch(metadata, ref, retention, now_ms)
            referenced.update(one.snapshot_id for one in metadata.ancestors(ref.snapshot_id))
    young_ms = now_ms - retention.max_snapshot_age_ms
    kept.update(
        one.snapshot_id
        for one in metadata.snapshots
        if one.snapshot_id not in referenced and one.timestamp_ms >= young_ms
    )
    if not kept and metadata.snapshots:
        # A table that has staged snapshots alone: the journal of an expiry names one that stays, by
        # which a table that was put back is told.
        kept.add(metadata.snapshots[-1].snapshot_id)
    return kept


def _kept_of_branch(
    metadata: TableMetadata, ref: SnapshotRef, retention: Retention, now_ms: int
) -> set[int]:
    """Select snapshots from the head backwards to the first beyond both number and age."""
    own_age = ref.max_snapshot_age_ms
    young_ms = now_ms - (retention.max_snapshot_age_ms if own_age is None else own_age)
    own_number = ref.min_snapshots_to_keep
    number = retention.min_snapshots_to_keep if own_number is None else own_number
    number = max(number, SNAPSHOTS_MIN)
    kept: set[int] = set()
    for snapshot in metadata.ancestors(ref.snapshot_id):
        if len(kept) >= number and snapshot.timestamp_ms < young_ms:
            break
        kept.add(snapshot.snapshot_id)
    return kept


def _since(metadata: TableMetadata, refs: Collection[SnapshotRef], snapshot_id: int) -> set[int]:
    """Select a snapshot with all later ones, which a conflict check between them reads."""
    kept: set[int] = {snapshot_id}
    for ref in refs:
        passed: set[int] = set()
        for snapshot in metadata.ancestors(ref.snapshot_id):
            passed.add(snapshot.snapshot_id)
            if snapshot.snapshot_id == snapshot_id:
                kept |= passed
                break
    return kept
