"""Operators: they look at what is in quarantine or frozen now and then, and decide something.

They run the same code as the commands. They may crash half way, and begin again.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from committer.errors import (
    FrazilError,
    InvalidRequestError,
    NotFoundError,
    UnsupportedError,
)
from committer.ledger_entry import EpochRanges
from committer.plan.ledger.ledger import read_ledger
from committer.plan.ledger.producer_decisions import (
    ACCEPTABLE,
    ProducerName,
    ProducerState,
    standings,
)
from committer.plan.ledger.state import TableState
from committer.ports.queue import Doorbell
from committer.request.request_format import EncodedRequest, line_digest, read_request
from committer.request.request_key import published_key
from committer.request.table_identifier import TableIdentifier
from committer.service.admin.producer_admin import ProducerAdmin
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from tests.simulation.chance import draws
from tests.simulation.ports import Ports
from tests.simulation.servers import INBOX


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPlan:
    """`looks` with about `pause_s` before each. Of what is found in quarantine so much is replayed,
    discarded, or accepted against the ledger; the rest is left. Of the producers that a look finds,
    so many are frozen (until the next look) and forgotten.
    """

    looks: int = 4
    pause_s: float = 20.0
    replays: float = 0.5
    discards: float = 0.2
    accepts: float = 0.5
    freezes: float = 0.2
    forgets: float = 0.05


class Replayer:
    """Replays of one operator, who does again what he has begun and not seen to end."""

    def __init__(self) -> None:
        self._begun: set[str] = set()

    @property
    def has_begun(self) -> bool:
        return bool(self._begun)

    async def replay(self, key: str, ports: Ports) -> None:
        """Move a request back into the inbox, and ring."""
        self._begun.add(key)
        ports.history.replayed.add(published_key(key))
        with suppress(InvalidRequestError, NotFoundError):
            sealed = await ports.replays.replay(key, ports.world.uuid())
            ports.history.tell("operator", f"replayed {key}")
            await _announce(sealed, ports)
        self._begun.remove(key)

    async def finish(self, ports: Ports) -> None:
        """Begin the replays again that were interrupted."""
        for key in sorted(self._begun):
            await self.replay(key, ports)


class QuarantineOperator:
    """Replays and discards what is in quarantine."""

    def __init__(self, name: str, plan: OperatorPlan, *, seed: int) -> None:
        self.name = name
        self._plan = plan
        self._seed = seed
        self._looks = 0
        self._replayer = Replayer()

    async def run(self, ports: Ports) -> None:
        ports.history.foreign.add(self.name)
        while self._looks < self._plan.looks or self._replayer.has_begun:
            await ports.world.sleep(self._plan.pause_s * 2 * ports.world.jitter())
            await self._replayer.finish(ports)
            for key in [found.key async for found in ports.quarantine.list()]:
                await self._decide(key, ports)
            self._looks += 1

    async def _decide(self, key: str, ports: Ports) -> None:
        chance = draws(self._seed, f"{self.name} {key} {self._looks}")[0]
        if chance < self._plan.replays:
            await self._replayer.replay(key, ports)
        elif chance < self._plan.replays + self._plan.discards:
            # From his word on, whatever becomes of the call.
            ports.history.discarded.add(published_key(key))
            await ports.replays.discard(key)
            ports.history.tell(self.name, f"discarded {key}")


class LedgerOperator:
    """Decides about the producers of one table, and about the table itself: freezes, thaws and
    forgets, lets requests land that the ledger refuses, and accepts a restored table.
    """

    def __init__(
        self, name: str, identifier: TableIdentifier, plan: OperatorPlan, *, seed: int
    ) -> None:
        self.name = name
        self._identifier = identifier
        self._plan = plan
        self._seed = seed
        self._looks = 0
        self._replayer = Replayer()

    async def run(self, ports: Ports) -> None:
        history = ports.history
        history.foreign.add(self.name)
        history.operators.add(self.name)
        while self._looks < self._plan.looks:
            await ports.world.sleep(self._plan.pause_s * 2 * ports.world.jitter())
            await self._replayer.finish(ports)
            await self._look(ports)
            self._looks += 1
        await self._replayer.finish(ports)
        # The operator thaws every frozen producer before it ends: no request waits in vain.
        await self._thaw_all(ports)
        await self._accept_table(ports)

    async def _look(self, ports: Ports) -> None:
        await self._accept_table(ports)
        await self._thaw_all(ports)
        await self._freeze_one(ports)
        await self._forget_one(ports)
        await self._accept_requests(ports)

    async def _accept_table(self, ports: Ports) -> None:
        """Run `frazil table accept`: the metadata as it is becomes the truth."""
        told = dict(ports.history.tampered)
        table = await ports.catalog.load(self._identifier)
        table_uuid = table.metadata.require_uuid()
        why = told.get(table_uuid)
        if why is None:
            return
        # As the command does: what has changed since it was shown is looked at anew.
        if await ports.catalog.current_location(self._identifier) != table.metadata_location:
            return
        # From his word on, whatever becomes of the call.
        ports.history.accept_table(table)
        keeper = HighWaterMarkStore.at(ports.storage, INBOX)
        await keeper.accept(TableState.of(table), now_ms=ports.world.now_ms())
        if ports.history.tampered.get(table_uuid) is why:  # and not put back once more meanwhile
            del ports.history.tampered[table_uuid]
        ports.history.tell(self.name, f"accepted {self._identifier}")

    async def _thaw_all(self, ports: Ports) -> None:
        """Thaw every frozen producer, with or without a redo of its rolled back epochs."""
        desk, table = _desk(ports), await ports.catalog.load(self._identifier)
        for one in standings(read_ledger(table.metadata)):
            if one.state not in (ProducerState.FROZEN, ProducerState.ROLLED_BACK):
                continue
            lost = await desk.lost(table, one.name)
            chance = self._chance(f"again {one.name.producer}")
            again = EpochRanges()
            if chance < 0.5:
                again = lost.epochs
            elif chance < 0.65:  # the first of them: `--epochs`
                again = EpochRanges(tuple((low, low) for low, _ in lost.epochs.ranges[:1]))
            # Refused where another decision, or a rollback, has come in between.
            with suppress(UnsupportedError):
                await desk.thaw(self._identifier, one.name, again)
                ports.history.tell(self.name, f"thawed {one.name.producer} again={again}")

    async def _freeze_one(self, ports: Ports) -> None:
        table = await ports.catalog.load(self._identifier)
        for one in standings(read_ledger(table.metadata)):
            if self._chance(f"freeze {one.name.producer}") < self._plan.freezes:
                await _desk(ports).freeze(self._identifier, one.name, "a look at it")
                ports.history.tell(self.name, f"froze {one.name.producer}")

    async def _forget_one(self, ports: Ports) -> None:
        table = await ports.catalog.load(self._identifier)
        for one in standings(read_ledger(table.metadata)):
            if self._chance(f"forget {one.name.producer}") < self._plan.forgets:
                # Refused while a request of it waits.
                with suppress(UnsupportedError):
                    await _desk(ports).forget(self._identifier, one.name)
                    ports.history.tell(self.name, f"forgot {one.name.producer}")

    async def _accept_requests(self, ports: Ports) -> None:
        """Run `frazil quarantine replay --force`: each request lands once when it is replayed."""
        table = await ports.catalog.load(self._identifier)
        table_uuid = table.metadata.require_uuid()
        for key in [found.key async for found in ports.quarantine.list(table_uuid)]:
            record, content = await ports.quarantine.get(key)
            is_acceptable = record.reason in {reason.value for reason in ACCEPTABLE}
            if not is_acceptable or self._chance(f"accept {key}") > self._plan.accepts:
                continue
            request = read_request(content, key=key).request
            name = ProducerName(request.producer.id, request.branch)
            refused = await _desk(ports).accept(self._identifier, name, [request])
            if not refused:
                ports.history.tell(self.name, f"accepted {key}")
                await self._replayer.replay(key, ports)

    def _chance(self, what: str) -> float:
        return draws(self._seed, f"{self.name} {what} {self._looks}")[0]


def _desk(ports: Ports) -> ProducerAdmin:
    return ProducerAdmin(
        catalog=ports.catalog,
        storage=ports.storage,
        replays=ports.replays,
        high_water_marks=HighWaterMarkStore.at(ports.storage, INBOX),
        world=ports.world,
    )


async def _announce(sealed: EncodedRequest, ports: Ports) -> None:
    """Ring, best effort: the committer finds the request when it next lists the inbox."""
    request = sealed.request
    bell = Doorbell(
        request.table_uuid, sealed.key, line_digest(sealed.content), sealed.content, None
    )
    try:
        await ports.queue.announce([bell])
    except FrazilError:
        return
