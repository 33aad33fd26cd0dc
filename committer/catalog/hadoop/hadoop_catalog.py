"""The `Catalog` port on the tables below one warehouse folder.

The swap of version N is the creation of `v<N+1>.metadata.json`, which relies on the storage's
create-only write: `link()` on local disks, `If-None-Match: *` on S3. Iceberg Java renames without
such a condition on object stores, and would replace a version of ours: so there Frazil writes only
where the operator says that nothing else does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from committer.catalog.hadoop.folders import Folders
from committer.catalog.hadoop.hadoop_layout import (
    Version,
    check_layout,
    metadata_folder_of,
    namespace_folder,
    table_folder,
    version_name,
)
from committer.catalog.hadoop.versions import Versions
from committer.catalog.namespaces import Namespace, absent_if_unsupported, join_namespace
from committer.catalog.pointer_catalog import PointerCatalog
from committer.catalog.staging import printed_metadata, read_registered
from committer.errors import (
    AlreadyExistsError,
    NoSuchTableError,
    SettingsError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from committer.iceberg.updates.metadata_update import AddSnapshot
from committer.iceberg.values.locations import comparable_location, version_in_name
from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.ports.pointer_swap import Committed, LoadedTable, Swap, SwapAnswer
from committer.ports.storage import NewObject, Storage
from committer.request.table_identifier import TableIdentifier

# An engine, or a creation that failed, may have left these in the folder of a new table.
_OWN_FOLDERS = {"metadata/", "data/"}


class HadoopCatalog(PointerCatalog):
    """The `Catalog` port. The storage belongs to the caller. No I/O before the first call.

    `no_other_writers`: the operator's word that only Frazil writes to the tables below `warehouse`.
    """

    capabilities = CatalogCapabilities(
        kind="file system",
        metadata_writer="catalog",
        has_atomic_rename=False,
        drops_pointer_only=False,
        has_namespace_properties=False,
    )

    def __init__(self, *, warehouse: str, storage: Storage, no_other_writers: bool = False) -> None:
        super().__init__(storage)
        self._warehouse = warehouse.rstrip("/")
        is_local = comparable_location(warehouse).store == "file://"
        self._is_writable = is_local or no_other_writers
        self._versions = Versions(storage, is_local=is_local)
        self._folders = Folders(self._warehouse, storage, self._versions)

    # --- Tables ---

    async def current_location(self, identifier: TableIdentifier) -> str:
        with absent_if_unsupported():
            folder = metadata_folder_of(table_folder(self._warehouse, identifier))
        current = await self._versions.current(folder)
        if current is None:
            raise NoSuchTableError(f"no table {identifier}: `{folder}` has no version")
        return f"{folder}/{current.name}"

    def objects_before(self, swap: Swap) -> tuple[NewObject, ...]:
        """Return none: the metadata file is the swap."""
        return ()

    async def swap(self, swap: Swap) -> SwapAnswer:
        self._require_writable()
        identifier = swap.base.identifier
        folder = table_folder(self._warehouse, identifier)
        check_layout(identifier, folder, swap.metadata, before=swap.base.metadata.properties)
        name = swap.base.metadata_location.rpartition("/")[2]
        number = version_in_name(name)
        if number is None:
            raise UnsupportedError(f"table {identifier}: `{name}` is no version of `{folder}`")
        location = f"{metadata_folder_of(folder)}/{version_name(number + 1)}"
        answer = await self._versions.create_next(
            await printed_metadata(swap.metadata, location),
            Version(number, name),
            table_uuid=swap.base.metadata.require_uuid(),
            # The manifest list of a snapshot is that of one attempt.
            is_only_ours=any(isinstance(update, AddSnapshot) for update in swap.updates),
        )
        return answer or Committed(LoadedTable(identifier, swap.metadata, location))

    async def create_table(self, table: LoadedTable) -> None:
        identifier = table.identifier
        folder = await self._require_place(identifier, table)
        metadata = metadata_folder_of(folder)
        if await self._versions.current(metadata) is None:
            if await self._versions.has_metadata(metadata):
                raise _taken(identifier, f"`{folder}` is the folder of another catalog's table")
            if others := set(await self._versions.names(folder)) - _OWN_FOLDERS:
                raise _taken(identifier, f"`{folder}` holds `{min(others)}`")
        await self._create_first(table, folder)

    async def register_table(
        self, identifier: TableIdentifier, metadata_location: str
    ) -> LoadedTable:
        table = await read_registered(self._storage, identifier, metadata_location)
        folder = await self._require_place(identifier, table)
        current = await self._versions.current(metadata_folder_of(folder))
        location = f"{metadata_folder_of(folder)}/{current.name}" if current else ""
        if current and comparable_location(location) == comparable_location(metadata_location):
            return LoadedTable(identifier, table.metadata, location)
        return await self._create_first(table, folder)

    async def _require_place(self, identifier: TableIdentifier, table: LoadedTable) -> str:
        """Return the folder of a new table. Errors: those of `create_table`."""
        self._require_writable()
        folder = table_folder(self._warehouse, identifier)
        await self._folders.require(identifier.namespace)
        check_layout(identifier, folder, table.metadata)
        return folder

    async def _create_first(self, table: LoadedTable, folder: str) -> LoadedTable:
        """Create version 1, unless there is another one."""
        metadata = metadata_folder_of(folder)
        location = f"{metadata}/{version_name(1)}"
        current = await self._versions.current(metadata)
        if current is not None and current.name != version_name(1):
            raise _taken(table.identifier, f"`{metadata}` has `{current.name}`")
        try:
            await self._versions.create_first(await printed_metadata(table.metadata, location))
        except AlreadyExistsError as error:
            raise _taken(table.identifier, f"`{location}` exists") from error
        return LoadedTable(table.identifier, table.metadata, location)

    async def drop_table(self, identifier: TableIdentifier) -> None:
        folder = (await self.current_location(identifier)).rpartition("/metadata/")[0]
        raise UnsupportedError(
            f"table {identifier}: a file system table is its folder, so it cannot be dropped while"
            f" its files stay; stop its writers, then `frazil table purge {identifier}` deletes it"
            f" with its files, which are all that is below `{folder}`"
        )

    async def rename_table(self, identifier: TableIdentifier, to: TableIdentifier) -> None:
        await self.current_location(identifier)
        raise UnsupportedError(
            f"table {identifier}: a file system table is called as its folder, which its files"
            f" name, so it cannot be renamed to {to}; create that table and copy the rows"
        )

    async def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        names = await self._folders.tables(namespace)
        return [TableIdentifier(namespace, name) for name in names]

    # --- Namespaces ---

    async def create_namespace(self, namespace: Namespace) -> None:
        self._require_writable()
        await self._folders.create(namespace)

    async def drop_namespace(self, namespace: Namespace) -> None:
        self._require_writable()
        await self._folders.drop(namespace)

    async def list_namespaces(self) -> list[Namespace]:
        return await self._folders.namespaces()

    async def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        await self._folders.require(namespace)
        return {}

    async def set_namespace_properties(
        self,
        namespace: Namespace,
        properties: Mapping[str, str],
        *,
        removed: Collection[str] = (),
    ) -> None:
        await self._folders.require(namespace)
        if properties:
            raise UnsupportedError(
                f"namespace {join_namespace(namespace)}: a namespace of a file system catalog is a"
                " folder and keeps no properties"
            )

    async def default_location(self, namespace: Namespace) -> str | None:
        namespace_folder(self._warehouse, namespace)
        return None

    # --- Probe and close ---

    def _require_writable(self) -> None:
        if not self._is_writable:
            raise SettingsError(
                f"`warehouse` {self._warehouse}: on an object store Iceberg Java (Spark, Flink)"
                " overwrites versions that others have created, and their commits are lost; if"
                " Frazil alone writes to the tables below it, set"
                " `hadoop.no-other-writers = true`, else use another catalog"
            )

    async def probe(self) -> None:
        self._require_writable()
        await self._storage.probe(self._warehouse)

    async def close(self) -> None:
        """Do nothing: the storage belongs to the caller."""


def _taken(identifier: TableIdentifier, why: str) -> TableAlreadyExistsError:
    return TableAlreadyExistsError(f"the name {identifier} is taken: {why}")
