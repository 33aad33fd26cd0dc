"""Several attempts of one epoch in a transaction, as a retry sends them: one of them lands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest

from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.request_format import EncodedRequest
from committer.request.transaction import Transaction
from tests.support.builders.operation_requests import build_operation
from tests.support.builders.request_builders import build_request
from tests.support.builders.transactions import build_group, build_transaction, in_transaction
from tests.support.faults.faulty_catalog import Fault
from tests.support.service.service_harness import ServiceHarness
from tests.support.service.several_tables import NAMES, counts, create, publish, transactions

VIRTUAL_TIME = True


def attempts(
    harness: ServiceHarness, tables: Sequence[LoadedTable], transaction: Transaction, count: int
) -> list[EncodedRequest]:
    """Build so many attempts of the request of each table, the attempts of a table together."""
    return [
        in_transaction(build_request(table, nonce=harness.world.uuid()), transaction)
        for table in tables
        for _ in range(count)
    ]


@pytest.mark.parametrize("order", list(permutations(range(4))))
async def test_the_first_attempt_lands_and_the_other_is_its_duplicate_in_any_order(
    order: tuple[int, ...],
) -> None:
    harness = ServiceHarness()
    tables = await create(harness, "db.flights", "db.ships")
    requests = attempts(harness, tables, build_transaction(tables), 2)
    async with harness.running():
        for number in order:
            await harness.publish(requests[number])
            await harness.settle(1.0)
        await harness.settle(5.0)
        assert await harness.outstanding() == []
    assert await counts(harness, "db.flights", "db.ships") == [1, 1]
    assert harness.catalog.calls["swap_together"] == 1
    assert await harness.quarantined() == []
    assert sum(one.duplicate for one in await harness.receipts()) == 2


@pytest.mark.parametrize(
    "faults",
    [
        (),
        (Fault.CONFLICT,),
        (Fault.LOST_REPLY,),
        (Fault.REQUEST_LOST, Fault.CONFLICT),
        (Fault.UNAVAILABLE, Fault.LOST_REPLY),
    ],
)
async def test_many_attempts_of_every_table_land_once_whatever_the_catalog_answers(
    faults: tuple[Fault, ...],
) -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    await publish(harness, attempts(harness, tables, build_transaction(tables), 4))
    harness.catalog.plan(*faults)
    await harness.run_until_settled(seconds=60.0)
    assert await counts(harness) == [1, 1, 1]
    assert await harness.outstanding() == []
    assert await harness.quarantined() == []


async def test_second_attempts_beside_transactions_in_conflict_stop_no_table() -> None:
    """Of three transactions one has second attempts, one removes a file that is not there. Those
    that can land have, within seconds, and appends of their tables beside them too."""
    harness = ServiceHarness(min_interval_ms=1_000)
    tables = await create(harness)
    harness.catalog.swap_s.update(dict.fromkeys(NAMES, 0.03))
    landing: list[str] = []
    refused: list[str] = []
    async with harness.running():
        for epoch in range(30):
            transaction = build_transaction(tables)
            name = f"p{epoch}"
            requests = [
                in_transaction(build_request(one, producer=name), transaction) for one in tables
            ]
            if epoch % 3 == 1:
                requests += [
                    in_transaction(
                        build_request(one, nonce=harness.world.uuid(), producer=name), transaction
                    )
                    for one in tables[epoch % 2 :]
                ]
            if epoch % 3 == 2:
                absent = f"{tables[1].metadata.location}/data/absent.parquet"
                needs: dict[str, object] = {
                    "removed-data-files": [absent],
                    "on-conflict": "fail" if epoch % 2 else "quarantine",
                }
                removal = build_operation(tables[1], "delete", needs=needs, producer=name)
                requests[1] = in_transaction(removal, transaction)
            (refused if epoch % 3 == 2 else landing).append(str(transaction.id))
            await publish(harness, requests)
            lone = [build_request(one, producer="lone", epoch=epoch) for one in tables]
            await publish(harness, lone)
            await harness.settle(0.05)
        await harness.settle(10.0)
        assert await harness.outstanding() == []
    for name in NAMES:
        named = [one for one in await transactions(harness, name) if one is not None]
        assert sorted(named) == sorted(landing)
    assert await counts(harness) == [50, 50, 50]
    records = await harness.quarantined()
    reasons = {Reason.CONFLICT.value, Reason.TRANSACTION_INCOMPLETE.value}
    assert {one.reason for one in records} == reasons
    assert len(records) == 3 * len(refused)


async def test_an_attempt_that_cannot_land_leaves_the_other_to_the_transaction() -> None:
    """Its content was refused: the other attempt of the epoch is as good."""
    harness = ServiceHarness()
    tables = await create(harness)
    transaction = build_transaction(tables)
    good = [in_transaction(build_request(one), transaction) for one in tables]
    bad = in_transaction(
        build_request(tables[1], branch="absent", nonce=harness.world.uuid()), transaction
    )
    async with harness.running():
        await publish(harness, [*good[1:], bad])
        await harness.settle(5.0)
        await publish(harness, good[:1])
        await harness.settle(5.0)
        assert await harness.outstanding() == []
    assert await counts(harness) == [1, 1, 1]
    assert [one.reason for one in await harness.quarantined()] == [Reason.BRANCH_UNKNOWN.value]


async def test_an_attempt_that_comes_after_its_transaction_has_landed_is_a_duplicate() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    transaction = build_transaction(tables)
    async with harness.running():
        await publish(harness, attempts(harness, tables, transaction, 1))
        await harness.settle(5.0)
        await publish(harness, attempts(harness, tables, transaction, 2))
        # Beside another transaction of the same tables, which none of these delays.
        await publish(harness, build_group(tables, producer="other"))
        await harness.settle(5.0)
        assert await harness.outstanding() == []
    assert await counts(harness) == [2, 2, 2]
    assert harness.catalog.calls["swap_together"] == 2
