"""A catalog in this process: pointers in a dict, metadata files on any Storage.

Every obligation of the port holds as it does for a server; only a crash forgets everything. Nothing
here fails by itself: tests wrap it to lose answers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from committer.catalog.namespaces import (
    Namespace,
    check_property_names,
    has_below,
    join_namespace,
    not_empty,
    with_parents,
)
from committer.catalog.pointer_catalog import PointerCatalog
from committer.catalog.staging import read_registered
from committer.catalog.swap_groups import require_group
from committer.errors import NoSuchNamespaceError, NoSuchTableError, TableAlreadyExistsError
from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    GroupAnswer,
    GroupCommitted,
    GroupConflict,
    LoadedTable,
    Swap,
    SwapAnswer,
)
from committer.ports.storage import Storage
from committer.request.table_identifier import TableIdentifier


class MemoryCatalog(PointerCatalog):
    """The `Catalog` port. Instances share nothing: parties that share tables share the instance."""

    capabilities = CatalogCapabilities(kind="memory", has_transactions=True)

    def __init__(self, *, storage: Storage) -> None:
        super().__init__(storage)
        self._locations: dict[TableIdentifier, str] = {}
        self._namespaces: dict[Namespace, dict[str, str]] = {}

    async def current_location(self, identifier: TableIdentifier) -> str:
        try:
            return self._locations[identifier]
        except KeyError:
            raise NoSuchTableError(f"no table {identifier}") from None

    async def swap(self, swap: Swap) -> SwapAnswer:
        answer = self._swap((swap,))
        return Conflict() if isinstance(answer, GroupConflict) else Committed(*answer.tables)

    async def swap_together(self, swaps: Sequence[Swap]) -> GroupAnswer:
        require_group(swaps, self.capabilities)
        return self._swap(swaps)

    def _swap(self, swaps: Sequence[Swap]) -> GroupCommitted | GroupConflict:
        # No await between the comparisons and the assignments: that is what makes them one step.
        bases = {swap.base.identifier: swap.base.metadata_location for swap in swaps}
        moved = tuple(name for name, base in bases.items() if self._locations.get(name) != base)
        if moved:
            return GroupConflict(moved)
        for swap in swaps:
            self._locations[swap.base.identifier] = swap.metadata_location
        return GroupCommitted(tuple(swap.table for swap in swaps))

    async def create_table(self, table: LoadedTable) -> None:
        join_namespace(table.identifier.namespace)
        async with self._first_metadata(table):
            self._insert(table)

    def _insert(self, table: LoadedTable) -> None:
        self._require_namespace(table.identifier.namespace)
        held = self._locations.setdefault(table.identifier, table.metadata_location)
        if held != table.metadata_location:
            raise TableAlreadyExistsError(f"table {table.identifier} exists already")

    async def drop_table(self, identifier: TableIdentifier) -> str | None:
        await self.current_location(identifier)
        return self._locations.pop(identifier)

    async def rename_table(self, identifier: TableIdentifier, to: TableIdentifier) -> None:
        location = await self.current_location(identifier)
        self._require_namespace(to.namespace)
        if to in self._locations:
            raise TableAlreadyExistsError(f"the name {to} is taken")
        del self._locations[identifier]
        self._locations[to] = location

    async def register_table(
        self, identifier: TableIdentifier, metadata_location: str
    ) -> LoadedTable:
        table = await read_registered(self._storage, identifier, metadata_location)
        self._insert(table)
        return table

    async def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        self._require_namespace(namespace)
        return sorted(table for table in self._locations if table.namespace == namespace)

    async def create_namespace(self, namespace: Namespace) -> None:
        join_namespace(namespace)
        self._namespaces.setdefault(namespace, {})

    async def drop_namespace(self, namespace: Namespace) -> None:
        self._require_namespace(namespace)
        tables = [table for table in self._locations if table.namespace == namespace]
        if tables or has_below(namespace, self._all_namespaces()):
            raise not_empty(namespace)
        del self._namespaces[namespace]

    async def list_namespaces(self) -> list[Namespace]:
        return self._all_namespaces()

    async def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        self._require_namespace(namespace)
        return dict(self._namespaces.get(namespace, {}))

    async def set_namespace_properties(
        self,
        namespace: Namespace,
        properties: Mapping[str, str],
        *,
        removed: Collection[str] = (),
    ) -> None:
        check_property_names((*properties, *removed))
        self._require_namespace(namespace)
        kept = self._namespaces.setdefault(namespace, {})
        kept.update(properties)
        for key in removed:
            kept.pop(key, None)

    async def default_location(self, namespace: Namespace) -> str | None:
        join_namespace(namespace)
        return self._namespaces.get(namespace, {}).get("location")

    def _require_namespace(self, namespace: Namespace) -> None:
        text = join_namespace(namespace)
        if namespace not in self._all_namespaces():
            raise NoSuchNamespaceError(f"no namespace {text}")

    def _all_namespaces(self) -> list[Namespace]:
        tables = {table.namespace for table in self._locations}
        return with_parents(self._namespaces.keys() | tables)

    async def probe(self) -> None:
        """Do nothing: the condition is the comparison in `swap`."""

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""
