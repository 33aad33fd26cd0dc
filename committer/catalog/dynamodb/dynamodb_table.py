"""Finds and checks the DynamoDB table of a catalog, and creates it where that is allowed.

Nothing here reads or writes an item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from committer.aws.client_errors import AWS_ERRORS, code_of
from committer.catalog.dynamodb.dynamodb_errors import frazil_error, missing
from committer.catalog.dynamodb.dynamodb_layout import INDEX, create_table
from committer.errors import CatalogUnavailableError, NotFoundError, SettingsError
from committer.ports.world import World

if TYPE_CHECKING:
    from types_aiobotocore_dynamodb import DynamoDBClient

_USABLE = frozenset({"ACTIVE", "UPDATING"})
_POLL_S = 1.0
_POLLS_MAX = 120


async def ensure_table(
    client: DynamoDBClient, table_name: str, world: World, *, create: bool
) -> None:
    """Return when a table of the right layout is there and usable.

    Errors: `SettingsError` for another layout; `NotFoundError` where it is missing and not to be
    made; `AccessError`; `CatalogUnavailableError` where it does not become usable in two minutes.
    """
    found = await _describe(client, table_name)
    if not found:
        if not create:
            raise NotFoundError(
                f"there is no catalog yet: {missing(client, table_name)}. `frazil table create`"
                " makes one; or name another table, region or endpoint"
            )
        await _create(client, table_name)
        found = await _describe(client, table_name)
    for _ in range(_POLLS_MAX):
        if found:
            _check_layout(table_name, found)
            if found["TableStatus"] in _USABLE:
                return
        await world.sleep(_POLL_S)
        found = await _describe(client, table_name)
    status = found.get("TableStatus", "not there")
    raise CatalogUnavailableError(f"DynamoDB table `{table_name}` is {status}, expected ACTIVE")


async def _describe(client: DynamoDBClient, table_name: str) -> Mapping[str, Any]:
    """Return the table as the service describes it; empty if there is none."""
    try:
        answer = await client.describe_table(TableName=table_name)
    except AWS_ERRORS as error:
        if code_of(error) == "ResourceNotFoundException":
            return {}
        raise frazil_error(error, "DescribeTable", client, table_name) from error
    return answer["Table"]


async def _create(client: DynamoDBClient, table_name: str) -> None:
    try:
        await client.create_table(**create_table(table_name))
    except AWS_ERRORS as error:
        if code_of(error) == "ResourceInUseException":
            return  # another process makes it in this moment
        raise frazil_error(error, "CreateTable", client, table_name) from error


def _check_layout(table_name: str, found: Mapping[str, Any]) -> None:
    expected, standing = dict(_keys(create_table(table_name))), dict(_keys(found))
    for part, keys in expected.items():
        if standing.get(part) != keys:
            raise SettingsError(
                f"DynamoDB table `{table_name}` is not an Iceberg catalog: {part} is"
                f" {standing.get(part, 'missing')}, expected {keys}"
            )


def _keys(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the keys of the table and of the catalog's index, printed, by what they are keys of."""
    defined = table.get("AttributeDefinitions", ())
    types = {one["AttributeName"]: one["AttributeType"] for one in defined}

    def print_keys(schema: Sequence[Mapping[str, str]]) -> str:
        return ", ".join(
            f"{one['AttributeName']} ({one['KeyType']}, {types.get(one['AttributeName'])})"
            for one in schema
        )

    yield "its key", print_keys(table.get("KeySchema", ()))
    for index in table.get("GlobalSecondaryIndexes", ()):
        if index["IndexName"] == INDEX:
            yield f"the key of its index `{INDEX}`", print_keys(index["KeySchema"])
