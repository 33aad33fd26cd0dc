"""The `Catalog` port on a REST catalog.

The server writes metadata files and chooses their locations, so nothing has to be durable before a
swap, and what it returns is the table. What each answer to a swap means: `rest_swap`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from committer.catalog.namespaces import (
    Namespace,
    absent_if_unsupported,
    join_namespace,
)
from committer.catalog.rest.rest_answer import Answer
from committer.catalog.rest.rest_auth import Auth
from committer.catalog.rest.rest_client import RestClient
from committer.catalog.rest.rest_credentials import RestCredentials, asking_for_credentials
from committer.catalog.rest.rest_namespaces import RestNamespaces
from committer.catalog.rest.rest_options import BasicOptions, OAuth2Options, RestOptions
from committer.catalog.rest.rest_paths import REGISTER, RENAME, is_addressable
from committer.catalog.rest.rest_probe import probe
from committer.catalog.rest.rest_swap import send_commit
from committer.catalog.rest.rest_table import TableAnswer, location_in, read_table_answer
from committer.catalog.staging import read_registered, write_first_metadata
from committer.errors import (
    AccessError,
    InvalidMetadataError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NotFoundError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from committer.iceberg.updates.creation import updates_that_create
from committer.iceberg.updates.metadata_update_json import print_update
from committer.iceberg.updates.requirement import AssertCreate, print_requirement
from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.ports.pointer_swap import LoadedTable, Swap, SwapAnswer
from committer.ports.storage import NewObject, Storage
from committer.ports.table_credentials import CredentialKeeper
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier

# Tables whose ETag is kept: a question "did it move?" is answered without a body then.
_ETAGS_MAX = 10_000
# A name that a server refuses to look up is that of no table.
_NO_SUCH_NAME = frozenset((400, 414, 431))


@dataclass(frozen=True, slots=True)
class _Seen:
    """A table's location as it was last seen, and the ETag that says whether it still holds."""

    location: str
    etag: str


class RestCatalog:
    """One warehouse of one REST catalog.

    A creating or dropping call whose answer was lost raises `CatalogUnavailableError` although it
    may have been applied; `create_table` and `create_namespace` may be repeated as they are.
    """

    capabilities = CatalogCapabilities(
        kind="REST", metadata_writer="catalog", condition="requirements"
    )

    def __init__(
        self,
        *,
        client: RestClient,
        storage: Storage,
        world: World,
        vended: CredentialKeeper | None = None,
    ) -> None:
        self.client = client
        self._credentials = RestCredentials(client, vended)
        self._storage = storage
        self._namespaces = RestNamespaces(client)
        self._world = world
        self._seen: OrderedDict[TableIdentifier, _Seen] = OrderedDict()

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
    ) -> RestCatalog:
        """Connect, and read the server's configuration. `storage`: where the first metadata file of
        a new table is written. `vended`: is given the credentials that the server vends for files
        of tables; None: the server is not asked for any. Errors: as `RestClient.open`.
        """
        if vended is not None:
            options = asking_for_credentials(options)
        client = await RestClient.open(options, world=world, auth=auth, properties=properties)
        return cls(client=client, storage=storage, world=world, vended=vended)

    # --- Reading ---

    async def load(self, identifier: TableIdentifier) -> LoadedTable:
        return (await self.load_with_config(identifier)).table

    async def load_with_config(self, identifier: TableIdentifier) -> TableAnswer:
        """Load a table with the server's properties for reading its files. Errors: as `load`."""
        answer = await self._ask(identifier)
        found = await read_table_answer(answer, identifier)
        self._keep(found)
        self._credentials.note(found)
        return found

    async def current_location(self, identifier: TableIdentifier) -> str:
        seen = self._seen.get(identifier)
        if seen is None:
            return (await self.load(identifier)).metadata_location
        answer = await self._ask(identifier, {"If-None-Match": seen.etag})
        if answer.status == 304:
            return seen.location
        location = location_in(answer)
        if location is None or self._credentials.are_wanted:
            found = await read_table_answer(answer, identifier)
            location = found.table.metadata_location
            self._credentials.note(found)
        self._note(identifier, _Seen(location, answer.headers.get("etag", "")))
        return location

    async def _ask(
        self, identifier: TableIdentifier, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Ask for a table. Errors: `NoSuchTableError`; those of the answer."""
        with absent_if_unsupported():
            join_namespace(identifier.namespace)
        if not is_addressable(identifier):
            raise _absent(identifier)
        answer = await self.client.read(self.client.paths.table(identifier), headers=headers)
        if answer.is_success or answer.status == 304:
            return answer
        if answer.is_error(404, "NotFoundException"):
            # Of a file: the table is there, and a request for it is not to blame.
            raise InvalidMetadataError(f"table {identifier}: its metadata file is gone: {answer}")
        if answer.status in _NO_SUCH_NAME or (answer.status == 404 and answer.error is not None):
            self._seen.pop(identifier, None)
            raise _absent(identifier)
        raise answer.as_error()

    def _keep(self, found: TableAnswer) -> LoadedTable:
        self._note(found.table.identifier, _Seen(found.table.metadata_location, found.etag))
        return found.table

    def _note(self, identifier: TableIdentifier, seen: _Seen) -> None:
        self._seen.pop(identifier, None)
        if seen.etag:
            self._seen[identifier] = seen
            if len(self._seen) > _ETAGS_MAX:
                self._seen.popitem(last=False)

    def _forget(self, identifier: TableIdentifier) -> None:
        self._seen.pop(identifier, None)
        self._credentials.forget(identifier)

    # --- Swapping ---

    def objects_before(self, swap: Swap) -> tuple[NewObject, ...]:
        return ()

    async def swap(self, swap: Swap) -> SwapAnswer:
        return await send_commit(self.client, swap, load=self.load, keep=self._keep)

    # --- Creating, dropping, renaming ---

    async def create_table(self, table: LoadedTable) -> None:
        identifier = table.identifier
        join_namespace(identifier.namespace)
        # Some servers create, register and rename into a namespace that is not there.
        await self._namespaces.require(identifier.namespace)
        if self.client.paths.offers(REGISTER) and await self._create_by_file(table):
            return
        await self._create_by_commit(table)

    async def _create_by_file(self, table: LoadedTable) -> bool:
        """Write the first metadata file and register it, which keeps its uuid and its location.
        False where this process may not write there.
        """
        try:
            created = await write_first_metadata(self._storage, table)
        except AccessError:
            return False
        try:
            await self._register(table)
        except (NoSuchNamespaceError, TableAlreadyExistsError):
            # Surely not applied, and no other process knows a file that this call wrote.
            if created:
                await self._storage.delete((table.metadata_location,))
            raise
        return True

    async def _create_by_commit(self, table: LoadedTable) -> None:
        identifier = table.identifier
        body = {
            "identifier": {"namespace": list(identifier.namespace), "name": identifier.name},
            "requirements": [print_requirement(AssertCreate())],
            "updates": [print_update(one) for one in updates_that_create(table.metadata)],
        }
        answer = await self.client.change("POST", self.client.paths.table(identifier), body)
        if answer.status == 409:
            if (await self.load(identifier)).metadata.table_uuid == table.metadata.table_uuid:
                return  # an earlier call's answer was lost
            raise _taken(identifier)
        answer.require_success()

    async def register_table(
        self, identifier: TableIdentifier, metadata_location: str
    ) -> LoadedTable:
        join_namespace(identifier.namespace)
        table = await read_registered(self._storage, identifier, metadata_location)
        await self._namespaces.require(identifier.namespace)
        return await self._register(table)

    async def _register(self, table: LoadedTable) -> LoadedTable:
        """Register the table. Errors: `TableAlreadyExistsError`, unless by this very pointer."""
        identifier, location = table.identifier, table.metadata_location
        body = {"name": identifier.name, "metadata-location": location}
        path = self.client.paths.register(identifier.namespace)
        answer = await self.client.change("POST", path, body)
        if answer.is_success:
            registered = await read_table_answer(answer, identifier)
            self._credentials.note(registered)
            return self._keep(registered)
        if answer.status == 409:
            found = await self._existing(identifier)
            if found is not None and found.metadata_location == location:
                return found
            raise _taken(identifier)
        if answer.is_error(404, "NotFoundException"):
            raise NotFoundError(f"table {identifier}: there is no metadata file {location}")
        raise answer.as_error()

    async def _existing(self, identifier: TableIdentifier) -> LoadedTable | None:
        try:
            return await self.load(identifier)
        except NoSuchTableError:
            return None

    async def drop_table(self, identifier: TableIdentifier) -> None:
        if not is_addressable(identifier):
            raise _absent(identifier)
        # Without it a server may delete the files.
        query = {"purgeRequested": "false"}
        path = self.client.paths.table(identifier)
        answer = await self.client.change("DELETE", path, query=query)
        self._forget(identifier)
        if answer.status == 404 and answer.error is not None:
            raise _absent(identifier)
        answer.require_success()

    async def rename_table(self, identifier: TableIdentifier, to: TableIdentifier) -> None:
        if not self.client.paths.offers(RENAME):
            raise UnsupportedError(f"this REST catalog does not rename tables ({identifier})")
        join_namespace(to.namespace)
        if not await self._has_table(identifier):
            raise _absent(identifier)
        if identifier == to:
            raise _taken(to)
        await self._namespaces.require(to.namespace)
        body = {"source": _named(identifier), "destination": _named(to)}
        answer = await self.client.change("POST", self.client.paths.rename(), body)
        self._forget(identifier)
        if answer.status == 409:
            raise _taken(to)
        answer.require_success()

    async def _has_table(self, identifier: TableIdentifier) -> bool:
        try:
            await self.current_location(identifier)
        except NoSuchTableError:
            return False
        return True

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
        await probe(self.client, self._world)

    async def close(self) -> None:
        await self.client.close()


def _named(identifier: TableIdentifier) -> dict[str, object]:
    return {"namespace": list(identifier.namespace), "name": identifier.name}


def _absent(identifier: TableIdentifier) -> NoSuchTableError:
    return NoSuchTableError(f"no table {identifier}")


def _taken(identifier: TableIdentifier) -> TableAlreadyExistsError:
    return TableAlreadyExistsError(f"the name {identifier} is taken")
