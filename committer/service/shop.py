"""What all table committers of a process share. No logic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from committer.plan.batching import BatchPolicy
from committer.ports import Catalog, Storage, World
from committer.service.breakers import Breakers
from committer.service.checks import Checks, ChecksHere
from committer.service.foreign_entries import ForeignEntries
from committer.service.health import Health
from committer.service.judged import Judged
from committer.service.large_requests import NamedManifests
from committer.service.metrics import Metrics
from committer.service.pending import Ended
from committer.service.settled import SettledByTable
from committer.service.signatures import Signatures
from committer.service.table_files import UpkeepParts
from committer.service.witness import WitnessKeeper
from committer.storage.inbox import Inbox, Quarantine


@dataclass(frozen=True, slots=True)
class Shop:
    """Parts of a process, and its settings for tables. `settle`: takes over what has ended."""

    catalog_name: str
    catalog: Catalog
    storage: Storage
    inbox: Inbox
    quarantine: Quarantine
    world: World
    health: Health
    metrics: Metrics
    foreign_entries: ForeignEntries
    breakers: Breakers
    judged: Judged
    settled: SettledByTable
    policy: BatchPolicy
    signatures: Signatures
    witnesses: WitnessKeeper
    upkeep: UpkeepParts
    settle: Callable[[Sequence[Ended]], None]
    named: NamedManifests
    checks: Checks = field(default_factory=ChecksHere)
