"""Swaps pointers in a DynamoDB table, and knows the version of each that it has read or written.

One UpdateItem is the swap: its condition is that the item still names the base's metadata file.
Java reads the item first, compares the location itself and asserts `v`; a condition on the location
does both in one step, since every writer of the layout changes the two together. `v` is asserted as
well where this client knows it, which after any `load` it does: an operator may set a table back to
an earlier metadata file, and then a late attempt must not find the base that it was made for.
`metadata_location` alone would accept it; `v` never repeats.

A failed condition returns the current item, so that this client recognizes its own earlier success
without a read. A swap is sent once. Several swaps together are one TransactWriteItems of the same
updates, which is sent again by its token: `dynamodb_group`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from committer.aws.client_errors import AWS_ERRORS, brief, surely_not_applied
from committer.catalog.dynamodb import dynamodb_layout as layout
from committer.catalog.dynamodb.dynamodb_errors import (
    frazil_error,
    is_transaction_conflict,
    standing_item,
)
from committer.catalog.dynamodb.dynamodb_group import GroupSender
from committer.catalog.dynamodb.dynamodb_layout import Item, Pointer, Stamp
from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    GroupAnswer,
    GroupCommitted,
    LoadedTable,
    Swap,
    SwapAnswer,
    Unknown,
)
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier

if TYPE_CHECKING:
    from types_aiobotocore_dynamodb import DynamoDBClient
    from types_aiobotocore_dynamodb.type_defs import UpdateTypeDef


class DynamoDbSwaps:
    """The swaps of one client on one DynamoDB table; the port says what the answers mean.

    Never `Rejected` for a lone swap: DynamoDB judges no change. A call that it refuses reveals a
    fault of the table or of this client, never of a batch's requests.
    """

    def __init__(self, client: DynamoDBClient, table_name: str, world: World) -> None:
        self._client = client
        self._table_name = table_name
        self._world = world
        self._pointers: dict[TableIdentifier, Pointer] = {}

    def note(self, identifier: TableIdentifier, pointer: Pointer) -> None:
        """Remember the pointer of a table as it was read."""
        self._pointers[identifier] = pointer

    async def swap(self, swap: Swap) -> SwapAnswer:
        """Swap in one call. Errors: as `Catalog.swap`."""
        stamp = Stamp.fresh(self._world)
        # A name that no key can carry is refused here: no call was made.
        call = self._update(swap, stamp)
        try:
            await self._client.update_item(**call)
        except Exception as error:  # noqa: BLE001  # whatever it is: was the call applied?
            return await self._not_updated(swap, error)
        return self._committed(swap, stamp.version)

    async def swap_together(self, swaps: Sequence[Swap]) -> GroupAnswer:
        """Swap in one transaction. Errors: as `Catalog.swap_together`."""
        stamp = Stamp.fresh(self._world)
        call = layout.update_pointers([self._update(swap, stamp) for swap in swaps], stamp)
        sender = GroupSender(self._client, self._table_name, swaps, self._world)
        answer = await sender.send(call)
        if isinstance(answer, GroupCommitted):
            for swap in swaps:
                self._committed(swap, stamp.version)
        return answer

    def _update(self, swap: Swap, stamp: Stamp) -> UpdateTypeDef:
        base = self._pointer_of(swap.base)
        return layout.update_pointer(
            self._table_name, swap.base.identifier, base, swap.metadata_location, stamp
        )

    def _pointer_of(self, base: LoadedTable) -> Pointer:
        """Return the base as it was read; without its `v` if this client has not read it."""
        known = self._pointers.get(base.identifier)
        if known is not None and known.location == base.metadata_location:
            return known
        return Pointer(base.metadata_location, "")

    async def _not_updated(self, swap: Swap, error: Exception) -> SwapAnswer:
        if is_transaction_conflict(error):
            return await self._overtaken(swap, error)
        item = standing_item(error)
        if item is None:
            if surely_not_applied(error):
                raise frazil_error(error, "UpdateItem", self._client, self._table_name) from error
            return Unknown(brief(error))
        return self._judge(swap, item)

    async def _overtaken(self, swap: Swap, error: Exception) -> SwapAnswer:
        """Answer for a swap that a transaction on its item has refused, without telling the item.
        That transaction may be canceled in the end, so the pointer may still be the base's.
        """
        call = layout.get_item(self._table_name, layout.table_key(swap.base.identifier))
        try:
            item = (await self._client.get_item(**call)).get("Item", {})
        except AWS_ERRORS as failure:
            return Unknown(f"{brief(error)}; reading the item: {brief(failure)}")
        return self._judge(swap, item)

    def _judge(self, swap: Swap, item: Item) -> SwapAnswer:
        """Answer for a refused swap by the item as it is now."""
        if layout.text_of(item, layout.LOCATION) == swap.metadata_location:
            # A layer below sent the call twice, and the first one has won.
            return self._committed(swap, layout.text_of(item, layout.VERSION))
        if layout.text_of(item, layout.PREVIOUS_LOCATION) == swap.metadata_location:
            return Unknown("the swap was sent twice below us, and others have committed since")
        return Conflict()

    def _committed(self, swap: Swap, version: str) -> Committed:
        self.note(swap.base.identifier, Pointer(swap.metadata_location, version))
        return Committed(swap.table)
