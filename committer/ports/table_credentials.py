"""The port of vended credentials: a catalog gives them out with a table, a storage uses them.

Values and protocols only. Nothing here is ever logged: a representation shows no secret.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from committer.request.table_identifier import TableIdentifier


@dataclass(frozen=True, slots=True)
class VendedCredential:
    """Properties that a catalog lays over its own for reading and writing a table's files."""

    prefix: str
    """The locations that it is for; empty: all files of the table."""
    properties: Mapping[str, str] = field(repr=False)
    """Properties of the storage, by the names that every Iceberg client uses: `s3.session-token`,
    `gcs.oauth2.token`, …"""
    expires_ms: int | None = None
    """When it ends; None where the catalog does not say."""


Renew = Callable[[], Awaitable[tuple[VendedCredential, ...]]]
"""Asks the catalog for new credentials of one table. Errors: those of `Catalog.load`."""


class CredentialKeeper(Protocol):
    """Keeps the credentials that a catalog has vended, for the storage of table files."""

    def keep(
        self,
        table: TableIdentifier,
        folders: tuple[str, ...],
        credentials: tuple[VendedCredential, ...],
        renew: Renew,
    ) -> None:
        """Use these from now on, in place of those that were kept for this table. None: as if the
        catalog had never vended any for it.

        `folders`: where the table's files lie. A prefix that is wider is narrowed to them.
        """
