"""Plans commits and keeps what they would write, so that tests can read it back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import Self
from uuid import UUID

from committer.catalog.staging import metadata_object
from committer.iceberg.entry.data_file import ManifestEntry
from committer.iceberg.manifest.manifest import DecodedManifest, decode_manifest
from committer.iceberg.manifest.manifest_list import DecodedManifestList, decode_manifest_list
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.updates.metadata_update import RemoveSnapshots, Update
from committer.plan.batch.batch import Batch, PreparedManifest, Step, prepare_manifests
from committer.plan.batch.request_check import CheckBasis, CheckedRequest, Checker
from committer.plan.commit.commit import CommitPlan, NeedsObjects, Planning, plan_commit
from committer.plan.commit.ledger_changes import LedgerCleanup
from committer.plan.commit.step_plan import Attempt
from committer.plan.ledger.state import TableState
from committer.plan.operations.head import ObjectRange, Objects
from committer.ports.pointer_swap import LoadedTable
from committer.request.request_format import EncodedRequest
from tests.support.builders.flights import NOW_MS, changed
from tests.support.faults.foreign_expiry import as_pyiceberg_expires

NO_CHORES = LedgerCleanup()


@dataclass
class Table:
    """A table whose commits all land, with the objects that they wrote."""

    state: TableState
    objects: dict[str, bytes] = field(default_factory=dict)
    reads: int = 0
    now_ms: int = NOW_MS
    _ids: count[int] = field(default_factory=lambda: count(1))

    @classmethod
    def of(cls, table: LoadedTable) -> Self:
        return cls(TableState.of(table))

    def batch(self, *requests: EncodedRequest) -> tuple[Batch, tuple[PreparedManifest, ...]]:
        metadata = self.state.metadata
        checker = Checker(CheckBasis.of("frazil", metadata), metadata.current_schema)
        checked = []
        for sealed in requests:
            found = checker.check(sealed)
            assert isinstance(found, CheckedRequest)
            checked.append(found)
        number = next(self._ids)
        batch = Batch((Step(tuple(checked), 1_000 + number),), UUID(int=number))
        return batch, prepare_manifests(batch, metadata)

    def plan(
        self,
        batch: Batch,
        prepared: tuple[PreparedManifest, ...],
        *,
        number: int = 1,
        cleanup: LedgerCleanup = NO_CHORES,
    ) -> CommitPlan:
        attempt = Attempt(number, UUID(int=10_000 + next(self._ids)), self.now_ms, "1.2.3")
        read: dict[ObjectRange, bytes] = {}
        while True:
            objects = Objects(read)
            plan = plan_commit(
                Planning(self.state, batch, prepared, attempt, cleanup, objects=objects)
            )
            if isinstance(plan, CommitPlan):
                return plan
            assert isinstance(plan, NeedsObjects)
            self.reads += len(plan.ranges)
            read |= {one: one.of(self.objects[one.location]) for one in plan.ranges}

    def land(self, plan: CommitPlan) -> CommitPlan:
        for created in plan.objects:
            self.objects[created.location] = created.content
        written = metadata_object(plan.swap.metadata, plan.swap.metadata_location)
        self.objects[written.location] = written.content
        self.state = plan.state
        return plan

    def commit(self, *requests: EncodedRequest, cleanup: LedgerCleanup = NO_CHORES) -> CommitPlan:
        self.now_ms += 1_000
        return self.land(self.plan(*self.batch(*requests), cleanup=cleanup))

    def foreign(self, *updates: Update) -> LoadedTable:
        """Change the table as another engine; load it again."""
        table = changed(self.state.table, *updates)
        self.state = TableState.of(table, self.state)
        return table

    def pyiceberg_expires(self, *gone: int) -> LoadedTable:
        """Run PyIceberg's `expire_snapshots` of these; load the table again."""
        base = self.state.table
        after = changed(base, RemoveSnapshots(gone))
        table = replace(after, metadata=as_pyiceberg_expires(base.metadata, after.metadata, gone))
        self.state = TableState.of(table, self.state)
        return table

    @property
    def table(self) -> LoadedTable:
        return self.state.table

    def manifest_list(self, snapshot: Snapshot | None = None) -> DecodedManifestList:
        snapshot = snapshot or self.state.metadata.current_snapshot
        assert snapshot is not None
        assert snapshot.manifest_list is not None
        return decode_manifest_list(self.objects[snapshot.manifest_list])

    def manifests(self, snapshot: Snapshot | None = None) -> list[DecodedManifest]:
        return [
            decode_manifest(self.objects[row.manifest_path], manifest_file=row)
            for row in self.manifest_list(snapshot).rows
        ]

    def entries(self, snapshot: Snapshot | None = None) -> list[ManifestEntry]:
        return [entry for manifest in self.manifests(snapshot) for entry in manifest.entries]
