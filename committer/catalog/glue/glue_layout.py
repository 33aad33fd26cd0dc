"""A table of Iceberg Java's GlueCatalog as Glue holds it, and the calls that write it. Pure.

Source: docs/reference/iceberg-notes.md 9.4. UpdateTable replaces the whole table, so each write
begins with what Glue has: parameters, columns' parameters, owner and description of others stay.
Table properties are not copied into `Parameters`, as Java copies none: the metadata file has them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from committer.catalog.glue.glue_columns import print_columns
from committer.catalog.namespaces import Namespace, join_namespace
from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.ports.pointer_swap import LoadedTable, Swap
from committer.request.table_identifier import TableIdentifier

if TYPE_CHECKING:
    from types_aiobotocore_glue.type_defs import (
        CreateTableRequestTypeDef,
        TableTypeDef,
        UpdateTableRequestTypeDef,
    )

TABLE_TYPE = "table_type"
LOCATION = "metadata_location"
PREVIOUS_LOCATION = "previous_metadata_location"
ICEBERG = "ICEBERG"

_NAME = re.compile(r"[a-z0-9_]+")
_DATABASE_CHARS_MAX = 252
_TABLE_CHARS_MAX = 255


@dataclass(frozen=True, slots=True)
class GlueTable:
    """A table as Glue answers it, with its pointer."""

    answer: TableTypeDef
    location: str
    previous_location: str
    version: str


def is_name(text: str) -> bool:
    """Return whether a database of Iceberg's clients can be called so."""
    return bool(_NAME.fullmatch(text)) and len(text) <= _DATABASE_CHARS_MAX


def database_name(namespace: Namespace) -> str:
    """Return the name of a namespace's database.

    Errors: `UnsupportedError` for one that no database of Iceberg's clients has.
    """
    text = join_namespace(namespace)
    if not is_name(text):
        raise UnsupportedError(
            f"namespace `{text}`: Glue has no levels of namespaces; expected one name of up to"
            f" {_DATABASE_CHARS_MAX} lower-case letters, digits and `_`"
        )
    return text


def table_name(identifier: TableIdentifier) -> tuple[str, str]:
    """Return the names of a table's database and of the table.

    Errors: `UnsupportedError` for one that no table of Iceberg's clients has.
    """
    database, name = database_name(identifier.namespace), identifier.name
    if not _NAME.fullmatch(name) or len(name) > _TABLE_CHARS_MAX:
        raise UnsupportedError(
            f"table `{identifier}`: Glue expects a name of up to {_TABLE_CHARS_MAX} lower-case"
            " letters, digits and `_`"
        )
    return database, name


def is_iceberg(answer: TableTypeDef) -> bool:
    """Return whether Glue's table is Iceberg's; views have another type."""
    return answer.get("Parameters", {}).get(TABLE_TYPE, "").upper() == ICEBERG


def parse_table(identifier: TableIdentifier, answer: TableTypeDef) -> GlueTable:
    """Read a table's pointer. Errors: `InvalidMetadataError` where it is no Iceberg table."""
    parameters = answer.get("Parameters", {})
    if not is_iceberg(answer):
        kind = parameters.get(TABLE_TYPE)
        raise InvalidMetadataError(
            f"table {identifier}: Glue's table is not an Iceberg table: its parameter"
            f" `{TABLE_TYPE}` is {f'`{kind}`' if kind else 'missing'}, expected `{ICEBERG}`"
        )
    location, version = parameters.get(LOCATION, ""), answer.get("VersionId", "")
    if not location or not version:
        missing = f"its parameter `{LOCATION}`" if not location else "its `VersionId`"
        raise InvalidMetadataError(f"table {identifier}: of Glue's table {missing} is missing")
    return GlueTable(answer, location, parameters.get(PREVIOUS_LOCATION, ""), version)


def create_table(table: LoadedTable) -> CreateTableRequestTypeDef:
    """Build the call that creates a table; it fails where the name is taken."""
    database, name = table_name(table.identifier)
    pointer = {TABLE_TYPE: ICEBERG, LOCATION: table.metadata_location}
    return {
        "DatabaseName": database,
        "TableInput": {
            "Name": name,
            "TableType": "EXTERNAL_TABLE",
            "Parameters": pointer,
            "StorageDescriptor": _storage_descriptor(table.metadata, {}),
        },
    }


def update_table(
    standing: GlueTable, swap: Swap, *, fields: Collection[str], skip_archive: bool
) -> UpdateTableRequestTypeDef:
    """Build the call of a swap: it fails where the table's version is another one.

    `fields`: those that Glue takes, of those that it answers.
    """
    database, name = table_name(swap.base.identifier)
    answer: Mapping[str, Any] = standing.answer
    kept: dict[str, Any] = {field: answer[field] for field in fields if field in answer}
    pointer = {
        TABLE_TYPE: ICEBERG,
        LOCATION: swap.metadata_location,
        PREVIOUS_LOCATION: standing.location,
    }
    descriptor = _storage_descriptor(swap.metadata, kept.get("StorageDescriptor", {}))
    table_input: Any = {
        **kept,
        "Name": name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {**kept["Parameters"], **pointer},
        "StorageDescriptor": descriptor,
    }
    return {
        "DatabaseName": database,
        "TableInput": table_input,
        "SkipArchive": skip_archive,
        "VersionId": standing.version,
    }


def _storage_descriptor(metadata: TableMetadata, standing: Mapping[str, Any]) -> Any:
    columns = print_columns(metadata, standing.get("Columns", ()))
    return {**standing, "Columns": columns, "Location": metadata.location}
