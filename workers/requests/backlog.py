"""Slows a publisher down while more requests wait than the committer can keep up with.

The waiting request is durable and announced already: the publisher only delays its next epoch,
whose rows stay at their source, and Spark makes larger micro-batches of them. So a producer that is
slowed down has as few requests as possible, and none is dropped or refused. Without a queue the
backlog is unknown, and the publisher is never slowed down.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from uuid import UUID

from committer.errors import FrazilError
from committer.ports.queue import Queue
from committer.ports.world import World, spread_s
from workers.requests.sparse_log import SparseLog
from workers.settings.options import BACKLOG_MAX, BACKLOG_WAIT_S

_log = logging.getLogger("frazil.workers")

# How long until the queue is asked again: twice as long each time, as many may be asking.
_LOOK_S_MIN = 0.25
_LOOK_S_MAX = 5.0


@dataclass(frozen=True, slots=True)
class BacklogPolicy:
    """`requests_max`: how many requests may wait in the shard of a table before a publisher is
    slowed down; `wait_s`: how long by each request, at most.
    """

    requests_max: int = BACKLOG_MAX
    wait_s: float = BACKLOG_WAIT_S


USUAL_BACKLOG = BacklogPolicy()


class BacklogWaiter:
    """Waits until the shard of a table holds no more than the policy allows."""

    def __init__(self, queue: Queue, world: World) -> None:
        self._queue = queue
        self._world = world
        self._log = SparseLog(_log, world)

    async def wait(self, table_uuid: UUID, told: int, policy: BacklogPolicy) -> int | None:
        """Wait while the backlog is too large; `told`: the last reported one. Return that at the
        end of the wait; None if there was none. A queue that does not answer ends it.
        """
        if told <= policy.requests_max or not policy.wait_s:
            return None
        self._log.warning(
            "the committer is behind: %d requests wait in the queue for it, more than %d (option"
            " `backlog_max`). This request is durable; the next is delayed until they are"
            " fewer, for at most %g s (option `backlog_wait_s`)",
            told,
            policy.requests_max,
            policy.wait_s,
        )
        started_s = self._world.monotonic_s()
        left = await self._until_fewer(table_uuid, told, policy)
        waited_s = self._world.monotonic_s() - started_s
        _log.info("went on after %.1f s: %d requests wait for the committer", waited_s, left)
        return left

    async def _until_fewer(self, table_uuid: UUID, backlog: int, policy: BacklogPolicy) -> int:
        end_s = self._world.monotonic_s() + policy.wait_s
        look_s = _LOOK_S_MIN
        while (left_s := end_s - self._world.monotonic_s()) > 0 and backlog > policy.requests_max:
            await self._world.sleep(min(left_s, spread_s(look_s, self._world)))
            look_s = min(2 * look_s, _LOOK_S_MAX)
            try:
                backlog = await self._queue.backlog(table_uuid)
            except FrazilError as error:
                self._log.warning(
                    "the queue does not say how much waits for the committer: %s", error
                )
                break
        return backlog
