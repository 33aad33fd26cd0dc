"""PyIceberg expires snapshots of a table that a real committer works on.

It clears the parent ids that name what it has expired, so that the history looks as if it began
there; and tags hold back what is older, so that it has gaps.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.support.integration.readers import expected, live_files, seen_by_all
from tests.support.integration.real_harness import RealHarness, real_harness, until
from tests.support.integration.traffic import RealProducer, all_ids, all_paths, producers
from tests.support.pyiceberg_expiry import expire_all_old, pyiceberg_table

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(240)]

PRODUCERS = 101
ROUND = 10


async def publish_all(harness: RealHarness, published: list[RealProducer]) -> None:
    """Publish the next epoch of each, in several commits."""
    for start in range(0, len(published), ROUND):
        async with asyncio.TaskGroup() as tasks:
            for producer in published[start : start + ROUND]:
                tasks.create_task(producer.publish())
        await until(harness.is_settled, "an empty inbox")


# PyIceberg writes no version 3.
@pytest.mark.heavy
@pytest.mark.parametrize("version", [1, 2])
async def test_all_producers_go_on_whatever_pyiceberg_has_expired(version: int) -> None:
    name = f"db.flights{version}"
    with real_harness(FRAZIL_COMMIT__MIN_INTERVAL_MS="0") as harness:
        table = await harness.create_table(name, format_version=version)
        await harness.start()
        async with producers(harness, table, 1) as [first]:
            published = [
                RealProducer(number, table, first.connections, first.access)
                for number in range(PRODUCERS)
            ]
            await publish_all(harness, published)
            with pyiceberg_table(harness, name) as foreign:
                before = len(foreign.metadata.snapshots)
                held = foreign.metadata.snapshots[before // 2].snapshot_id
                foreign.manage_snapshots().create_tag(held, "held").commit()
                expire_all_old(foreign)
                left = foreign.metadata.snapshots
                assert [one.parent_snapshot_id for one in left] == [None, None]
            await publish_all(harness, published)
            with pyiceberg_table(harness, name) as foreign:
                ids = [one.snapshot_id for one in foreign.metadata.snapshots[2:-1]]
                foreign.maintenance.expire_snapshots().by_ids(ids[::2]).commit()
            await publish_all(harness, published)
        paths, ids = all_paths(published), all_ids(published)
        found = await harness.load(name)
        assert sorted(file.path for file in live_files(found)) == paths
        assert await harness.quarantined() == []
        seen = await seen_by_all(harness, name)
        assert seen == dict.fromkeys(seen, expected(len(paths), ids))
    print(f"v{version}: {PRODUCERS} producers, {before} snapshots, then 2; {len(paths)} files")
