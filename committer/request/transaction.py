"""The models of a transaction: requests of several tables that land together or not at all."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Annotated, Self
from uuid import UUID

from pydantic import Field, model_validator

from committer.request.request_model import Model, Name
from committer.request.table_identifier import TableIdentifier

TRANSACTION_TABLES_MAX = 100
TransactionIdentity = tuple[UUID, tuple[tuple[TableIdentifier, UUID], ...]]
TableNamePart = Annotated[Name, Field(pattern=r"^[^.]+$")]


class TableName(Model):
    """The table's name, as in the REST catalog specification. No part has a dot: catalogs, the
    ledger's readers and the log know a table by its parts joined by dots.
    """

    namespace: Annotated[tuple[TableNamePart, ...], Field(min_length=1, max_length=16)]
    name: TableNamePart


class TransactionTable(Model):
    """A table of a transaction, as the request for it names it."""

    table: TableName
    table_uuid: UUID

    @property
    def identifier(self) -> TableIdentifier:
        return TableIdentifier(self.table.namespace, self.table.name)


class Transaction(Model):
    """One atomic change of several tables: one request for each of them.

    All its requests name the same tables, in any order; a request that names others is of another
    transaction.
    """

    id: UUID
    tables: Annotated[
        tuple[TransactionTable, ...], Field(min_length=2, max_length=TRANSACTION_TABLES_MAX)
    ]

    @model_validator(mode="after")
    def _names_no_table_twice(self) -> Self:
        names = Counter(one.identifier for one in self.tables)
        uuids = Counter(one.table_uuid for one in self.tables)
        for one in self.tables:
            if names[one.identifier] > 1:
                raise ValueError(f"expected each table once, found `{one.identifier}` twice")
            if uuids[one.table_uuid] > 1:
                raise ValueError(
                    f"expected each table once, found table uuid {one.table_uuid} twice, as"
                    f" `{one.identifier}` too"
                )
        return self

    def require(self, table: TableName, table_uuid: UUID) -> None:
        """Return if it has this table. Errors: `ValueError`."""
        if all((one.table, one.table_uuid) != (table, table_uuid) for one in self.tables):
            raise ValueError("expected `transaction` to name the request's own table")

    @cached_property
    def members(self) -> tuple[tuple[TableIdentifier, UUID], ...]:
        """Its tables in one order, whatever that of the request."""
        return tuple(sorted((one.identifier, one.table_uuid) for one in self.tables))

    @property
    def first_table(self) -> UUID:
        """The table whose owner decides about the transaction, if several committers could."""
        (_, first), *_ = self.members
        return first

    @property
    def identity(self) -> TransactionIdentity:
        """Its id with its tables: a client that names other tables under the same id begins
        another transaction.
        """
        return self.id, self.members
