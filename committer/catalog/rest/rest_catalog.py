"""The `Catalog` port on a REST catalog.

The server writes metadata files and chooses their locations, so nothing has to be durable before a
swap, and what it returns is the table. What each answer to a swap means: `rest_swap`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from committer.catalog.namespaces import (
    Namespace,
    found_or_none,
    join_namespace,
    name_taken,
    no_table,
)
from committer.catalog.rest.client.rest_answer import Answer
from committer.catalog.rest.client.rest_auth import Auth
from committer.catalog.rest.client.rest_client import RestClient
from committer.catalog.rest.client.rest_options import BasicOptions, OAuth2Options, RestOptions
from committer.catalog.rest.client.rest_paths import (
    REGISTER,
    RENAME,
    TRANSACTIONS,
    UNREGISTER,
    identifier_json,
    is_addressable,
)
from committer.catalog.rest.rest_creation import RestCreation
from committer.catalog.rest.rest_credentials import RestCredentials, asking_for_credentials
from committer.catalog.rest.rest_group import send_group
from committer.catalog.rest.rest_namespaces import RestNamespaces
from committer.catalog.rest.rest_probe import probe
from committer.catalog.rest.rest_reader import RestReader
from committer.catalog.rest.rest_swap import send_commit
from committer.catalog.rest.rest_table import location_in
from committer.catalog.staging import read_registered
from committer.catalog.swap_groups import require_group
from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    NoSuchNamespaceError,
    SettingsError,
    UnsupportedError,
)
from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.ports.pointer_swap import GroupAnswer, LoadedTable, Swap, SwapAnswer
from committer.ports.storage import NewObject, Storage
from committer.ports.table_credentials import CredentialKeeper
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier


class RestCatalog:
    """One warehouse of one REST catalog.

    A creating or dropping call whose answer was lost raises `CatalogUnavailableError` although it
    may have been applied; `create_table` and `create_namespace` may be repeated as they are.
    """

    def __init__(
        self,
        *,
        client: RestClient,
        storage: Storage,
        world: World,
        vended: CredentialKeeper | None = None,
        maintains_tables: bool = False,
        atomic_transactions: bool = False,
    ) -> None:
        self.client = client
        self._atomic_transactions = atomic_transactions
        self._maintains_tables = maintains_tables
        self._storage = storage
        self._namespaces = RestNamespaces(client)
        self._world = world
        self._reader = RestReader(client, RestCredentials(client, vended))
        self._creation = RestCreation(client, storage, self._reader)

    @property
    def capabilities(self) -> CatalogCapabilities:
        return CatalogCapabilities(
            kind="REST",
            metadata_writer="catalog",
            condition="requirements",
            has_transactions=self._atomic_transactions,
            has_atomic_rename=self.client.paths.offers(RENAME),
            registers_tables=self.client.paths.offers(REGISTER),
            maintains_tables=self._maintains_tables,
        )

    @classmethod
    async def open(
        cls,
        *,
        options: RestOptions,
        storage: Storage,
        world: World,
        auth: Auth | OAuth2Options | BasicOptions | None = None,
        properties: Mapping[str, str] | None = None,
        vended: CredentialKeeper | None = None,
        maintains_tables: bool = False,
        atomic_transactions: bool = False,
    ) -> RestCatalog:
        """Connect, and read the server's configuration. `storage`: where the first metadata file of
        a new table is written. `vended`: is given the credentials that the server vends for files
        of tables; None: the server is not asked for any. `maintains_tables`: the service behind it
        does, which the protocol has no word for. `atomic_transactions`: so is a commit of several
        tables, by its operator's word. Errors: as `RestClient.open`.
        """
        if vended is not None:
            options = asking_for_credentials(options)
        client = await RestClient.open(options, world=world, auth=auth, properties=properties)
        return cls(
            client=client,
            storage=storage,
            world=world,
            vended=vended,
            maintains_tables=maintains_tables,
            atomic_transactions=atomic_transactions,
        )

    # --- Reading ---

    async def load(self, identifier: TableIdentifier) -> LoadedTable:
        return await self._reader.load(identifier)

    async def current_location(self, identifier: TableIdentifier) -> str:
        return await self._reader.current_location(identifier)

    # --- Swapping ---

    def objects_before(self, swap: Swap) -> tuple[NewObject, ...]:
        return ()

    async def swap(self, swap: Swap) -> SwapAnswer:
        return await send_commit(
            self.client, swap, load=self._reader.load, keep=self._reader.keep_swapped
        )

    async def swap_together(self, swaps: Sequence[Swap]) -> GroupAnswer:
        require_group(swaps, self.capabilities)
        return await send_group(self.client, swaps, load=self._reader.load)

    # --- Creating, dropping, renaming ---

    async def create_table(self, table: LoadedTable) -> None:
        identifier = table.identifier
        join_namespace(identifier.namespace)
        # Some servers create, register and rename into a namespace that is not there.
        await self._namespaces.require(identifier.namespace)
        await self._creation.create(table)

    async def register_table(
        self, identifier: TableIdentifier, metadata_location: str
    ) -> LoadedTable:
        join_namespace(identifier.namespace)
        if not self.client.paths.offers(REGISTER):
            raise UnsupportedError(
                f"this REST catalog does not register metadata files ({identifier}): its"
                " configuration does not list the endpoint"
            )
        # A server that vends credentials for the tables that it knows reads the file by its own.
        with suppress(AccessError):
            await read_registered(self._storage, identifier, metadata_location)
        await self._namespaces.require(identifier.namespace)
        return await self._creation.register(identifier, metadata_location)

    async def drop_table(self, identifier: TableIdentifier) -> str | None:
        if not is_addressable(identifier):
            raise no_table(identifier)
        path, paths = self.client.paths.table(identifier), self.client.paths
        if paths.offers(UNREGISTER):
            answer = await self.client.change("POST", f"{path}/unregister")
        else:
            # Without the query a server may delete the files.
            query = {"purgeRequested": "false"}
            answer = await self.client.change("DELETE", path, query=query)
        # Vended credentials stay in use until they end: a purge deletes the files next.
        self._reader.forget_location(identifier)
        if answer.status == 404 and answer.error is not None:
            raise no_table(identifier)
        answer.require_success()
        return _last_location(answer) if paths.offers(UNREGISTER) else None

    async def rename_table(self, identifier: TableIdentifier, to: TableIdentifier) -> None:
        if not self.client.paths.offers(RENAME):
            raise UnsupportedError(f"this REST catalog does not rename tables ({identifier})")
        join_namespace(to.namespace)
        if await found_or_none(self.current_location(identifier)) is None:
            raise no_table(identifier)
        if identifier == to:
            raise name_taken(to)
        await self._namespaces.require(to.namespace)
        body = {"source": identifier_json(identifier), "destination": identifier_json(to)}
        answer = await self.client.change("POST", self.client.paths.rename(), body)
        self._reader.forget(identifier)
        if answer.status == 409:
            raise await self._creation.taken(to)
        answer.require_success()

    # --- Names ---

    async def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        return await self._namespaces.tables(namespace)

    async def create_namespace(self, namespace: Namespace) -> None:
        await self._namespaces.create(namespace)

    async def drop_namespace(self, namespace: Namespace) -> None:
        await self._namespaces.drop(namespace)

    async def list_namespaces(self) -> list[Namespace]:
        return await self._namespaces.all()

    async def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        return await self._namespaces.properties(namespace)

    async def set_namespace_properties(
        self, namespace: Namespace, properties: Mapping[str, str], *, removed: Collection[str] = ()
    ) -> None:
        await self._namespaces.change(namespace, properties, removed)

    async def default_location(self, namespace: Namespace) -> str | None:
        try:
            return (await self._namespaces.properties(namespace)).get("location") or None
        except NoSuchNamespaceError:
            return None

    # --- Probe and close ---

    async def probe(self) -> None:
        if self._atomic_transactions and not self.client.paths.offers(TRANSACTIONS):
            raise SettingsError(
                "`rest.atomic-transactions`: the catalog's configuration does not list the endpoint"
                f" `{TRANSACTIONS}`; remove the property"
            )
        await probe(self.client, self._world, transactions=self._atomic_transactions)

    async def close(self) -> None:
        await self.client.close()


def _last_location(answer: Answer) -> str | None:
    """Return the location that a removal tells. The table is gone, whatever the answer says."""
    try:
        return location_in(answer)
    except CatalogUnavailableError:
        return None
