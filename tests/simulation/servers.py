"""The servers: storage, catalog and queue in memory, which outlive every process.

They are the adapters that pass the contract suites of the real ones. Faults of a server rather than
of a call (Redis loses everything, or its tail, or an old replica takes over) are done here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from committer.ports.queue import SHARDS, Delivery
from tests.simulation.catalogs import SimCatalog, open_server
from tests.simulation.world import SimWorld
from tests.support.memory.memory_queue import MemoryQueue, MemoryServer, _Shard
from tests.support.memory.memory_storage import MemoryStorage

INBOX = "memory://requests"


class SimQueueServer(MemoryServer):
    """A queue's server with a replica that lags behind."""

    def __init__(self, *, world: SimWorld) -> None:
        super().__init__(world=world)
        self._replica = _copies(self.shards)

    def replicate(self) -> None:
        """Bring the replica up to date. Later writes are lost if the server is."""
        self._replica = _copies(self.shards)

    def fail_over(self) -> None:
        """Promote the replica as it is: newer doorbells are lost, and so are deliveries and
        acknowledgments of older ones. Numbers continue: identifiers are made of the time.
        """
        self.shards = _copies(self._replica)
        self.mailboxes = {}
        self.wake()

    def trim(self) -> None:
        """Drop the older half of the doorbells not yet handed out, in each shard (MAXLEN)."""
        for number in range(SHARDS):
            shard = self.shards[number]
            for _ in range(len(shard.fresh) // 2):
                del shard.doorbells[shard.fresh.popleft()]


def _copies(shards: Sequence[_Shard]) -> list[_Shard]:
    return [
        _Shard(
            dict(shard.doorbells),
            {number: replace(pending) for number, pending in shard.pending.items()},
            deque(shard.fresh),
        )
        for shard in shards
    ]


class SimQueue(MemoryQueue):
    """A client that can lose an answer on its way."""

    def unsee(self, deliveries: Sequence[Delivery]) -> None:
        """Lose the answer with these deliveries: handed out, but never seen by the client."""
        self._held.difference_update(delivery.token for delivery in deliveries)


class Servers:
    """All servers of a run, and their clock."""

    def __init__(self, seed: int, kind: SimCatalog = SimCatalog.DYNAMODB) -> None:
        self.kind = kind
        self.world = SimWorld(seed, "servers")
        # A warehouse may be named after the folder that its tables are to be exported to.
        self.storage = MemoryStorage(world=self.world, schemes=("memory", "file"))
        self.catalog = open_server(kind, seed, self.storage, self.world)
        self.queue = SimQueueServer(world=self.world)

    @property
    def doorbells(self) -> dict[str, str]:
        """The doorbells that are not acknowledged: of which request, by token and holder."""
        found = {}
        for number, shard in enumerate(self.queue.shards):
            for key, doorbell in shard.doorbells.items():
                pending = shard.pending.get(key)
                holder = pending.consumer if pending else "none"
                found[f"{number:02d}:{key}, held by {holder}"] = doorbell.inbox_key
        return found
