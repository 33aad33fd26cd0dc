"""Namespaces, tables and commits of the fake REST catalog, without HTTP.

Metadata is real and changed by the real code. Each change writes its metadata file to a storage, so
that `register` and other readers find it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID, uuid5

from committer.catalog.staging import metadata_object, read_table
from committer.errors import InvalidMetadataError, NotFoundError, UnsupportedError
from committer.iceberg.metadata.table_metadata import (
    TableMetadata,
    new_table_metadata,
)
from committer.iceberg.schema.partition_spec import UNPARTITIONED, parse_partition_spec
from committer.iceberg.schema.schema import parse_schema
from committer.iceberg.schema.sort_order import UNSORTED, parse_sort_order
from committer.iceberg.updates.metadata_update import Update, apply_updates
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import Storage
from committer.request.table_identifier import TableIdentifier
from tests.support.iceberg.created_table import table_of_updates
from tests.support.iceberg.update_reader import parse_update

Namespace = tuple[str, ...]
_IDS = UUID(int=0)


class Refusal(Exception):
    """An answer that is an error: its status, and the type and message of its body."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


@dataclass(slots=True)
class Judgment:
    """How the server answers where real ones differ. The defaults are those of Iceberg Java."""

    stale_status: int = 409
    """To a snapshot whose sequence number or first row id another branch has taken: 400 or 409."""
    unknown_update_status: int = 500
    """To an update of an unknown action; the specification wants 400."""
    soft_deletes: bool = False
    """A dropped table keeps its name: nothing else can be called so."""
    wants_staged: bool = False
    """A commit makes a table only with the uuid and the location that it was staged with."""


@dataclass(slots=True)
class FakeTables:
    """The catalog's content. Nothing awaits between the check of a commit and its effect."""

    storage: Storage
    warehouse: str
    judgment: Judgment = field(default_factory=Judgment)
    namespaces: dict[Namespace, dict[str, str]] = field(default_factory=dict)
    tables: dict[TableIdentifier, LoadedTable] = field(default_factory=dict)
    deleted: set[TableIdentifier] = field(default_factory=set)
    commits: int = 0
    staged: dict[TableIdentifier, TableMetadata] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    # --- Reading ---------------------------------------------------------------------------------

    def properties(self, namespace: Namespace) -> dict[str, str]:
        if namespace not in self.namespaces:
            name = ".".join(namespace)
            raise Refusal(404, "NoSuchNamespaceException", f"Namespace does not exist: {name}")
        return self.namespaces[namespace]

    def table(self, identifier: TableIdentifier) -> LoadedTable:
        if identifier not in self.tables:
            raise Refusal(404, "NoSuchTableException", f"Table does not exist: {identifier}")
        return self.tables[identifier]

    # --- Names -----------------------------------------------------------------------------------

    def add_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        if namespace in self.namespaces:
            name = ".".join(namespace)
            raise Refusal(409, "AlreadyExistsException", f"Namespace already exists: {name}")
        self.namespaces[namespace] = dict(properties)

    def remove_namespace(self, namespace: Namespace) -> None:
        self.properties(namespace)
        if any(table.namespace == namespace for table in self.tables):
            raise Refusal(409, "NamespaceNotEmptyException", "the namespace has tables")
        del self.namespaces[namespace]

    def require_free(self, identifier: TableIdentifier) -> None:
        self.properties(identifier.namespace)
        if identifier in self.tables or identifier in self.deleted:
            raise Refusal(409, "AlreadyExistsException", f"Table already exists: {identifier}")

    def rename(self, identifier: TableIdentifier, to: TableIdentifier) -> None:
        table = self.table(identifier)
        self.require_free(to)
        del self.tables[identifier]
        self.tables[to] = replace(table, identifier=to)

    def drop(self, identifier: TableIdentifier) -> LoadedTable:
        table = self.table(identifier)
        del self.tables[identifier]
        if self.judgment.soft_deletes:
            self.deleted.add(identifier)
        return table

    async def register(self, identifier: TableIdentifier, location: str) -> LoadedTable:
        self.require_free(identifier)
        try:
            table = await read_table(self.storage, identifier, location)
        except NotFoundError as error:
            raise Refusal(404, "NotFoundException", f"Cannot find {location}") from error
        self.require_free(identifier)
        self.tables[identifier] = table
        return table

    # --- Changes ---------------------------------------------------------------------------------

    async def create(
        self, identifier: TableIdentifier, body: Mapping[str, Any], now_ms: int, *, staged: bool
    ) -> LoadedTable:
        """Make a table as the body of `POST …/tables` describes it; `staged`: show it only."""
        self.require_free(identifier)
        spec, order = body.get("partition-spec"), body.get("write-order")
        metadata = new_table_metadata(
            table_uuid=self._uuid(),
            location=body.get("location") or self._default_location(identifier),
            schema=parse_schema(body["schema"], where="schema"),
            partition_spec=parse_partition_spec(spec, where="spec") if spec else UNPARTITIONED,
            sort_order=parse_sort_order(order, where="order") if order else UNSORTED,
            properties=body.get("properties") or {},
            format_version=2,
            now_ms=now_ms,
        )
        table = LoadedTable(identifier, metadata, self._location(metadata, 0))
        if staged:
            self.staged[identifier] = metadata
        else:
            await self._install((table,))
        return table

    async def commit(self, changes: list[Mapping[str, Any]], now_ms: int) -> list[LoadedTable]:
        """Apply the changes of several tables together, or none of them."""
        planned = [self._changed(change, now_ms) for change in changes]
        await self._install(planned)
        self.commits += 1
        return planned

    async def _install(self, tables: list[LoadedTable] | tuple[LoadedTable, ...]) -> None:
        for table in tables:
            self.tables[table.identifier] = table
        await self.storage.create(
            [metadata_object(table.metadata, table.metadata_location) for table in tables]
        )

    def _changed(self, change: Mapping[str, Any], now_ms: int) -> LoadedTable:
        name = change["identifier"]
        identifier = TableIdentifier(tuple(name["namespace"]), name["name"])
        requirements = change.get("requirements", ())
        is_new = any(one["type"] == "assert-create" for one in requirements)
        if is_new:
            self.require_free(identifier)
            return self._created(identifier, self._updates(change), now_ms)
        base = self.table(identifier)
        for requirement in requirements:
            _require(base.metadata, requirement)
        updates = self._updates(change)
        try:
            metadata = apply_updates(
                base.metadata, updates, base_location=base.metadata_location, now_ms=now_ms
            )
        except InvalidMetadataError as error:
            raise self._refused(error) from error
        return LoadedTable(identifier, metadata, self._location(metadata, 1))

    def _refused(self, error: InvalidMetadataError) -> Refusal:
        if "sequence-number" in str(error) or "first-row-id" in str(error):
            status = self.judgment.stale_status
            kind = "CommitFailedException" if status == 409 else "ValidationException"
            return Refusal(status, kind, str(error))
        return Refusal(400, "ValidationException", str(error))

    def _updates(self, change: Mapping[str, Any]) -> list[Update]:
        try:
            return [parse_update(update) for update in change.get("updates", ())]
        except UnsupportedError as error:
            status = self.judgment.unknown_update_status
            raise Refusal(status, "IllegalArgumentException", str(error)) from error
        except InvalidMetadataError as error:
            raise Refusal(400, "BadRequestException", str(error)) from error

    def _created(
        self, identifier: TableIdentifier, updates: list[Update], now_ms: int
    ) -> LoadedTable:
        """Make a table of the updates that describe a whole one."""
        try:
            metadata = table_of_updates(updates, now_ms=now_ms)
        except InvalidMetadataError as error:
            raise Refusal(400, "ValidationException", str(error)) from error
        staged = self.staged.pop(identifier, None)
        if self.judgment.wants_staged and (
            staged is None
            or (staged.table_uuid, staged.location) != (metadata.table_uuid, metadata.location)
        ):
            raise Refusal(400, "ValidationException", "another uuid or location was staged")
        return LoadedTable(identifier, metadata, self._location(metadata, 0))

    def _default_location(self, identifier: TableIdentifier) -> str:
        own = self.properties(identifier.namespace).get("location")
        folder = own or "/".join((self.warehouse, *identifier.namespace))
        return f"{folder}/{identifier.name}"

    def _location(self, metadata: TableMetadata, version: int) -> str:
        number = next(self._numbers)
        return f"{metadata.location}/metadata/{number:05d}-{uuid5(_IDS, str(number))}.metadata.json"

    def _uuid(self) -> UUID:
        return uuid5(_IDS, f"table-{next(self._numbers)}")


def _require(metadata: TableMetadata, requirement: Mapping[str, Any]) -> None:
    """Check one requirement: 409 if it does not hold, 400 if it is not known."""
    kind = requirement["type"]
    if kind not in _REQUIREMENTS:
        raise Refusal(400, "BadRequestException", f"unknown requirement {kind}")
    key, found = _REQUIREMENTS[kind]
    actual = found(metadata, requirement)
    if requirement.get(key) != actual:
        raise Refusal(
            409,
            "CommitFailedException",
            f"Requirement failed: {kind} expected {requirement.get(key)}, found {actual}",
        )


def _head(metadata: TableMetadata, requirement: Mapping[str, Any]) -> int | None:
    ref = metadata.refs.get(requirement["ref"])
    return None if ref is None else ref.snapshot_id


_REQUIREMENTS: Mapping[str, tuple[str, Any]] = {
    "assert-table-uuid": ("uuid", lambda table, _: str(table.table_uuid)),
    "assert-ref-snapshot-id": ("snapshot-id", _head),
    "assert-last-assigned-field-id": (
        "last-assigned-field-id",
        lambda table, _: table.last_column_id,
    ),
    "assert-current-schema-id": ("current-schema-id", lambda table, _: table.current_schema_id),
    "assert-last-assigned-partition-id": (
        "last-assigned-partition-id",
        lambda table, _: table.last_partition_id,
    ),
    "assert-default-spec-id": ("default-spec-id", lambda table, _: table.default_spec_id),
    "assert-default-sort-order-id": (
        "default-sort-order-id",
        lambda table, _: table.default_sort_order_id,
    ),
}
