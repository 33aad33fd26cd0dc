"""Items of a DynamoDB catalog as any client sees and writes them, past the adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from committer.aws.client import close_client, open_client
from tests.support.servers.dynamodb_server import DynamoDbServer

JAVA_VERSION = "0b6f3f3e-8f0f-4d0e-9c2b-3a0f2b9a4a55"


class Items:
    """The table's items by key: `await items["db.flights", "db"]`-like, with plain values."""

    def __init__(self, client: Any, table_name: str) -> None:
        self.client = client
        self.table_name = table_name

    async def get(self, identifier: str, namespace: str) -> dict[str, Any]:
        """Return the item's values without their types; empty if there is none."""
        key = {"identifier": {"S": identifier}, "namespace": {"S": namespace}}
        answer = await self.client.get_item(TableName=self.table_name, Key=key, ConsistentRead=True)
        return _plain(answer.get("Item", {}))

    async def all(self) -> list[dict[str, Any]]:
        answer = await self.client.scan(TableName=self.table_name, ConsistentRead=True)
        return [_plain(item) for item in answer["Items"]]

    async def put(self, **attributes: str | int) -> None:
        """Write an item. Names may hold dots: `put(**{"p.table_type": "ICEBERG"})`."""
        await self.client.put_item(TableName=self.table_name, Item=_typed(attributes))

    async def put_many(self, items: Sequence[dict[str, str | int]]) -> None:
        for start in range(0, len(items), 25):
            puts = [{"PutRequest": {"Item": _typed(one)}} for one in items[start : start + 25]]
            await self.client.batch_write_item(RequestItems={self.table_name: puts})

    async def describe(self) -> dict[str, Any]:
        answer = await self.client.describe_table(TableName=self.table_name)
        described: dict[str, Any] = answer["Table"]
        return described


def java_table(identifier: str, metadata_location: str, **more: str | int) -> dict[str, str | int]:
    """Return a table's item with the attributes that Iceberg Java gives it."""
    return {
        "identifier": identifier,
        "namespace": identifier.rpartition(".")[0],
        "v": JAVA_VERSION,
        "created_at": 1_700_000_000_000,
        "updated_at": 1_700_000_000_001,
        "p.table_type": "ICEBERG",
        "p.metadata_location": metadata_location,
        **more,
    }


@asynccontextmanager
async def open_items(server: DynamoDbServer, table_name: str) -> AsyncIterator[Items]:
    client = await open_client("dynamodb", server.options)
    try:
        yield Items(client, table_name)
    finally:
        await close_client(client)


def _plain(item: dict[str, Any]) -> dict[str, Any]:
    return {
        name: int(one["N"]) if "N" in one else next(iter(one.values()))
        for name, one in item.items()
    }


def _typed(attributes: dict[str, str | int]) -> dict[str, dict[str, str]]:
    return {
        name: {"N": str(one)} if isinstance(one, int) else {"S": one}
        for name, one in attributes.items()
    }
