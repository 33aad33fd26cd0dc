"""A batch that fails is halved until those at fault stand alone: whichever, and however many."""

from __future__ import annotations

from math import ceil, log2
from random import Random

import pytest

from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.updates.metadata_update import SetProperties
from committer.ledger_entry import parse_property_key
from committer.plan.batch import batch as batching
from committer.plan.batch.batch import Batch, PreparedManifest
from committer.ports.pointer_swap import Rejected, Swap, SwapAnswer
from committer.reason import Reason
from committer.service.table import commit_planner
from tests.support.builders.request_builders import build_request
from tests.support.faults.faulty_catalog import FaultyCatalog
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True
REQUESTS = 24
CASES = [(seed, poison) for seed, poison in enumerate((1, 1, 2, 3, 5, REQUESTS - 1, REQUESTS))]
poisoned = pytest.mark.parametrize(("seed", "poison"), CASES)


class ChoosyCatalog(FaultyCatalog):
    """Refuses every swap that lands a producer whose name begins with `poison`."""

    async def swap(self, swap: Swap) -> SwapAnswer:
        answer = await super().swap(swap) if not _poison_in(swap) else None
        if answer is None:
            self.calls["swap"] += 1
            return Rejected("refused by the test")
        return answer


def _poison_in(swap: Swap) -> bool:
    changed = (key for one in swap.updates if isinstance(one, SetProperties) for key in one.updates)
    producers = (parsed[0] for parsed in map(parse_property_key, changed) if parsed)
    return any(producer.startswith("poison") for producer in producers)


async def publish_mixed(harness: ServiceHarness, seed: int, poison: int) -> None:
    """Publish all for one batch, with the poison anywhere in it."""
    table = await harness.create_table()
    at_fault = set(Random(seed).sample(range(REQUESTS), poison))
    for number in range(REQUESTS):
        name = "poison" if number in at_fault else "query"
        await harness.publish(build_request(table, producer=f"{name}-{number}"))


async def assert_only_the_poison_is_in_quarantine(
    harness: ServiceHarness, poison: int, reason: str
) -> None:
    records = await harness.quarantined()
    assert len(records) == poison
    assert {record.reason for record in records} == {reason}
    assert all("/poison-" in record.key for record in records)
    paths = [file.file_path for file in await harness.live_files()]
    assert len(paths) == len(set(paths)) == REQUESTS - poison
    assert await harness.outstanding() == []


@poisoned
async def test_those_that_the_catalog_refuses_are_found_and_the_others_land_once(
    seed: int, poison: int
) -> None:
    harness = ServiceHarness()
    catalog = harness.catalog = ChoosyCatalog(harness.catalog.inner)
    await publish_mixed(harness, seed, poison)
    await harness.run_until_settled(seconds=300.0)
    await assert_only_the_poison_is_in_quarantine(harness, poison, Reason.COMMIT_REJECTED)
    # Halves get smaller until one lands; then all that is left is tried at once.
    halvings = ceil(log2(REQUESTS))
    assert catalog.calls["swap"] <= poison * (halvings + 1) * (halvings + 2) // 2 + 1


@poisoned
async def test_those_that_our_own_planning_trips_over_are_found_and_the_others_land_once(
    seed: int, poison: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trip(batch: Batch, metadata: TableMetadata) -> tuple[PreparedManifest, ...]:
        if any(one.request.producer.id.startswith("poison") for one in batch.requests):
            raise ZeroDivisionError("our bug")
        return batching.prepare_manifests(batch, metadata)

    monkeypatch.setattr(commit_planner, "prepare_manifests", trip)
    harness = ServiceHarness()
    await publish_mixed(harness, seed, poison)
    await harness.run_until_settled(seconds=300.0)
    await assert_only_the_poison_is_in_quarantine(harness, poison, Reason.PLAN_FAILED)
