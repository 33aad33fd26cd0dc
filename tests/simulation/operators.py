"""Operators: they look at what is in quarantine or frozen now and then, and decide something.

What they run is what the commands run. They may crash half way, and begin again.
"""

from __future__ import annotations

from dataclasses import dataclass

from committer.errors import FrazilError, InvalidRequestError, NotFoundError, PublishError
from committer.ports import Doorbell
from committer.request import SealedRequest, line_digest
from tests.simulation.chance import draws
from tests.simulation.ports import Ports


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPlan:
    """`looks` of about `pause_s` each; of what is found there so much is replayed, the rest
    discarded or left.
    """

    looks: int = 4
    pause_s: float = 20.0
    replays: float = 0.5
    discards: float = 0.2


class QuarantineOperator:
    """Replays and discards what is in quarantine."""

    def __init__(self, name: str, plan: OperatorPlan, *, seed: int) -> None:
        self.name = name
        self._plan = plan
        self._seed = seed
        self._looks = 0

    async def run(self, ports: Ports) -> None:
        while self._looks < self._plan.looks:
            await ports.world.sleep(self._plan.pause_s * 2 * ports.world.jitter())
            await self._finish_interrupted(ports)
            for key in [found.key async for found in ports.quarantine.list()]:
                await self._decide(key, ports)
            self._looks += 1

    async def _finish_interrupted(self, ports: Ports) -> None:
        for key in [found.key async for found in ports.replays.interrupted()]:
            await self._replay(key, ports)

    async def _decide(self, key: str, ports: Ports) -> None:
        chance = draws(self._seed, f"{self.name} {key} {self._looks}")[0]
        if chance < self._plan.replays:
            await self._replay(key, ports)
        elif chance < self._plan.replays + self._plan.discards:
            # From his word on, whatever becomes of the call.
            ports.history.discarded.add(key)
            await ports.replays.discard(key)
            ports.history.tell(self.name, f"discarded {key}")

    async def _replay(self, key: str, ports: Ports) -> None:
        try:
            sealed = await ports.replays.replay(key)
        except (InvalidRequestError, NotFoundError, PublishError):
            return
        ports.history.replayed[key] += 1
        ports.history.tell(self.name, f"replayed {key}")
        await _announce(sealed, ports)


async def _announce(sealed: SealedRequest, ports: Ports) -> None:
    """Best effort: the committer finds it when it next lists the inbox."""
    request = sealed.request
    bell = Doorbell(
        request.table_uuid, request.inbox_key, line_digest(sealed.content), sealed.content, None
    )
    try:
        await ports.queue.announce([bell])
    except FrazilError:
        return
