"""Each answer of DynamoDB to a swap of several tables has one meaning; a resend keeps its token."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from committer.errors import AccessError, CatalogUnavailableError, UnsupportedError
from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    GroupCommitted,
    GroupConflict,
    LoadedTable,
    Rejected,
    Swap,
    Unknown,
)
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.catalogs.catalogs import DynamoDbHarness
from tests.support.catalogs.dynamodb_items import open_items
from tests.support.catalogs.plain_namespaces import WAREHOUSE
from tests.support.servers.dynamodb_server import DynamoDbServer
from tests.support.servers.http_proxy import Answer, Fault

pytestmark = pytest.mark.server
TRANSACTION = b"TransactWriteItems"


@pytest.fixture
async def harness(dynamodb_server: DynamoDbServer) -> AsyncIterator[DynamoDbHarness]:
    harness = await DynamoDbHarness.open(dynamodb_server)
    await harness.catalog.create_namespace(("db",))
    yield harness
    await harness.close()


async def create(harness: DynamoDbHarness, *names: str) -> list[LoadedTable]:
    tables = [build_table(f"db.{name}", warehouse=WAREHOUSE) for name in names or ("a", "b")]
    for table in tables:
        await harness.catalog.create_table(table)
    return [await harness.catalog.load(table.identifier) for table in tables]


def group(tables: list[LoadedTable]) -> list[Swap]:
    return [build_swap(table) for table in tables]


async def written(harness: DynamoDbHarness, tables: list[LoadedTable]) -> list[Swap]:
    """Return a group whose metadata files are there."""
    swaps = group(tables)
    for swap in swaps:
        await harness.storage.create(harness.catalog.objects_before(swap))
    return swaps


def canceled(*codes: str) -> Answer:
    """Return the answer to a transaction that was canceled, with a reason for each action."""
    reasons = [{"Code": code, "Message": f"{code} by the test"} for code in codes]
    return Answer.aws_error(400, "TransactionCanceledException", CancellationReasons=reasons)


async def moved(harness: DynamoDbHarness, tables: list[LoadedTable]) -> list[bool]:
    return [
        await harness.catalog.current_location(one.identifier) != one.metadata_location
        for one in tables
    ]


def tokens(harness: DynamoDbHarness) -> list[str]:
    """Return the token of each transaction that was sent."""
    sent = [one for one in harness.proxy.received if one.holds(TRANSACTION)]
    return [json.loads(one.body)["ClientRequestToken"] for one in sent]


async def test_group_is_one_call_and_its_items_have_one_version(
    harness: DynamoDbHarness, dynamodb_server: DynamoDbServer
) -> None:
    tables = await create(harness)
    swaps = group(tables)
    harness.proxy.requests.clear()
    assert isinstance(await harness.catalog.swap_together(swaps), GroupCommitted)
    assert harness.proxy.requests == ["TransactWriteItems"]
    async with open_items(dynamodb_server, harness.table_name) as items:
        found = [await items.get(f"db.{name}", "db") for name in ("a", "b")]
    assert [one["p.metadata_location"] for one in found] == [s.metadata_location for s in swaps]
    assert found[0]["v"] == found[1]["v"] == tokens(harness)[0]
    standing = [LoadedTable(s.base.identifier, s.metadata, s.metadata_location) for s in swaps]
    assert isinstance(await harness.catalog.swap_together(group(standing)), GroupCommitted)


@pytest.mark.parametrize(
    "codes",
    [("TransactionConflict", "None"), ("None", "ThrottlingError"), ("None", "None")],
)
async def test_canceled_for_its_timing_is_sent_again_by_the_same_token(
    harness: DynamoDbHarness, codes: tuple[str, str]
) -> None:
    tables = await create(harness)
    harness.proxy.plan(TRANSACTION, canceled(*codes), canceled(*codes))
    assert isinstance(await harness.catalog.swap_together(group(tables)), GroupCommitted)
    assert len(tokens(harness)) == 3
    assert len(set(tokens(harness))) == 1


async def test_canceled_for_its_timing_again_and_again_is_raised_and_nothing_is_applied(
    harness: DynamoDbHarness,
) -> None:
    tables = await create(harness)
    harness.proxy.plan(TRANSACTION, *[canceled("TransactionConflict", "None")] * 6)
    with pytest.raises(CatalogUnavailableError, match="another transaction"):
        await harness.catalog.swap_together(group(tables))
    assert await moved(harness, tables) == [False, False]


async def test_canceled_for_what_it_says_is_rejected_in_the_services_words(
    harness: DynamoDbHarness,
) -> None:
    tables = await create(harness)
    harness.proxy.plan(TRANSACTION, canceled("None", "ValidationError"))
    answer = await harness.catalog.swap_together(group(tables))
    assert answer == Rejected("ValidationError: ValidationError by the test")
    assert len(tokens(harness)) == 1


async def test_failed_condition_beside_another_transaction_is_a_conflict(
    harness: DynamoDbHarness,
) -> None:
    tables = await create(harness)
    harness.proxy.plan(TRANSACTION, canceled("TransactionConflict", "ConditionalCheckFailed"))
    answer = await harness.catalog.swap_together(group(tables))
    assert answer == GroupConflict((tables[1].identifier,))


@pytest.mark.parametrize("first", [Fault.CUT_REQUEST, Fault.CUT_ANSWER])
async def test_lost_answer_is_asked_for_by_the_same_token(
    harness: DynamoDbHarness, first: Fault
) -> None:
    tables = await create(harness)
    harness.proxy.plan(TRANSACTION, first)
    assert isinstance(await harness.catalog.swap_together(group(tables)), GroupCommitted)
    assert len(tokens(harness)) == 2
    assert len(set(tokens(harness))) == 1


@pytest.mark.parametrize(
    "second",
    [
        canceled("ConditionalCheckFailed", "None"),
        canceled("ValidationError", "None"),
        Answer.aws_error(400, "AccessDeniedException"),
        Fault.CUT_REQUEST,
    ],
)
async def test_refusal_behind_a_lost_answer_is_unknown(
    harness: DynamoDbHarness, second: Answer | Fault
) -> None:
    tables = await create(harness)
    harness.proxy.plan(TRANSACTION, Fault.LANDS_LATE, second)
    assert isinstance(await harness.catalog.swap_together(group(tables)), Unknown)
    await harness.land_late()
    assert await moved(harness, tables) == [True, True]


async def test_transaction_in_progress_is_waited_for_and_in_doubt(
    harness: DynamoDbHarness,
) -> None:
    tables = await create(harness)
    in_progress = Answer.aws_error(400, "TransactionInProgressException")
    harness.proxy.plan(TRANSACTION, in_progress, in_progress)
    swaps = await written(harness, tables)
    assert isinstance(await harness.catalog.swap_together(swaps), GroupCommitted)
    again = [await harness.catalog.load(one.identifier) for one in tables]
    harness.proxy.plan(TRANSACTION, *[in_progress] * 6)
    assert isinstance(await harness.catalog.swap_together(group(again)), Unknown)


async def test_refusal_of_the_call_itself_is_raised(harness: DynamoDbHarness) -> None:
    tables = await create(harness)
    harness.proxy.plan(TRANSACTION, Answer.aws_error(400, "AccessDeniedException"))
    with pytest.raises(AccessError, match="dynamodb:TransactWriteItems"):
        await harness.catalog.swap_together(group(tables))


async def test_more_tables_than_a_transaction_takes_are_refused_and_none_is_sent(
    harness: DynamoDbHarness,
) -> None:
    tables = [build_table(f"db.t{number}", warehouse=WAREHOUSE) for number in range(101)]
    with pytest.raises(UnsupportedError, match=r"101 tables.*at most 100"):
        await harness.catalog.swap_together(group(tables))
    assert tokens(harness) == []


async def test_a_hundred_tables_land_together(harness: DynamoDbHarness) -> None:
    tables = await create(harness, *(f"t{number}" for number in range(100)))
    assert isinstance(await harness.catalog.swap_together(group(tables)), GroupCommitted)
    assert all(await moved(harness, tables))


async def test_lone_swap_that_a_transaction_refuses_is_a_conflict_by_its_pointer(
    harness: DynamoDbHarness,
) -> None:
    """The transaction may be canceled in the end, so the pointer need not have moved."""
    (table,) = await create(harness, "a")
    in_the_way = Answer.aws_error(400, "TransactionConflictException")
    harness.proxy.plan(b"UpdateItem", in_the_way)
    assert await harness.catalog.swap(build_swap(table)) == Conflict()
    assert await moved(harness, [table]) == [False]
    swap = build_swap(table)
    assert isinstance(await (await harness.another()).swap(swap), Committed)
    harness.proxy.plan(b"UpdateItem", in_the_way)
    assert isinstance(await harness.catalog.swap(swap), Committed)  # it had been sent before


async def test_lone_swap_whose_pointer_cannot_be_read_behind_the_refusal_is_unknown(
    harness: DynamoDbHarness,
) -> None:
    (table,) = await create(harness, "a")
    harness.proxy.plan(b"UpdateItem", Answer.aws_error(400, "TransactionConflictException"))
    harness.proxy.plan(b"GetItem", Fault.CUT_REQUEST)
    assert isinstance(await harness.catalog.swap(build_swap(table)), Unknown)


async def test_of_lone_swaps_and_groups_on_one_base_exactly_one_wins(
    harness: DynamoDbHarness,
) -> None:
    tables = await create(harness)
    rival = await harness.another()
    for _ in range(20):
        swaps, lone = await written(harness, tables), await written(harness, tables[:1])
        ours, theirs = await asyncio.gather(
            harness.catalog.swap_together(swaps), rival.swap(lone[0])
        )
        assert isinstance(ours, GroupCommitted) is not isinstance(theirs, Committed)
        tables = [await harness.catalog.load(one.identifier) for one in tables]
