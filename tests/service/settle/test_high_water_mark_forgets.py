"""A commit that landed again after a thaw, or after a producer was forgotten, is required again."""

from __future__ import annotations

import pytest

from committer.iceberg.updates.metadata_update import RemoveProperties
from committer.ledger_entry import EpochRanges
from committer.storage.inbox.high_water_mark_objects import HighWaterMarks
from tests.support.builders.request_builders import build_request
from tests.support.service.decisions import NAME, land, producer_admin, roll_back
from tests.support.service.high_water_marks import PickyHighWaterMarks, is_frozen
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import INBOX, ServiceHarness

VIRTUAL_TIME = True


@pytest.mark.parametrize("is_forgotten", [False, True])
async def test_what_landed_again_may_not_be_taken_out_of_the_ledger(is_forgotten: bool) -> None:
    """A foreign engine tidies our properties up; the micro-batch is run again."""
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, 0, 1)
    if is_forgotten:
        await producer_admin(harness).forget(table.identifier, NAME)
    else:
        await roll_back(harness, table, 0)
        await producer_admin(harness).thaw(table.identifier, NAME, EpochRanges.parse("1"))
    await land(harness, table, 1)
    count = len(await harness.live_files())
    await foreign_commit(harness, table, RemoveProperties((NAME.key,)))
    await land(harness, table, 1)
    assert len(await harness.live_files()) == count


async def test_what_landed_again_is_missed_although_its_high_water_mark_was_not_written() -> None:
    """A crash in between: the manifest list is newer than what was forgotten."""
    harness = ServiceHarness()
    storage = PickyHighWaterMarks(harness.storage.inner)
    harness.high_water_marks = HighWaterMarks(storage, INBOX)
    table = await harness.create_table()
    await land(harness, table, 0, 1)
    await producer_admin(harness).forget(table.identifier, NAME)
    storage.refused = harness.high_water_marks.location(table.metadata.require_uuid())
    await land(harness, table, 1)
    count = len(await harness.live_files())
    await foreign_commit(harness, table, RemoveProperties((NAME.key,)))
    storage.refused = ""
    async with harness.running():
        await harness.settle(60.0)
        assert is_frozen(harness)
    assert len(await harness.live_files()) == count


async def test_what_another_has_landed_again_is_below_high_water_mark_by_who_sees_it() -> None:
    """The other died before it said so; this one has committed beside it since."""
    harness = ServiceHarness()
    storage = PickyHighWaterMarks(harness.storage.inner)
    harness.high_water_marks = HighWaterMarks(storage, INBOX)
    table = await harness.create_table()
    await land(harness, table, 0, 1)
    await producer_admin(harness).forget(table.identifier, NAME)
    storage.refused = harness.high_water_marks.location(table.metadata.require_uuid())
    await land(harness, table, 1)
    storage.refused = ""
    await harness.publish(build_request(table, producer="another"))
    await harness.run_until_settled(seconds=5.0)
    count = len(await harness.live_files())
    await foreign_commit(harness, table, RemoveProperties((NAME.key,)))
    await land(harness, table, 1)
    assert len(await harness.live_files()) == count
