"""A crash after the swap and before the inbox objects of the batch are deleted."""

from __future__ import annotations

from collections.abc import Sequence

from committer.errors import StorageUnavailableError
from committer.reason import Reason
from committer.storage.inbox import Inbox
from tests.counting_storage import CountingStorage
from tests.request_builders import build_request
from tests.service.house import INBOX, House

VIRTUAL_TIME = True


class UndeletingStorage(CountingStorage):
    """Whoever deletes is gone before it happens."""

    async def delete(self, locations: Sequence[str]) -> None:
        raise StorageUnavailableError("the process has crashed")


async def quarantined_after_a_crash(epochs: int) -> list[str]:
    """The reasons, once a second process has met what the first one had landed in one batch."""
    house = House()
    table = await house.create_table()
    for epoch in range(epochs):
        await house.publish(build_request(table, epoch=epoch))
    inbox = house.inbox
    house.inbox = Inbox(UndeletingStorage(house.storage.inner), INBOX)
    await house.run_until_settled()
    assert len(await house.live_files()) == epochs
    house.inbox = inbox
    await house.run_until_settled()
    assert len(await house.live_files()) == epochs
    assert await house.outstanding() == []
    return [record.reason for record in await house.quarantined()]


async def test_two_epochs_of_one_producer_are_known_to_have_landed() -> None:
    assert await quarantined_after_a_crash(2) == []


async def test_all_epochs_of_one_batch_are_known_to_have_landed() -> None:
    assert await quarantined_after_a_crash(5) == []


async def test_other_content_under_an_epoch_that_only_a_manifest_list_knows_is_refused() -> None:
    house = House()
    table = await house.create_table()
    for epoch in range(6):
        await house.publish(build_request(table, epoch=epoch))
        await house.run_until_settled(seconds=5.0)
    await house.publish(build_request(table, epoch=1, fingerprint="something else"))
    await house.run_until_settled()
    (record,) = await house.quarantined()
    assert record.reason == Reason.EPOCH_CONTENT_DIFFERS
    assert len(await house.live_files()) == 6
