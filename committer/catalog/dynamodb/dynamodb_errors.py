"""Classifies DynamoDB's own errors for the catalog. Those of all AWS services: `client_errors`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from committer.aws.client_errors import answer_of, code_of, explain
from committer.catalog.dynamodb.dynamodb_layout import Item
from committer.errors import AccessError, CatalogUnavailableError, FrazilError

if TYPE_CHECKING:
    from types_aiobotocore_dynamodb import DynamoDBClient

_CONDITION_FAILED = "ConditionalCheckFailed"
# Another transaction, or too many calls, were in the way of one action.
_PASSING = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError", "TransactionConflict"})


def frazil_error(
    error: Exception, action: str, client: DynamoDBClient, table_name: str
) -> FrazilError:
    """Return the error to raise for a call that was surely not applied, or that may be repeated."""
    what = f"dynamodb:{action} on table `{table_name}`"
    if code_of(error) == "ResourceNotFoundException":
        return AccessError(f"{what}: {missing(client, table_name)}")
    if code_of(error) == "TransactionConflictException" or _PASSING & set(_reasons(error)):
        return CatalogUnavailableError(f"{what}: another transaction or throttling is in the way")
    return explain(error, what, CatalogUnavailableError)


def missing(client: DynamoDBClient, table_name: str) -> str:
    """Name the region and endpoint of the search: a wrong region gives the same answer."""
    where = f"region {client.meta.region_name} ({client.meta.endpoint_url})"
    return f"there is no DynamoDB table `{table_name}` in {where}"


def standing_item(error: Exception) -> Item | None:
    """Return the item for which a write's condition failed, empty if there is none; else None."""
    if code_of(error) != f"{_CONDITION_FAILED}Exception":
        return None
    item: Item = answer_of(error).get("Item", {})
    return item


def failed_conditions(error: Exception) -> list[int]:
    """Return the positions of the actions of a transaction whose conditions failed."""
    reasons = _reasons(error)
    return [place for place, code in enumerate(reasons) if code == _CONDITION_FAILED]


def _reasons(error: Exception) -> list[str]:
    """Return why a transaction was cancelled:
    a code for each action, `None` for one that passed.
    """
    reasons = answer_of(error).get("CancellationReasons", [])
    return [str(reason.get("Code")) for reason in reasons]
