"""An operator's decisions, and requests to decide about."""

from __future__ import annotations

from committer.iceberg.metadata.snapshot import MAIN, SnapshotRef
from committer.iceberg.updates.metadata_update import (
    SetSnapshotRef,
)
from committer.ledger_entry import parse_entry
from committer.plan.ledger import read_ledger
from committer.plan.producer_decisions import ProducerName, ProducerState, standing
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.request_format import EncodedRequest
from committer.request.request_key import published_key
from committer.service.admin.producer_admin import ProducerAdmin
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from committer.service.table.table_committer import TableCommitter
from committer.storage.replays import Replays
from tests.support.builders.request_builders import build_request
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import INBOX, ServiceHarness

NAME = ProducerName("query-1")


def producer_admin(house: ServiceHarness) -> ProducerAdmin:
    return ProducerAdmin(
        catalog=house.catalog,
        storage=house.storage.inner,
        replays=Replays(house.storage.inner, INBOX),
        high_water_marks=HighWaterMarkStore(house.high_water_marks),
        world=house.world,
    )


async def land(house: ServiceHarness, table: LoadedTable, *epochs: int) -> None:
    """Each in a snapshot of its own, by a service that runs for it."""
    async with house.running():
        await publish_in_turn(house, table, *epochs)


async def publish_in_turn(
    house: ServiceHarness, table: LoadedTable, *epochs: int, producer: str = "query-1"
) -> None:
    """Each in a snapshot of its own, by the service that runs."""
    for epoch in epochs:
        now_ms = house.world.now_ms()
        await house.publish(
            build_request(table, producer=producer, epoch=epoch, published_at_ms=now_ms)
        )
        await house.settle(7.0)


async def roll_back(house: ServiceHarness, table: LoadedTable, position: int) -> None:
    """Make an earlier snapshot the head of main again, without any committer's knowledge."""
    snapshot_id = (await house.load()).snapshots[position].snapshot_id
    await foreign_commit(house, table, SetSnapshotRef(MAIN, SnapshotRef(snapshot_id, "branch")))


async def epochs_of(house: ServiceHarness) -> str:
    return str(parse_entry((await house.load()).properties[NAME.key]).epochs)


async def replay(house: ServiceHarness, sealed: EncodedRequest) -> None:
    """Replay a request, under whichever of its keys it is in quarantine."""
    keys = [record.key for record in await house.quarantined()]
    (key,) = [key for key in keys if published_key(key) == sealed.request.inbox_key]
    replayed = await producer_admin(house).replays.replay(key, house.world.uuid())
    await house.publish(replayed, durable=False)
    await house.run_until_settled()


async def accept(
    house: ServiceHarness, table: LoadedTable, *requests: EncodedRequest
) -> dict[str, str]:
    lines = [sealed.request for sealed in requests]
    return await producer_admin(house).accept(table.identifier, NAME, lines)


async def reasons(house: ServiceHarness) -> list[str]:
    return [record.reason for record in await house.quarantined()]


def found_due(committer: TableCommitter, key: str) -> None:
    """As a pass does that finds nothing of a one-shot producer."""
    assert committer.state is not None
    committer.ledger_upkeep.found_due(key, committer.state.ledger.entries[key])


async def state_of(house: ServiceHarness) -> ProducerState:
    return standing(read_ledger(await house.load()), NAME).state


async def refused_for_its_content(house: ServiceHarness) -> tuple[LoadedTable, EncodedRequest]:
    """A table with epoch 0, and another content of it in quarantine."""
    table = await house.create_table()
    await land(house, table, 0)
    other = build_request(table, epoch=0, fingerprint="something else")
    await house.publish(other)
    await house.run_until_settled()
    assert await reasons(house) == [Reason.EPOCH_CONTENT_DIFFERS]
    return table, other
