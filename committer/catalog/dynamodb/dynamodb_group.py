"""The transaction that swaps several pointers together, and what each answer to it means.

It has a token, by which the service knows it: as long as the token is remembered (ten minutes), the
same transaction sent again is not applied again. Should it be forgotten, the conditions still hold:
a pointer's version never comes back.

| answer                                              | outcome                                   |
|-----------------------------------------------------|-------------------------------------------|
| success                                             | `GroupCommitted`                          |
| canceled, a condition failed                        | all pointers are ours → `GroupCommitted`; |
|                                                     | some → `Unknown`; else `GroupConflict`    |
| canceled, other transactions or throttling          | send again                                |
| canceled, anything else                             | `Rejected`                                |
| the same transaction is in progress                 | wait, send again; it is in doubt          |
| a lost answer, a 5xx                                | send once more; it is in doubt            |
| any other refusal                                   | raise: surely not applied                 |

In doubt, a refusal of a later send tells nothing of the first one: `Unknown`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from committer.aws.client_errors import brief, code_of, surely_not_applied
from committer.catalog.dynamodb.dynamodb_errors import (
    PASSING,
    failed_conditions,
    frazil_error,
    reasons,
)
from committer.catalog.dynamodb.dynamodb_layout import LOCATION, PREVIOUS_LOCATION, text_of
from committer.errors import FrazilError
from committer.ports.pointer_swap import (
    GroupAnswer,
    GroupCommitted,
    GroupConflict,
    Rejected,
    Swap,
    Unknown,
)
from committer.ports.world import World, spread_s

if TYPE_CHECKING:
    from types_aiobotocore_dynamodb import DynamoDBClient
    from types_aiobotocore_dynamodb.type_defs import TransactWriteItemsInputTypeDef

_SENDS_MAX = 6
_LOST_MAX = 2
_FIRST_WAIT_S = 0.05


class GroupSender:
    """Sends one transaction until its outcome is known, or for a bounded number of times."""

    def __init__(
        self,
        client: DynamoDBClient,
        table_name: str,
        swaps: Sequence[Swap],
        world: World,
    ) -> None:
        self._client = client
        self._table_name = table_name
        self._swaps = swaps
        self._world = world
        self._lost = 0
        self._doubt = ""

    async def send(self, call: TransactWriteItemsInputTypeDef) -> GroupAnswer:
        """Send the transaction. Errors: as `Catalog.swap_together`."""
        for number in range(_SENDS_MAX):
            if number:
                wait_s = _FIRST_WAIT_S * 2 ** (number - 1)
                await self._world.sleep(spread_s(wait_s, self._world))
            try:
                await self._client.transact_write_items(**call)
            except Exception as error:  # noqa: BLE001  # whatever it is: was the call applied?
                failure = error
            else:
                return self._committed()
            if answer := self._judge(failure):
                return answer
        if self._doubt:
            return Unknown(self._doubt)
        raise self._error(failure) from failure

    def _judge(self, failure: Exception) -> GroupAnswer | None:
        """Return the outcome; None to send again. Errors: those of `frazil_error`."""
        if code_of(failure) == "TransactionInProgressException":
            self._doubt = self._doubt or brief(failure)
            return None
        if code_of(failure) == "TransactionCanceledException":
            return self._canceled(failure)
        if not surely_not_applied(failure):
            self._lost += 1
            self._doubt = self._doubt or brief(failure)
            return None if self._lost < _LOST_MAX else Unknown(self._doubt)
        if self._doubt:
            return Unknown(f"{self._doubt}; sent again: {brief(failure)}")
        raise self._error(failure) from failure

    def _error(self, failure: Exception) -> FrazilError:
        return frazil_error(failure, "TransactWriteItems", self._client, self._table_name)

    def _canceled(self, failure: Exception) -> GroupAnswer | None:
        if failed := failed_conditions(failure):
            return self._failed(failed, [reason.get("Item", {}) for reason in reasons(failure)])
        if self._doubt:
            return Unknown(f"{self._doubt}; sent again: {brief(failure)}")
        codes = {str(reason.get("Code")) for reason in reasons(failure)} - {"None"}
        if codes & PASSING or not codes:
            return None
        return Rejected(_said(reasons(failure)) or brief(failure))

    def _failed(self, failed: list[int], items: list[Mapping[str, Any]]) -> GroupAnswer:
        """Answer for failed conditions by the items as they are now."""
        ours = [swap.metadata_location for swap in self._swaps]
        if len(failed) == len(ours) and all(
            text_of(item, LOCATION) == location for item, location in zip(items, ours, strict=True)
        ):
            return self._committed()
        for place in failed:
            if ours[place] in (text_of(items[place], name) for name in _NAMES):
                return Unknown("the swaps were sent twice, and others have committed since")
        if self._doubt:
            return Unknown(self._doubt)
        return GroupConflict(tuple(self._swaps[place].base.identifier for place in failed))

    def _committed(self) -> GroupCommitted:
        return GroupCommitted(tuple(swap.table for swap in self._swaps))


_NAMES = (LOCATION, PREVIOUS_LOCATION)


def _said(refused: Sequence[Mapping[str, Any]]) -> str:
    """Return the service's own words on the actions that it refuses."""
    words = (f"{one.get('Code')}: {one.get('Message', '')}" for one in refused)
    return "; ".join(one.rstrip(": ") for one in words if not one.startswith("None"))
