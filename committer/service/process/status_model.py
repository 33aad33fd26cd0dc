"""The model of `/status`, shared by the endpoint and `frazil status`.

Fields may be added; a reader ignores those that it does not know.
"""

from __future__ import annotations

from collections import Counter

from pydantic import BaseModel, ConfigDict, Field

from committer.ports.leases import Assignment
from committer.service.telemetry.health import Phase


class _StatusModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class InboxStatus(_StatusModel):
    """The result of the last complete listing of the inbox; null before the first."""

    location: str
    requests: int | None
    listed_s: float | None
    """When it began, seconds since 1970."""
    foreign: dict[str, int] = {}
    """Entries that are no requests and stay where they are, by kind."""


class QueueStatus(_StatusModel):
    """Doorbells in the queue; null where it does not answer, or there is none."""

    waiting: int | None
    pending: int | None
    """Those of them that were handed out and are not acknowledged."""


class OpenBreakerStatus(_StatusModel):
    """A producer with an open circuit breaker: its requests wait in the inbox, because its last
    ones all went to quarantine.
    """

    table: str
    producer: str
    failures: int
    """Requests in a row."""
    reason: str
    """The last one's."""
    again_s: float
    """Until one of the waiting requests is tried."""


class MemberStatus(_StatusModel):
    """One of the committers that share the shards."""

    name: str
    shards: int
    is_leaving: bool
    is_cut_off: bool = False
    """Its storage, inbox or catalog does not answer it."""
    status_url: str | None = None
    """Where its `/status` is; null if it has none, or is of an earlier release."""


class ShardsStatus(_StatusModel):
    """The committers and their shards. A table belongs to the owner of its shard."""

    member: str | None = None
    """The name of the committer that answers."""
    owned: int
    """By the committer that answers, of 64."""
    members: list[MemberStatus]
    """As the queue's server told it last; empty without a queue."""


class TableStatus(_StatusModel):
    """One table, since the process has started."""

    table: str
    lag_s: float = 0
    """Age of the oldest request that nothing but work keeps waiting."""
    held_s: float = 0
    """Age of the oldest request that a rule holds, as in `Status`."""
    unavailable_s: float = 0
    """Age of the oldest request whose table or object cannot be read, or not be committed to."""
    pending_requests: int = 0
    pending_bytes: int = 0
    commits: int = 0
    requests: int = 0
    files: int = 0
    rows: int = 0
    bytes: int = 0
    recovered: int = 0
    """Requests found to have landed by a swap whose answer was lost; not in `requests`."""
    duplicates: int = 0
    swaps: dict[str, int] = Field(default_factory=dict)
    """Swaps by answer: `committed`, `conflict`, `rejected`, `unknown`."""
    last_commit_s: float | None = None
    """Seconds since 1970."""
    metadata_bytes: int | None = None
    frozen_producers: int = 0
    """Producers of which nothing lands, by the ledger."""


class Status(_StatusModel):
    """The whole answer. Numbers of things that happened count from the start of the process."""

    version: str
    catalog: str
    """The catalog's name."""
    now_s: float
    """The committer's clock, seconds since 1970."""
    phase: Phase
    ready: bool
    conditions: dict[str, str]
    """Why, by component."""
    lag_s: float | None
    """Age of the oldest request that nothing but work keeps waiting; null while not known."""
    held_s: float | None = None
    """Age of the oldest request that is held: by an open circuit breaker, a frozen table, a lower
    epoch of an ordered producer, or the other requests of a transaction.
    """
    unavailable_s: float | None = None
    """Age of the oldest request whose table or object cannot be read, or not be committed to."""
    inbox: InboxStatus
    queue: QueueStatus
    shards: ShardsStatus | None = None
    """Null before the committer has started."""
    quarantine: dict[str, int]
    """Requests in quarantine by reason."""
    quarantine_bytes: int | None = None
    quarantine_age_s: float | None = None
    """For how long its oldest request has been there, 0 if it is empty; null while not known."""
    open_breakers: list[OpenBreakerStatus] = []
    """The first hundred."""
    quarantined: dict[str, int]
    """Requests put into quarantine by reason."""
    missed_doorbells: int
    """Requests that only a listing found, although the queue was there."""
    redelivered: int
    """Doorbells that the queue handed out again."""
    internal_errors: dict[str, int]
    """Unexpected exceptions that were survived, by place."""
    tables: list[TableStatus]


def member_statuses(seen: Assignment) -> list[MemberStatus]:
    """Return the members of an assignment, and how many shards each owns."""
    shares = Counter(lease.member for lease in seen.leases.values())
    return [
        MemberStatus(
            name=one.name,
            shards=shares[one.name],
            is_leaving=one.is_leaving,
            is_cut_off=one.is_cut_off,
            status_url=one.status_url,
        )
        for one in seen.members
    ]
