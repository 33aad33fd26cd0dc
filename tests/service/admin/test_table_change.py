"""An administrator's change of a table, over the answers of its swaps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import pytest

from committer.errors import CatalogUnavailableError, UnsupportedError
from committer.iceberg.updates.metadata_update import (
    SetProperties,
    Update,
    UpgradeFormatVersion,
)
from committer.ports.pointer_swap import LoadedTable, Rejected, Swap, SwapAnswer
from committer.ports.storage import NewObject
from committer.service.admin.table_change import ATTEMPTS_MAX, Decide, change_table
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_request
from tests.support.faults.faulty_catalog import Fault, FaultyCatalog
from tests.support.memory.requirements_catalog import RequirementsCatalog
from tests.support.plan.committing import Table
from tests.support.plan.old_lists import forget_counts
from tests.support.service.scripted import scripted
from tests.support.service.service_harness import WAREHOUSE, ServiceHarness

VIRTUAL_TIME = True


async def _set_once(table: LoadedTable) -> Sequence[Update]:
    is_set = "wanted" in table.metadata.properties
    return () if is_set else (SetProperties({"wanted": "yes"}),)


async def _set_always(table: LoadedTable) -> Sequence[Update]:
    return (SetProperties({"last": table.metadata_location}),)


async def _add_name(table: LoadedTable, name: str) -> Sequence[Update]:
    names = set(table.metadata.properties.get("names", "").split()) - {""}
    return () if name in names else (SetProperties({"names": " ".join(sorted({*names, name}))}),)


@pytest.mark.parametrize("makes_head", [True, False])
async def test_of_changes_that_build_on_one_another_none_is_lost_where_heads_alone_are_checked(
    *, makes_head: bool
) -> None:
    """Such a catalog lets both of two changes of one base pass, unless they move a head."""
    harness = ServiceHarness()
    inner = RequirementsCatalog(storage=harness.storage.inner, world=harness.world)
    harness.catalog = FaultyCatalog(inner)
    table = await harness.create_table()
    if makes_head:
        await harness.publish(build_request(table))
        await harness.run_until_settled()
    names = [str(number) for number in range(8)]
    await asyncio.gather(*(_change(harness, partial(_add_name, name=one)) for one in names))
    properties = (await harness.load()).properties
    assert properties["names"].split() == names


async def test_a_head_whose_manifests_no_list_has_counted_moves() -> None:
    harness = ServiceHarness()
    inner = RequirementsCatalog(storage=harness.storage.inner, world=harness.world)
    harness.catalog = FaultyCatalog(inner)
    old = Table.of(build_flights(format_version=1, warehouse=WAREHOUSE))
    old.commit(build_request(old.table, partition=("AA",)))
    forget_counts(old)
    old.foreign(UpgradeFormatVersion(2), UpgradeFormatVersion(3))
    await harness.storage.create([NewObject(*each) for each in old.objects.items()])
    await inner.create_namespace(old.table.identifier.namespace)
    await inner.create_table(old.table)
    changed = await _change(harness)
    assert changed.metadata.properties["wanted"] == "yes"
    assert changed.metadata.next_row_id == 10


async def _change(harness: ServiceHarness, decide: Decide = _set_once) -> LoadedTable:
    (identifier,) = await harness.catalog.list_tables(("db",))
    return await change_table(harness.catalog, harness.storage, harness.world, identifier, decide)


async def test_a_change_is_found_although_the_catalog_crashed_after_its_swap() -> None:
    harness = ServiceHarness()
    await harness.create_table()
    harness.catalog.plan(Fault.CRASHED)
    changed = await _change(harness)
    assert changed.metadata.properties["wanted"] == "yes"
    assert harness.catalog.calls["swap"] == 1


async def test_a_catalog_that_always_crashes_is_named_as_the_reason() -> None:
    harness = ServiceHarness()
    await harness.create_table()
    harness.catalog.plan(*[Fault.CRASHED] * ATTEMPTS_MAX)
    with pytest.raises(CatalogUnavailableError, match="a bug of the adapter"):
        await _change(harness, _set_always)


async def test_a_refusal_is_no_verdict_while_an_earlier_attempt_may_land() -> None:
    harness = ServiceHarness()
    await harness.create_table()
    catalog = scripted(harness)
    catalog.plan(Fault.LANDS_LATE)

    def refuse_retry(swap: Swap) -> SwapAnswer | None:
        if not catalog.calls["swap"]:
            return None
        # While the retry is refused, the first attempt arrives.
        catalog.arrives = True
        return Rejected("refused by the test")

    catalog.decide = refuse_retry
    changed = await _change(harness)
    assert changed.metadata.properties["wanted"] == "yes"


async def test_a_refusal_is_a_verdict_once_the_earlier_attempt_cannot_land() -> None:
    harness = ServiceHarness()
    await harness.create_table()
    harness.catalog.plan(Fault.LOST_REPLY, Fault.REJECTED)
    with pytest.raises(UnsupportedError, match="refused by the test"):
        await _change(harness, _set_always)
    assert harness.catalog.calls["swap"] == 2
