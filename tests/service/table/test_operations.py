"""Operations that may conflict, from the request to its end."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from committer.iceberg.updates.metadata_update import RemoveSnapshots
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import EncodedRequest
from committer.request.table_identifier import TableIdentifier
from tests.support.builders.flights import build_flights
from tests.support.builders.operation_requests import base_of, build_operation
from tests.support.builders.request_builders import build_request
from tests.support.faults.faulty_catalog import FaultyCatalog
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.service.outside import add_table, foreign_commit
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True


async def table_with(harness: ServiceHarness, appends: int = 1) -> LoadedTable:
    """Return a table with a file of each of so many appends."""
    table = await harness.create_table()
    for epoch in range(appends):
        await harness.publish(build_request(table, producer="loader", epoch=epoch))
        async with harness.running():
            await harness.settle(5.0)
    return await harness.catalog.inner.load(table.identifier)


async def live(harness: ServiceHarness) -> set[str]:
    return {file.file_path for file in await harness.live_files()}


def removing(*paths: str, **more: object) -> dict[str, object]:
    return {"removed-data-files": list(paths), **more}


async def test_an_append_and_an_overwrite_of_one_batch_are_two_snapshots_of_one_swap() -> None:
    harness = ServiceHarness()
    table = await table_with(harness)
    (old,) = await live(harness)
    before = await harness.load()
    await harness.publish(build_request(table, producer="a"))
    await harness.publish(
        build_operation(table, "overwrite", producer="b", files_count=1, needs=removing(old))
    )
    await harness.run_until_settled()
    metadata = await harness.load()
    added = [one for one in metadata.snapshots if one not in before.snapshots]
    assert [one.operation for one in added] == ["append", "overwrite"]
    assert len(metadata.metadata_log) == len(before.metadata_log) + 1
    assert old not in await live(harness)
    assert len(await live(harness)) == 2
    receipts = {one: (await harness.receipts(one))[-1] for one in ("a", "b")}
    assert [receipts[one].snapshot_id for one in ("a", "b")] == [one.snapshot_id for one in added]
    assert await harness.outstanding() == []


async def test_what_conflicts_with_what_has_landed_is_told_and_kept() -> None:
    harness = ServiceHarness()
    table = await table_with(harness)
    (old,) = await live(harness)
    for epoch in range(2):
        await harness.publish(
            build_operation(
                table, "overwrite", producer="b", epoch=epoch, files_count=1, needs=removing(old)
            )
        )
    await harness.publish(build_request(table, producer="a"))
    await harness.run_until_settled()
    assert len(await live(harness)) == 2
    (record,) = await harness.quarantined()
    assert (record.reason, record.conflict) == (Reason.CONFLICT, "missing")
    assert old in record.message
    first, second = await harness.receipts("b")
    assert first.state is ReceiptState.COMMITTED
    assert second.state is ReceiptState.QUARANTINED
    assert (second.reason, second.conflict) == (Reason.CONFLICT, "missing")
    _, content = await harness.quarantine.get(record.key)
    assert content
    assert await harness.outstanding() == []


async def test_who_asks_to_be_told_only_finds_nothing_kept_but_the_answer() -> None:
    harness = ServiceHarness(breaker_threshold=1)
    table = await table_with(harness)
    gone = "memory://warehouse/db/flights/data/never.parquet"
    for epoch in range(3):
        await harness.publish(
            build_operation(
                table,
                "delete",
                producer="b",
                epoch=epoch,
                needs=removing(gone, **{"on-conflict": "fail"}),
            )
        )
    await harness.run_until_settled()
    records = await harness.quarantined()
    assert [(one.reason, one.is_told_only) for one in records] == [(Reason.CONFLICT, True)] * 3
    for record in records:
        assert (await harness.quarantine.get(record.key))[1] == b""
    assert "frazil_quarantine_requests{" not in harness.status_collector.page().decode()
    assert [one.conflict for one in await harness.receipts("b")] == ["missing"] * 3
    assert await harness.outstanding() == []


async def test_a_conflict_with_an_earlier_request_of_the_batch_is_told_once_that_has_landed() -> (
    None
):
    harness = ServiceHarness()
    table = await table_with(harness, 2)
    one, other = sorted(await live(harness))
    rests_on = {**base_of(table.metadata), "isolation-level": "serializable"}
    await harness.publish(build_request(table, producer="a"))
    await harness.publish(
        build_operation(
            table, "overwrite", producer="b", files_count=1, needs=removing(one, **rests_on)
        )
    )
    await harness.publish(build_operation(table, "delete", producer="c", needs=removing(other)))
    await harness.run_until_settled()
    # The append came first, and may hold rows that the overwrite would have to see.
    (record,) = await harness.quarantined()
    assert record.conflict == "added"
    assert one in await live(harness)
    assert other not in await live(harness)
    assert len(await live(harness)) == 2


async def test_an_operation_that_lost_a_race_is_planned_again_on_the_new_head() -> None:
    harness = ServiceHarness()
    table = await table_with(harness, 2)
    one, other = sorted(await live(harness))
    async with harness.running():
        await harness.publish(build_request(table, producer="a"))
        await harness.settle(5.0)
        await delete_beside(harness, table, other)
        await harness.publish(
            build_operation(table, "overwrite", producer="b", files_count=1, needs=removing(one))
        )
        await harness.settle(10.0)
    left = await live(harness)
    assert one not in left
    assert other not in left
    assert len(left) == 2
    assert await harness.quarantined() == []


async def test_a_client_that_has_read_more_than_the_committer_meets_no_conflict_with_the_past() -> (
    None
):
    """The committer's copy of the table is older than the request's base: a file that it removes
    is not there yet, and the base seems never to have been.
    """
    harness = ServiceHarness()
    table = await table_with(harness)
    async with harness.running():
        await harness.publish(build_request(table, producer="a"))
        await harness.settle(5.0)
        known = await live(harness)
        rival = ServiceHarness(beside=harness, root="memory://rival")
        rival.catalog = harness.catalog
        await rival.publish(build_request(table, producer="rival"))
        await rival.run_until_settled()
        (theirs,) = await live(harness) - known
        rests_on = {**base_of(await harness.load()), "isolation-level": "serializable"}
        await harness.publish(
            build_operation(
                table, "overwrite", producer="b", files_count=1, needs=removing(theirs, **rests_on)
            )
        )
        await harness.settle(10.0)
    assert await harness.quarantined() == []
    assert theirs not in await live(harness)
    assert len(await live(harness)) == 3


class HeldLoad(FaultyCatalog):
    """Answers its first load, which it has begun, only when it is released."""

    def __init__(self, inner: Catalog) -> None:
        super().__init__(inner)
        self.begun, self.released = asyncio.Event(), asyncio.Event()

    async def load(self, identifier: TableIdentifier) -> LoadedTable:
        table = await super().load(identifier)
        self.begun.set()
        await self.released.wait()
        return table


async def test_a_request_that_comes_while_the_table_is_loaded_meets_no_conflict_with_the_past() -> (
    None
):
    harness = ServiceHarness()
    table = await table_with(harness)
    known, inner = await live(harness), harness.catalog.inner
    harness.catalog = held = HeldLoad(inner)
    rival = ServiceHarness(beside=harness, root="memory://rival")
    rival.catalog = FaultyCatalog(inner)
    async with harness.running():
        await harness.publish(build_request(table, producer="a"))
        await held.begun.wait()
        await rival.publish(build_request(table, producer="rival"))
        await rival.run_until_settled()
        (theirs,) = await live(rival) - known
        await harness.publish(
            build_operation(table, "overwrite", producer="b", files_count=1, needs=removing(theirs))
        )
        await asyncio.sleep(1.0)
        held.released.set()
        await harness.settle(10.0)
    assert await harness.quarantined() == []
    assert theirs not in await live(harness)


async def test_a_steady_operation_reads_nothing_while_no_other_engine_commits() -> None:
    harness = ServiceHarness()
    table = await table_with(harness)
    gets = []
    async with harness.running():
        for epoch in range(5):
            (old,) = await live(harness)
            rests_on = {**base_of(await harness.load()), "isolation-level": "serializable"}
            before = harness.storage.calls["get"]
            await harness.publish(
                build_operation(
                    table,
                    "overwrite",
                    producer="b",
                    epoch=epoch,
                    files_count=1,
                    needs=removing(old, **rests_on),
                )
            )
            await harness.settle(5.0)
            gets.append(harness.storage.calls["get"] - before)
    assert await harness.quarantined() == []
    # The first process had committed before: its list and its manifest.
    assert gets == [2, 0, 0, 0, 0]


def of_carrier(
    table: LoadedTable, carrier: str, epoch: int, base: dict[str, object]
) -> EncodedRequest:
    """Build an overwrite of one partition, by its filter."""
    rows = {"type": "eq", "term": "carrier", "value": carrier}
    return build_operation(
        table,
        "overwrite",
        producer=carrier,
        epoch=epoch,
        files_count=1,
        partition=(carrier,),
        needs={"row-filter": rows, **base, "isolation-level": "serializable"},
    )


async def test_what_own_commits_have_removed_since_the_base_is_not_read() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    nothing: dict[str, object] = {"base-sequence-number": 0}
    gets, bases = [], {"AA": nothing, "BB": nothing}
    async with harness.running():
        for epoch in range(5):
            for carrier in ("AA", "BB"):
                before = harness.storage.calls["get"]
                await harness.publish(of_carrier(table, carrier, epoch, bases[carrier]))
                await harness.settle(5.0)
                gets.append(harness.storage.calls["get"] - before)
                # The other one has removed files behind it when this one comes again.
                bases[carrier] = base_of(await harness.load())
    assert await harness.quarantined() == []
    assert len(await live(harness)) == 2
    assert gets[2:] == [0] * 8


async def test_what_own_commits_have_removed_is_known_once_their_snapshots_have_expired() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    async with harness.running():
        for epoch, carrier in enumerate(("AA", "BB", "BB", "BB")):
            base: dict[str, object] = {"base-sequence-number": 0}
            if epoch:
                base = base_of(await harness.load())
            if epoch == 1:
                first = base
            await harness.publish(of_carrier(table, carrier, epoch, base))
            await harness.settle(5.0)
        *older, _ = (await harness.load()).snapshots
        await foreign_commit(
            harness, table, RemoveSnapshots(tuple(one.snapshot_id for one in older))
        )
        await harness.publish(of_carrier(table, "AA", 4, first))
        await harness.settle(10.0)
        # Of another carrier something has gone since.
        await harness.publish(of_carrier(table, "BB", 5, first))
        await harness.settle(10.0)
    (record,) = await harness.quarantined()
    assert (record.conflict, "/BB/" in record.key) == ("added", True)
    assert len((await harness.load()).snapshots) == 2


async def test_no_epoch_overtakes_a_lower_one_of_its_producer_that_has_to_wait() -> None:
    """The delete takes the file away that the overwrite names; the append comes behind that."""
    harness = ServiceHarness()
    table = await table_with(harness)
    (old,) = await live(harness)
    await harness.publish(build_operation(table, "delete", producer="a", needs=removing(old)))
    await harness.publish(
        build_operation(table, "overwrite", producer="b", files_count=1, needs=removing(old))
    )
    await harness.publish(build_request(table, producer="b", epoch=1))
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert record.conflict == "missing"
    metadata = await harness.load()
    assert [one.operation for one in metadata.snapshots] == ["append", "delete", "append"]
    assert len(metadata.metadata_log) == 3
    assert len(await live(harness)) == 1


async def test_requests_that_waited_for_one_that_never_landed_have_their_turn() -> None:
    """Both epochs of `b` wait for the delete, of which another committer has taken a file away."""
    harness = ServiceHarness()
    table = await table_with(harness, 2)
    old, other = sorted(await live(harness))
    async with harness.running():
        await harness.publish(build_request(table, producer="c"))
        await harness.settle(5.0)
        await delete_beside(harness, table, other)
        of_both = removing(old, other)
        await harness.publish(build_operation(table, "delete", producer="a", needs=of_both))
        for epoch in range(2):
            needs = removing(old)
            await harness.publish(
                build_operation(table, "delete", producer="b", epoch=epoch, needs=needs)
            )
        await harness.settle(10.0)
    kept = {one.key.split("/")[1] for one in await harness.quarantined()}
    assert kept == {"a", "b"}
    assert old not in await live(harness)


async def delete_beside(harness: ServiceHarness, table: LoadedTable, path: str) -> None:
    """Delete a file through another committer."""
    rival = ServiceHarness(beside=harness, root="memory://rival")
    rival.catalog = harness.catalog
    await rival.publish(build_operation(table, "delete", producer="rival", needs=removing(path)))
    await rival.run_until_settled()


async def test_a_catalog_that_takes_one_snapshot_gets_one_swap_after_another_at_once() -> None:
    harness = ServiceHarness(min_interval_ms=60_000)
    inner = harness.catalog.inner
    assert isinstance(inner, MemoryCatalog)
    inner.capabilities = replace(inner.capabilities, has_several_snapshots=False)
    table = await table_with(harness, 3)
    files = sorted(await live(harness))
    for number, path in enumerate(files):
        await harness.publish(
            build_operation(table, "delete", producer=f"p{number}", needs=removing(path))
        )
    before = await harness.load()
    await harness.run_until_settled(seconds=10.0)
    metadata = await harness.load()
    assert len(metadata.snapshots) == len(before.snapshots) + 3
    assert len(metadata.metadata_log) == len(before.metadata_log) + 3


async def test_a_request_that_is_looked_up_keeps_its_place_before_those_that_are_not() -> None:
    """The first request of a producer is looked up in the inbox; the next ones are not."""
    harness = ServiceHarness(min_interval_ms=5_000)
    table = await harness.create_table()
    async with harness.running():
        for epoch in range(2):
            now_ms = harness.world.now_ms()
            append = build_request(table, producer="a", epoch=epoch, published_at_ms=now_ms)
            if epoch == 1:
                await harness.publish(
                    build_operation(table, "replace-partitions", producer="b", files_count=1)
                )
            await harness.publish(append)
            await harness.settle(1.0)
        await harness.settle()
    assert len(await live(harness)) == 2
