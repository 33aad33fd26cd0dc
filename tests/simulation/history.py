"""The observed history of a run: requests, verdicts, receipts, and decisions of operators.

Kept beside the system under test, which never reads it. Effects are noted where they take place,
at the servers, under the name of the process that caused them, so that a call whose answer was lost
or that arrived late is seen all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from committer.ports.pointer_swap import LoadedTable, Swap
from committer.ports.storage import NewObject
from committer.request.receipt_model import Receipt
from committer.request.table_identifier import TableIdentifier
from tests.simulation.rows import WrittenRows


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise: the invariant (`I1` to `I23`), what was found, and when (ms)."""

    invariant: str
    text: str
    at_ms: int

    def __str__(self) -> str:
        return f"{self.invariant} at {self.at_ms} ms: {self.text}"


class Listener(Protocol):
    """Is told of each effect, by the process that caused it, right after it took place."""

    def created(self, process: str, created: NewObject) -> None: ...
    def deleting(self, process: str, locations: Sequence[str]) -> None: ...
    def swapped(self, process: str, swap: Swap) -> None: ...
    def swapped_together(self, process: str, swaps: Sequence[Swap]) -> None: ...
    def refused(self, process: str, swap: Swap) -> None: ...
    def pointed(self, process: str, table: LoadedTable) -> None: ...
    def dropped(self, process: str, identifier: TableIdentifier) -> None: ...
    def acknowledged(self, process: str, key: str) -> None: ...
    def replied(self, process: str, receipt: Receipt) -> None: ...
    def received(self, process: str, receipt: Receipt) -> None: ...
    def accepted(self, table: LoadedTable) -> None: ...


@dataclass(slots=True)
class History:
    """The notes of one run. `now_ms` is the onlooker's own clock, which no fault moves.

    A run is judged by `violations`: its driver stops it once they are not empty. Nothing is raised
    inside a port, as the service would take it for a fault.
    """

    now_ms: Callable[[], int]
    listener: Listener | None = None
    violations: list[Violation] = field(default_factory=list)
    # Processes that are no committers: what they do is followed, not judged.
    foreign: set[str] = field(default_factory=set)
    # Of those: who decides about our ledger, by our own commands.
    operators: set[str] = field(default_factory=set)
    # Doorbells by token, as they were handed out last.
    tokens: dict[str, str] = field(default_factory=dict)
    # Decisions of operators, by published key. Accepted: it may land whatever the ledger
    # says, once: from the swap that gives the permission to the one that uses it.
    discarded: set[str] = field(default_factory=set)
    replayed: set[str] = field(default_factory=set)
    accepted: set[str] = field(default_factory=set)
    # Requests that claim another's files, by inbox key, and the reason why none of them lands.
    claims: dict[str, str] = field(default_factory=dict)
    # Tables that were restored, or stripped of the ledger, and that no operator has accepted yet.
    tampered: dict[UUID, str] = field(default_factory=dict)
    ever_tampered: set[UUID] = field(default_factory=set)
    # Ledger properties of which an operator, or another engine, has made something else.
    decided: set[tuple[UUID, str]] = field(default_factory=set)
    # Tables that were ever put back to older metadata.
    restored: set[UUID] = field(default_factory=set)
    # What the rows of files are, by the word of those who wrote them.
    written: WrittenRows = field(default_factory=WrittenRows)
    # Adds a line to the trace.
    tell: Callable[[str, str], None] = lambda process, text: None

    def tampers(self, table_uuid: UUID, how: str) -> None:
        """Note that a table's ledger was taken from it."""
        self.tampered[table_uuid] = how
        self.ever_tampered.add(table_uuid)

    def violated(self, invariant: str, text: str) -> None:
        """Record a broken promise."""
        self.violations.append(Violation(invariant, text, self.now_ms()))

    def accept_table(self, table: LoadedTable) -> None:
        """Report that an operator has accepted this metadata as the truth."""
        if self.listener is not None:
            self.listener.accepted(table)

    def refuse(self, process: str, swap: Swap) -> None:
        """Report that the catalog refuses a change for its content, whatever its base."""
        if self.listener is not None:
            self.listener.refused(process, swap)

    def told(self, process: str, receipt: Receipt) -> None:
        """Report the answer that a producer has received, from any source."""
        if self.listener is not None:
            self.listener.received(process, receipt)
