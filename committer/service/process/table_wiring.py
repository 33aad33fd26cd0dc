"""Wires the committers of tables."""

from __future__ import annotations

from uuid import UUID

from committer.plan.commit.attempt_log import AttemptLog
from committer.ports.catalog import Catalog
from committer.request.table_identifier import TableIdentifier
from committer.service.checks.checks import Checks
from committer.service.checks.large_checks import LargeChecks
from committer.service.process.process_wiring import ProcessWiring
from committer.service.process.upkeep_wiring import UpkeepWiring
from committer.service.requests.evidence_reader import EvidenceReader
from committer.service.requests.inbox_lookup import InboxLookup
from committer.service.requests.moved_table import MovedTable
from committer.service.requests.pending import Waiting
from committer.service.settle.high_water_check import HighWaterCheck
from committer.service.table.admission import Admission
from committer.service.table.batch_committer import BatchCommitter, SwapSender
from committer.service.table.cached_table import CachedTable
from committer.service.table.commit_pacer import CommitPacer
from committer.service.table.commit_planner import CommitPlanner
from committer.service.table.content_checks import ContentChecks
from committer.service.table.eviction import Eviction
from committer.service.table.inflight_batch import BatchSelector
from committer.service.table.table_committer import TableCommitter
from committer.service.table.table_rounds import TableRounds
from committer.service.table.transaction_part import TransactionPart
from committer.service.table.verdicts import Verdicts
from committer.service.tasks.recent_objects import RecentObjects, TableObjects
from committer.service.telemetry.commit_report import CommitReport
from committer.service.telemetry.table_condition import TableCondition
from committer.service.transactions.transaction_room import TransactionRoom
from committer.service.upkeep.ledger_upkeep import LedgerUpkeep


class TableWiring:
    """Wires the committers of the tables of a process."""

    def __init__(
        self, process: ProcessWiring, catalog: Catalog, checks: Checks, room: TransactionRoom
    ) -> None:
        self._process = process
        self._room = room
        self._catalog = catalog
        self._checks = checks
        self._recent = RecentObjects()
        self._upkeep = UpkeepWiring(process, catalog)

    def table(
        self, identifier: TableIdentifier, table_uuid: UUID, before: LedgerUpkeep | None
    ) -> TableCommitter:
        """Wire a table's committer.
        `before`: its previous committer's ledger upkeep, if that ended idle."""
        process, parts, catalog = self._process, self._process.parts, self._catalog
        world, metrics = parts.world, process.metrics
        waiting = Waiting(world, process.named)
        attempts = AttemptLog(catalog.capabilities.condition)
        evidence = EvidenceReader(parts.storage)
        condition = TableCondition(identifier, process.health, metrics)
        pacer = CommitPacer(identifier, catalog, world, process.policy)
        lookup = InboxLookup(
            parts.inbox, parts.quarantine, waiting, process.settler.pending_deletes
        )
        upkeep = self._upkeep.table(identifier, table_uuid, attempts, waiting, lookup, before)
        high_water = HighWaterCheck(
            identifier, table_uuid, parts.high_water_marks, catalog, evidence
        )
        cached_table = CachedTable(high_water, attempts, waiting, pacer, upkeep)
        verdicts = Verdicts(
            waiting, process.endings, parts.inbox, parts.quarantine, cached_table, world
        )
        objects = TableObjects(self._recent)
        planner = CommitPlanner(
            identifier,
            parts.storage,
            world,
            metrics,
            upkeep.ledger,
            objects,
            moves_head=catalog.capabilities.condition == "requirements",
        )
        batches = BatchSelector(
            waiting, attempts, planner, pacer, upkeep, world, catalog.capabilities
        )
        sender = SwapSender(
            identifier,
            catalog,
            storage=parts.storage,
            attempts=attempts,
            condition=condition,
            objects=objects,
        )
        report = CommitReport(identifier, metrics, world)
        batch_committer = BatchCommitter(
            planner=planner,
            sender=sender,
            cached_table=cached_table,
            batches=batches,
            pacer=pacer,
            # Upkeep is the last: it begins what is due, and may take long.
            observers=(cached_table, batches, pacer, verdicts, report, objects, upkeep),
        )
        admission = self._admission(identifier, table_uuid, waiting, lookup, evidence)
        rounds = TableRounds(
            cached_table,
            admission,
            verdicts,
            batches,
            batch_committer,
            process.policy.requests_max,
            TransactionPart(table_uuid, self._room, admission, batch_committer),
        )
        eviction = Eviction(
            waiting, batches, process.breakers, process.deferred, process.held_room, condition
        )
        return TableCommitter(
            identifier, table_uuid, waiting, rounds, eviction, pacer, condition, upkeep
        )

    def _admission(
        self,
        identifier: TableIdentifier,
        table_uuid: UUID,
        waiting: Waiting,
        lookup: InboxLookup,
        evidence: EvidenceReader,
    ) -> Admission:
        process, parts = self._process, self._process.parts
        name = parts.settings.catalog.name
        large_checks = LargeChecks(waiting, self._checks, parts.storage, process.metrics)
        return Admission(
            name,
            self._catalog.capabilities,
            waiting,
            lookup,
            process.signatures,
            evidence,
            ContentChecks(
                waiting,
                large_checks,
                process.metrics,
                looks_for_files=parts.settings.security.check_unsigned_files,
            ),
            MovedTable(identifier, table_uuid, name, parts.moves, lookup),
            parts.settings.allowed_locations,
        )
