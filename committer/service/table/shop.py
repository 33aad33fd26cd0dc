"""The parts that all table committers of a process share. No logic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from committer.plan.batch_policy import BatchPolicy
from committer.ports.catalog import Catalog
from committer.ports.storage import Storage
from committer.ports.world import World
from committer.service.checks.checks import Checks, ChecksHere
from committer.service.requests.circuit_breakers import CircuitBreakers
from committer.service.requests.foreign_entries import ForeignEntries
from committer.service.requests.large_requests import NamedManifests
from committer.service.requests.pending import Outcome
from committer.service.requests.recently_quarantined import RecentlyQuarantined
from committer.service.requests.settled_requests import SettledByTable
from committer.service.requests.signature_check import Signatures
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from committer.service.telemetry.health import Health
from committer.service.telemetry.metrics import Metrics
from committer.service.upkeep.table_files import UpkeepParts
from committer.storage.inbox import Inbox, Quarantine


@dataclass(frozen=True, slots=True)
class Shop:
    """Parts of a process, and its settings for tables. `settle`: takes over finished requests."""

    catalog_name: str
    catalog: Catalog
    storage: Storage
    inbox: Inbox
    quarantine: Quarantine
    world: World
    health: Health
    metrics: Metrics
    foreign_entries: ForeignEntries
    breakers: CircuitBreakers
    recently_quarantined: RecentlyQuarantined
    settled: SettledByTable
    policy: BatchPolicy
    signatures: Signatures
    high_water_marks: HighWaterMarkStore
    upkeep: UpkeepParts
    settle: Callable[[Sequence[Outcome]], None]
    named: NamedManifests
    checks: Checks = field(default_factory=ChecksHere)
