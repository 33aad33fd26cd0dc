"""Namespaces as databases of Glue: each call, with Glue's errors told apart.

As in Iceberg Java a namespace's property `location` is the database's LocationUri, `comment` its
description, and every other one a parameter. UpdateDatabase has no condition: of two changes at
once the last one wins.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from committer.aws.client_errors import AWS_ERRORS, code_of
from committer.catalog.glue.glue_errors import ALREADY_EXISTS, explained, frazil_error
from committer.catalog.glue.glue_layout import database_name, is_iceberg, is_name
from committer.catalog.namespaces import (
    Namespace,
    check_property_names,
    existing_name,
    no_namespace,
    not_empty,
)
from committer.errors import UnsupportedError

if TYPE_CHECKING:
    from types_aiobotocore_glue import GlueClient
    from types_aiobotocore_glue.type_defs import DatabaseTypeDef

# The fields of GetDatabase's answer that UpdateDatabase takes, besides parameters.
_KEPT = ("CreateTableDefaultPermissions", "TargetDatabase", "FederatedDatabase")
_FIELDS = {"location": "LocationUri", "comment": "Description"}
_KEY_CHARS_MAX = 255
_VALUE_CHARS_MAX = {"location": 1_024, "comment": 2_048}
_PARAMETER_CHARS_MAX = 512_000


async def read_database(client: GlueClient, namespace: Namespace) -> DatabaseTypeDef:
    """Read a database. Absent, also because none can be called so: `NoSuchNamespaceError`."""
    name = existing_name(namespace, is_name)
    with explained(client, "GetDatabase", name, absent=no_namespace(namespace)):
        return (await client.get_database(Name=name))["Database"]


async def create_database(client: GlueClient, namespace: Namespace) -> None:
    """Create a database; one that is there stays as it is."""
    name = database_name(namespace)
    try:
        await client.create_database(DatabaseInput={"Name": name})
    except AWS_ERRORS as error:
        if code_of(error) != ALREADY_EXISTS:
            raise frazil_error(error, client, "CreateDatabase", name) from error


async def drop_database(client: GlueClient, namespace: Namespace) -> None:
    """Delete a database without tables and views of any kind.

    DeleteDatabase has no condition, and deletes tables: one that is created between the look and
    the call is deleted with it.
    """
    await read_database(client, namespace)
    if await _tables(client, namespace):
        raise not_empty(namespace)
    name = database_name(namespace)
    with explained(client, "DeleteDatabase", name, absent=no_namespace(namespace)):
        await client.delete_database(Name=name)


async def change_database(
    client: GlueClient,
    namespace: Namespace,
    properties: Mapping[str, str],
    removed: Collection[str],
) -> None:
    """Set and remove properties; what else the database holds stays."""
    _check_properties(properties, removed)
    database = await read_database(client, namespace)
    changed = {key: text for key, text in properties_of(database).items() if key not in removed}
    changed.update(properties)
    standing: Mapping[str, Any] = database
    call: dict[str, Any] = {field: standing[field] for field in _KEPT if field in standing}
    for key, field in _FIELDS.items():
        if text := changed.pop(key, ""):
            call[field] = text
    name = database["Name"]
    database_input: Any = {**call, "Name": name, "Parameters": changed}
    with explained(client, "UpdateDatabase", name, absent=no_namespace(namespace)):
        await client.update_database(Name=name, DatabaseInput=database_input)


async def list_databases(client: GlueClient) -> list[Namespace]:
    """List databases, sorted; one whose name no client of Iceberg takes is left out."""
    with explained(client, "GetDatabases", "the catalog"):
        pages = client.get_paginator("get_databases").paginate(PaginationConfig={"PageSize": 100})
        found = [one["Name"] async for page in pages for one in page["DatabaseList"]]
    return [(name,) for name in sorted(found) if is_name(name)]


async def list_iceberg_tables(client: GlueClient, namespace: Namespace) -> list[str]:
    """List Iceberg's tables, sorted; those of other formats and views are left out."""
    tables = await _tables(client, namespace)
    return sorted(name for name, is_ours in tables.items() if is_ours)


async def _tables(client: GlueClient, namespace: Namespace) -> dict[str, bool]:
    """Return all that a database holds by name, and whether it is a table of Iceberg."""
    name = existing_name(namespace, is_name)
    with explained(client, "GetTables", name, absent=no_namespace(namespace)):
        pages = client.get_paginator("get_tables").paginate(DatabaseName=name)
        return {one["Name"]: is_iceberg(one) async for page in pages for one in page["TableList"]}


def properties_of(database: DatabaseTypeDef) -> dict[str, str]:
    """Return the properties that a database was given."""
    standing: Mapping[str, Any] = database
    fields = {key: standing[field] for key, field in _FIELDS.items() if standing.get(field)}
    return {**database.get("Parameters", {}), **fields}


def _check_properties(properties: Mapping[str, str], removed: Collection[str]) -> None:
    check_property_names((*properties, *removed))
    for key, text in properties.items():
        chars_max = _VALUE_CHARS_MAX.get(key, _PARAMETER_CHARS_MAX)
        if len(key) > _KEY_CHARS_MAX or len(text) > chars_max:
            raise UnsupportedError(
                f"namespace property `{key[:_KEY_CHARS_MAX]}`: Glue takes names of up to"
                f" {_KEY_CHARS_MAX} characters, and here a value of up to {chars_max:,}"
            )
