"""A committer that is easily made to do wrong, on servers with an onlooker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from committer.iceberg.entry.data_file import ManifestEntry, ManifestEntryStatus
from committer.iceberg.manifest.manifest_list import (
    ManifestFile,
    encode_manifest_file,
    encode_manifest_list,
)
from committer.iceberg.manifest.manifest_writer import (
    ManifestContext,
    encode_manifest,
    manifest_file,
)
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import MAIN, Snapshot, SnapshotRef
from committer.iceberg.metadata.summary import commit_summary
from committer.iceberg.updates.metadata_update import (
    AddSnapshot,
    SetProperties,
    SetSnapshotRef,
    Update,
    apply_updates,
)
from committer.ledger_entry import ProducerEntry, print_entry, property_key
from committer.plan.ledger.evidence import COUNT_KEY, EVIDENCE_KEY, print_evidence, read_evidence
from committer.ports.pointer_swap import LoadedTable, Swap
from committer.ports.storage import NewObject
from committer.request.receipt_model import Receipt, ReceiptState
from committer.request.request_format import EncodedRequest
from committer.storage.inbox.inbox import Inbox, Quarantine
from tests.simulation.history import History
from tests.simulation.invariants import Invariants
from tests.simulation.observed import ObservedCatalog, ObservedQueue, ObservedStorage
from tests.support.builders.request_builders import build_file, build_request
from tests.support.builders.table_builders import build_table
from tests.support.clock.worlds import ManualWorld
from tests.support.iceberg.manifest_builders import added_entry
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.memory.memory_queue import MemoryQueue, MemoryServer
from tests.support.memory.memory_storage import MemoryStorage

INBOX = "memory://requests"
OURS = "committer-0"
SYNC = bytes(16)
BREAKER_THRESHOLD = 2
LATER_MS = 1_900_000_000_000


class Bench:
    """Servers with an onlooker, and a committer that is easily made to do wrong."""

    def __init__(self) -> None:
        self.history = History(now_ms=lambda: 0)
        self.server = MemoryStorage()
        self.catalog_server = MemoryCatalog(storage=self.server)
        self.invariants = Invariants(
            self.server,
            self.catalog_server,
            self.history,
            INBOX,
            breaker_threshold=BREAKER_THRESHOLD,
        )
        self.storage = ObservedStorage(self.server, self.history, OURS)
        self.catalog = ObservedCatalog(self.catalog_server, self.history, OURS)
        queue = MemoryQueue(MemoryServer(world=ManualWorld()), consumer=OURS)
        self.queue = ObservedQueue(queue, self.history, OURS)
        self.inbox = Inbox(self.storage, INBOX)
        self.quarantine = Quarantine(self.storage, INBOX)
        self._snapshots = 0
        self._rows: dict[int | None, tuple[ManifestFile, ...]] = {}

    async def create_table(self, **options: Any) -> LoadedTable:
        table = build_table(warehouse="memory://warehouse", **options)
        await self.catalog.create_namespace(table.identifier.namespace)
        await self.catalog.create_table(table)
        return table

    async def publish(self, table: LoadedTable, **options: Any) -> EncodedRequest:
        sealed = build_request(table, **options)
        await self.inbox.put(sealed)
        return sealed

    async def commit(
        self, table: LoadedTable, *requests: EncodedRequest, **wrong: Any
    ) -> LoadedTable:
        """Land requests as a committer would, apart from what is to be wrong."""
        base = await self.catalog.load(table.identifier)
        plan = self.planned(base, requests, **wrong)
        await self.storage.create(plan.objects)
        return await self.swap(base, *plan.updates)

    async def swap(self, base: LoadedTable, *updates: Update) -> LoadedTable:
        metadata = apply_updates(
            base.metadata, updates, base_location=base.metadata_location, now_ms=LATER_MS
        )
        return await self.swap_in(base, metadata)

    async def swap_in(self, base: LoadedTable, metadata: TableMetadata) -> LoadedTable:
        self._snapshots += 1
        location = f"{metadata.location}/metadata/{self._snapshots:05d}-x.metadata.json"
        swap = Swap(base, (), (), metadata, location)
        await self.storage.create(self.catalog.objects_before(swap))
        await self.catalog.swap(swap)
        return LoadedTable(base.identifier, metadata, location)

    def planned(self, base: LoadedTable, requests: Sequence[EncodedRequest], **wrong: Any) -> Plan:
        self._snapshots += 1
        snapshot_id = 1_000 + self._snapshots
        kept = self._rows.get(base.metadata.current_snapshot_id, ())
        plan = Plan(base, requests, kept, snapshot_id, **wrong)
        self._rows[snapshot_id] = plan.rows
        return plan

    def found(self) -> set[str]:
        """Return the invariants that were seen to be broken."""
        return {violation.invariant for violation in self.history.violations}

    def receipt(self, sealed: EncodedRequest, state: ReceiptState, **said: Any) -> Receipt:
        request = sealed.request
        return Receipt(request.producer.id, request.epoch, str(request.attempt), state, **said)


class Plan:
    """One append of ours to the manifests that are `kept`. Every keyword makes it wrong."""

    def __init__(
        self,
        base: LoadedTable,
        requests: Sequence[EncodedRequest],
        kept: Sequence[ManifestFile],
        snapshot_id: int,
        *,
        files: Callable[[list[ManifestEntry]], list[ManifestEntry]] = lambda entries: entries,
        row: Callable[[ManifestFile], ManifestFile] = lambda row: row,
        snapshot: Callable[[Snapshot], Snapshot] = lambda snapshot: snapshot,
        entry: Callable[[ProducerEntry], ProducerEntry] = lambda entry: entry,
        keeps: bool = True,
        writes_manifest: bool = True,
        evidence: Sequence[EncodedRequest] | None = None,
    ) -> None:
        metadata = base.metadata
        parent = metadata.current_snapshot
        number = metadata.last_sequence_number + 1
        entries = files([added_entry(file) for one in requests for file in files_of(base, one)])
        context = ManifestContext(2, metadata.current_schema, metadata.default_spec)
        encoded = encode_manifest(entries, context, sync=SYNC)
        folder = f"{metadata.location}/metadata"
        path = f"{folder}/m-{snapshot_id}.avro"
        own = row(
            manifest_file(
                encoded,
                context,
                manifest_path=path,
                snapshot_id=snapshot_id,
                sequence_number=number,
            )
        )
        self.rows = (own, *(kept if keeps else ()))
        named = evidence if evidence is not None else requests
        location = f"{folder}/snap-{snapshot_id}.avro"
        content = encode_manifest_list(
            [encode_manifest_file(one, 2) for one in self.rows],
            format_version=2,
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent.snapshot_id if parent else None,
            sequence_number=number,
            first_row_id=None,
            sync=SYNC,
            extra_metadata={EVIDENCE_KEY: print_evidence([one.request for one in named])},
        )
        added = [one.data_file for one in entries if one.status == ManifestEntryStatus.ADDED]
        made = snapshot(
            Snapshot(
                snapshot_id=snapshot_id,
                parent_snapshot_id=parent.snapshot_id if parent else None,
                sequence_number=number,
                timestamp_ms=max(LATER_MS, metadata.last_updated_ms),
                manifest_list=location,
                summary=commit_summary(
                    "append",
                    parent.summary if parent else None,
                    {
                        "added-data-files": len(added),
                        "added-records": sum(file.record_count for file in added),
                        "added-files-size": sum(file.file_size_in_bytes for file in added),
                        "changed-partition-count": 1,
                        "manifests-created": 1,
                        "manifests-kept": 0,
                        "manifests-replaced": 0,
                    },
                    extra={COUNT_KEY: str(len(named))},
                ),
                schema_id=0,
            )
        )
        proofs = read_evidence(content, made)
        self.objects = [NewObject(location, content)]
        if writes_manifest:
            self.objects.append(NewObject(path, encoded.content))
        self.updates: list[Update] = [
            AddSnapshot(made),
            SetSnapshotRef(MAIN, SnapshotRef(snapshot_id, "branch")),
        ]
        for one in named:
            request = one.request
            known = ProducerEntry(metadata.require_uuid())
            landed = proofs[request.producer.id, request.epoch]
            text = print_entry(entry(known.with_landed(landed)))
            self.updates.append(SetProperties({property_key(request.producer.id): text}))


def files_of(base: LoadedTable, sealed: EncodedRequest) -> list[Any]:
    return [build_file(base.metadata, sealed.request.attempt)]
