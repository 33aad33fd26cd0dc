"""An operator's decisions, and requests to decide about."""

from __future__ import annotations

from committer.iceberg.metadata.snapshot import MAIN, SnapshotRef
from committer.iceberg.updates.metadata_update import (
    SetSnapshotRef,
)
from committer.ledger_entry import parse_entry
from committer.plan.ledger.ledger import read_ledger
from committer.plan.ledger.producer_decisions import ProducerName, ProducerState, standing
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.request_format import EncodedRequest
from committer.request.request_key import published_key
from committer.service.admin.producer_admin import ProducerAdmin
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from committer.service.table.table_committer import TableCommitter
from committer.storage.inbox.replays import Replays
from tests.support.builders.request_builders import build_request
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import INBOX, ServiceHarness

NAME = ProducerName("query-1")


def producer_admin(harness: ServiceHarness) -> ProducerAdmin:
    return ProducerAdmin(
        catalog=harness.catalog,
        storage=harness.storage.inner,
        replays=Replays(harness.storage.inner, INBOX),
        high_water_marks=HighWaterMarkStore(harness.high_water_marks),
        world=harness.world,
    )


async def land(harness: ServiceHarness, table: LoadedTable, *epochs: int) -> None:
    """Land each epoch in a snapshot of its own, by a service that runs for it."""
    async with harness.running():
        await publish_in_turn(harness, table, *epochs)


async def publish_in_turn(
    harness: ServiceHarness, table: LoadedTable, *epochs: int, producer: str = "query-1"
) -> None:
    """Land each epoch in a snapshot of its own, by the running service."""
    for epoch in epochs:
        now_ms = harness.world.now_ms()
        await harness.publish(
            build_request(table, producer=producer, epoch=epoch, published_at_ms=now_ms)
        )
        await harness.settle(7.0)


async def roll_back(harness: ServiceHarness, table: LoadedTable, position: int) -> None:
    """Make an earlier snapshot the head of main again, without any committer's knowledge."""
    snapshot_id = (await harness.load()).snapshots[position].snapshot_id
    await foreign_commit(harness, table, SetSnapshotRef(MAIN, SnapshotRef(snapshot_id, "branch")))


async def epochs_of(harness: ServiceHarness) -> str:
    return str(parse_entry((await harness.load()).properties[NAME.key]).epochs)


async def replay(harness: ServiceHarness, sealed: EncodedRequest) -> None:
    """Replay a request, under whichever of its keys it is in quarantine, and let it land."""
    await put_back(harness, sealed)
    await harness.run_until_settled()


async def put_back(harness: ServiceHarness, sealed: EncodedRequest) -> None:
    """Return a request to the inbox, under whichever of its keys it is in quarantine."""
    keys = [record.key for record in await harness.quarantined()]
    (key,) = [key for key in keys if published_key(key) == sealed.request.inbox_key]
    replayed = await producer_admin(harness).replays.replay(key, harness.world.uuid())
    await harness.publish(replayed, durable=False)


async def accept(
    harness: ServiceHarness, table: LoadedTable, *requests: EncodedRequest
) -> dict[str, str]:
    lines = [sealed.request for sealed in requests]
    return await producer_admin(harness).accept(table.identifier, NAME, lines)


async def reasons(harness: ServiceHarness) -> list[str]:
    return [record.reason for record in await harness.quarantined()]


def found_due(committer: TableCommitter, key: str) -> None:
    """Report the entry as a pass does that finds no object of a one-shot producer."""
    assert committer.state is not None
    committer.ledger_upkeep.found_due(key, committer.state.ledger.entries[key])


async def state_of(harness: ServiceHarness) -> ProducerState:
    return standing(read_ledger(await harness.load()), NAME).state


async def refused_for_its_content(harness: ServiceHarness) -> tuple[LoadedTable, EncodedRequest]:
    """Create a table with epoch 0, and another content of it in quarantine."""
    table = await harness.create_table()
    await land(harness, table, 0)
    other = build_request(table, epoch=0, fingerprint="something else")
    await harness.publish(other)
    await harness.run_until_settled()
    assert await reasons(harness) == [Reason.EPOCH_CONTENT_DIFFERS]
    return table, other
