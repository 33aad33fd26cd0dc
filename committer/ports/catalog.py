"""The port `Catalog`: names of tables and the pointer of each. Each docstring is a contract."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.ports.pointer_swap import GroupAnswer, LoadedTable, Swap, SwapAnswer
from committer.ports.storage import NewObject
from committer.request.table_identifier import TableIdentifier


class Catalog(Protocol):
    """Names of tables and the pointer of each.

    Obligations of every method: `CatalogUnavailableError` when the back end surely applied nothing
    and may answer later; `AccessError` for permissions; `InvalidMetadataError` for metadata that
    breaks the specification.
    """

    @property
    def capabilities(self) -> CatalogCapabilities:
        """The capabilities of this catalog: the same value for as long as it is open."""

    async def load(self, identifier: TableIdentifier) -> LoadedTable:
        """Read the pointer (strongly consistent) and the metadata it names. Absent, also because no
        table of this catalog can be called so: `NoSuchTableError`.
        """

    async def current_location(self, identifier: TableIdentifier) -> str:
        """Read the pointer only: the cheap question "did it move?". Absent: as `load`."""

    def objects_before(self, swap: Swap) -> tuple[NewObject, ...]:
        """Return the objects that must be durable before `swap` is sent: the metadata, or none."""

    async def swap(self, swap: Swap) -> SwapAnswer:
        """Replace the pointer if the base is still current.

        Raise only if nothing can have been applied; in doubt answer `Unknown`. Never resend, unless
        the back end knows the request again by a key of its own. A failed condition after a resend,
        ours or one below us, is `Unknown`. A dropped table is `Conflict`. Two
        concurrent swaps of one base: at most one is `Committed`.
        """

    async def swap_together(self, swaps: Sequence[Swap]) -> GroupAnswer:
        """Replace the pointers of several tables if every base is still current: all or none.

        What `swap` promises holds for the group: raise only if none can have been applied; in doubt
        `Unknown`, and each table then tells by itself. At no moment, and after no crash, do some of
        the swaps stay while others never land. Resend only under a token by which the back end
        knows the group; a failed condition after that is `Unknown`. Of two concurrent groups or
        swaps that share a base, at most one is committed.

        A back end that cannot (`CatalogCapabilities.has_transactions`), or not for so many tables:
        `UnsupportedError`, and nothing is sent. A table named twice: `InvariantError`.
        """

    async def create_table(self, table: LoadedTable) -> None:
        """Write the first metadata file and the pointer. Name taken: `TableAlreadyExistsError`.

        A catalog that writes metadata files itself names the file as it likes, and one that chooses
        locations (`CatalogCapabilities.chooses_locations`) puts the table elsewhere. A missing
        namespace is `NoSuchNamespaceError`.
        """

    async def drop_table(self, identifier: TableIdentifier) -> str | None:
        """Remove the pointer; files stay. Return what it named last, where the back end tells it in
        the same step: no commit then came between. None: the back end does not tell.

        Absent: `NoSuchTableError`. Where to remove the pointer alone has no form
        (`CatalogCapabilities.drops_pointer_only`): `UnsupportedError`, saying what to do instead.
        """

    async def rename_table(self, identifier: TableIdentifier, to: TableIdentifier) -> None:
        """Give the table another name in one step; its files and metadata stay as they are. Where
        that is not one step (`CatalogCapabilities.has_atomic_rename`): `UnsupportedError`.

        Absent: `NoSuchTableError`. New name taken: `TableAlreadyExistsError`. A missing namespace
        is `NoSuchNamespaceError`. A swap under the old name conflicts from then on.
        """

    async def register_table(
        self, identifier: TableIdentifier, metadata_location: str
    ) -> LoadedTable:
        """Write a pointer to a metadata file that is there, and return the table that it names.

        File absent: `NotFoundError`. Name taken: `TableAlreadyExistsError`, unless by a pointer to
        this very file. A missing namespace is `NoSuchNamespaceError`. The file is never deleted.
        """

    async def list_tables(self, namespace: tuple[str, ...]) -> list[TableIdentifier]:
        """List all tables directly in the namespace, sorted. Absent: `NoSuchNamespaceError`."""

    async def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """Create the namespace; an existing one is left as it is."""

    async def drop_namespace(self, namespace: tuple[str, ...]) -> None:
        """Remove a namespace and its properties. Absent: `NoSuchNamespaceError`.

        One that holds a table, a view or another namespace: `NamespaceNotEmptyError`, and nothing
        changes. A table that is created in it at the same moment stays.
        """

    async def list_namespaces(self) -> list[tuple[str, ...]]:
        """List all namespaces, sorted."""

    async def namespace_properties(self, namespace: tuple[str, ...]) -> dict[str, str]:
        """Return the properties that the namespace was given, without those by which the back end
        itself keeps it. Absent: `NoSuchNamespaceError`.
        """

    async def set_namespace_properties(
        self,
        namespace: tuple[str, ...],
        properties: Mapping[str, str],
        *,
        removed: Collection[str] = (),
    ) -> None:
        """Set properties, and remove others; what is not named stays, and so does the namespace.

        Absent: `NoSuchNamespaceError`. A removed one that is not there is no error. A property that
        this catalog cannot keep: `UnsupportedError`, and nothing changes. May be repeated. Two
        concurrent calls: where the back end replaces all properties at once, one of them may win.
        """

    async def default_location(self, namespace: tuple[str, ...]) -> str | None:
        """Return the folder that the namespace itself names for its tables, or None."""

    async def probe(self) -> None:
        """Prove that the swap's condition is enforced (a stale base must lose); clean up.
        Else `SettingsError`.
        """

    async def close(self) -> None:
        """Release connections. Idempotent."""
