"""The calls that the page on cost lists, counted."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from committer import table_defaults
from committer.plan.cleanup import expiry
from committer.ports.pointer_swap import LoadedTable
from committer.service.telemetry.instrumented_ports import InstrumentedStorage
from committer.storage.inbox.inbox import Inbox, Quarantine
from tests.deploy.bills import Bill
from tests.support.builders.request_builders import build_request
from tests.support.service.service_harness import ServiceHarness
from tests.support.workers.publishing import build_bench
from tools import cost
from tools.cost import Calls
from workers.requests.publisher import Publisher, PublishPolicy
from workers.requests.table_cache import TableCache, opened

VIRTUAL_TIME = True

# Smaller than on a real table, so that expiry is at work; each commit's share of it is the same.
EXPIRING = {
    **table_defaults.NEW_TABLE_PROPERTIES,
    "history.expire.min-snapshots-to-keep": "100",
    "history.expire.max-snapshot-age-ms": "0",
}


class Paying:
    """A harness that counts what it would pay for, and one table in it.

    Each commit gets so many requests of so many files.
    """

    def __init__(self, requests: int = 1, files: int = 1) -> None:
        self._requests = requests
        self._files = files
        self.bill = Bill()
        self.harness = ServiceHarness(wrap=lambda inner: InstrumentedStorage(inner, self.bill))
        self._epoch = 0

    async def commits(self, properties: dict[str, str], *counts: int) -> Calls:
        """Commit so often; what the last of the counts was paid for."""
        table = await self.harness.create_table(properties=properties)
        async with self.harness.running():
            for count in counts:
                self.bill.paid.clear()
                self.harness.catalog.calls.clear()
                for _ in range(count):
                    await self._publish_and_commit(table)
        calls = self.harness.catalog.calls
        assert set(calls) <= {"swap", "current_location"}
        # Before each call that deletes, and before the search of an expiry.
        assert calls["current_location"] <= cost.UPKEEP.delete * calls["swap"]
        return Calls(swap=calls["swap"], **self.bill.paid)

    async def _publish_and_commit(self, table: LoadedTable) -> None:
        for number in range(self._requests):
            request = build_request(
                table,
                producer=f"query-{number}",
                epoch=self._epoch,
                files_count=self._files,
                published_at_ms=self.harness.world.now_ms(),
            )
            await self.harness.publish(request)
        self._epoch += 1
        await self.harness.settle(0.5)


@pytest.mark.thorough
@pytest.mark.parametrize(("requests", "files"), [(1, 1), (10, 1), (1, 1_000), (20, 100)])
async def test_a_commit_is_paid_for_once_whatever_number_of_requests_and_files_it_holds(
    requests: int, files: int
) -> None:
    off = {"commit.manifest-merge.enabled": "false"}
    paid = await Paying(requests, files).commits(off, 1, 5)
    assert paid == cost.COMMIT * 5 + Calls(put=5 * requests)


@pytest.mark.thorough
async def test_upkeep_costs_each_commit_its_share_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(expiry, "SNAPSHOTS_MIN", 3)
    paid = await Paying().commits(EXPIRING, 120, 200)
    commits = cost.COMMIT * 200 + Calls(put=200)
    upkeep = {
        kind: (paid_for - asdict(commits)[kind]) / 200 for kind, paid_for in asdict(paid).items()
    }
    for kind, at_most in asdict(cost.UPKEEP).items():
        # Not more; and not so much less that the page would be wrong.
        assert upkeep[kind] <= at_most, (kind, upkeep)
        assert upkeep[kind] >= at_most / 2, (kind, upkeep)


async def test_a_request_is_paid_for_as_the_page_says() -> None:
    bench = await build_bench()
    bill = Bill()
    storage = InstrumentedStorage(bench.storage, bill)
    publisher = Publisher(
        catalog_name="main",
        tables=TableCache(open_catalog=opened(bench.catalog), storage=storage, world=bench.world),
        inbox=Inbox(storage, "memory:/requests"),
        quarantine=Quarantine(storage, "memory:/requests"),
        queue=None,
        world=bench.world,
    )
    await publisher.publish(bench.written(epoch=0), PublishPolicy())
    bill.paid.clear()
    for epoch in range(1, 11):
        await publisher.publish(bench.written(epoch=epoch), PublishPolicy())
    assert Calls(**bill.paid) == cost.REQUEST * 10


def test_costs_add_up() -> None:
    assert cost.for_requests(100, batch=10) == cost.REQUEST * 100 + (cost.COMMIT + cost.UPKEEP) * 10
    assert cost.PRICES.of(Calls(put=1_000_000, swap=1_000_000)) == 5.625


def test_the_page_on_tuning_says_what_the_model_says() -> None:
    page = (Path(__file__).parent.parent.parent / "docs/how-to/tune.md").read_text()
    a_commit = cost.PRICES.of((cost.COMMIT + cost.UPKEEP) * cost.SECONDS_A_MONTH)
    assert f"{a_commit:.0f} USD a month for each commit a second" in page
    assert f"{cost.PRICES.of(cost.REQUEST * cost.MILLION):.0f} USD for a million" in page
    alone, by_tens, by_hundreds = (
        cost.PRICES.of(cost.for_requests(cost.MILLION, batch=batch)) for batch in (1, 10, 100)
    )
    wanted = f"for a million requests {alone:.0f} USD alone, {by_tens:.0f} by tens"
    assert f"{wanted}, {by_hundreds:.0f} by hundreds" in page


def test_a_swap_is_one_unit() -> None:
    """An item with a long name and a long location has less than the kilobyte of a unit."""
    location = f"s3://{'b' * 63}/warehouse/{'n' * 60}/{'t' * 60}/metadata/{'m' * 60}.metadata.json"
    attributes = {
        "identifier": "n" * 60 + "." + "t" * 60,
        "namespace": "n" * 60,
        "v": "u" * 36,
        "updated_at": "1" * 13,
        "created_at": "1" * 13,
        "p.table_type": "ICEBERG",
        "p.metadata_location": location,
        "p.previous_metadata_location": location,
    }
    assert sum(len(name) + len(value) for name, value in attributes.items()) < 1_024
