"""Placeholder for the first build step: names that the ports use. Replaced in the next commit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class TableIdentifier:
    """A table's name in its catalog: namespace levels, then the name."""

    namespace: tuple[str, ...]
    name: str

    @classmethod
    def parse(cls, text: str) -> TableIdentifier:
        """`db.flights` → namespace `("db",)`, name `flights`. Needs at least one level."""
        *namespace, name = text.split(".")
        if not namespace or not name or not all(namespace):
            raise ValueError(f"expected a table name such as `db.flights`, got `{text}`")
        return cls(tuple(namespace), name)

    def __str__(self) -> str:
        return ".".join((*self.namespace, self.name))


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a request, told to its producer."""

    producer: str
    epoch: int
    attempt: str
    state: str  # "committed" | "quarantined" | "dropped"
    snapshot_id: int | None = None
    sequence_number: int | None = None
    reason: str | None = None
    message: str | None = None
