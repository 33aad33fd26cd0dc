"""A catalog in a DynamoDB table, in the layout of Iceberg Java's DynamoDbCatalog.

How a pointer is swapped: `dynamodb_swaps`. Items and expressions: `dynamodb_layout`. The client
never sends a call twice by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from committer.aws.client import AwsOptions, close_client, open_client
from committer.aws.client_errors import AWS_ERRORS
from committer.catalog.dynamodb import dynamodb_layout as layout
from committer.catalog.dynamodb.dynamodb_errors import (
    failed_conditions,
    frazil_error,
    standing_item,
)
from committer.catalog.dynamodb.dynamodb_layout import Item, Pointer, Stamp
from committer.catalog.dynamodb.dynamodb_swaps import DynamoDbSwaps
from committer.catalog.dynamodb.dynamodb_table import ensure_table
from committer.catalog.namespaces import (
    Namespace,
    absent_if_unsupported,
    check_property_names,
    join_namespace,
    name_taken,
    no_namespace,
    no_table,
    not_empty,
    with_parents,
)
from committer.catalog.pointer_catalog import PointerCatalog
from committer.catalog.staging import read_registered
from committer.catalog.swap_groups import require_group
from committer.errors import (
    CatalogUnavailableError,
    FrazilError,
    SettingsError,
)
from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.ports.pointer_swap import GroupAnswer, LoadedTable, Swap, SwapAnswer
from committer.ports.storage import Storage
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier

if TYPE_CHECKING:
    from types_aiobotocore_dynamodb import DynamoDBClient
    from types_aiobotocore_dynamodb.type_defs import QueryInputPaginateTypeDef

# Each round needs another commit between the read and the write.
_ROUNDS_MAX = 10
_PROBE = TableIdentifier(("frazil-probe",), "frazil-probe")


class DynamoDbCatalog(PointerCatalog):
    """The `Catalog` port on one DynamoDB table.

    A creating, renaming or dropping call whose answer was lost raises `CatalogUnavailableError`
    although it may have been applied; `create_table`, `register_table` and `create_namespace` may
    be repeated as they are.
    """

    capabilities = CatalogCapabilities(
        kind="DynamoDB", has_transactions=True, transaction_tables_max=100
    )

    def __init__(
        self, *, client: DynamoDBClient, table_name: str, storage: Storage, world: World
    ) -> None:
        super().__init__(storage)
        self._client = client
        self._table_name = table_name
        self._world = world
        self._swaps = DynamoDbSwaps(client, table_name, world)

    @classmethod
    async def open(
        cls,
        *,
        table_name: str,
        storage: Storage,
        options: AwsOptions,
        world: World,
        create: bool = True,
    ) -> DynamoDbCatalog:
        """Connect, check the table's layout, and make the table where it is missing.

        The layout has no place for a catalog's name: a DynamoDB table is one catalog. Errors:
        `SettingsError` for another layout, and what `open_client` refuses; `NotFoundError` for a
        missing table that is not to be made; `AccessError`; `CatalogUnavailableError`.
        """
        client = await open_client("dynamodb", options)
        try:
            await ensure_table(client, table_name, world, create=create)
        except BaseException:
            await close_client(client)
            raise
        return cls(client=client, table_name=table_name, storage=storage, world=world)

    async def current_location(self, identifier: TableIdentifier) -> str:
        with absent_if_unsupported():
            layout.table_key(identifier)
        pointer = layout.parse_pointer(identifier, await self._table_item(identifier))
        self._swaps.note(identifier, pointer)
        return pointer.location

    async def swap(self, swap: Swap) -> SwapAnswer:
        return await self._swaps.swap(swap)

    async def swap_together(self, swaps: Sequence[Swap]) -> GroupAnswer:
        require_group(swaps, self.capabilities)
        return await self._swaps.swap_together(swaps)

    async def create_table(self, table: LoadedTable) -> None:
        layout.table_key(table.identifier)
        await self._require_namespace(table.identifier.namespace)
        async with self._first_metadata(table):
            await self._put_table(table)

    async def register_table(
        self, identifier: TableIdentifier, metadata_location: str
    ) -> LoadedTable:
        layout.table_key(identifier)
        await self._require_namespace(identifier.namespace)
        table = await read_registered(self._storage, identifier, metadata_location)
        await self._put_table(table)
        return table

    async def _put_table(self, table: LoadedTable) -> None:
        identifier, location = table.identifier, table.metadata_location
        call = layout.put_table(self._table_name, identifier, location, self._stamp())
        standing = await self._written(self._client.put_item(**call), "PutItem")
        # The item is this client's own if an earlier call's answer was lost.
        if standing is not None and layout.text_of(standing, layout.LOCATION) != location:
            raise name_taken(identifier)

    async def drop_table(self, identifier: TableIdentifier) -> None:
        call = layout.delete_table(self._table_name, identifier)
        standing = await self._written(self._client.delete_item(**call), "DeleteItem")
        if standing:
            layout.parse_pointer(identifier, standing)
        if standing is not None:
            raise no_table(identifier)

    async def rename_table(self, identifier: TableIdentifier, to: TableIdentifier) -> None:
        layout.table_key(to)
        item = await self._table_item(identifier)
        layout.parse_pointer(identifier, item)
        await self._require_namespace(to.namespace)
        if to == identifier:
            raise name_taken(to)
        for _ in range(_ROUNDS_MAX):
            if await self._move(identifier, to, item):
                return
            # Nothing else is asked between this read and the move: swaps must not come first again.
            item = await self._table_item(identifier)
            layout.parse_pointer(identifier, item)
        raise CatalogUnavailableError(
            f"table {identifier}: it changes faster than it can be renamed"
        )

    async def _move(self, identifier: TableIdentifier, to: TableIdentifier, item: Item) -> bool:
        """Move a table; False if its item was changed since it was read."""
        call = layout.move_item(self._table_name, identifier, to, item, self._stamp())
        try:
            await self._client.transact_write_items(**call)
        except AWS_ERRORS as error:
            match failed_conditions(error):
                case [0, *_]:
                    return False
                case [1]:
                    raise name_taken(to) from error
            raise self._error(error, "TransactWriteItems") from error
        return True

    async def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        """List tables by the index, which lags behind: a table of just now may be missing."""
        names = await self._names(namespace)
        if not names:
            await self._require_namespace(namespace)
        return [TableIdentifier(namespace, name) for name in sorted(names)]

    async def _names(self, namespace: Namespace) -> list[str]:
        items = await self._query(layout.query_tables(self._table_name, namespace))
        return layout.parse_names(namespace, items)

    async def create_namespace(self, namespace: Namespace) -> None:
        call = layout.put_namespace(self._table_name, namespace, self._stamp())
        await self._written(self._client.put_item(**call), "PutItem")

    async def drop_namespace(self, namespace: Namespace) -> None:
        """Drop by the index, too: a table of just now is overlooked, but it stays."""
        await self._require_namespace(namespace)
        text = join_namespace(namespace)
        if await self._namespaces(f"{text}.") or await self._names(namespace):
            raise not_empty(namespace)
        call = layout.delete_namespace(self._table_name, namespace)
        if await self._written(self._client.delete_item(**call), "DeleteItem") is not None:
            raise no_namespace(namespace)

    async def list_namespaces(self) -> list[Namespace]:
        """List namespaces that were created, and their parents: others write tables without a
        namespace's item, and only reading the whole table could find these.
        """
        return await self._namespaces("")

    async def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        item = await self._item(layout.namespace_key(namespace))
        if not item:
            await self._require_namespace(namespace)
        return layout.properties_of(item)

    async def set_namespace_properties(
        self,
        namespace: Namespace,
        properties: Mapping[str, str],
        *,
        removed: Collection[str] = (),
    ) -> None:
        check_property_names((*properties, *removed))
        await self._require_namespace(namespace)
        # Other writers use namespaces that have no item.
        await self.create_namespace(namespace)
        call = layout.update_namespace(
            self._table_name, namespace, properties, removed, self._stamp()
        )
        if await self._written(self._client.update_item(**call), "UpdateItem") is not None:
            raise no_namespace(namespace)

    async def default_location(self, namespace: Namespace) -> str | None:
        item = await self._item(layout.namespace_key(namespace))
        return layout.text_of(item, layout.DEFAULT_LOCATION) or None

    async def _namespaces(self, prefix: str) -> list[Namespace]:
        items = await self._query(layout.query_namespaces(self._table_name, prefix))
        texts = [layout.text_of(item, layout.NAMESPACE) for item in items]
        return with_parents(tuple(text.split(".")) for text in texts)

    async def _require_namespace(self, namespace: Namespace) -> None:
        """Require an item of the namespace or of one below it, or a table that others put in it."""
        text = join_namespace(namespace)
        if await self._item(layout.namespace_key(namespace)):
            return
        if await self._namespaces(f"{text}.") or await self._names(namespace):
            return
        raise no_namespace(namespace)

    async def probe(self) -> None:
        """Swap the pointer of a table that is not there. DynamoDB would make an item without the
        condition, so nothing is left behind by a right answer.
        """
        base = Pointer(str(self._world.uuid()), str(self._world.uuid()))
        call = layout.update_pointer(self._table_name, _PROBE, base, "probe", self._stamp())
        if await self._written(self._client.update_item(**call), "UpdateItem") is not None:
            return
        await self._client.delete_item(TableName=self._table_name, Key=call["Key"])
        raise SettingsError(
            f"DynamoDB table `{self._table_name}`: this server writes an item although the"
            " condition on its `p.metadata_location` does not hold, so concurrent commits would be"
            " lost"
        )

    async def close(self) -> None:
        await close_client(self._client)

    async def _table_item(self, identifier: TableIdentifier) -> Item:
        item = await self._item(layout.table_key(identifier))
        if not item:
            raise no_table(identifier)
        return item

    async def _item(self, key: Mapping[str, Any]) -> Item:
        """Return an item; empty if there is none."""
        try:
            answer = await self._client.get_item(**layout.get_item(self._table_name, key))
        except AWS_ERRORS as error:
            raise self._error(error, "GetItem") from error
        return answer.get("Item", {})

    async def _query(self, query: QueryInputPaginateTypeDef) -> list[Item]:
        """Return the items of all pages."""
        pages = self._client.get_paginator("query").paginate(**query)
        try:
            return [item async for page in pages for item in page["Items"]]
        except AWS_ERRORS as error:
            raise self._error(error, "Query") from error

    async def _written(self, call: Awaitable[object], action: str) -> Item | None:
        """Send a write under a condition. Return the item for which that failed, empty if there is
        none; None if the condition held.
        """
        try:
            await call
        except AWS_ERRORS as error:
            standing = standing_item(error)
            if standing is None:
                raise self._error(error, action) from error
            return standing
        return None

    def _error(self, error: Exception, action: str) -> FrazilError:
        return frazil_error(error, action, self._client, self._table_name)

    def _stamp(self) -> Stamp:
        return Stamp.fresh(self._world)
