"""The outcome of a request, as its producer receives it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ReceiptState(StrEnum):
    """The progress of a request. Durable: it will not be lost. The other two are final."""

    DURABLE = "durable"
    COMMITTED = "committed"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The outcome of a request. Ids are set when committed, reason and message when quarantined.

    `duplicate`: another attempt of the epoch landed, whose ids these are; this one's files did not.
    `backlog`: so many requests still waited when `publish`, slowed down by them, returned; None
    where it was not slowed. `conflict`: its code, of a request that conflicts with what has landed.
    """

    producer: str
    epoch: int
    attempt: str
    state: ReceiptState
    snapshot_id: int | None = None
    sequence_number: int | None = None
    reason: str | None = None
    message: str | None = None
    duplicate: bool = False
    backlog: int | None = None
    conflict: str | None = None
