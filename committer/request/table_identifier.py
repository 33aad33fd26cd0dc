"""The name of a table in its catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, order=True)
class TableIdentifier:
    """A table's name in its catalog: namespace levels, then the name."""

    namespace: tuple[str, ...]
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `db.flights`: table `flights` of namespace `("db",)`. Errors: `ValueError`."""
        *namespace, name = text.split(".")
        if not namespace or not name or not all(namespace):
            raise ValueError(f"expected a table name such as `db.flights`, found `{text}`")
        return cls(tuple(namespace), name)

    def __str__(self) -> str:
        return ".".join((*self.namespace, self.name))
