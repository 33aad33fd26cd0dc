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

    def __init__(self, inner: Catalog, harness: ServiceHarness) -> None:
        super().__init__(inner)
        self._harness = harness

    async def swap(self, swap: Swap) -> SwapAnswer:
        await self._harness.settle(1.0)
        return await super().swap(swap)


async def test_what_comes_during_a_commit_goes_together_as_soon_as_it_has_landed() -> None:
    harness = ServiceHarness()
    harness.catalog = _SlowCatalog(harness.catalog.inner, harness)
    table = await harness.create_table()
    async with harness.running():
        for number in range(10):
            await harness.publish(build_request(table, producer=f"query-{number}"))
            await harness.settle(0.1)
        await harness.settle(2.0)
    snapshots = (await harness.load()).snapshots
    added = [(one.summary or {})["added-data-files"] for one in snapshots]
    assert added == ["1", "9"]
    assert snapshots[1].timestamp_ms - snapshots[0].timestamp_ms <= 1_000
