"""On DynamoDB and S3: what is wrong around us is said, and neither loses nor judges a request."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from committer.aws.client import close_client, open_client
from committer.iceberg.manifest.manifest_list import decode_manifest_list
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject
from committer.storage.inbox.inbox import Inbox
from tests.integration.aws_harness import AwsHarness, aws_harness
from tests.support.integration.readers import live_files
from tests.support.integration.real_harness import until
from tests.support.integration.traffic import RealProducer, producers
from tests.support.servers.dynamodb_server import DynamoDbServer
from tests.support.servers.s3_server import S3Server

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(180)]

GOOD = "db.good"
BROKEN = "db.broken"
# A table at fault is asked again after 15 s at the latest; the rest is slack for a busy machine.
RECOVERY_S_MAX = 60.0


# --- At the start --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fault:
    """Variables that are wrong, and how the committer, which ends, calls that."""

    variables: dict[str, str]
    code: int
    said: str


FAULTS = {
    "a bucket that is not there": Fault(
        {"FRAZIL_INBOX": "s3://frazil-absent/requests"}, 2, "FRAZIL_INBOX.*frazil-absent"
    ),
    "a wrong secret key": Fault({"AWS_SECRET_ACCESS_KEY": "wrong"}, 2, "secret key is wrong"),
    "a catalog's table that is not there": Fault(
        {"FRAZIL_CATALOG__URI": "dynamodb://absent"}, 2, "FRAZIL_CATALOG__URI.*`absent`"
    ),
    "a table that is no catalog": Fault(
        {"FRAZIL_CATALOG__URI": "dynamodb://orders"}, 2, "`orders` is not an Iceberg catalog"
    ),
}


async def test_committer_that_cannot_work_says_why_and_leaves_all_requests(
    dynamodb_server: DynamoDbServer, s3_server: S3Server
) -> None:
    await _make_foreign_table(dynamodb_server)
    with aws_harness(dynamodb_server, s3_server) as harness:
        table = await harness.create_table(GOOD)
        async with producers(harness, table, 1) as [producer]:
            await producer.publish(3)
            for name, fault in FAULTS.items():
                print(f"{name}: {await _refusal(harness, fault)}")
                assert len(await harness.outstanding()) == 3
            await harness.start()
            await until(harness.is_settled, "an empty inbox")
        await _check_landed(harness, GOOD, producer)


async def _make_foreign_table(server: DynamoDbServer) -> None:
    client = await open_client("dynamodb", server.options)
    await client.create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "order", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "order", "AttributeType": "N"}],
        BillingMode="PAY_PER_REQUEST",
    )
    await close_client(client)


async def _refusal(harness: AwsHarness, fault: Fault) -> str:
    """Return the message with which a committer refuses the fault before it ends."""
    good, harness.variables = harness.variables, fault.variables
    try:
        harness.launch()
        assert harness.committer is not None
        code = await asyncio.to_thread(harness.committer.wait, 60)
    finally:
        harness.variables = good
    said = harness.log_file.read_text().splitlines()[-1]
    assert code == fault.code, said
    assert re.search(fault.said, said), said
    return said


# --- While it works ------------------------------------------------------------------------------


Pick = Callable[[AwsHarness, LoadedTable], str]


def _metadata_file(harness: AwsHarness, table: LoadedTable) -> str:
    return table.metadata_location


def _manifest_list(harness: AwsHarness, table: LoadedTable) -> str:
    assert table.metadata.current_snapshot and table.metadata.current_snapshot.manifest_list
    return table.metadata.current_snapshot.manifest_list


def _manifest(harness: AwsHarness, table: LoadedTable) -> str:
    return decode_manifest_list(harness.read(_manifest_list(harness, table))).rows[0].manifest_path


@pytest.mark.heavy
@pytest.mark.parametrize("pick", [_metadata_file, _manifest_list])
async def test_table_that_lost_a_file_waits_for_it_while_other_tables_go_on(
    pick: Pick, dynamodb_server: DynamoDbServer, s3_server: S3Server
) -> None:
    with aws_harness(dynamodb_server, s3_server) as harness:
        async with _two_tables(harness) as (good, broken):
            lost = pick(harness, await harness.load(BROKEN))
            content = harness.read(lost)
            async with harness.storage() as storage:
                await storage.delete([lost])
                await harness.start()
                await broken.publish(2)
                await good.publish(2)
                await until(lambda: _is_degraded(harness, lost), "condition of the table")
                await good.publish(2)
                await until(
                    lambda: _is_settled(harness, good), "requests of the other table to land"
                )
                print(f"/status: {harness.conditions()}")
                assert await harness.is_ready(), "one broken table holds up no rollout"
                assert len(await harness.outstanding()) == 2
                await storage.create([NewObject(lost, content)])
            await until(harness.is_settled, "an empty inbox", timeout_s=RECOVERY_S_MAX)
            await until(harness.is_healthy, "a healthy committer again")
            await _check_landed(harness, BROKEN, broken)
            await _check_landed(harness, GOOD, good)


@pytest.mark.heavy
async def test_table_that_lost_a_manifest_is_still_appended_to(
    dynamodb_server: DynamoDbServer, s3_server: S3Server
) -> None:
    """An append needs no older manifest. Lost ones stay listed, so that the loss is not hidden."""
    with aws_harness(dynamodb_server, s3_server) as harness:
        async with _two_tables(harness) as (good, broken):
            before = await harness.load(BROKEN)
            lost = _manifest(harness, before)
            async with harness.storage() as storage:
                await storage.delete([lost])
            await harness.start()
            await broken.publish(2)
            await good.publish(2)
            await until(harness.is_settled, "an empty inbox")
            rows = decode_manifest_list(
                harness.read(_manifest_list(harness, await harness.load(BROKEN)))
            ).rows
            assert lost in [row.manifest_path for row in rows]
            assert await harness.quarantined() == []
            await _check_landed(harness, GOOD, good)


@asynccontextmanager
async def _two_tables(harness: AwsHarness) -> AsyncIterator[tuple[RealProducer, RealProducer]]:
    """Create two tables with one commit each; the committer has ended again."""
    tables = [await harness.create_table(name) for name in (GOOD, BROKEN)]
    async with (
        producers(harness, tables[0], 1) as [good],
        producers(harness, tables[1], 1) as [broken],
    ):
        await harness.start()
        await good.publish()
        await broken.publish()
        await until(harness.is_settled, "the first requests in their tables")
        harness.signal(signal.SIGTERM)
        yield good, broken


def _is_degraded(harness: AwsHarness, lost: str) -> bool:
    return lost in harness.conditions().get(f"table {BROKEN}", "")


async def _is_settled(harness: AwsHarness, producer: RealProducer) -> bool:
    table_uuid = producer.table.metadata.table_uuid
    async with harness.storage() as storage:
        inbox = Inbox(storage, harness.settings.inbox)
        return [found async for found in inbox.list(table_uuid)] == []


async def _check_landed(harness: AwsHarness, name: str, producer: RealProducer) -> None:
    """Check that each published file is in the table once, and no request in quarantine."""
    live = live_files(await harness.load(name), harness.read)
    assert sorted(file.path for file in live) == sorted(producer.paths)
    assert await harness.quarantined() == []
