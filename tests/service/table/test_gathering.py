"""Requests that arrive while a commit is in flight gather for the next one, without a timer."""

from __future__ import annotations

from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import Swap, SwapAnswer
from tests.support.builders.request_builders import build_request
from tests.support.faults.faulty_catalog import FaultyCatalog
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True


class _SlowCatalog(FaultyCatalog):
    """A swap takes its time."""

    def __init__(self, inner: Catalog, house: ServiceHarness) -> None:
        super().__init__(inner)
        self._house = house

    async def swap(self, swap: Swap) -> SwapAnswer:
        await self._house.settle(1.0)
        return await super().swap(swap)


async def test_what_comes_during_a_commit_goes_together_as_soon_as_it_has_landed() -> None:
    house = ServiceHarness()
    house.catalog = _SlowCatalog(house.catalog.inner, house)
    table = await house.create_table()
    async with house.running():
        for number in range(10):
            await house.publish(build_request(table, producer=f"query-{number}"))
            await house.settle(0.1)
        await house.settle(2.0)
    snapshots = (await house.load()).snapshots
    added = [(one.summary or {})["added-data-files"] for one in snapshots]
    assert added == ["1", "9"]
    assert snapshots[1].timestamp_ms - snapshots[0].timestamp_ms <= 1_000
