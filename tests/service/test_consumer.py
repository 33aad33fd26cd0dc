"""The queue's reader: what it asks the server, and when."""

from __future__ import annotations

from dataclasses import replace

from committer.errors import StorageUnavailableError
from committer.ports import QueueDepth
from committer.queue.memory import MemoryQueue
from committer.storage.memory import MemoryStorage
from tests.request_builders import build_request
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


class FailsOnce(MemoryStorage):
    """The first look at a request gets no answer."""

    has_failed = False

    async def get(self, location: str, *, offset: int = 0, length: int | None = None) -> bytes:
        if "/inbox/" in location and not self.has_failed:
            self.has_failed = True
            raise StorageUnavailableError("no answer")
        return await super().get(location, offset=offset, length=length)


async def test_a_doorbell_whose_object_could_not_be_read_is_looked_up_again_and_acknowledged() -> (
    None
):
    house = House(wrap=lambda storage: FailsOnce())
    table = await house.create_table()
    # Too large to be in its doorbell, and ended before: no listing of the inbox shows it.
    old = replace(house.doorbell(build_request(table)), content=None)
    await house.publisher_queue.announce([old])
    await house.run_until_settled(seconds=200)
    assert await house.publisher_queue.depth() == QueueDepth(waiting=0, pending=0)
