"""A crash after the swap and before the inbox objects of the batch are deleted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from committer.errors import StorageUnavailableError
from committer.iceberg.updates.metadata_update import RemoveSnapshots
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import EncodedRequest
from committer.storage.inbox import Inbox
from tests.support.builders.request_builders import build_request
from tests.support.faults.counting_storage import CountingStorage
from tests.support.service.outside import foreign_append, foreign_commit
from tests.support.service.service_harness import INBOX, ServiceHarness

VIRTUAL_TIME = True


class UndeletingStorage(CountingStorage):
    """A storage whose client crashes before each delete."""

    async def delete(self, locations: Sequence[str]) -> None:
        raise StorageUnavailableError("the process has crashed")


async def crashed_behind_its_swaps(
    house: ServiceHarness, *batches: Sequence[EncodedRequest]
) -> None:
    """A process lands each batch, and deletes nothing from the inbox."""
    inbox = house.inbox
    house.inbox = Inbox(UndeletingStorage(house.storage.inner), INBOX)
    for batch in batches:
        for sealed in batch:
            await house.publish(sealed)
        await house.run_until_settled(seconds=5.0)
    house.inbox = inbox
    assert len(await house.outstanding()) == sum(map(len, batches))


async def expire_all_but_the_head(house: ServiceHarness, table: LoadedTable) -> None:
    """Another engine's expiry, after a commit of its own; it deletes the files as well."""
    await foreign_append(house, table)
    metadata = await house.load()
    gone = metadata.snapshots[:-1]
    await foreign_commit(house, table, RemoveSnapshots(tuple(one.snapshot_id for one in gone)))
    await house.storage.inner.delete([one.manifest_list or "" for one in gone])


@pytest.mark.parametrize("is_expired", [False, True])
@pytest.mark.parametrize("epochs", [1, 2, 5, 300])
async def test_all_epochs_of_one_batch_are_known_to_have_landed(
    epochs: int, is_expired: bool
) -> None:
    house = ServiceHarness()
    table = await house.create_table()
    batch = [build_request(table, epoch=epoch) for epoch in range(epochs)]
    await crashed_behind_its_swaps(house, batch)
    if is_expired:
        await expire_all_but_the_head(house, table)
    await house.run_until_settled()
    assert await house.outstanding() == []
    assert await house.quarantined() == []
    told = {one.epoch: one.state for one in await house.receipts()}
    assert told == dict.fromkeys(range(epochs), ReceiptState.COMMITTED)


async def test_what_several_commits_landed_is_known_when_all_their_snapshots_are_gone() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    requests = [build_request(table, epoch=epoch) for epoch in range(9)]
    await crashed_behind_its_swaps(house, requests[:4], requests[4:6], requests[6:])
    await expire_all_but_the_head(house, table)
    other = build_request(table, epoch=1, fingerprint="something else")
    await house.publish(other)
    await house.run_until_settled()
    assert await house.outstanding() == []
    (record,) = await house.quarantined()
    assert (record.key, record.reason) == (other.request.inbox_key, Reason.EPOCH_CONTENT_DIFFERS)


async def test_other_content_under_an_epoch_that_only_a_manifest_list_knows_is_refused() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    await house.land_in_turn(*(build_request(table, epoch=epoch) for epoch in range(6)))
    await house.publish(build_request(table, epoch=1, fingerprint="something else"))
    await house.run_until_settled()
    (record,) = await house.quarantined()
    assert record.reason == Reason.EPOCH_CONTENT_DIFFERS
    assert len(await house.live_files()) == 6
