"""Wires the upkeep of tables."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from committer.plan.commit.attempt_log import AttemptLog
from committer.ports.catalog import Catalog
from committer.request.table_identifier import TableIdentifier
from committer.service.process.process_wiring import ProcessWiring
from committer.service.requests.inbox_lookup import InboxLookup
from committer.service.requests.pending import Waiting
from committer.service.upkeep.attempt_garbage_collector import AttemptGarbageCollector
from committer.service.upkeep.dangling_remover import DanglingRemover
from committer.service.upkeep.expirer import Expirer
from committer.service.upkeep.ledger_upkeep import LedgerUpkeep
from committer.service.upkeep.maintenance_tasks import MaintenanceTask, MaintenanceTasks
from committer.service.upkeep.merger import Merger
from committer.service.upkeep.own_requests import OwnRequests
from committer.service.upkeep.table_files import TableFiles
from committer.service.upkeep.table_notes import TableNotes
from committer.service.upkeep.table_upkeep import TableUpkeep
from committer.service.upkeep.vector_converter import VectorConverter


class UpkeepWiring:
    """Wires the upkeep of the tables of a process."""

    def __init__(self, process: ProcessWiring, catalog: Catalog) -> None:
        parts = process.parts
        self._process = process
        self._catalog = catalog
        self._clustering = asyncio.Lock()
        self._own_requests = OwnRequests(
            parts.settings.catalog.name,
            parts.inbox,
            parts.queue,
            parts.key_file,
            parts.world,
            issued=process.signatures.issued,
        )

    def table(
        self,
        identifier: TableIdentifier,
        table_uuid: UUID,
        attempts: AttemptLog,
        waiting: Waiting,
        lookup: InboxLookup,
        before: LedgerUpkeep | None,
    ) -> TableUpkeep:
        """Wire a table's upkeep. `before`: as for its committer."""
        process, parts = self._process, self._process.parts
        world, metrics = parts.world, process.metrics
        settled = process.settled.of(table_uuid)
        ledger = LedgerUpkeep(table_uuid, settled, before, process.recently_quarantined)
        files = TableFiles(
            identifier,
            table_uuid,
            catalog=self._catalog,
            storage=parts.storage,
            attempts=attempts,
            metrics=metrics,
        )
        merger = Merger(files, attempts, world, metrics, self._clustering)
        # Another service that expires and deletes would meet ours in the same files. Merging only
        # adds, and keeps commits small.
        if self._catalog.capabilities.maintains_tables:
            only = MaintenanceTasks(identifier, (merger,), world, metrics)
            return TableUpkeep(ledger, attempts, only, merger, None)
        notes = TableNotes(table_uuid, parts.journal)
        collector = AttemptGarbageCollector(files, notes, attempts, world)
        # Metadata files that fall off the log are deleted before the garbage collector asks for
        # them.
        tasks: Sequence[MaintenanceTask] = (
            merger,
            Expirer(
                files,
                notes,
                waiting,
                lookup,
                world,
                metrics,
                is_default=parts.settings.upkeep.expire_snapshots,
            ),
            collector,
            DanglingRemover(files, self._own_requests, world, metrics),
            VectorConverter(files, self._own_requests, world, metrics),
        )
        every = MaintenanceTasks(identifier, tasks, world, metrics)
        return TableUpkeep(ledger, attempts, every, merger, collector)
