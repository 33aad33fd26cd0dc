"""The ways of most catalogs with namespaces and first files, for their harnesses."""

from __future__ import annotations

from committer.ports.pointer_swap import LoadedTable

WAREHOUSE = "memory://warehouse"


class PlainNamespaces:
    """The way of most back ends: nothing is said of a namespace that was not set, and the first
    file of a table is where its client wants it.
    """

    warehouse = WAREHOUSE

    def own_properties(self, namespace: str) -> dict[str, str]:
        return {}

    def default_location(self, namespace: str) -> str | None:
        return None

    def first_location(self, table: LoadedTable) -> str:
        return table.metadata_location
