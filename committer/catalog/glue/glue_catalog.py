"""A catalog in AWS Glue: one conditional UpdateTable is the swap.

Its condition is `VersionId`, which changes with every update of a table. Glue compares no location,
so the adapter reads the table first and compares: a swap is GetTable and UpdateTable, as in Iceberg
Java. UpdateTable answers nothing, so the version of the next swap is not known without that read;
it also brings what others have written into the table, which an update would remove.

`ConcurrentModificationException` proves nothing: Glue repeats calls inside, and then refuses the
second for the first. The table is read again, and the pointer says what happened. The client never
sends a call twice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from committer.aws.client import AwsOptions, close_client, is_aws, open_client
from committer.aws.client_errors import AWS_ERRORS, brief, code_of
from committer.catalog.glue import glue_layout as layout
from committer.catalog.glue.glue_errors import (
    ALREADY_EXISTS,
    CONCURRENT,
    NOT_FOUND,
    explained,
    frazil_error,
    is_refused,
)
from committer.catalog.glue.glue_layout import GlueTable
from committer.catalog.glue.glue_namespaces import (
    change_database,
    create_database,
    drop_database,
    list_databases,
    list_iceberg_tables,
    properties_of,
    read_database,
)
from committer.catalog.glue.glue_probe import prove_condition
from committer.catalog.namespaces import (
    Namespace,
    absent_if_unsupported,
    found_or_none,
    name_taken,
    no_namespace,
    no_table,
)
from committer.catalog.pointer_catalog import PointerCatalog
from committer.catalog.refused_swap import judge_refused
from committer.catalog.staging import read_registered
from committer.errors import (
    FrazilError,
    NoSuchNamespaceError,
    UnsupportedError,
)
from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    LoadedTable,
    Swap,
    SwapAnswer,
    Unknown,
)
from committer.ports.storage import Storage
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier

if TYPE_CHECKING:
    from types_aiobotocore_glue import GlueClient


class GlueCatalog(PointerCatalog):
    """The `Catalog` port on the databases of one Glue Data Catalog.

    A creating or dropping call whose answer was lost raises `CatalogUnavailableError` although it
    may have been applied; `create_table`, `register_table` and `create_namespace` may be repeated
    as they are.
    """

    capabilities = CatalogCapabilities(kind="Glue", has_atomic_rename=False, namespace_levels_max=1)

    def __init__(
        self, *, client: GlueClient, storage: Storage, world: World, skip_archive: bool
    ) -> None:
        super().__init__(storage)
        self._client = client
        self._world = world
        self._skip_archive = skip_archive
        # The fields of GetTable's answer that UpdateTable takes. A view's definition has two forms.
        known = client.meta.service_model.shape_for("TableInput").members  # type: ignore[attr-defined]  # of a structure
        self._fields = frozenset(known) - {"ViewDefinition"}

    @classmethod
    async def open(
        cls,
        *,
        storage: Storage,
        options: AwsOptions,
        world: World,
        catalog_id: str = "",
        skip_archive: bool = True,
    ) -> GlueCatalog:
        """Connect; nothing is asked yet. `catalog_id`: that of another account than the caller's.

        `skip_archive`: keep no version of the table for each commit, of which Glue allows only so
        many. Errors: what `open_client` refuses.
        """
        client = await open_client("glue", options)
        if catalog_id:
            client.meta.events.register(
                "provide-client-params.glue", partial(_name_catalog, catalog_id)
            )
        return cls(client=client, storage=storage, world=world, skip_archive=skip_archive)

    async def current_location(self, identifier: TableIdentifier) -> str:
        with absent_if_unsupported():
            layout.table_name(identifier)
        return (await self._table(identifier)).location

    async def swap(self, swap: Swap) -> SwapAnswer:
        """Read the table, then update it if that is the base; the port says what answers mean.

        Never `Rejected`: Glue judges no change. A call that it refuses reveals a fault of the
        table or of the role, never of a batch's requests.
        """
        identifier = swap.base.identifier
        standing = await found_or_none(self._table(identifier))
        if standing is None or standing.location != swap.base.metadata_location:
            return _judge(swap, standing, "")
        call = layout.update_table(
            standing, swap, fields=self._fields, skip_archive=self._skip_archive
        )
        try:
            await self._client.update_table(**call)
        except Exception as error:  # noqa: BLE001  # whatever it is: was the call applied?
            return await self._not_updated(swap, error)
        return Committed(swap.table)

    async def _not_updated(self, swap: Swap, error: Exception) -> SwapAnswer:
        if code_of(error) == NOT_FOUND:
            return Conflict()
        if code_of(error) == CONCURRENT:
            return await self._reread(swap, brief(error))
        if is_refused(error):
            about = swap.base.identifier
            raise frazil_error(error, self._client, "UpdateTable", about) from error
        return Unknown(brief(error))

    async def _reread(self, swap: Swap, cause: str) -> SwapAnswer:
        """Answer by the pointer as it is after a refusal that may be that of a repeated call."""
        try:
            standing = await found_or_none(self._table(swap.base.identifier))
        except FrazilError as error:
            return Unknown(f"{cause}; {error}")
        return _judge(swap, standing, cause)

    async def create_table(self, table: LoadedTable) -> None:
        layout.table_name(table.identifier)
        await read_database(self._client, table.identifier.namespace)
        async with self._first_metadata(table):
            await self._create(table)

    async def register_table(
        self, identifier: TableIdentifier, metadata_location: str
    ) -> LoadedTable:
        layout.table_name(identifier)
        await read_database(self._client, identifier.namespace)
        table = await read_registered(self._storage, identifier, metadata_location)
        await self._create(table)
        return table

    async def _create(self, table: LoadedTable) -> None:
        identifier = table.identifier
        try:
            await self._client.create_table(**layout.create_table(table))
        except AWS_ERRORS as error:
            if code_of(error) == NOT_FOUND:
                raise no_namespace(identifier.namespace) from error
            if code_of(error) != ALREADY_EXISTS:
                raise frazil_error(error, self._client, "CreateTable", identifier) from error
            # The table is this client's own if an earlier call's answer was lost.
            if not await self._is_at(identifier, table.metadata_location):
                raise name_taken(identifier) from error

    async def _is_at(self, identifier: TableIdentifier, location: str) -> bool:
        answer = await self._answer(identifier)
        return bool(answer.get("Parameters", {}).get(layout.LOCATION) == location)

    async def drop_table(self, identifier: TableIdentifier) -> None:
        """Delete the table whatever file it names then: DeleteTable has no condition."""
        with absent_if_unsupported():
            database, name = layout.table_name(identifier)
        await self._table(identifier)
        with explained(self._client, "DeleteTable", identifier, absent=no_table(identifier)):
            await self._client.delete_table(DatabaseName=database, Name=name)

    async def rename_table(self, identifier: TableIdentifier, to: TableIdentifier) -> None:
        """Refuse: see the message."""
        raise UnsupportedError(
            f"table {identifier}: Glue has no rename, only a new table and a delete, and a commit"
            f" in between would be lost; stop all writers of the table, register its current"
            f" metadata file as {to}, then drop {identifier}"
        )

    async def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        names = await list_iceberg_tables(self._client, namespace)
        return [TableIdentifier(namespace, name) for name in names]

    async def create_namespace(self, namespace: Namespace) -> None:
        await create_database(self._client, namespace)

    async def drop_namespace(self, namespace: Namespace) -> None:
        await drop_database(self._client, namespace)

    async def list_namespaces(self) -> list[Namespace]:
        return await list_databases(self._client)

    async def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        return properties_of(await read_database(self._client, namespace))

    async def set_namespace_properties(
        self,
        namespace: Namespace,
        properties: Mapping[str, str],
        *,
        removed: Collection[str] = (),
    ) -> None:
        await change_database(self._client, namespace, properties, removed)

    async def default_location(self, namespace: Namespace) -> str | None:
        try:
            database = await read_database(self._client, namespace)
        except NoSuchNamespaceError:
            return None
        return database.get("LocationUri") or None

    async def probe(self) -> None:
        """Prove the condition on a server that is not AWS. There it is Glue's own promise, and
        proving it would need rights that a committer should not have: only the way is tried.
        """
        if is_aws(self._client):
            await list_databases(self._client)
        else:
            await prove_condition(self._client, f"frazil_probe_{self._world.uuid().hex}")

    async def close(self) -> None:
        await close_client(self._client)

    async def _table(self, identifier: TableIdentifier) -> GlueTable:
        return layout.parse_table(identifier, await self._answer(identifier))

    async def _answer(self, identifier: TableIdentifier) -> Any:
        """Return Glue's table as it answers it. Absent: `NoSuchTableError`."""
        database, name = layout.table_name(identifier)
        with explained(self._client, "GetTable", identifier, absent=no_table(identifier)):
            return (await self._client.get_table(DatabaseName=database, Name=name))["Table"]


def _judge(swap: Swap, standing: GlueTable | None, cause: str) -> SwapAnswer:
    if standing is None:
        return Conflict()
    return judge_refused(
        swap, cause, location=standing.location, earlier=(standing.previous_location,)
    )


def _name_catalog(catalog_id: str, params: dict[str, Any], **_: object) -> None:
    """Add the catalog's id to a call, all of which take it."""
    params.setdefault("CatalogId", catalog_id)
