"""One table as an onlooker follows it, swap by swap, and what each swap must keep to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from uuid import UUID

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import MAIN, WAP_ID, Snapshot
from committer.ledger_entry import property_key
from committer.plan.ledger.evidence import COUNT_KEY
from committer.plan.ledger.high_water_mark import HighWaterMark
from committer.ports.pointer_swap import LoadedTable, Swap
from committer.request.commit_request import CommitRequest
from committer.request.needs import RewriteGroup
from committer.request.request_format import EncodedRequest
from committer.request.table_identifier import TableIdentifier
from tests.simulation.alter_rules import altered_as_asked, set_back_refs
from tests.simulation.contents import (
    Contents,
    Read,
    SnapshotContents,
    delete_key,
    inherited_numbers,
    row_ids,
    summary_totals,
    unique_paths,
)
from tests.simulation.ledger_model import LedgerModel, Problem, is_frozen
from tests.simulation.metadata_rules import (
    added_snapshots,
    ages,
    is_set_back,
    linear_history,
    metadata_log,
    sequence_numbers,
    timestamps,
)
from tests.simulation.row_rules import Asked, RowRules
from tests.simulation.rows import WrittenRows


class TableView:
    """A table by its uuid. `taken`: files that another engine has removed from a branch. `again`:
    live files that an operator lets land once more, as it accepted a ledger that lacks them.

    `expired`: the snapshots that other engines have removed.
    `is_restored`: it was restored to older metadata, whose files may have been deleted since.
    `was_set_back`: that, or a branch of it to an older snapshot. `frozen`: the ledger's properties
    whose producers were ever frozen by an operator.
    """

    def __init__(
        self,
        table_uuid: UUID,
        published: Callable[[str], EncodedRequest | None],
        read: Read,
        written: WrittenRows,
    ) -> None:
        self.table_uuid = table_uuid
        self.ledger = LedgerModel(table_uuid, published, read)
        self.contents = Contents(read)
        self.rows = RowRules(written, read)
        self.current: LoadedTable | None = None
        self.identifier: TableIdentifier | None = None
        self.taken: set[str] = set()
        self.again: set[str] = set()
        self.expired: set[int] = set()
        self.locations: set[str] = set()
        self.is_restored = self.was_set_back = False
        self.frozen: set[str] = set()
        self.commits = 0
        self._read = read
        self._reachable: tuple[str, set[str]] = ("", set())
        # Of all snapshots that ever were: clients may have read them.
        self._seen: dict[int, SnapshotContents] = {}

    @property
    def metadata(self) -> TableMetadata:
        """The metadata that the pointer names, or named when it was dropped."""
        assert self.current is not None
        return self.current.metadata

    def point(self, table: LoadedTable) -> Iterator[Problem]:
        """Follow a pointer that was made, not moved: of a new table, or of one registered again."""
        before = self.current
        if before is not None and before.metadata_location != table.metadata_location:
            self.taken |= self.live(before.metadata) - self.live(table.metadata)
            self.is_restored = self.was_set_back = True
        self.current, self.identifier = table, table.identifier
        self.locations.add(table.metadata_location)
        yield from self._snapshots(table.metadata)

    def forgive(self, metadata: TableMetadata, keys: Iterable[str] | None = None) -> None:
        """Apply an operator's decision: see `LedgerModel.forgive`."""
        self._may_come_again(self.ledger.forgive(metadata, keys), metadata)

    def forget_unproven(self, metadata: TableMetadata, mark: HighWaterMark) -> None:
        """Excuse what no proof is left of: see `LedgerModel.forget_unproven`."""
        self._may_come_again(self.ledger.forget_unproven(metadata, mark, self.expired), metadata)

    def _may_come_again(self, paths: set[str], metadata: TableMetadata) -> None:
        if paths:
            self.again |= paths & (self.live(metadata) | self._live_deletes(metadata))
            # A staged snapshot may have been picked by the time its request lands once more.
            self.again |= paths & self._staged(metadata)

    def may_freeze(self, request: CommitRequest) -> bool:
        """Return whether there was a reason to freeze the request's producer."""
        return self.was_set_back or property_key(request.producer.id, request.branch) in self.frozen

    # --- A swap ----------------------------------------------------------------------------------

    def swap(self, swap: Swap, *, is_ours: bool, accepted: set[str]) -> Iterator[Problem]:
        """Follow a swap. Every engine's must be valid Iceberg, and the committer's also right.
        `accepted`: see `LedgerModel.commit`.
        """
        before, after = swap.base.metadata, swap.metadata
        location = swap.metadata_location
        if self.current is None or self.current.metadata_location != swap.base.metadata_location:
            found = None if self.current is None else self.current.metadata_location
            yield "I4", f"a swap of {swap.base.metadata_location}, when the pointer was {found}"
        if location in self.locations:
            yield "I4", f"the version {location} came back"
        self.locations.add(location)
        if self._read(location) is None:
            yield "I6", f"the metadata file {location} does not exist"
        yield from (("I8", text) for text in timestamps(after))
        base_location = swap.base.metadata_location
        yield from (("I4", text) for text in metadata_log(base_location, before, after))
        if is_ours:
            yield from self._own(before, after, accepted)
        else:
            self._foreign(before, after)
        self.frozen.update(key for key in after.properties if is_frozen(after, key))
        self.current = LoadedTable(swap.base.identifier, after, location)

    def _own(
        self, before: TableMetadata, after: TableMetadata, accepted: set[str]
    ) -> Iterator[Problem]:
        unlisted = list(self.ledger.unlisted(before, after))
        altering = [request for request, _ in unlisted]
        set_back = set_back_refs(altering)
        yield from (("I4", text) for text in linear_history(before, after, set_back))
        if altering:
            yield from (("I22", text) for text in altered_as_asked(before, after, altering))
            self.taken |= self.live(before) - self.live(after)
            self.was_set_back = self.was_set_back or is_set_back(before, after)
        yield from (("I5", text) for text in sequence_numbers(before, after))
        yield from (("I8", text) for text in ages(before, after))
        branches = _branches(before, after)
        for snapshot in added_snapshots(before, after):
            contents = self.contents.of(snapshot)
            yield from self._problems(contents)
            yield from self._kept(after, contents, snapshot)
            requests: list[Asked] = []
            if COUNT_KEY in (snapshot.summary or {}):
                self.commits += 1
                branch = branches.get(snapshot.snapshot_id, MAIN)
                yield from self.ledger.commit(
                    contents, branch, accepted, after, self._picked(snapshot)
                )
                yield from self.ledger.remembered(contents, after)
                requests = self._asked(after, contents, snapshot)
                yield from self._as_asked(after, contents, snapshot, requests)
            parent = self._parent(after, snapshot)
            # A file that is there twice, as an operator had it land twice, has no one number.
            found = () if self.again else self.rows.check(parent, contents, requests, self._seen)
            yield from (("I21", f"snapshot {snapshot.snapshot_id}: {text}") for text in found)
            self._seen[snapshot.snapshot_id] = contents
        listed = {
            proof.attempt
            for snapshot in added_snapshots(before, after)
            for proof in self.contents.of(snapshot).evidence.values()
        }
        for request, proof in unlisted:
            if proof.attempt not in listed:
                yield from self.ledger.land_unlisted(request, proof, accepted)
        yield from self.ledger.changed_entries(before, after)

    def _picked(self, snapshot: Snapshot) -> list[DataFile]:
        """Return the files of the snapshot that this one makes again."""
        source_id = (snapshot.summary or {}).get("source-snapshot-id")
        source = self._seen.get(int(source_id)) if source_id else None
        if source is None:
            return []
        live = (source.live[path] for path in source.added)
        return [
            DataFile(
                file_path=one.path,
                partition=one.partition,
                spec_id=one.spec_id,
                record_count=one.record_count,
                file_size_in_bytes=one.size_bytes,
            )
            for one in live
        ]

    def _parent(self, after: TableMetadata, snapshot: Snapshot) -> SnapshotContents | None:
        parent_id = snapshot.parent_snapshot_id
        parent = None if parent_id is None else after.snapshot_by_id(parent_id)
        return None if parent is None else self.contents.of(parent)

    def _asked(
        self, after: TableMetadata, contents: SnapshotContents, snapshot: Snapshot
    ) -> list[Asked]:
        """Return the requests of a snapshot, with the data files that each removes."""
        parent = self._parent(after, snapshot)
        attempts = (proof.attempt for proof in contents.evidence.values())
        landings = [self.ledger.attempts[one] for one in attempts if one in self.ledger.attempts]
        return [
            Asked(one.request, one.files, _removed(one.request, parent, contents))
            for one in landings
        ]

    def _as_asked(
        self,
        after: TableMetadata,
        contents: SnapshotContents,
        snapshot: Snapshot,
        requests: Iterable[Asked],
    ) -> Iterator[Problem]:
        """Check I19: a snapshot removes just the files that its requests have named, or that their
        filters match, and all of them: they were live, and are not any more."""
        parent = self._parent(after, snapshot)
        before_it = set(parent.live) if parent is not None else set[str]()
        lost = before_it - contents.live.keys()
        asked = {path for one in requests for path in one.removed}
        if lost != asked:
            wrong = min(lost ^ asked)
            yield "I19", f"snapshot {snapshot.snapshot_id} removes other files than asked: {wrong}"
        self.taken |= lost & asked

    def _kept(
        self, after: TableMetadata, contents: SnapshotContents, snapshot: Snapshot
    ) -> Iterator[Problem]:
        """Check I4: an append keeps every file of the snapshot before it; and I5: with its rows,
        its snapshot and its numbers, in whichever manifest it is now. A file that an operator
        had land twice has two of each.
        """
        parent_id = snapshot.parent_snapshot_id
        parent = None if parent_id is None else after.snapshot_by_id(parent_id)
        if parent is None or snapshot.operation != "append":
            return
        before_it = self.contents.of(parent)
        old, new = before_it.live, contents.live
        if lost := old.keys() - new.keys():
            yield "I4", f"snapshot {snapshot.snapshot_id} loses {len(lost)} files: {min(lost)}"
        twice = set(before_it.repeated)
        changed = [p for p, file in old.items() if p not in twice and new.get(p, file) != file]
        if changed:
            path = min(changed)
            yield "I5", f"snapshot {snapshot.snapshot_id} changes {old[path]} to {new[path]}"

    def _foreign(self, before: TableMetadata, after: TableMetadata) -> None:
        for snapshot in added_snapshots(before, after):
            self._seen[snapshot.snapshot_id] = self.contents.of(snapshot)
        self.taken |= self.live(before) - self.live(after)
        self.expired |= before.snapshots_by_id.keys() - after.snapshots_by_id.keys()
        self.was_set_back = self.was_set_back or is_set_back(before, after)

    # --- The whole -------------------------------------------------------------------------------

    def live(self, metadata: TableMetadata) -> set[str]:
        """Return the files of all branches and tags."""
        found: set[str] = set()
        for ref in metadata.refs.values():
            snapshot = metadata.snapshot_by_id(ref.snapshot_id)
            if snapshot is not None:
                found |= self.contents.of(snapshot).live.keys()
        return found

    def _live_deletes(self, metadata: TableMetadata) -> set[str]:
        snapshots = (metadata.snapshot_by_id(ref.snapshot_id) for ref in metadata.refs.values())
        return {
            entry.data_file.file_path
            for snapshot in snapshots
            if snapshot is not None
            for entry in self.contents.of(snapshot).deletes
        }

    def _staged(self, metadata: TableMetadata) -> set[str]:
        staged = (one for one in metadata.snapshots if WAP_ID in (one.summary or {}))
        return {path for one in staged for path in self.contents.of(one).added}

    def live_on(self, branch: str) -> set[object]:
        """Return the paths of the data files of a branch, and the keys of its delete files."""
        head = self.metadata.branch_head(branch)
        if head is None:
            return set()
        contents = self.contents.of(head)
        return {*contents.live, *(delete_key(entry.data_file) for entry in contents.deletes)}

    def may_be_removed(self, request: CommitRequest) -> set[object]:
        """Return which of the live files a request may remove. A rewrite has read them at its base:
        a newer one came again, as an operator let its request land once more.
        """
        found = self.live_on(request.branch)
        head, number = self.metadata.branch_head(request.branch), request.needs.base_sequence_number
        if head is None or number is None or request.operation != "rewrite-files":
            return found
        live = self.contents.of(head).live.items()
        return found - {path for path, one in live if (one.file_sequence_number or 0) > number}

    def landed_paths(self) -> set[str]:
        """Return the files of all requests whose landing on the main branch counts."""
        return {
            path
            for landing in self.ledger.landed.values()
            if landing.request.branch == MAIN and not landing.request.stage_only
            for path in landing.paths
        }

    def check(self) -> Iterator[Problem]:
        """Check everything that holds for a table at rest."""
        metadata = self.metadata
        yield from (("I8", text) for text in timestamps(metadata))
        yield from self._snapshots(metadata)

    def _snapshots(self, metadata: TableMetadata) -> Iterator[Problem]:
        for snapshot in metadata.snapshots:
            yield from self._problems(self.contents.of(snapshot))

    def _problems(self, contents: SnapshotContents) -> Iterator[Problem]:
        found = _contents_problems(contents, self.again)
        return (one for one in found if not (self.is_restored and one[0] == "I6"))

    def needed(self) -> Iterator[str]:
        """Yield every object that a reader of the current metadata may open."""
        log = {entry.metadata_file for entry in self.metadata.metadata_log}
        return (location for location in sorted(self.reachable()) if location not in log)

    def reachable(self) -> Collection[str]:
        """Return every object that the current metadata names, directly or not."""
        assert self.current is not None
        location = self.current.metadata_location
        if self._reachable[0] != location:
            self._reachable = location, self._walk(self.current)
        return self._reachable[1]

    def _walk(self, table: LoadedTable) -> set[str]:
        metadata = table.metadata
        # Older metadata files are named for those who would go back.
        found = {table.metadata_location, *(one.metadata_file for one in metadata.metadata_log)}
        for snapshot in metadata.snapshots:
            if snapshot.manifest_list:
                found.add(snapshot.manifest_list)
            contents = self.contents.of(snapshot)
            found.update([row.manifest_path for row in contents.rows])
            found.update(contents.live)
            found.update(entry.data_file.file_path for entry in contents.deletes)
        for statistics in (*metadata.statistics, *metadata.partition_statistics):
            found.add(statistics.statistics_path)
        return found


def _branches(before: TableMetadata, after: TableMetadata) -> dict[int, str]:
    """Return the branches that a swap has added snapshots to, by the ids of these."""
    found: dict[int, str] = {}
    for name, ref in after.refs.items():
        for one in after.ancestors(ref.snapshot_id):
            if one.snapshot_id in before.snapshots_by_id:
                break
            found[one.snapshot_id] = name
    return found


def _removed(
    request: CommitRequest, before: SnapshotContents | None, after: SnapshotContents
) -> set[str]:
    """Return the data files that a request removes, of a rewrite those of the groups that land:
    each of them does so whole or not at all.
    """
    needs, live = request.needs, {} if before is None else before.live
    if request.operation == "replace-partitions":
        specs = {reference.partition_spec_id for reference in request.manifests}
        # A spec that is not partitioned has one partition, the table; all others are null here.
        return {path for path, one in live.items() if 0 in specs or one.spec_id in specs}
    if needs.row_filter is not None:
        return set(live) if needs.row_filter is True else set()
    if not needs.groups:
        return set(needs.removed_data_files)
    landed = [one for one in needs.groups if _is_replaced(one, set(live), after)]
    return {path for one in landed for path in one.removed_data_files}


def _is_replaced(group: RewriteGroup, before: set[str], after: SnapshotContents) -> bool:
    """Return whether the files of a group were live and have gone, or others have come for them."""
    is_gone = after.live.keys().isdisjoint(group.removed_data_files)
    was_there = before.issuperset(group.removed_data_files)
    return (is_gone and was_there) or not set(after.added).isdisjoint(group.added_data_files)


def _contents_problems(contents: SnapshotContents, again: Collection[str]) -> Iterator[Problem]:
    yield from contents.problems
    yield from (("I2", text) for text in unique_paths(contents, again))
    yield from (("I5", text) for text in inherited_numbers(contents))
    yield from (("I5", text) for text in row_ids(contents))
    if not again:  # engines count a file once that they find twice
        yield from (("I7", text) for text in summary_totals(contents))
