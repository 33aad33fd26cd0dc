"""Classifies DynamoDB's own errors for the catalog. Those of all AWS services: `client_errors`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from committer.aws.client_errors import answer_of, code_of, explain
from committer.catalog.dynamodb.dynamodb_layout import Item
from committer.errors import AccessError, CatalogUnavailableError, FrazilError

if TYPE_CHECKING:
    from types_aiobotocore_dynamodb import DynamoDBClient

_IN_THE_WAY = "TransactionConflictException"
_CONDITION_FAILED = "ConditionalCheckFailed"
# Another transaction, or too many calls, were in the way of one action.
PASSING = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError", "TransactionConflict"})
"""Why a transaction was canceled, if it may be sent again as it is."""


def frazil_error(
    error: Exception, action: str, client: DynamoDBClient, table_name: str
) -> FrazilError:
    """Return the error to raise for a call that was surely not applied, or that may be repeated."""
    what = f"dynamodb:{action} on table `{table_name}`"
    if code_of(error) == "ResourceNotFoundException":
        return AccessError(f"{what}: {missing(client, table_name)}")
    if is_transaction_conflict(error) or PASSING & set(_codes(error)):
        return CatalogUnavailableError(f"{what}: another transaction or throttling is in the way")
    return explain(error, what, CatalogUnavailableError)


def missing(client: DynamoDBClient, table_name: str) -> str:
    """Name the region and endpoint of the search: a wrong region gives the same answer."""
    where = f"region {client.meta.region_name} ({client.meta.endpoint_url})"
    return f"there is no DynamoDB table `{table_name}` in {where}"


def is_transaction_conflict(error: Exception) -> bool:
    """Return whether a transaction on the same item was in the way of a lone write."""
    return code_of(error) == _IN_THE_WAY


def standing_item(error: Exception) -> Item | None:
    """Return the item for which a write's condition failed, empty if there is none; else None."""
    if code_of(error) != f"{_CONDITION_FAILED}Exception":
        return None
    item: Item = answer_of(error).get("Item", {})
    return item


def failed_conditions(error: Exception) -> list[int]:
    """Return the positions of the actions of a transaction whose conditions failed."""
    codes = _codes(error)
    return [place for place, code in enumerate(codes) if code == _CONDITION_FAILED]


def reasons(error: Exception) -> list[Mapping[str, Any]]:
    """Return why a transaction was canceled: a reason for each action, of the code `None` for one
    that passed.
    """
    found: list[Mapping[str, Any]] = answer_of(error).get("CancellationReasons", [])
    return found


def _codes(error: Exception) -> list[str]:
    return [str(reason.get("Code")) for reason in reasons(error)]
