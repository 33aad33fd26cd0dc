"""The DynamoDB table of a catalog: made, waited for, refused; errors of a bad environment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from committer.aws.client import AwsOptions
from committer.catalog.dynamodb.dynamodb_catalog import DynamoDbCatalog
from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    FrazilError,
    NotFoundError,
    SettingsError,
)
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.catalogs.catalogs import DynamoDbHarness
from tests.support.catalogs.dynamodb_items import open_items
from tests.support.catalogs.interfered_storage import InterferedStorage
from tests.support.catalogs.plain_namespaces import WAREHOUSE
from tests.support.clock.worlds import ManualWorld
from tests.support.servers.dynamodb_server import REGION, DynamoDbServer
from tests.support.servers.http_proxy import Answer, HttpProxy

pytestmark = pytest.mark.server

FLIGHTS = TableIdentifier(("db",), "flights")
KEY = [("identifier", "HASH"), ("namespace", "RANGE")]
INDEX_KEY = [("namespace", "HASH"), ("identifier", "RANGE")]


@pytest.fixture
async def proxy(dynamodb_server: DynamoDbServer) -> AsyncIterator[HttpProxy]:
    async with HttpProxy(dynamodb_server.url) as proxy:
        yield proxy


@pytest.fixture
async def harness(dynamodb_server: DynamoDbServer) -> AsyncIterator[DynamoDbHarness]:
    harness = await DynamoDbHarness.open(dynamodb_server)
    yield harness
    await harness.close()


@asynccontextmanager
async def opened(
    options: AwsOptions, table_name: str, *, world: World | None = None, create: bool = True
) -> AsyncIterator[DynamoDbCatalog]:
    catalog = await DynamoDbCatalog.open(
        table_name=table_name,
        storage=InterferedStorage(),
        options=options,
        world=world or ManualWorld(),
        create=create,
    )
    try:
        yield catalog
    finally:
        await catalog.close()


def refusal(
    options: AwsOptions, table_name: str, *, create: bool = True
) -> asyncio.Future[FrazilError]:
    """Return the error that opening ends with."""

    async def run() -> FrazilError:
        with pytest.raises(FrazilError) as caught:
            async with opened(options, table_name, create=create):
                pass
        return caught.value

    return asyncio.ensure_future(run())


# --- Layout --------------------------------------------------------------------------------------


async def test_missing_table_is_made_as_java_makes_it(
    dynamodb_server: DynamoDbServer, harness: DynamoDbHarness
) -> None:
    async with open_items(dynamodb_server, harness.table_name) as items:
        table = await items.describe()
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert {
        one["AttributeName"]: one["AttributeType"] for one in table["AttributeDefinitions"]
    } == {
        "identifier": "S",
        "namespace": "S",
    }
    assert _key(table) == KEY
    (index,) = table["GlobalSecondaryIndexes"]
    assert index["IndexName"] == "namespace-identifier"
    assert _key(index) == INDEX_KEY
    assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}


async def test_table_may_be_made_by_several_at_once(dynamodb_server: DynamoDbServer) -> None:
    table_name = dynamodb_server.new_table_name()

    async def use() -> None:
        async with opened(dynamodb_server.options, table_name) as catalog:
            await catalog.create_namespace(("db",))

    await asyncio.gather(*(use() for _ in range(4)))


async def test_missing_table_that_may_not_be_made_is_said_to_be_missing_in_its_region(
    dynamodb_server: DynamoDbServer, proxy: HttpProxy
) -> None:
    table_name = dynamodb_server.new_table_name()
    options = replace(dynamodb_server.options, endpoint_url=proxy.url)
    error = await refusal(options, table_name, create=False)
    assert isinstance(error, NotFoundError)
    assert f"no DynamoDB table `{table_name}` in region {REGION} ({proxy.url})" in str(error)
    assert proxy.requests == ["DescribeTable"]


@pytest.mark.parametrize(
    ("key", "indexes", "said"),
    [
        (
            [("identifier", "HASH")],
            {"namespace-identifier": [("namespace", "HASH"), ("identifier", "RANGE")]},
            "its key is identifier (HASH, S), expected identifier (HASH, S), namespace (RANGE, S)",
        ),
        (
            [("namespace", "HASH"), ("identifier", "RANGE")],
            {"namespace-identifier": INDEX_KEY},
            "its key is namespace (HASH, S), identifier (RANGE, S), expected identifier (HASH, S)",
        ),
        (KEY, {}, "the key of its index `namespace-identifier` is missing, expected namespace"),
        (
            KEY,
            {"other": INDEX_KEY},
            "the key of its index `namespace-identifier` is missing, expected namespace (HASH, S)",
        ),
        (
            KEY,
            {"namespace-identifier": [("namespace", "HASH")]},
            "the key of its index `namespace-identifier` is namespace (HASH, S), expected",
        ),
    ],
)
async def test_table_of_another_layout_is_refused_with_what_was_found_and_expected(
    dynamodb_server: DynamoDbServer,
    harness: DynamoDbHarness,
    key: list[tuple[str, str]],
    indexes: dict[str, list[tuple[str, str]]],
    said: str,
) -> None:
    table_name = dynamodb_server.new_table_name()
    async with open_items(dynamodb_server, harness.table_name) as items:
        await items.client.create_table(**_other_table(table_name, key, indexes))
    error = await refusal(dynamodb_server.options, table_name)
    assert isinstance(error, SettingsError)
    assert f"`{table_name}` is not an Iceberg catalog: {said}" in str(error)


# --- Waiting -------------------------------------------------------------------------------------


async def test_table_that_is_being_made_is_waited_for(
    dynamodb_server: DynamoDbServer, harness: DynamoDbHarness, proxy: HttpProxy
) -> None:
    creating = await _described(dynamodb_server, harness, "CREATING")
    proxy.plan(b"DescribeTable", creating, creating, creating)
    world = ManualWorld()
    options = replace(dynamodb_server.options, endpoint_url=proxy.url)
    async with opened(options, harness.table_name, world=world, create=False) as catalog:
        assert await catalog.list_namespaces() == []
    assert proxy.requests[:4] == ["DescribeTable"] * 4
    assert world.monotonic_s() == pytest.approx(3)


async def test_table_that_does_not_become_active_is_an_outage(
    dynamodb_server: DynamoDbServer, harness: DynamoDbHarness, proxy: HttpProxy
) -> None:
    deleting = await _described(dynamodb_server, harness, "DELETING")
    proxy.plan(b"DescribeTable", *[deleting] * 200)
    options = replace(dynamodb_server.options, endpoint_url=proxy.url)
    error = await refusal(options, harness.table_name)
    assert isinstance(error, CatalogUnavailableError)
    assert "is DELETING, expected ACTIVE" in str(error)


# --- Bad environments ----------------------------------------------------------------------------

TROUBLES = [
    (400, "AccessDeniedException", AccessError, "lacks the permission"),
    (400, "ExpiredTokenException", AccessError, "credentials have expired"),
    (400, "InvalidSignatureException", AccessError, "this machine's clock"),
    (400, "UnrecognizedClientException", AccessError, "not known there"),
    (400, "ValidationException", AccessError, "refused: ValidationException: said by the test"),
    (400, "ThrottlingException", CatalogUnavailableError, "throttled"),
    (400, "ProvisionedThroughputExceededException", CatalogUnavailableError, "throttled"),
]


@pytest.mark.parametrize(("status", "code", "kind", "said"), TROUBLES)
async def test_trouble_at_start_is_told_with_the_call_that_met_it(
    dynamodb_server: DynamoDbServer,
    proxy: HttpProxy,
    status: int,
    code: str,
    kind: type[FrazilError],
    said: str,
) -> None:
    table_name = dynamodb_server.new_table_name()
    options = replace(dynamodb_server.options, endpoint_url=proxy.url)
    for action in ("DescribeTable", "CreateTable"):
        proxy.plan(action.encode(), Answer.aws_error(status, code))
        error = await refusal(options, table_name)
        assert isinstance(error, kind)
        assert f"dynamodb:{action} on table `{table_name}`" in str(error)
        assert said in str(error)


@pytest.mark.parametrize(("status", "code", "kind", "said"), TROUBLES)
async def test_trouble_later_changes_nothing_and_is_told_with_the_call_that_met_it(
    harness: DynamoDbHarness, status: int, code: str, kind: type[FrazilError], said: str
) -> None:
    catalog, table = harness.catalog, build_table(warehouse=WAREHOUSE)
    await catalog.create_namespace(("db",))
    await catalog.create_table(table)
    other = TableIdentifier(("db",), "other")
    for action, call in (
        ("UpdateItem", catalog.swap(build_swap(table))),
        ("UpdateItem", catalog.probe()),
        ("GetItem", catalog.load(FLIGHTS)),
        ("PutItem", catalog.create_table(build_table("db.other", warehouse=WAREHOUSE))),
        ("PutItem", catalog.create_namespace(("db2",))),
        ("TransactWriteItems", catalog.rename_table(FLIGHTS, other)),
        ("DeleteItem", catalog.drop_table(FLIGHTS)),
        ("Query", catalog.list_tables(("db",))),
        ("Query", catalog.list_namespaces()),
    ):
        harness.proxy.plan(action.encode(), Answer.aws_error(status, code))
        with pytest.raises(kind) as caught:
            await call
        assert f"dynamodb:{action} on table `{harness.table_name}`" in str(caught.value)
        assert said in str(caught.value)
    assert await catalog.load(FLIGHTS) == table
    assert await catalog.list_tables(("db",)) == [FLIGHTS]
    assert await catalog.list_namespaces() == [("db",)]


async def test_table_that_is_gone_is_no_reason_to_blame_a_request(
    dynamodb_server: DynamoDbServer, harness: DynamoDbHarness
) -> None:
    table = build_table(warehouse=WAREHOUSE)
    await harness.catalog.create_namespace(("db",))
    await harness.catalog.create_table(table)
    async with open_items(dynamodb_server, harness.table_name) as items:
        await items.client.delete_table(TableName=harness.table_name)
    for call in (harness.catalog.load(FLIGHTS), harness.catalog.swap(build_swap(table))):
        with pytest.raises(
            AccessError, match=f"no DynamoDB table `{harness.table_name}` in region"
        ):
            await call


@pytest.mark.parametrize("region", ["", REGION])
async def test_missing_region_and_credentials_are_named(
    dynamodb_server: DynamoDbServer, monkeypatch: pytest.MonkeyPatch, region: str
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "none")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "none")
    error = await refusal(replace(dynamodb_server.options, region=region), "iceberg")
    expected = (AccessError, "no AWS credentials") if region else (SettingsError, "no AWS region")
    assert isinstance(error, expected[0])
    assert expected[1] in str(error)


# --- Probe ---------------------------------------------------------------------------------------


async def test_probe_leaves_no_item(
    dynamodb_server: DynamoDbServer, harness: DynamoDbHarness
) -> None:
    await harness.catalog.probe()
    async with open_items(dynamodb_server, harness.table_name) as items:
        assert await items.all() == []


async def test_server_that_ignores_conditions_is_refused(harness: DynamoDbHarness) -> None:
    harness.proxy.plan(b"UpdateItem", Answer(200, b"{}"))
    harness.proxy.requests.clear()
    with pytest.raises(SettingsError, match=r"condition on its `p\.metadata_location`"):
        await harness.catalog.probe()
    assert harness.proxy.requests == ["UpdateItem", "DeleteItem"]


# --- Tables as they should not be ----------------------------------------------------------------


def _key(described: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["AttributeName"], one["KeyType"]) for one in described["KeySchema"]]


def _schema(key: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": kind} for name, kind in key]


def _other_table(
    table_name: str, key: list[tuple[str, str]], indexes: dict[str, list[tuple[str, str]]]
) -> dict[str, Any]:
    names = {name for part in (key, *indexes.values()) for name, _ in part}
    described: dict[str, Any] = {
        "TableName": table_name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in sorted(names)
        ],
        "KeySchema": _schema(key),
    }
    if indexes:
        described["GlobalSecondaryIndexes"] = [
            {
                "IndexName": name,
                "KeySchema": _schema(part),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
            for name, part in indexes.items()
        ]
    return described


async def _described(server: DynamoDbServer, harness: DynamoDbHarness, status: str) -> Answer:
    """Return the description of the harness's table as it would be in another state."""
    async with open_items(server, harness.table_name) as items:
        table = await items.describe()
    table = {**table, "TableStatus": status}
    del table["CreationDateTime"], table["BillingModeSummary"], table["ProvisionedThroughput"]
    return Answer(200, json.dumps({"Table": table}, default=str).encode())
