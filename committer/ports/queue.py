"""The port `Queue`: doorbells and receipts. Each docstring is a contract."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from committer.request.receipt_model import Receipt

SHARDS = 64
ALL_SHARDS: tuple[int, ...] = tuple(range(SHARDS))
# Of each shard with a long queue, ahead of their turn.
AHEAD_MAX = 128


@dataclass(frozen=True, slots=True)
class Doorbell:
    """Says that a request waits in the inbox. `content` is the request itself while it is small.
    `asks_for_turn`: another committer, which decides a transaction with this request, asks the
    table's owner to commit nothing for a moment.
    """

    table_uuid: UUID
    inbox_key: str
    digest: str
    content: bytes | None
    reply_to: str | None
    asks_for_turn: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """A doorbell handed to this consumer. `token` acknowledges it; `deliveries` counts from 1.
    `is_ahead`: a copy of a doorbell that comes in its turn, too, unless it is acknowledged before.
    """

    token: str
    doorbell: Doorbell
    deliveries: int
    is_ahead: bool = False


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Doorbells in all shards, and those that are delivered but not acknowledged."""

    waiting: int
    pending: int


class Queue(Protocol):
    """Doorbells in `SHARDS` shards by table uuid, and receipts on their way back.

    Obligations of every method: an unreachable server is `QueueUnavailableError`. At-least-once: a
    doorbell is delivered until acknowledged, perhaps twice, in no promised order, and may be lost
    with the server. No client library resends a write.
    """

    async def announce(self, doorbells: Sequence[Doorbell]) -> int:
        """Append each doorbell to the shard of its table. Repeated, it is delivered twice.

        The answer, of the same exchange, is the `backlog` of the fullest of these shards.
        """

    async def backlog(self, table_uuid: UUID) -> int:
        """Count the doorbells of the shard of this table that are not acknowledged yet."""

    async def read(
        self,
        *,
        count_max: int,
        wait_s: float,
        shards: Collection[int] = ALL_SHARDS,
        more_max: int = 0,
    ) -> Sequence[Delivery]:
        """Take up to `count_max` new doorbells of each of these shards (at least one); wait up to
        `wait_s` for the first. `more_max`: of the shards that have more, about so many more of all
        together: one long queue is read in few exchanges. Of those that have more still, the newest
        `AHEAD_MAX` come ahead of their turn, each once: a long queue of one producer hides the
        doorbells of others for seconds.

        After an error or a canceled read the next call returns what was handed to this consumer
        and never seen. So does the first call that names a shard after one that did not: doorbells
        of a shard that is no longer named are released, and may be taken over or redelivered;
        acknowledging them still works. A missing stream or group is created from the beginning,
        never from the end.
        """

    async def reclaim(
        self, *, idle_s: float, shards: Collection[int] = ALL_SHARDS
    ) -> Sequence[Delivery]:
        """Take over doorbells of these shards that another consumer left unacknowledged for
        `idle_s`.
        """

    def release_shards(self, shards: Collection[int]) -> None:
        """Release all deliveries of these shards: from now on they may be taken over, by this
        consumer too, or delivered again. No exchange; acknowledging them still works.
        """

    async def acknowledge(self, tokens: Sequence[str]) -> None:
        """Forget the doorbells for good. Unknown tokens are ignored; may be repeated."""

    def taken_keys(self) -> Mapping[str, str]:
        """Return the keys of the server that hold something else, as far as calls have met them,
        and what to do about each. Their shards are not read; they are, soon after they are free
        again.
        """

    async def reply(self, receipts: Sequence[tuple[str, Receipt]]) -> None:
        """Carry each receipt to the waiter at its `reply_to`. Best effort, kept for a while."""

    async def wait_for_receipts(self, reply_to: str, *, wait_s: float) -> Sequence[Receipt]:
        """Take the receipts that arrived for `reply_to`, in order;
        wait up to `wait_s` if there is none.
        """

    async def depth(self) -> QueueDepth:
        """Count over all shards."""

    async def probe(self) -> None:
        """Refuse (`SettingsError`) a server that may evict or is too old;
        say which setting to change.
        """

    async def close(self) -> None:
        """Release connections. Idempotent."""


def shard_of(table_uuid: UUID) -> int:
    """Return the shard of a table, 0 ≤ shard < `SHARDS`:
    the same for every version of every party."""
    return table_uuid.int % SHARDS
