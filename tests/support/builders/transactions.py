"""Requests of several tables that are one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

from committer.ports.pointer_swap import LoadedTable
from committer.request.request_format import EncodedRequest
from committer.request.transaction import TableName, Transaction, TransactionTable
from tests.support.builders.request_builders import (
    build_request,
    seal,
    sealed_manifests,
)


def build_transaction(tables: Sequence[LoadedTable], *, id: UUID | None = None) -> Transaction:
    named = (
        TransactionTable(
            table=TableName(namespace=table.identifier.namespace, name=table.identifier.name),
            table_uuid=table.metadata.require_uuid(),
        )
        for table in tables
    )
    return Transaction(id=id or uuid4(), tables=tuple(named))


def in_transaction(sealed: EncodedRequest, transaction: Transaction) -> EncodedRequest:
    """Return the request as part of a transaction."""
    line = sealed.request.model_copy(update={"transaction": transaction, "manifests": ()})
    return seal(line, sealed_manifests(sealed))


def build_group(
    tables: Sequence[LoadedTable], *, id: UUID | None = None, **line: object
) -> list[EncodedRequest]:
    """Build a request for each table; keyword arguments as `build_line`."""
    transaction = build_transaction(tables, id=id)
    return [
        in_transaction(build_request(table, **line), transaction)  # type: ignore[arg-type]  # as it is
        for table in tables
    ]
