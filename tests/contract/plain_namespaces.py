"""What most catalogs do with namespaces, for their harnesses."""

from __future__ import annotations

WAREHOUSE = "memory://warehouse"


class PlainNamespaces:
    """What most back ends do: nothing is said of a namespace that was not set."""

    warehouse = WAREHOUSE

    def own_properties(self, namespace: str) -> dict[str, str]:
        return {}

    def default_location(self, namespace: str) -> str | None:
        return None
