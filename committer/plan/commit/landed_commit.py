"""A commit of this committer that has landed: what its observers are told, once. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from committer.ledger_entry import property_key
from committer.plan.batch.batch import Batch
from committer.plan.commit.commit import CommitPlan
from committer.plan.ledger.state import TableState

# Causes in `failures`; the others are the classes of errors.
CONFLICT = "conflict"
UNKNOWN = "unknown"
TRANSACTION = "transaction"


@dataclass(frozen=True, slots=True)
class LandedCommit:
    """A batch with the plan that landed it, and its attempts.

    `state`: the table after it. `is_as_planned`: it holds just what was planned, and no more.
    `metadata_bytes`: of the metadata file, None where this committer did not write it.
    `started_ms` and `started_s`: its first attempt, by the wall clock and by the event loop's; only
    the latter measures a duration, as the former may jump. `failures`: the attempts that did not
    land, by cause.
    """

    batch: Batch
    plan: CommitPlan
    state: TableState
    is_as_planned: bool
    attempts: int
    failures: Mapping[str, int]
    started_ms: int
    started_s: float
    metadata_bytes: int | None

    @property
    def ledger_keys(self) -> set[str]:
        """The properties of the ledger that it has changed."""
        requests = (one.request for one in self.batch.requests)
        return {property_key(one.producer.id, one.branch) for one in requests}


class CommitObserver(Protocol):
    """An object that a landed commit changes."""

    def landed(self, commit: LandedCommit) -> None:
        """Note that the commit has surely landed, and no batch is in flight."""
        ...
