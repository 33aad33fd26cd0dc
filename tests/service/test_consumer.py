"""The queue's reader: what it asks the server, and when."""

from __future__ import annotations

from committer.queue.memory import MemoryQueue
from tests.service.house import House

VIRTUAL_TIME = True


class ProbedQueue(MemoryQueue):
    """Counts how often its server was probed."""

    probes = 0

    async def probe(self) -> None:
        self.probes += 1
        await super().probe()


async def test_a_server_is_probed_once_and_not_before_every_read() -> None:
    house = House()
    house.queue = queue = ProbedQueue(house.server, consumer="committer")
    await house.run_until_settled(seconds=60)
    assert queue.probes == 1
