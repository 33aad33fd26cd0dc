"""A catalog in a table bucket of S3 Tables: one call with a version token is the swap.

The token changes with every change of a table's pointer, and each answer brings the next one, so a
steady commit is one call. The service compares no location: the adapter keeps each token with the
location that it was read for, and reads both again where it does not know them.

The service chooses where a table is. It expires snapshots, compacts, and deletes files itself, and
all of them with the table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from committer.aws.client import AwsOptions, close_client, is_aws, open_client
from committer.aws.client_errors import AWS_ERRORS, brief, code_of, surely_not_applied
from committer.catalog.namespaces import (
    Namespace,
    absent_if_unsupported,
    check_property_names,
    found_or_none,
    join_namespace,
    name_taken,
    no_namespace,
    no_table,
)
from committer.catalog.pointer_catalog import PointerCatalog
from committer.catalog.refused_swap import judge_by_load
from committer.catalog.s3_tables import s3_tables_layout as layout
from committer.catalog.s3_tables.s3_tables_errors import (
    CONFLICT,
    NOT_FOUND,
    explained,
    frazil_error,
)
from committer.catalog.s3_tables.s3_tables_layout import TablePointer
from committer.catalog.s3_tables.s3_tables_namespaces import (
    add_namespace,
    delete_namespace,
    read_namespaces,
    read_tables,
    require_namespace,
)
from committer.catalog.s3_tables.s3_tables_probe import prove_token
from committer.catalog.staging import write_first_metadata
from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    FrazilError,
    InvalidMetadataError,
    NoSuchTableError,
    StorageUnavailableError,
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
from committer.ports.storage import NewObject, Storage
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier

if TYPE_CHECKING:
    from types_aiobotocore_s3tables import S3TablesClient

# Each round of a rename needs a commit in the moment between two calls.
_ROUNDS_MAX = 10


class S3TablesCatalog(PointerCatalog):
    """The `Catalog` port on one table bucket.

    A creating or renaming call whose answer was lost raises `CatalogUnavailableError` although it
    may have been applied; `create_table` and `create_namespace` may be repeated as they are.
    """

    capabilities = CatalogCapabilities(
        kind="S3 Tables",
        drops_pointer_only=False,
        registers_tables=False,
        chooses_locations=True,
        maintains_tables=True,
        has_namespace_properties=False,
        namespace_levels_max=1,
    )

    def __init__(
        self, *, client: S3TablesClient, bucket: str, storage: Storage, world: World
    ) -> None:
        super().__init__(storage)
        self._client = client
        self._bucket = bucket
        self._world = world
        self._pointers: dict[TableIdentifier, TablePointer] = {}

    @classmethod
    async def open(
        cls, *, bucket: str, storage: Storage, options: AwsOptions, world: World
    ) -> S3TablesCatalog:
        """Connect; nothing is asked yet. `bucket`: the ARN of the table bucket.

        Errors: `SettingsError` for what is none; what `open_client` refuses.
        """
        layout.region_of(bucket)
        client = await open_client("s3tables", options)
        return cls(client=client, bucket=bucket, storage=storage, world=world)

    # --- Reading ---

    async def current_location(self, identifier: TableIdentifier) -> str:
        with absent_if_unsupported():
            layout.table_name(identifier)
        return (await self._pointer(identifier)).location

    async def _pointer(self, identifier: TableIdentifier) -> TablePointer:
        """Read a table's pointer, and keep it. Absent: `NoSuchTableError`."""
        pointer = await self._reservation(identifier)
        if not pointer.location:
            raise NoSuchTableError(
                f"no table {identifier} (the name is reserved, and the table never created)"
            )
        self._pointers[identifier] = pointer
        return pointer

    async def _reservation(self, identifier: TableIdentifier) -> TablePointer:
        """Read the pointer of a name that is in use, perhaps without a metadata file yet."""
        namespace, name = layout.table_name(identifier)
        action = "GetTableMetadataLocation"
        with explained(self._client, action, identifier, absent=no_table(identifier)):
            answer = await self._client.get_table_metadata_location(
                tableBucketARN=self._bucket, namespace=namespace, name=name
            )
        token, warehouse = answer.get("versionToken", ""), answer.get("warehouseLocation", "")
        if not token or not warehouse:
            raise InvalidMetadataError(f"table {identifier}: S3 Tables answers no version token")
        return TablePointer(answer.get("metadataLocation") or "", warehouse, token)

    # --- Swapping ---

    def objects_before(self, swap: Swap) -> tuple[NewObject, ...]:
        return super().objects_before(layout.placed_swap(swap))

    async def swap(self, swap: Swap) -> SwapAnswer:
        """Swap in one call where the token of the base is known; the port says what answers mean.

        Never `Rejected`: the service judges no change.
        """
        swap, identifier = layout.placed_swap(swap), swap.base.identifier
        layout.table_name(identifier)
        base = self._pointers.pop(identifier, None)
        if base is None or base.location != swap.base.metadata_location:
            base = await found_or_none(self._pointer(identifier))
        if base is None or base.location != swap.base.metadata_location:
            return Conflict()
        self._pointers.pop(identifier, None)
        try:
            token = await self._update(identifier, base.token, swap.metadata_location)
        except Exception as error:  # noqa: BLE001  # whatever it is: was the call applied?
            return await self._not_updated(swap, error)
        if token:
            self._pointers[identifier] = TablePointer(swap.metadata_location, base.warehouse, token)
        return Committed(swap.table)

    async def _update(self, identifier: TableIdentifier, token: str, location: str) -> str:
        """Move the pointer that has this token; return its next one."""
        namespace, name = layout.table_name(identifier)
        answer = await self._client.update_table_metadata_location(
            tableBucketARN=self._bucket,
            namespace=namespace,
            name=name,
            versionToken=token,
            metadataLocation=location,
        )
        return answer.get("versionToken", "")

    async def _not_updated(self, swap: Swap, error: Exception) -> SwapAnswer:
        if code_of(error) == NOT_FOUND:
            return Conflict()
        if code_of(error) == CONFLICT:
            return await judge_by_load(swap, brief(error), self.load)
        if surely_not_applied(error):
            raise self._error(error, "UpdateTableMetadataLocation", swap.base.identifier) from error
        return Unknown(brief(error))

    # --- Creating, dropping, renaming ---

    async def create_table(self, table: LoadedTable) -> None:
        """Reserve the name, then write the metadata where the service wants it, then point to it.

        A repetition continues where an earlier call ended, also one for another table of this name.
        """
        identifier = table.identifier
        namespace, name = layout.table_name(identifier)
        try:
            await self._client.create_table(
                tableBucketARN=self._bucket, namespace=namespace, name=name, format="ICEBERG"
            )
        except AWS_ERRORS as error:
            if code_of(error) == NOT_FOUND:
                raise no_namespace(identifier.namespace) from error
            if code_of(error) != CONFLICT:
                raise self._error(error, "CreateTable", identifier) from error
        await self._point_first(table, await self._reservation(identifier))

    async def _point_first(self, table: LoadedTable, reserved: TablePointer) -> None:
        """Write the first metadata file and point to it. Where another call was first, the file
        stays: no object can be deleted there, and the service removes what no table names.
        """
        identifier, first = table.identifier, layout.placed_table(table, reserved.warehouse)
        if not reserved.location:
            await self._write_first(first)
            try:
                await self._update(identifier, reserved.token, first.metadata_location)
                return
            except AWS_ERRORS as error:
                if code_of(error) != CONFLICT:
                    raise self._error(error, "UpdateTableMetadataLocation", identifier) from error
            reserved = await self._reservation(identifier)
        if reserved.location != first.metadata_location:
            raise name_taken(identifier)

    async def _write_first(self, table: LoadedTable) -> None:
        try:
            await write_first_metadata(self._storage, table)
        except (AccessError, StorageUnavailableError) as error:
            raise type(error)(
                f"{error}; the name {table.identifier} is reserved: create the table again, which"
                " finishes it"
            ) from error

    async def register_table(
        self, identifier: TableIdentifier, metadata_location: str
    ) -> LoadedTable:
        """Refuse: a table's files are in the place that the service has chosen for it."""
        raise UnsupportedError(
            f"table {identifier}: S3 Tables takes no metadata file from elsewhere"
            f" (`{metadata_location}`); create the table and write its rows again"
        )

    async def drop_table(self, identifier: TableIdentifier) -> None:
        """Refuse: the service deletes the files with the table."""
        await self.current_location(identifier)
        raise UnsupportedError(
            f"table {identifier}: S3 Tables deletes all files of a table with it, for ever; if that"
            " is meant, stop its writers and call `aws s3tables delete-table`"
        )

    async def rename_table(self, identifier: TableIdentifier, to: TableIdentifier) -> None:
        layout.table_name(to)
        with absent_if_unsupported():
            layout.table_name(identifier)
        for _ in range(_ROUNDS_MAX):
            pointer = await self._pointer(identifier)
            await require_namespace(self._client, self._bucket, to.namespace)
            if to == identifier or await found_or_none(self._reservation(to)) is not None:
                raise name_taken(to)
            if await self._move(identifier, to, pointer.token):
                return
        raise CatalogUnavailableError(
            f"table {identifier}: it changes faster than it can be renamed"
        )

    async def _move(self, identifier: TableIdentifier, to: TableIdentifier, token: str) -> bool:
        """Rename the table that has this token; False if it has another, or the name was taken."""
        namespace, name = layout.table_name(identifier)
        self._pointers.pop(identifier, None)
        try:
            await self._client.rename_table(
                tableBucketARN=self._bucket,
                namespace=namespace,
                name=name,
                newNamespaceName=to.namespace[0],
                newName=to.name,
                versionToken=token,
            )
        except AWS_ERRORS as error:
            if code_of(error) == CONFLICT:
                return False
            if code_of(error) == NOT_FOUND:
                raise no_table(identifier) from error
            raise self._error(error, "RenameTable", identifier) from error
        return True

    # --- Names ---

    async def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        names = await read_tables(self._client, self._bucket, namespace)
        return [TableIdentifier(namespace, name) for name in names]

    async def create_namespace(self, namespace: Namespace) -> None:
        await add_namespace(self._client, self._bucket, namespace)

    async def drop_namespace(self, namespace: Namespace) -> None:
        await delete_namespace(self._client, self._bucket, namespace)

    async def list_namespaces(self) -> list[Namespace]:
        return await read_namespaces(self._client, self._bucket)

    async def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        await require_namespace(self._client, self._bucket, namespace)
        return {}

    async def set_namespace_properties(
        self,
        namespace: Namespace,
        properties: Mapping[str, str],
        *,
        removed: Collection[str] = (),
    ) -> None:
        check_property_names((*properties, *removed))
        await require_namespace(self._client, self._bucket, namespace)
        if properties:
            raise UnsupportedError(
                f"namespace {join_namespace(namespace)}: namespaces of S3 Tables keep no properties"
            )

    async def default_location(self, namespace: Namespace) -> str | None:
        join_namespace(namespace)
        return None

    # --- Probe and close ---

    async def probe(self) -> None:
        """Prove the token on a server that is not AWS. There it is the service's own promise, and
        proving it would need rights that a committer should not have: only the way is tried.
        """
        if is_aws(self._client):
            await self.list_namespaces()
        else:
            name = f"frazil_probe_{self._world.uuid().hex}"
            await prove_token(self._client, self._bucket, name)

    async def close(self) -> None:
        await close_client(self._client)

    def _error(self, error: Exception, action: str, about: object) -> FrazilError:
        return frazil_error(error, self._client, action, about)
