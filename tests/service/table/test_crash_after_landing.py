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
from committer.storage.inbox.inbox import Inbox
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
    harness: ServiceHarness, *batches: Sequence[EncodedRequest]
) -> None:
    """Land each batch in a process that deletes nothing from the inbox."""
    inbox = harness.inbox
    harness.inbox = Inbox(UndeletingStorage(harness.storage.inner), INBOX)
    for batch in batches:
        for sealed in batch:
            await harness.publish(sealed)
        await harness.run_until_settled(seconds=5.0)
    harness.inbox = inbox
    assert len(await harness.outstanding()) == sum(map(len, batches))


async def expire_all_but_the_head(harness: ServiceHarness, table: LoadedTable) -> None:
    """Expire as another engine, after a commit of its own; it deletes the files as well."""
    await foreign_append(harness, table)
    metadata = await harness.load()
    gone = metadata.snapshots[:-1]
    await foreign_commit(harness, table, RemoveSnapshots(tuple(one.snapshot_id for one in gone)))
    await harness.storage.inner.delete([one.manifest_list or "" for one in gone])


@pytest.mark.parametrize("is_expired", [False, True])
@pytest.mark.parametrize("epochs", [1, 2, 5, 300])
async def test_all_epochs_of_one_batch_are_known_to_have_landed(
    epochs: int, is_expired: bool
) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    batch = [build_request(table, epoch=epoch) for epoch in range(epochs)]
    await crashed_behind_its_swaps(harness, batch)
    if is_expired:
        await expire_all_but_the_head(harness, table)
    await harness.run_until_settled()
    assert await harness.outstanding() == []
    assert await harness.quarantined() == []
    told = {one.epoch: one.state for one in await harness.receipts()}
    assert told == dict.fromkeys(range(epochs), ReceiptState.COMMITTED)


async def test_what_several_commits_landed_is_known_when_all_their_snapshots_are_gone() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    requests = [build_request(table, epoch=epoch) for epoch in range(9)]
    await crashed_behind_its_swaps(harness, requests[:4], requests[4:6], requests[6:])
    await expire_all_but_the_head(harness, table)
    other = build_request(table, epoch=1, fingerprint="something else")
    await harness.publish(other)
    await harness.run_until_settled()
    assert await harness.outstanding() == []
    (record,) = await harness.quarantined()
    assert (record.key, record.reason) == (other.request.inbox_key, Reason.EPOCH_CONTENT_DIFFERS)


async def test_other_content_under_an_epoch_that_only_a_manifest_list_knows_is_refused() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.land_in_turn(*(build_request(table, epoch=epoch) for epoch in range(6)))
    await harness.publish(build_request(table, epoch=1, fingerprint="something else"))
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert record.reason == Reason.EPOCH_CONTENT_DIFFERS
    assert len(await harness.live_files()) == 6
